"""The number of latents when nobody says it: read off the correlations, settled by few fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hidag.criteria import information_criteria
from hidag.how_many.common_strength import refit_at_common_strength
from hidag.how_many.neighbour_fits import Neighbours
from hidag.how_many.rule import (
    LEAST_ITEMS,
    NEAR_TIE,
    NO_EVIDENCE,
    Comparison,
    count_active,
    count_shared,
    next_both_ways,
    next_to_fit,
)
from hidag.measurement import Responses
from hidag.observations import Observations, check_values, read_q_matrix, resolve_families
from hidag.result import FitResult
from hidag.shown_text import counted
from hidag.start.factor_count import FactorCount, count_factors

#: Numbers that are fitted at most, where parallel analysis and factor BIC disagree and items show
#: their latents.
MOST_NUMBERS = 4


@dataclass(frozen=True)
class NumberChoice:
    """A number of latents, and why it was chosen.

    Attributes
    ----------
    n_latents : int
    reason : str
    """

    n_latents: int
    reason: str


def number_told(
    q_matrix: Any, levels: Any, latent_names: Any, item_names: tuple[str, ...]
) -> NumberChoice | None:
    """Return the number of latents that another setting tells, or None if none does."""
    if q_matrix is not None:
        n_latents = read_q_matrix(q_matrix, item_names, None).entries.shape[1]
        return NumberChoice(n_latents, "as many as the Q-matrix has columns")
    if not isinstance(levels, str) and hasattr(levels, "__len__"):
        return NumberChoice(len(levels), "as many as there are numbers of levels")
    if latent_names is not None and not isinstance(latent_names, str):
        return NumberChoice(len(latent_names), "as many as there are names")
    return None


def count_in_table(
    table: Observations,
    family: Any,
    weights: NDArray[np.float64] | None = None,
    *,
    largest: int | None = None,
) -> FactorCount:
    """Return what the correlations of a table say; settings as the estimator takes them."""
    families = resolve_families(table, family, weights).families
    check_values(table, families)
    responses = Responses.of(families)
    with threadpool_limits(limits=1, user_api="blas"):
        return count_factors(
            responses.expand(table.values), responses.families, weights=weights, largest=largest
        )


@dataclass(frozen=True)
class JudgedFit:
    """What counts when numbers of latents are compared.

    Attributes
    ----------
    bic : float
        NaN if the fit has none.
    strength : float
        Of the penalty that it ended with.
    n_parameters : int
        Its free numbers.
    information_ratio : float
        Share of the latents' information that the items carry.
    n_active : int
        Latents with two items or more.
    aic : float
        NaN if the fit has none; the least that it is charged where rows count for little.
    n_shared : int
        Latents with two items or more, but less than two of their own.
    result : FitResult or None
        The whole fit, where it is at hand.
    """

    bic: float
    strength: float
    n_parameters: int = 0
    information_ratio: float = 1.0
    n_active: int = 1
    aic: float = float("-inf")
    n_shared: int = 0
    result: FitResult | None = field(default=None, repr=False)

    @classmethod
    def of(cls, result: FitResult, n_rows: float | None = None) -> JudgedFit:
        """Return what counts of a fit; ``n_rows`` is the sum of the weights, if it had any."""
        criteria = information_criteria(result, n_rows)
        return cls(
            criteria.bic,
            float(result.settings["penalty_strength_used"]),
            criteria.n_parameters,
            result.information_ratio,
            count_active(result.q_matrix),
            criteria.aic,
            count_shared(result.q_matrix),
            result,
        )


def choose_number(
    count: FactorCount,
    fit_of: Callable[..., JudgedFit],
    values: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> NumberChoice:
    """Return the number of latents that a fit takes of its own accord.

    Where parallel analysis and factor BIC agree nothing needs to be fitted. Where they do not, the
    larger number stands unless fits do with fewer, or, where items hardly show their latents, with
    another: see :mod:`hidag.how_many.rule`. Penalties do not decide: see
    :mod:`hidag.how_many.common_strength`.

    Parameters
    ----------
    count : FactorCount
    fit_of : callable
        Fits with so many latents and a strength of the penalty, or its own for None; called with
        a third argument it begins at that place.
    values : ndarray, shape (N, J), optional
        With them, fits may begin where others ended: see :mod:`hidag.how_many.neighbour_fits`.
    weights : ndarray, shape (N,), optional
    """
    said = count.in_words()
    if count.agreed:
        return NumberChoice(count.by_factor_bic, said)
    high = count.span[1]
    fits = {high: [fit_of(high, None)]}
    if isnan(fits[high][0].bic):
        chosen = count.by_parallel_analysis
        return NumberChoice(
            chosen, f"{said}; fits of {counted(high, 'latent')} have no likelihood to compare"
        )
    compared = Comparison(high, fits)
    neighbours = None
    if values is not None:
        neighbours = Neighbours(fits, lambda k, place: fit_of(k, None, place), values, weights)
    while True:
        k = _next_number(count, compared)
        if k is not None:
            fits[k] = [fit_of(k, None)]
            refit_at_common_strength(fits, fit_of, compared.ratio)
        elif neighbours is None or not neighbours.tell(compared):
            break
    chosen = compared.settled or high
    standing = compared.standing
    # The smaller of two that are level.
    best = min(standing, key=lambda k: (standing[k], k))
    behind = ", ".join(
        f"{k} by {standing[k] - standing[best]:.1f}"
        for k in sorted(standing, reverse=True)
        if k != best
    )
    ranking = f"{best}; behind it: {behind}" if behind else f"{best} alone"
    if compared.hardly_seen:
        place = "are the best"
        if chosen != best:
            place = f"are, of those within {NO_EVIDENCE:g} of the best, the largest"
        found = (
            f"items carry {compared.ratio:.0%} of the latents' information, where fits count for "
            f"more than correlations; by BIC at that share of the rows {counted(chosen, 'latent')} "
            f"with at least {LEAST_ITEMS} items {place} (the best: {ranking})"
        )
    else:
        found = (
            f"of fits, {chosen} is the largest number with a BIC within {NEAR_TIE:g} of the best "
            f"(the best: {ranking})"
        )
    return NumberChoice(chosen, f"{said}; {found}")


def _next_number(count: FactorCount, compared: Comparison) -> int | None:
    """Return the number of latents to fit next, None when there were enough."""
    if compared.hardly_seen:
        return next_both_ways(compared.bic, 1, count.largest)
    if len(compared.fits) >= MOST_NUMBERS:
        return None
    low, high = count.span
    return next_to_fit(high, low, compared.bic)
