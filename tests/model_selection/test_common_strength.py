"""Comparison of numbers of latents at a common strength of the penalty."""

from __future__ import annotations

import pytest

from hidag.fitting.information_criteria import criteria_of
from hidag.model_selection.comparison import (
    best_bic,
    best_number,
    bic_at,
    refit_at_common_strength,
)

from .stand_ins import Numbers

NAN = float("nan")


def refitted(learned: dict[int, Numbers], again: dict[tuple[int, float], float]):
    """Return all fits, and the arguments of the refits."""
    fits, asked = {k: [one] for k, one in learned.items()}, []

    def fit_again(k: int, strength: float) -> Numbers:
        asked.append((k, strength))
        return Numbers(again[k, strength], strength)

    refit_at_common_strength(fits, fit_again)
    return fits, asked


def test_numbers_with_stronger_penalties_are_refitted_with_that_of_the_best():
    learned = {2: Numbers(20.0, 3.0), 3: Numbers(40.0, 5.0), 4: Numbers(50.0, 8.0)}
    fits, asked = refitted(learned, {(3, 3.0): 10.0, (4, 3.0): 15.0})
    assert asked == [(3, 3.0), (4, 3.0)]
    assert best_number(fits) == 3
    assert best_bic(fits[4]) == 15.0


def test_numbers_with_weaker_penalties_are_not_refitted():
    learned = {2: Numbers(20.0, 3.0), 3: Numbers(10.0, 5.0)}
    fits, asked = refitted(learned, {})
    assert (best_number(fits), asked) == (3, [])


def test_refits_may_be_worse_or_fail():
    learned = {2: Numbers(20.0, 3.0), 3: Numbers(40.0, 5.0), 4: Numbers(NAN, NAN)}
    fits, asked = refitted(learned, {(3, 3.0): NAN})
    assert asked == [(3, 3.0)]
    assert (best_number(fits), best_bic(fits[3])) == (2, 40.0)
    nothing, asked = refitted({2: Numbers(NAN, NAN), 3: Numbers(NAN, NAN)}, {})
    assert (best_number(nothing), asked) == (2, [])


def test_the_best_fit_depends_on_the_effective_sample_size():
    # With a twentieth of the rows the larger fit is the best, and its strength is the common one.
    fits = {2: [Numbers(20.0, 5.0, 10)], 3: [Numbers(30.0, 3.0, 20)]}
    assert (best_number(fits), best_number(fits, 0.05)) == (2, 3)
    asked = []

    def fit_again(k: int, strength: float) -> Numbers:
        asked.append((k, strength))
        return Numbers(20.0, strength, 10)

    refit_at_common_strength(fits, fit_again)
    assert asked == []
    refit_at_common_strength(fits, fit_again, 0.05)
    assert asked == [(2, 3.0)]


def test_bic_is_at_least_aic():
    # 40 rows at a share of .05 are 2: their logarithm would be less than AIC's 2.
    criteria = criteria_of(-100.0, 10, 0.0, 40.0)
    one = Numbers(criteria.bic, 3.0, 10, 0.05, 3, criteria.aic)
    assert (bic_at(one, 0.05), bic_at(one, 1.0)) == (criteria.aic, criteria.bic)
    assert bic_at(one, 0.5) == pytest.approx(criteria_of(-100.0, 10, 0.0, 20.0).bic)
