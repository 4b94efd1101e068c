"""The number of latents of ``DCRL("auto")``, and the fit with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.item_types import resolve_families
from hidag.data.q_matrix import read_q_matrix
from hidag.data.rows import select_weighted_rows
from hidag.data.table import Observations
from hidag.exceptions import Advice, DataError, IdentifiabilityWarning, Message, Setting
from hidag.fitting.fit_warnings import warn_if
from hidag.fitting.stages import InitialValues
from hidag.formatting import plural
from hidag.model_selection.candidates import Candidate, independent_criteria
from hidag.model_selection.comparison import Comparison
from hidag.model_selection.factor_count import FactorCount, count_table_factors
from hidag.model_selection.neighbour_fits import NeighbourFits
from hidag.model_selection.number_search import fit_further_numbers
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


def choose_number(
    count: FactorCount,
    fit_of: Callable[..., Candidate],
    values: Array | None = None,
    weights: Array | None = None,
) -> NumberChoice:
    """Return the number of latents, by the rule of `hidag.model_selection.comparison`.

    ``fit_of`` fits with a number of latents (0: independent items), a strength of the penalty
    (None: estimated) and, as an optional third argument, initial values. The table (N, J) is needed
    to refit numbers from neighbouring fits; see `NeighbourFits`.
    """
    counted = count.describe()
    if count.agreed:
        limit = count.limit_message() if count.limited else None
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
    numbers = range(min(low, 1), count.largest + 1)
    fit_further_numbers(
        compared,
        numbers,
        low,
        lambda k: [fit_of(k, None)],
        fit_of,
        neighbours,
        CONFIG.selection.max_auto_fits,
    )
    chosen = high if compared.selected is None else compared.selected
    limit = None
    if chosen == count.largest and (count.limited or compared.low_information):
        limit = count.limit_message()
    elif compared.low_information and chosen == max(fits):
        limit = _search_limit(chosen, len(fits))
    return NumberChoice(chosen, f"{counted}; {_describe_fits(compared, chosen)}", limit)


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


def fit_selected_number(
    table: Observations,
    sample_weight: Any,
    settings: Mapping[str, Any],
    fit_number: Callable[[int, float | None, InitialValues | None], FitResult],
    *,
    log: Callable[[str], None],
) -> FitResult:
    """Return the fit with a number of latents given by other settings or selected by criteria.

    ``fit_number`` fits with a number of latents, a strength of the penalty (None: as in the
    settings) and initial values (None: from starts). ``log`` receives a sentence about the choice.
    """
    counted, weights = select_weighted_rows(table, sample_weight)
    n_rows = counted.n_samples if weights is None else float(weights.sum())
    fits: dict[int, tuple[FitResult, list[warnings.WarningMessage], float]] = {}

    def fit_of(
        n_latents: int, strength: float | None, start: InitialValues | None = None
    ) -> Candidate:
        if n_latents == 0:
            families = resolve_families(counted, settings["family"], weights).families
            return Candidate(0, 0.0, independent_criteria(counted.values, families, weights))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = fit_number(n_latents, strength, start)
        found = Candidate.of(result, n_rows)
        # Fits with the penalty of another number only serve the comparison; a refit from another
        # number replaces a fit whose search failed.
        before = fits.get(n_latents)
        better = before is None or before[2] - found.bic > CONFIG.selection.failed_fit
        if strength is None and better:
            fits[n_latents] = result, caught, found.bic
        return found

    q_matrix, levels, names = (settings[name] for name in ("q_matrix", "levels", "latent_names"))
    choice = number_from_settings(q_matrix, levels, names, table.names)
    if choice is None:
        count = count_table_factors(counted, settings["family"], weights)
        choice = choose_number(count, fit_of, counted.values, weights)
    log(f"{plural(choice.n_latents, 'latent')}: {choice.reason}")
    if choice.n_latents == 0:
        raise DataError(
            "independent-items",
            "the items are independent: no latent is supported ({reason})",
            advice="check the table with hidag.select, or fit one latent all the same with {one}",
            reason=choice.reason,
            one=Setting("n_latents", 1),
        )
    if choice.n_latents not in fits:
        fit_of(choice.n_latents, None)
    result, caught, _ = fits[choice.n_latents]
    for warning in caught:
        # Only warnings about the selected fit; frames: this function, ``fit``, the caller.
        warnings.warn(warning.message, stacklevel=3)
    warn_if(choice.limit, IdentifiabilityWarning, stacklevel=3)
    settings = {**result.settings, "n_latents": "auto"}
    return replace(result, settings=settings, n_latents_reason=choice.reason)
