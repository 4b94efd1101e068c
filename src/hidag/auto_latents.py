"""The number of latents when nobody says it: read off the correlations, settled by few fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hidag.common_strength import best_bic, refit_at_common_strength
from hidag.measurement import Responses
from hidag.number_rule import NEAR_TIE, next_to_fit, settled_number
from hidag.observations import Observations, check_values, read_q_matrix, resolve_families
from hidag.start.factor_count import FactorCount, count_factors

#: Numbers that are fitted at most, where parallel analysis and factor BIC disagree.
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
    """

    bic: float
    strength: float


def choose_number(
    count: FactorCount, fit_of: Callable[[int, float | None], JudgedFit]
) -> NumberChoice:
    """Return the number of latents that a fit takes of its own accord.

    Where parallel analysis and factor BIC agree nothing needs to be fitted. Where they do not, the
    larger number stands unless fits do with fewer: see :mod:`hidag.number_rule`. Penalties do not
    decide: see :mod:`hidag.common_strength`.

    Parameters
    ----------
    count : FactorCount
    fit_of : callable
        Fits with so many latents and a strength of the penalty, or its own for None.
    """
    said = count.in_words()
    if count.agreed:
        return NumberChoice(count.by_factor_bic, said)
    low, high = count.span
    fits = {high: [fit_of(high, None)]}
    if isnan(fits[high][0].bic):
        chosen = count.by_parallel_analysis
        return NumberChoice(chosen, f"{said}; fits of {high} latents have no likelihood to compare")
    values = {high: best_bic(fits[high])}
    while len(fits) < MOST_NUMBERS and (k := next_to_fit(high, low, values)) is not None:
        fits[k] = [fit_of(k, None)]
        refit_at_common_strength(fits, fit_of)
        values = {k: best_bic(ones) for k, ones in fits.items()}
    chosen = settled_number(high, values) or high
    best = min(values.values())
    behind = ", ".join(f"{k} by {values[k] - best:.1f}" for k in sorted(values, reverse=True))
    return NumberChoice(
        chosen,
        f"{said}; of fits, {chosen} is the largest number with a BIC within {NEAR_TIE:g} of the "
        f"best (behind it: {behind})",
    )
