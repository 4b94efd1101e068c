"""Numbers of latents compared at a common strength of the penalty."""

from __future__ import annotations

import pytest

from hidag.fitting.information_criteria import criteria_of
from hidag.fitting.number_of_latents import JudgedFit
from hidag.fitting.penalty_strength import (
    best_bic,
    best_number,
    bic_at,
    refit_at_common_strength,
)

NAN = float("nan")


def settled(learned: dict[int, JudgedFit], again: dict[tuple[int, float], float]):
    """Return the fits after the comparison, and what was fitted again."""
    fits, asked = {k: [one] for k, one in learned.items()}, []

    def fit_again(k: int, strength: float) -> JudgedFit:
        asked.append((k, strength))
        return JudgedFit(again[k, strength], strength)

    refit_at_common_strength(fits, fit_again)
    return fits, asked


def test_what_lost_with_a_stronger_penalty_is_fitted_with_the_best_ones():
    learned = {2: JudgedFit(20.0, 3.0), 3: JudgedFit(40.0, 5.0), 4: JudgedFit(50.0, 8.0)}
    fits, asked = settled(learned, {(3, 3.0): 10.0, (4, 3.0): 15.0})
    assert asked == [(3, 3.0), (4, 3.0)]
    assert best_number(fits) == 3
    assert best_bic(fits[4]) == 15.0


def test_what_lost_with_a_weaker_penalty_has_lost():
    learned = {2: JudgedFit(20.0, 3.0), 3: JudgedFit(10.0, 5.0)}
    fits, asked = settled(learned, {})
    assert (best_number(fits), asked) == (3, [])


def test_a_second_fit_may_be_worse_than_the_first_and_fits_may_fail():
    learned = {2: JudgedFit(20.0, 3.0), 3: JudgedFit(40.0, 5.0), 4: JudgedFit(NAN, NAN)}
    fits, asked = settled(learned, {(3, 3.0): NAN})
    assert asked == [(3, 3.0)]
    assert (best_number(fits), best_bic(fits[3])) == (2, 40.0)
    nothing, asked = settled({2: JudgedFit(NAN, NAN), 3: JudgedFit(NAN, NAN)}, {})
    assert (best_number(nothing), asked) == (2, [])


def test_the_best_is_that_of_the_comparison():
    # Charged for a twentieth of the rows, the larger fit is the best, and its strength is common.
    fits = {2: [JudgedFit(20.0, 5.0, 10)], 3: [JudgedFit(30.0, 3.0, 20)]}
    assert (best_number(fits), best_number(fits, 0.05)) == (2, 3)
    asked = []

    def fit_again(k: int, strength: float) -> JudgedFit:
        asked.append((k, strength))
        return JudgedFit(20.0, strength, 10)

    refit_at_common_strength(fits, fit_again)
    assert asked == []
    refit_at_common_strength(fits, fit_again, 0.05)
    assert asked == [(2, 3.0)]


def test_a_parameter_is_charged_for_at_least_what_noise_gains():
    # 40 rows at a share of .05 are 2: their logarithm would be less than AIC's 2.
    criteria = criteria_of(-100.0, 10, 0.0, 40.0)
    one = JudgedFit(criteria.bic, 3.0, 10, 0.05, 3, criteria.aic)
    assert (bic_at(one, 0.05), bic_at(one, 1.0)) == (criteria.aic, criteria.bic)
    assert bic_at(one, 0.5) == pytest.approx(criteria_of(-100.0, 10, 0.0, 20.0).bic)
