"""Comparison of numbers of latents: correlations, fits near their count, and cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hidag.config import CONFIG
from hidag.data.item_types import resolve_families
from hidag.data.rows import select_weighted_rows, warn_of_empty_rows
from hidag.data.table import Observations, declared_labels, read_table
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
from hidag.fitting.settings import root_seed
from hidag.formatting import plural
from hidag.model_selection.candidates import Candidate, Table, folds_of, held_out_likelihood
from hidag.model_selection.comparison import (
    Comparison,
    nearest,
    next_below,
    next_either_side,
    refit_at_common_strength,
)
from hidag.model_selection.factor_count import (
    count_table_factors,
    identifiable_count,
    largest_count,
)
from hidag.model_selection.neighbour_fits import NeighbourFits
from hidag.model_selection.selection import Selection

FITS = ("near", "all", "none")


def compare_numbers(
    model: Any,
    X: Any,
    latents: Iterable[int] | None = None,
    *,
    penalty_strengths: Sequence[float | None] = (None,),
    fits: str = "near",
    folds: int = 3,
    sample_weight: Any = None,
    progress: Callable[[str], None] | None = None,
) -> Selection:
    """Return the comparison of fits with the settings of ``model``; see `hidag.select`."""
    strengths = tuple(penalty_strengths)
    _check_settings(strengths, fits, folds)
    table = read_table(X, min_rows=2, labels=declared_labels(X, model.words))
    given = None if latents is None else _checked_latents(latents, table)
    counted, weights = select_weighted_rows(table, sample_weight)
    # Frames: the warning function, this function, select, the caller.
    warn_of_empty_rows(table, stacklevel=4)
    warn_of_duplicate_columns(counted, stacklevel=4)
    # The count of the correlations may exceed the numbers to choose from.
    largest = identifiable_count(table.n_items)
    limit = max(largest, given[-1] if given else 1)
    count = count_table_factors(counted, model.family, weights, largest=limit)
    most = max(largest_count(table.n_items), min(largest, count.span[1] + 1))
    numbers = given or tuple(range(most + 1))
    if count.limited and count.largest in numbers:
        warn_if(count.limit_message(), IdentifiabilityWarning, stacklevel=3)
    rows = Table(counted, resolve_families(counted, model.family, weights).families, weights)
    model = type(model)(**model.get_params() | {"random_state": root_seed(model.random_state)})
    report = progress or (lambda sentence: None)

    def fit_number(k: int) -> list[Candidate]:
        report(f"fitting {plural(k, 'latent')}")
        return [rows.candidate(model, k, strength) for strength in strengths]

    def fit_again(k: int, strength: float) -> Candidate:
        report(f"fitting {plural(k, 'latent')} with the penalty of the best fit")
        return replace(rows.candidate(model, k, strength), at_common_strength=True)

    if fits == "none":
        return Selection(numbers, count, (), folds if folds > 1 else 0)
    first = numbers
    if fits == "near":
        high = numbers.index(nearest(count.span[1], numbers))
        first = numbers[max(high - 1, 0) : high + 2]
    compared = Comparison(count.span[1], {k: fit_number(k) for k in first}, min(count.span[0], 1))
    neighbours = NeighbourFits(
        compared.fits,
        lambda k, start: rows.candidate(model, k, strengths[0], start),
        counted.values,
        weights,
    )
    fit_further_numbers(
        compared,
        numbers if fits == "near" else (),
        count.span[0],
        fit_number,
        fit_again,
        neighbours,
        CONFIG.selection.max_select_fits,
    )
    candidates = tuple(one for k in sorted(compared.fits) for one in compared.fits[k])
    found = Selection(numbers, count, candidates, folds if folds > 1 else 0)
    return _cross_validate(found, rows, model, report) if found.n_folds else found


def fit_further_numbers(
    compared: Comparison,
    numbers: Sequence[int],
    low: int,
    fit_number: Callable[[int], list[Candidate]],
    fit_again: Callable[[int, float], Candidate],
    neighbours: NeighbourFits | None,
    max_fits: int,
) -> None:
    """Fit ``numbers`` until the rule needs no further one; add the fits to those compared.

    ``low`` is the smaller count of the correlations. All are compared at a common strength of the
    penalty, by ``fit_again``.
    """
    fits = compared.fits
    refit_at_common_strength(fits, fit_again, compared.ratio)
    while True:
        k = _next_number(compared, numbers, low, max_fits) if numbers else None
        if k is not None:
            fits[k] = fit_number(k)
            refit_at_common_strength(fits, fit_again, compared.ratio)
        elif neighbours is None or not neighbours.improve(compared):
            return


def _next_number(
    compared: Comparison, numbers: Sequence[int], low: int, max_fits: int
) -> int | None:
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
    elif len(bic) < max_fits:
        least, most = (numbers.index(nearest(k, numbers)) for k in (low, compared.counted))
        further = next_below(most, least, bic)
    return None if further is None else numbers[further]


def _check_settings(strengths: tuple[float | None, ...], fits: str, folds: int) -> None:
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


def _cross_validate(
    found: Selection, table: Table, model: Any, report: Callable[[str], None]
) -> Selection:
    """Return the selection with held-out likelihoods of the best number and its neighbours."""
    fitted = list(found.fitted)
    if found.recommended not in fitted:
        return found
    position = fitted.index(found.recommended)
    near = fitted[max(position - 1, 0) : position + 2]
    folds = folds_of(table, found.n_folds)
    out = []
    for one in found.candidates:
        if one.n_latents in near and one.result is not None and not one.from_neighbour:
            report(f"cross-validating {plural(one.n_latents, 'latent')} in {found.n_folds} folds")
            how = one.n_latents, one.penalty_strength
            one = replace(one, held_out=held_out_likelihood(table, model, *how, folds))
        out.append(one)
    return replace(found, candidates=tuple(out))
