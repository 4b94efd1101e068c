"""Selection of the number of latents from correlations and from fits.

Parallel analysis and factor BIC count common factors; no latent is supported if both count none. If
they disagree, fits may only lower the larger count, if BIC improves beyond a near tie: with a
continuous trait or local dependence, BIC improves with every latent. With a low information ratio
r, where parallel analysis has no power, the number with the smallest BIC is selected (the largest
within 2 of it). BIC then uses the effective sample size r N, a fit counts for its latents with at
least two items, and a latent without two items of its own costs one more parameter.

EBIC is not used: its term counts permutations of the latents as different supports and rejects fits
that start at the truth (``benchmarks/number_of_latents.py --yardstick``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.item_types import resolve_families
from hidag.data.q_matrix import read_q_matrix
from hidag.data.table import Observations
from hidag.data.value_checks import check_values
from hidag.em.design_data import WorkingData
from hidag.em.em import Problem, Schedule, run_em
from hidag.em.m_step import Basis
from hidag.exceptions import Advice, Message, Setting
from hidag.fitting.information_criteria import (
    InformationCriteria,
    criteria_of,
    information_criteria,
    item_parameters,
)
from hidag.fitting.neighbour_fits import NeighbourFits
from hidag.fitting.number_comparison import (
    Comparison,
    count_active,
    count_shared,
    next_below,
    next_either_side,
)
from hidag.fitting.penalty_strength import refit_at_common_strength
from hidag.formatting import plural
from hidag.initialization.factor_count import FactorCount, count_factors
from hidag.initialization.start_points import null_parameters
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import Responses
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms
from hidag.parallel import one_blas_thread
from hidag.results import FitResult

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NumberChoice:
    """A number of latents (0: independent items) and the reason for it."""

    n_latents: int
    reason: str
    limit: Message | None = None  # why no larger number, if the data may have more latents


def number_from_settings(
    q_matrix: Any, levels: Any, latent_names: Any, item_names: tuple[str, ...]
) -> NumberChoice | None:
    """Return the number of latents that another setting implies, or None."""
    if q_matrix is not None:
        n = read_q_matrix(q_matrix, item_names, None).entries.shape[1]
        return NumberChoice(n, f"the Q-matrix has {plural(n, 'column')}")
    if not isinstance(levels, str) and hasattr(levels, "__len__"):
        n = len(levels)
        return NumberChoice(n, f"the levels of {plural(n, 'latent')} are given")
    if latent_names is not None and not isinstance(latent_names, str):
        n = len(latent_names)
        return NumberChoice(n, f"the names of {plural(n, 'latent')} are given")
    return None


def count_table_factors(
    table: Observations, family: Any, weights: Array | None = None, *, largest: int | None = None
) -> FactorCount:
    """Return the number of common factors of a table; ``family`` as in `DCRL`."""
    families = resolve_families(table, family, weights).families
    check_values(table, families)
    with one_blas_thread():
        return count_factors(table.values, families, weights=weights, largest=largest)


@dataclass(frozen=True)
class ComparedFit:
    """Properties of a fit that the comparison uses; see `FitCriteria`."""

    bic: float
    strength: float
    n_parameters: int = 0
    information_ratio: float = 1.0
    n_active: int = 1
    aic: float = float("-inf")
    n_shared: int = 0
    result: FitResult | None = field(default=None, repr=False)

    @classmethod
    def of(cls, result: FitResult, n_rows: float | None = None) -> ComparedFit:
        """Return the properties of a fit; ``n_rows`` is the sum of its weights."""
        criteria = information_criteria(result, n_rows)
        strength, ratio = float(result.penalty_strength_used), result.information_ratio
        active, shared = count_active(result.q_matrix), count_shared(result.q_matrix)
        own = criteria.n_parameters, ratio, active, criteria.aic, shared
        return cls(criteria.bic, strength, *own, result)


def independent_criteria(
    values: Array, families: tuple[str, ...], weights: Array | None = None
) -> InformationCriteria:
    """Return the criteria of the model without latents, from a table (N, J): independent items."""
    responses = Responses.of(families)
    data = WorkingData.from_values(responses.expand(values), responses.families, weights=weights)
    space = StateSpace.binary(1)
    terms = Terms.main(space.levels)
    allowed = np.full((data.n_items, 2), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    basis = Basis.over(space, terms)
    problem = Problem(data, space, basis, allowed, NO_SPARSITY, Schedule())
    with one_blas_thread():
        found = run_em(problem, null_parameters(data, terms), np.full(2, 0.5))
    return criteria_of(
        found.log_likelihood, item_parameters(responses.families), 0.0, data.n_counted
    )


def independent_fit(
    values: Array, families: tuple[str, ...], weights: Array | None = None
) -> ComparedFit:
    """Return the model without latents for the comparison; see `independent_criteria`."""
    found = independent_criteria(values, families, weights)
    return ComparedFit(found.bic, 0.0, found.n_parameters, 1.0, 0, found.aic)


def choose_number(
    count: FactorCount,
    fit_of: Callable[..., ComparedFit],
    values: Array | None = None,
    weights: Array | None = None,
) -> NumberChoice:
    """Return the number of latents of ``DCRL("auto")``; see the module's docstring for the rule.

    ``fit_of`` fits with a number of latents (0: independent items), a strength of the penalty
    (None: estimated) and, as an optional third argument, initial values. The table (N, J) is needed
    to refit numbers from neighbouring fits; see `NeighbourFits`.
    """
    counted = count.describe()
    if count.agreed:
        limit = identifiability_limit(count) if count.limited else None
        return NumberChoice(count.by_factor_bic, counted, limit)
    low, high = count.span
    fits = {high: [fit_of(high, None)]}
    if isnan(fits[high][0].bic):
        reason = f"{counted}; fits with {plural(high, 'latent')} have no likelihood to compare"
        return NumberChoice(count.by_parallel_analysis, reason)
    compared = Comparison(high, fits, min(low, 1))
    neighbours = None
    if values is not None:
        neighbours = NeighbourFits(fits, lambda k, start: fit_of(k, None, start), values, weights)
    while True:
        k = None
        if compared.low_information:
            k = next_either_side(compared.bic, min(low, 1), count.largest)
        elif len(fits) < CONFIG.selection.max_auto_fits:
            k = next_below(high, low, compared.bic)
        if k is not None:
            fits[k] = [fit_of(k, None)]
            refit_at_common_strength(fits, fit_of, compared.ratio)
        elif neighbours is None or not neighbours.improve(compared):
            break
    chosen = high if compared.selected is None else compared.selected
    limit = None
    if chosen == count.largest and (count.limited or compared.low_information):
        limit = identifiability_limit(count)
    elif compared.low_information and chosen == max(fits):
        limit = _search_limit(chosen, len(fits))
    return NumberChoice(chosen, f"{counted}; {_describe_fits(compared, chosen)}", limit)


def identifiability_limit(count: FactorCount) -> Message:
    """Return that the number of items limits the number of latents."""
    wanted = max(*count.without_limit, count.largest + 1)
    return Message(
        "number-limited-by-items",
        "{latents} were selected because the items cannot identify more, but the data may have "
        "more: {reason}",
        {
            "latents": plural(count.largest, "latent"),
            "reason": count.describe(),
            "wanted": plural(wanted, "latent"),
            "least": 2 * wanted + 1,
        },
        Advice("", "add items: {wanted} need at least {least}"),
    )


def _search_limit(chosen: int, n_fits: int) -> Message:
    """Return that the number of fits limits the number of latents."""
    setting = {"setting": Setting("n_latents")}
    return Message(
        "number-limited-by-fits",
        "{latents} were selected, the largest of {n_fits} numbers that were fitted, but the data "
        "may have more: BIC still improves",
        {"latents": plural(chosen, "latent"), "n_fits": n_fits, "wanted": chosen + 1},
        Advice("", "compare larger numbers with hidag.select, or give {setting}", setting),
    )


def _describe_fits(compared: Comparison, chosen: int) -> str:
    """Return the BIC differences of the fits and the rule that selected a number."""
    config, values = CONFIG.selection, compared.active_bic
    best = min(values, key=lambda k: (values[k], k))
    differences = ", ".join(
        f"{k}: +{values[k] - values[best]:.1f}" for k in sorted(values, reverse=True) if k != best
    )
    ranking = f"best: {best}" + (f"; differences: {differences}" if differences else "")
    if not compared.low_information:
        return (
            f"{chosen} is the largest number of latents with a BIC within {config.near_tie:g} of "
            f"the best ({ranking})"
        )
    rule = "has the smallest BIC"
    if chosen != best:
        rule = f"is the largest number with a BIC within {config.no_evidence:g} of the best"
    return (
        f"the information ratio is {compared.ratio:.0%}, so that fits decide: at this share of the "
        f"rows, and counting latents with at least {config.min_items} items, {chosen} {rule} "
        f"({ranking})"
    )
