"""Draws of fits from the asymptotic distribution of the estimates, graph and Q fixed.

The covariance is that of :mod:`hidag.inference.information.expected_information`, from the
information of the observed items, so that weakly informative items and jointly missing items
increase it. Nothing is refitted and no data are needed. The uncertainty of the graph and of Q is
not included; a bootstrap includes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.data.rows import canonical_order
from hidag.exceptions import Advice, HidagWarning, SettingError
from hidag.inference.fitted_rows import rank_items
from hidag.inference.information.expected_information import (
    Perturbations,
    count_score_columns,
    estimate_spread,
    observed_patterns,
    perturb,
)
from hidag.inference.refit import is_storable
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.results import FitResult, as_result, reorder_items

if TYPE_CHECKING:
    from hidag.estimator import DCRL


Array = NDArray[np.float64]

#: The information is computed over listed joint states, at most so many.
MAX_STATES = 1 << 10
#: More parameters take more than a gigabyte and a minute.
MAX_PARAMETERS = 5000
#: Smallest probability of a drawn law, unless it is zero in the fit.
MIN_PROBABILITY = 1e-6

USE_BOOTSTRAP = Advice("bootstrap-intervals", "pass the replicates of a bootstrap instead")


@dataclass(frozen=True)
class _TableRow:
    """The parameters of one row of a conditional table: log ratios of its probabilities."""

    latent: int
    row: tuple[int, ...]
    begin: int


class AsymptoticDraws(Iterator[FitResult]):
    """An iterator over fits drawn around another, to be used once.

    Parameters
    ----------
    draws : iterator of FitResult
        They do not vary in unidentified directions.
    unidentified : Perturbations or None
        The fit perturbed in these directions; None if all parameters are identified.
    """

    def __init__(self, draws: Iterator[FitResult], unidentified: Perturbations | None) -> None:
        self._draws = draws
        self.unidentified = unidentified

    def __next__(self) -> FitResult:
        return next(self._draws)


def draw_asymptotic(
    result: FitResult | DCRL, n_draws: int = 200, *, random_state: int = 0
) -> AsymptoticDraws:
    """Draw laws and coefficients around those of a fit, for :func:`hidag.causal.average_effects`.

    The draws account for the missing cells and for the variation of the weights, provided that
    neither depends on the answers. Weights are survey weights, of which only ratios matter, also
    if they are integers. Repeat rows that were observed several times before fitting instead: see
    :func:`hidag.survey_weights`.

    If a part of the model is not identified, draws do not vary there, and a warning is issued.
    Effects that depend on it get no interval.

    Parameters
    ----------
    result : FitResult or DCRL
    n_draws : int
    random_state : int

    Raises
    ------
    SettingError
        If there are too many joint states to list, an item is nominal, or the fit had missing
        cells or weights and its file does not store their pattern.
    """
    draws, obstacle = try_draw_asymptotic(as_result(result), n_draws, random_state=random_state)
    if draws is None:
        assert obstacle is not None
        raise obstacle
    if draws.unidentified is not None:
        warnings.warn(
            HidagWarning(
                "unidentified-directions",
                "{reason}; draws do not vary there, and average_effects reports no interval for "
                "effects that depend on them",
                reason=draws.unidentified.describe(),
            ),
            stacklevel=2,
        )
    return draws


def try_draw_asymptotic(
    result: FitResult,
    n_draws: int = 200,
    *,
    random_state: int = 0,
    advice: Advice = USE_BOOTSTRAP,
) -> tuple[AsymptoticDraws | None, SettingError | None]:
    """Return the draws of :func:`draw_asymptotic`, or None and the error that explains why.

    ``advice`` is part of the error if refits would give intervals.
    """
    obstacle = find_draws_obstacle(result, advice=advice)
    if obstacle is not None:
        return None, obstacle
    law_design, rows = _law_design(result.law)
    order = _canonical_items(result)
    ordered = reorder_items(result, order)
    spread = estimate_spread(ordered, law_design, random_state)
    places = np.argsort(order)

    def moved(step: Array) -> FitResult:
        items, n_used = _move_items(ordered.parameters, spread.coefficient_maps, step)
        law = _move_law(result.law, rows, step[n_used:])
        return replace(result, parameters=items.reordered(items=places), law=law)

    rng = np.random.default_rng(random_state)
    size = spread.root.shape[1]
    steps = (spread.root @ rng.standard_normal(size) for _ in range(n_draws))
    return AsymptoticDraws(map(moved, steps), perturb(moved, spread)), None


def find_draws_obstacle(
    result: FitResult, *, advice: Advice = USE_BOOTSTRAP
) -> SettingError | None:
    """Return the error that explains why a fit has no draws; None if it has.

    ``advice`` is part of the error if refits would give intervals.
    """
    # Without a stored law, refits give no effects either.
    usable = advice if is_storable(result.law) else None
    space = result.law.space
    if space.n_states > MAX_STATES:
        return SettingError(
            "too-many-states",
            "intervals from the information need listed joint states, at most {limit}, but there "
            "are {number}",
            advice=usable,
            limit=MAX_STATES,
            number=space.n_states_text(),
        )
    if not result.responses.plain:
        return SettingError(
            "nominal-items",
            "intervals from the information are not available for nominal items",
            advice=usable,
        )
    if result.seen_rows is None and (result.weighted or result.missing_share > 0):
        needed = "variation of the weights" if result.weighted else "pattern of missing cells"
        return SettingError(
            "pattern-not-stored",
            "intervals from the information need the {needed}, but the version of hidag that saved "
            "the fit did not store it",
            advice=usable,
            needed=needed,
        )
    number = count_score_columns(result, _law_design(result.law)[0])
    if number > MAX_PARAMETERS:
        return SettingError(
            "too-many-parameters",
            "intervals from the information are limited to {limit:,} parameters of items and law, "
            "but there are {number:,}",
            advice=usable,
            limit=MAX_PARAMETERS,
            number=number,
        )
    return None


def _canonical_items(result: FitResult) -> NDArray[np.intp]:
    """Return an order of items (J,) by their parameters and missing cells.

    Responses are drawn item by item: the draws must not depend on the order of the columns.
    """
    patterns, ranks = observed_patterns(result), rank_items(result)
    labels = [str(rank) for rank in ranks]
    _, by_rows = canonical_order(patterns.seen.astype(np.float64), labels, patterns.counted)
    return np.lexsort((np.argsort(by_rows), ranks))


def _law_design(law: LatentLaw) -> tuple[Array, list[_TableRow]]:
    """Return the derivatives of log probabilities of states by the law's parameters, (S, P)."""
    if not isinstance(law, NetworkLaw):
        p = np.asarray(law.probabilities)
        return np.eye(len(p)) - p, [_TableRow(-1, (), 0)]
    states = law.space.states()
    columns: list[Array] = []
    rows = []
    for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        for row in np.ndindex(*table.shape[:-1]):
            there = (states[:, list(causes)] == np.array(row, dtype=np.int64)).all(axis=1)
            rows.append(_TableRow(k, row, len(columns)))
            columns += [
                there * ((states[:, k] == v) - table[row][v]) for v in range(table.shape[-1])
            ]
    return np.column_stack(columns), rows


