"""The rule that selects a number of latents from the count of the correlations and fits."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from hidag.model_selection.candidates import count_active, count_shared
from hidag.model_selection.comparison import (
    Comparison,
    bic_at,
    nearest,
    next_below,
    next_either_side,
    select_up_to,
)

from .stand_ins import Numbers

NAN, INF = float("nan"), float("inf")


#: Logarithm of the rows of fits to items with a low information ratio.
LOG_ROWS = log(5000.0)


def weak(
    bic: float, n_parameters: int, n_active: int, ratio: float = 0.05, n_shared: int = 0
) -> Numbers:
    """Return a fit to items with a low information ratio."""
    aic = bic - (LOG_ROWS - 2.0) * n_parameters
    return Numbers(bic, 3.0, n_parameters, ratio, n_active, aic, n_shared)


@pytest.mark.parametrize(
    ("bic", "selected"),
    [
        # The count stands up to a near tie.
        ({3: 100.0, 4: 110.0}, 4),
        ({3: 100.0, 4: 110.1}, 3),
        # Differences are to the best number, not to the next.
        ({2: 100.0, 3: 106.0, 4: 112.0}, 3),
        # Fits may not raise the count.
        ({3: 100.0, 4: 90.0, 5: 0.0}, 4),
        ({5: 10.0, 6: 0.0}, 5),
        # Failed fits are ignored.
        ({3: 100.0, 4: NAN}, 3),
        ({3: INF, 4: NAN}, None),
        ({}, None),
    ],
)
def test_fits_lower_the_count_beyond_a_near_tie_and_never_raise_it(bic, selected):
    assert select_up_to(4, bic) == selected


def test_independent_items_need_the_smallest_bic_at_all_rows():
    alone = Numbers(95.0, 0.0, 20, 1.0, 0, 0.0)
    # At the effective sample size one latent would be better.
    fits = {0: [alone], 1: [weak(100.0, 30, 1)]}
    assert Comparison(1, fits).selected == 1
    assert Comparison(1, fits, fewest=0).selected == 0
    assert Comparison(1, fits | {1: [weak(94.9, 30, 1)]}, fewest=0).selected == 1


@pytest.mark.parametrize(
    ("bic", "further"),
    [
        ({20: 0.0}, 19),
        ({20: 0.0, 19: 1.0}, None),
        # Steps double while the smallest number is the best, down to that of factor BIC.
        ({20: 20.0, 19: 0.0}, 17),
        ({20: 40.0, 19: 20.0, 17: 0.0}, 13),
        ({20: 80.0, 19: 60.0, 17: 40.0, 13: 20.0, 5: 0.0}, 2),
        ({20: 80.0, 5: 40.0, 2: 0.0}, None),
        # Skipped numbers next to the best are fitted.
        ({20: 40.0, 19: 0.0, 17: 20.0}, 18),
        ({20: 40.0, 19: 0.0, 18: 30.0, 17: 20.0}, None),
        ({20: INF}, None),
    ],
)
def test_steps_down_double_and_fit_the_neighbours_of_the_best(bic, further):
    assert next_below(20, 2, bic) == further


def test_the_nearest_of_two_is_the_smaller():
    assert (nearest(4, [3, 5]), nearest(9, [3, 5]), nearest(1, [3, 5])) == (3, 5, 3)


def test_with_low_information_the_smallest_bic_decides():
    fits = {3: [weak(100.0, 30, 3)], 4: [weak(103.0, 32, 4)], 5: [weak(106.0, 34, 5)]}
    compared = Comparison(3, fits)
    assert (compared.low_information, compared.ratio, compared.selected) == (True, 0.05, 5)
    # Differences up to 2 are no evidence: the largest such number is selected.
    level = {4: [weak(100.0, 30, 4)], 5: [weak(102.0, 30, 5)], 7: [weak(102.1, 30, 7)]}
    assert [Comparison(k, level).selected for k in (3, 5, 9)] == [5, 5, 5]
    # Fits lower the count within a near tie too.
    assert Comparison(5, {3: [weak(100.0, 30, 3)], 5: [weak(107.0, 30, 5)]}).selected == 3


def test_bic_uses_the_effective_sample_size():
    compared = Comparison(3, {3: [weak(100.0, 30, 3)], 4: [weak(103.0, 32, 4)]})
    price = {k: compared.bic[k] - bic for k, bic in ((3, 100.0), (4, 103.0))}
    assert price == pytest.approx({3: 30 * log(0.05), 4: 32 * log(0.05)})


def test_all_numbers_use_the_information_ratio_of_the_count():
    # With its own ratio three latents would be the best.
    fits = {3: [weak(100.0, 30, 3, 0.02)], 4: [weak(90.0, 30, 4, 0.06)]}
    assert (Comparison(4, fits).ratio, Comparison(4, fits).selected) == (0.06, 4)
    # The nearest number's ratio if the count has no likelihood.
    assert Comparison(5, fits | {5: [Numbers(NAN, 3.0, 0, 0.9, 5)]}).ratio == 0.06
    # The ratio of its first fit, not of a refit at another strength.
    again = {4: [*fits[4], weak(80.0, 30, 4, 0.09)]}
    assert Comparison(4, fits | again).ratio == 0.06


def test_without_low_information_bic_is_unchanged():
    fits = {k: [weak(100.0 - k, 10 * k, 1, ratio=0.1)] for k in (3, 4, 5)}
    compared = Comparison(4, fits)
    assert (compared.low_information, compared.ratio, compared.selected) == (False, 1.0, 4)
    assert compared.active_bic == compared.bic == {3: 97.0, 4: 96.0, 5: 95.0}


def test_a_fit_counts_for_its_latents_with_two_items():
    compared = Comparison(4, {4: [weak(100.0, 30, 4)], 5: [weak(95.0, 30, 3)]})
    assert compared.selected == 3
    assert list(compared.active_bic) == [3, 4]
    q = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])
    assert (count_active(q), count_active(q[:, 1:])) == (1, 1)


def test_a_latent_without_two_items_of_its_own_costs_one_more_parameter():
    # Latents 1 and 2 have two items of their own, 3 has one, 4 none, 5 is idle.
    q = np.zeros((7, 5), dtype=int)
    q[[0, 1], 0] = q[[2, 3], 1] = q[4, 2] = 1
    q[5, [0, 2, 3]] = q[6, [1, 3]] = 1
    assert (count_active(q), count_shared(q)) == (4, 2)
    price = LOG_ROWS + log(0.05)
    one, other = weak(100.0, 30, 4), weak(100.0, 30, 4, n_shared=2)
    assert bic_at(other, 0.05) - bic_at(one, 0.05) == pytest.approx(2 * price)
    # Without low information there is no such cost.
    assert bic_at(other, 1.0) == bic_at(one, 1.0) == 100.0
    # A parameter and such a latent cost at least 2, as in AIC.
    assert bic_at(other, 1e-3) == pytest.approx(other.aic + 2 * 2.0)


def test_fits_without_likelihood_are_not_compared():
    nothing = Comparison(4, {4: [Numbers(NAN, 3.0, 0, 0.01, 4)]})
    assert (nothing.low_information, nothing.selected, nothing.active_bic) == (False, None, {})


@pytest.mark.parametrize(
    ("bic", "further"),
    [
        ({5: 0.0}, 6),
        ({5: 0.0, 6: 1.0}, 7),
        ({5: 0.0, 6: 1.0, 7: 2.0}, 4),
        ({5: 0.0, 6: 1.0, 7: 2.0, 4: 1.0}, 3),
        ({5: 0.0, 6: 1.0, 7: 2.0, 4: 1.0, 3: 2.0}, None),
        # Two numbers beyond the best are fitted, because one may fail.
        ({5: 0.0, 6: 1.0, 7: -1.0}, 8),
        ({5: 0.0, 6: 1.0, 7: -1.0, 8: 0.0, 9: 0.0}, None),
        # Ends of the range and fits without likelihood.
        ({8: 0.0, 9: 1.0}, 7),
        ({2: 0.0, 3: 1.0, 4: 2.0}, 1),
        ({1: 0.0, 2: 0.0, 3: 1.0}, None),
        ({5: 0.0, 6: INF}, 4),
        ({5: INF}, None),
        # The number of fits is bounded.
        ({k: -float(k) for k in range(1, 9)}, None),
    ],
)
def test_numbers_are_fitted_until_two_on_either_side_are_worse(bic, further):
    assert next_either_side(bic, 1, 9) == further
