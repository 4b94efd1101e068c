"""Select the number of latents: correlations, fits near their count, and cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hidag.config import CONFIG
from hidag.data.item_types import resolve_families
from hidag.data.rows import select_weighted_rows, warn_of_empty_rows
from hidag.data.table import Observations, read_table
from hidag.data.value_checks import warn_of_duplicate_columns
from hidag.exceptions import (
    Choices,
    IdentifiabilityWarning,
    Setting,
    SettingError,
    Value,
    invalid_setting,
)
from hidag.fitting.fit_warnings import warn_if
from hidag.fitting.neighbour_fits import InitialValues, NeighbourFits
from hidag.fitting.number_comparison import Comparison, nearest, next_below, next_either_side
from hidag.fitting.number_of_latents import count_table_factors, identifiability_limit
from hidag.fitting.penalty_strength import refit_at_common_strength
from hidag.fitting.settings import root_seed
from hidag.formatting import plural
from hidag.initialization.factor_count import FactorCount, identifiable_count, largest_count
from hidag.model_selection.candidates import (
    Candidate,
    Table,
    fit_candidate,
    folds_of,
    held_out_likelihood,
)
from hidag.model_selection.selection import Selection

FITS = ("near", "all", "none")
#: Settings of the estimator that would determine the number of latents, or have another argument.
_EXCLUDED = ("n_latents", "q_matrix", "latent_names", "penalty_strength")


def select(
    X: Any,
    latents: Iterable[int] | None = None,
    *,
    penalty_strengths: Sequence[float | None] = (None,),
    fits: str = "near",
    folds: int = 3,
    sample_weight: Any = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Selection:
    """Select the number of latents by several criteria.

    Parameters
    ----------
    X : array or frame, shape (N, J)
    latents : iterable of int, optional
        Numbers to choose from; by default from 0 (independent items) to the largest number that J
        items can identify, at most 40 unless the correlations have more factors.
    penalty_strengths : sequence of float or None
        Strengths to try with each number of latents; None estimates it. A number with a stronger
        penalty than the best fit is also fitted with that fit's strength.
    fits : {"near", "all", "none"}
        Numbers to fit: the count of the correlations and its neighbours, and further ones while BIC
        improves; all numbers; or none.
    folds : int
        Folds of the cross-validation of the best number and its two neighbours; 0 or 1 for none.
    sample_weight : array, shape (N,), optional
        As in ``DCRL.fit``.
    progress : callable, optional
        Called with a sentence before each fit.
    **settings
        Settings of `DCRL` for all fits; not those that determine the number of latents.

    Returns
    -------
    Selection
        ``.recommended``, ``.margin``, ``.votes``, ``.rows()``, ``.verdict()``, ``.result``.
    """
    strengths = tuple(penalty_strengths)
    _check_settings(strengths, fits, folds, settings)
    family = settings.pop("family", "auto")
    table = read_table(X, min_rows=2)
    given = None if latents is None else _checked_latents(latents, table)
    counted, weights = select_weighted_rows(table, sample_weight)
    # Frames: the warning function, this function, the caller.
    warn_of_empty_rows(table, stacklevel=3)
    warn_of_duplicate_columns(counted, stacklevel=3)
    # The count of the correlations may exceed the numbers to choose from.
    largest = identifiable_count(table.n_items)
    limit = max(largest, given[-1] if given else 1)
    count = count_table_factors(counted, family, weights, largest=limit)
    most = max(largest_count(table.n_items), min(largest, count.span[1] + 1))
    numbers = given or tuple(range(most + 1))
    if count.limited and count.largest in numbers:
        warn_if(identifiability_limit(count), IdentifiabilityWarning, stacklevel=2)
    families = resolve_families(counted, family, weights).families
    rows = Table(counted, families, weights)
    shared = {**settings, "random_state": root_seed(settings.get("random_state"))}
    report = progress or (lambda sentence: None)

    def fit_number(k: int) -> list[Candidate]:
        report(f"fitting {plural(k, 'latent')}")
        return [fit_candidate(rows, k, strength, shared) for strength in strengths]

    def fit_again(k: int, strength: float) -> Candidate:
        report(f"fitting {plural(k, 'latent')} with the penalty of the best fit")
        return replace(fit_candidate(rows, k, strength, shared), at_common_strength=True)

    def fit_from(k: int, start: InitialValues) -> Candidate:
        return fit_candidate(rows, k, strengths[0], shared, start)

    neighbours: NeighbourFits[Candidate] = NeighbourFits({}, fit_from, counted.values, weights)
    candidates = _fit_numbers(fits, numbers, count, fit_number, fit_again, neighbours)
    if folds > 1 and candidates:
        found = Selection(numbers, count, candidates, 0)
        candidates = _cross_validate(found, rows, shared, folds, report)
    return Selection(numbers, count, candidates, folds if folds > 1 else 0)


def _check_settings(
    strengths: tuple[float | None, ...], fits: str, folds: int, settings: Mapping[str, Any]
) -> None:
    excluded = [name for name in _EXCLUDED if name in settings]
    if excluded:
        raise SettingError(
            "fixed-number",
            "select compares numbers of latents and penalties, so that {setting} cannot be set for "
            "all fits",
            advice="omit {setting}",
            setting=Setting(excluded[0]),
        )
    if fits not in FITS:
        raise invalid_setting("fits", Choices(FITS), fits)
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 0:
        raise invalid_setting("folds", "a whole number of at least 0", folds)
    if not strengths:
        raise SettingError(
            "no-strengths",
            "{setting} must have at least one entry",
            advice="use [None] to estimate the strength",
            setting=Setting("penalty_strengths"),
        )


def _checked_latents(latents: Iterable[int], table: Observations) -> tuple[int, ...]:
    setting = Setting("latents")
    if isinstance(latents, (str, bytes)) or not hasattr(latents, "__iter__"):
        raise invalid_setting("latents", "several whole numbers, such as range(2, 9)", latents)
    given = list(latents)
    whole = [isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k >= 0 for k in given]
    if not given or not all(whole):
        raise SettingError(
            "invalid-latents",
            "{setting} must be one or more whole numbers of at least 0, got {given}",
            setting=setting,
            given=Value(given),
        )
    numbers = tuple(sorted({int(k) for k in given}))
    if numbers[-1] > table.n_items:
        raise SettingError(
            "more-latents-than-items",
            "{setting} has {most}, but each latent needs at least one of the {n_items} items",
            advice="use at most {largest}, the number that {n_items} items can identify",
            setting=setting,
            most=numbers[-1],
            n_items=table.n_items,
            largest=largest_count(table.n_items),
        )
    return numbers


def _fit_numbers(
    fits: str,
    numbers: tuple[int, ...],
    count: FactorCount,
    fit_number: Callable[[int], list[Candidate]],
    fit_again: Callable[[int, float], Candidate],
    neighbours: NeighbourFits[Candidate],
) -> tuple[Candidate, ...]:
    """Return the candidates by number of latents, compared at a common strength."""
    if fits == "none":
        return ()
    done = neighbours.fits
    compared = Comparison(count.span[1], done, min(count.span[0], 1))
    first = numbers
    if fits == "near":
        high = numbers.index(nearest(count.span[1], numbers))
        first = numbers[max(high - 1, 0) : high + 2]
    done.update({k: fit_number(k) for k in first})
    refit_at_common_strength(done, fit_again, compared.ratio)
    while True:
        k = _next_number(numbers, count, compared) if fits == "near" else None
        if k is not None:
            done[k] = fit_number(k)
            refit_at_common_strength(done, fit_again, compared.ratio)
        elif not neighbours.improve(compared):
            break
    return tuple(one for k in sorted(done) for one in done[k])


def _next_number(numbers: tuple[int, ...], count: FactorCount, compared: Comparison) -> int | None:
    """Return the next number of latents to fit, or None."""
    bic = {numbers.index(k): value for k, value in compared.bic.items()}
    further = None
    if compared.low_information:
        chosen = compared.counted if compared.selected is None else compared.selected
        selected = nearest(chosen, numbers)
        further = next_either_side(bic, 0, len(numbers) - 1)
        if further is None and selected not in compared.fits:
            # Some latents of the best fit are inactive: fit the number without them.
            return selected
    elif len(bic) < CONFIG.selection.max_select_fits:
        low, high = (numbers.index(nearest(k, numbers)) for k in count.span)
        further = next_below(high, low, bic)
    return None if further is None else numbers[further]


def _cross_validate(
    found: Selection,
    table: Table,
    settings: Mapping[str, Any],
    n_folds: int,
    report: Callable[[str], None],
) -> tuple[Candidate, ...]:
    """Return the candidates, with held-out likelihoods of the best number and its neighbours."""
    fitted = list(found.fitted)
    if found.recommended not in fitted:
        return found.candidates
    position = fitted.index(found.recommended)
    near = fitted[max(position - 1, 0) : position + 2]
    folds = folds_of(table, n_folds)
    out = []
    for one in found.candidates:
        if one.n_latents in near and one.result is not None and not one.from_neighbour:
            report(f"cross-validating {plural(one.n_latents, 'latent')} in {n_folds} folds")
            how = one.n_latents, one.penalty_strength, settings
            one = replace(one, held_out=held_out_likelihood(table, *how, folds))
        out.append(one)
    return tuple(out)
