"""Which number of latents is taken, given what correlations count and what fits have."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from hidag.fitting.number_of_latents import (
    Comparison,
    JudgedFit,
    count_active,
    count_shared,
    nearest,
    next_both_ways,
    next_to_fit,
    settled_number,
)
from hidag.fitting.penalty_strength import bic_at

NAN, INF = float("nan"), float("inf")


#: Logarithm of the rows of fits to items that hardly show their latents.
LOG_ROWS = log(5000.0)


def weak(
    bic: float, n_parameters: int, n_active: int, ratio: float = 0.05, n_shared: int = 0
) -> JudgedFit:
    """Return a fit to items that hardly show their latents."""
    aic = bic - (LOG_ROWS - 2.0) * n_parameters
    return JudgedFit(bic, 3.0, n_parameters, ratio, n_active, aic, n_shared)


@pytest.mark.parametrize(
    ("bic", "settled"),
    [
        # The counted number stands, though fewer are better by a near tie.
        ({3: 100.0, 4: 110.0}, 4),
        ({3: 100.0, 4: 110.1}, 3),
        # Several small steps down are one large one.
        ({2: 100.0, 3: 106.0, 4: 112.0}, 3),
        # Fits may not add, by whatever they are better.
        ({3: 100.0, 4: 90.0, 5: 0.0}, 4),
        ({5: 10.0, 6: 0.0}, 5),
        # What could not be fitted is not compared.
        ({3: 100.0, 4: NAN}, 3),
        ({3: INF, 4: NAN}, None),
        ({}, None),
    ],
)
def test_fits_take_away_beyond_a_near_tie_and_never_add(bic, settled):
    assert settled_number(4, bic) == settled


@pytest.mark.parametrize(
    ("bic", "further"),
    [
        ({20: 0.0}, 19),
        ({20: 0.0, 19: 1.0}, None),
        # While the fewest are the best, steps get longer, and end where factor BIC is.
        ({20: 20.0, 19: 0.0}, 17),
        ({20: 40.0, 19: 20.0, 17: 0.0}, 13),
        ({20: 80.0, 19: 60.0, 17: 40.0, 13: 20.0, 5: 0.0}, 2),
        ({20: 80.0, 5: 40.0, 2: 0.0}, None),
        # What was stepped over is made up for next to the best.
        ({20: 40.0, 19: 0.0, 17: 20.0}, 18),
        ({20: 40.0, 19: 0.0, 18: 30.0, 17: 20.0}, None),
        ({20: INF}, None),
    ],
)
def test_the_way_down_is_quick_and_leaves_nothing_out_next_to_the_best(bic, further):
    assert next_to_fit(20, 2, bic) == further


def test_the_nearest_of_two_is_the_smaller():
    assert (nearest(4, [3, 5]), nearest(9, [3, 5]), nearest(1, [3, 5])) == (3, 5, 3)


def test_where_items_hardly_show_latents_the_best_fit_decides_in_both_directions():
    fits = {3: [weak(100.0, 30, 3)], 4: [weak(103.0, 32, 4)], 5: [weak(106.0, 34, 5)]}
    compared = Comparison(3, fits)
    assert (compared.hardly_seen, compared.ratio, compared.settled) == (True, 0.05, 5)
    # Up to 2 is no evidence: of such numbers the largest is taken, whatever was counted.
    level = {4: [weak(100.0, 30, 4)], 5: [weak(102.0, 30, 5)], 7: [weak(102.1, 30, 7)]}
    assert [Comparison(k, level).settled for k in (3, 5, 9)] == [5, 5, 5]
    # Down as well, and not only beyond a near tie.
    assert Comparison(5, {3: [weak(100.0, 30, 3)], 5: [weak(107.0, 30, 5)]}).settled == 3


def test_parameters_are_charged_for_the_rows_that_the_items_are_worth():
    compared = Comparison(3, {3: [weak(100.0, 30, 3)], 4: [weak(103.0, 32, 4)]})
    price = {k: compared.bic[k] - bic for k, bic in ((3, 100.0), (4, 103.0))}
    assert price == pytest.approx({3: 30 * log(0.05), 4: 32 * log(0.05)})


def test_all_numbers_are_charged_at_the_counted_ones_share():
    # At its own share three latents would be the best.
    fits = {3: [weak(100.0, 30, 3, 0.02)], 4: [weak(90.0, 30, 4, 0.06)]}
    assert (Comparison(4, fits).ratio, Comparison(4, fits).settled) == (0.06, 4)
    # That of the nearest number where the counted one has no likelihood.
    assert Comparison(5, fits | {5: [JudgedFit(NAN, 3.0, 0, 0.9, 5)]}).ratio == 0.06
    # Its own fit's, not that of one at another number's strength.
    again = {4: [*fits[4], weak(80.0, 30, 4, 0.09)]}
    assert Comparison(4, fits | again).ratio == 0.06


def test_where_items_show_their_latents_the_number_of_parameters_says_nothing_more():
    fits = {k: [weak(100.0 - k, 10 * k, 1, ratio=0.1)] for k in (3, 4, 5)}
    compared = Comparison(4, fits)
    assert (compared.hardly_seen, compared.ratio, compared.settled) == (False, 1.0, 4)
    assert compared.standing == compared.bic == {3: 97.0, 4: 96.0, 5: 95.0}


def test_a_fit_counts_for_the_latents_that_have_two_items():
    compared = Comparison(4, {4: [weak(100.0, 30, 4)], 5: [weak(95.0, 30, 3)]})
    assert compared.settled == 3
    assert list(compared.standing) == [3, 4]
    q = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])
    assert (count_active(q), count_active(q[:, 1:])) == (1, 1)


def test_a_latent_without_two_items_of_its_own_costs_a_parameter_more():
    # Latents 1 and 2 have two items of their own, 3 has one, 4 none, 5 is idle.
    q = np.zeros((7, 5), dtype=int)
    q[[0, 1], 0] = q[[2, 3], 1] = q[4, 2] = 1
    q[5, [0, 2, 3]] = q[6, [1, 3]] = 1
    assert (count_active(q), count_shared(q)) == (4, 2)
    price = LOG_ROWS + log(0.05)
    one, other = weak(100.0, 30, 4), weak(100.0, 30, 4, n_shared=2)
    assert bic_at(other, 0.05) - bic_at(one, 0.05) == pytest.approx(2 * price)
    # Where items show their latents nothing of that counts.
    assert bic_at(other, 1.0) == bic_at(one, 1.0) == 100.0
    # A parameter costs no less than AIC's 2, and neither does such a latent.
    assert bic_at(other, 1e-3) == pytest.approx(other.aic + 2 * 2.0)


def test_without_a_likelihood_nothing_is_compared():
    nothing = Comparison(4, {4: [JudgedFit(NAN, 3.0, 0, 0.01, 4)]})
    assert (nothing.hardly_seen, nothing.settled, nothing.standing) == (False, None, {})


@pytest.mark.parametrize(
    ("bic", "further"),
    [
        ({5: 0.0}, 6),
        ({5: 0.0, 6: 1.0}, 7),
        ({5: 0.0, 6: 1.0, 7: 2.0}, 4),
        ({5: 0.0, 6: 1.0, 7: 2.0, 4: 1.0}, 3),
        ({5: 0.0, 6: 1.0, 7: 2.0, 4: 1.0, 3: 2.0}, None),
        # One number may have failed: another is looked at.
        ({5: 0.0, 6: 1.0, 7: -1.0}, 8),
        ({5: 0.0, 6: 1.0, 7: -1.0, 8: 0.0, 9: 0.0}, None),
        # The ways end where numbers do, and where likelihoods do.
        ({8: 0.0, 9: 1.0}, 7),
        ({2: 0.0, 3: 1.0, 4: 2.0}, 1),
        ({1: 0.0, 2: 0.0, 3: 1.0}, None),
        ({5: 0.0, 6: INF}, 4),
        ({5: INF}, None),
        # And when many were fitted, whatever they say.
        ({k: -float(k) for k in range(1, 9)}, None),
    ],
)
def test_fits_go_both_ways_until_two_on_either_side_are_worse(bic, further):
    assert next_both_ways(bic, 1, 9) == further