def _move_items(
    parameters: MeasurementParameters, maps: tuple[Array, ...], step: Array
) -> tuple[MeasurementParameters, int]:
    """Return the items with their free parameters moved, and the number of parameters used.

    ``maps`` are linear maps from the free coefficients of an item to intercept and loadings: a
    disjunctive item has one free coefficient, and several loadings.
    """
    intercept, loadings = parameters.intercept.copy(), parameters.loadings.copy()
    dispersion, cutpoints = parameters.dispersion.copy(), parameters.cutpoints.copy()
    at = 0
    for j, name in enumerate(parameters.families):
        change = maps[j] @ step[at : at + maps[j].shape[1]]
        intercept[j] += change[0]
        loadings[j] += change[1:]
        at += maps[j].shape[1]
        family = family_named(name)
        if family.n_cutpoints:
            moved = cutpoints[j, : family.n_cutpoints] + step[at : at + family.n_cutpoints]
            cutpoints[j, : family.n_cutpoints] = np.maximum.accumulate(
                np.maximum(moved, MIN_PROBABILITY)
            )
            at += family.n_cutpoints
        elif family.has_dispersion:
            dispersion[j] = family.from_unbounded(
                family.to_unbounded(dispersion[j : j + 1]) + step[at]
            )[0]
            at += 1
    moved_items = replace(
        parameters,
        intercept=intercept,
        loadings=loadings,
        dispersion=parameters.within_bounds(dispersion),
        cutpoints=cutpoints,
    )
    return moved_items, at


def _move_probabilities(p: Array, step: Array) -> Array:
    """Return probabilities moved to first order along log ratios, within their bounds.

    On the probability scale, because log ratios of rare levels have no useful variance.
    """
    moved = p + p * (step - p @ step)
    moved = np.where(p > 0, np.maximum(moved, np.minimum(MIN_PROBABILITY, p)), 0.0)
    return np.asarray(moved / moved.sum())


def _move_law(law: LatentLaw, rows: list[_TableRow], step: Array) -> LatentLaw:
    if not isinstance(law, NetworkLaw):
        return SaturatedLaw(law.space, _move_probabilities(np.asarray(law.probabilities), step))
    tables = [np.array(table) for table in law.tables]
    for one in rows:
        table = tables[one.latent]
        part = step[one.begin : one.begin + table.shape[-1]]
        table[one.row] = _move_probabilities(table[one.row], part)
    return NetworkLaw(law.space, law.parents, tuple(tables))
