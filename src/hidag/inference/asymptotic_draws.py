"""Fits that might as well have been found: parameters drawn from their asymptotic law.

With graph and Q held, estimates err like a normal law, whose covariance is in
:mod:`hidag.inference.information.expected_information`. The information there is that of the
observed items, so
latents that items hardly show err more, and so do those whose items few rows have both of. Nothing
is refitted and no data are needed; how unsure the graph and Q are is not in these draws: a
bootstrap shows that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.data.missingness_patterns import canonical_order
from hidag.exceptions import HidagWarning, SettingError
from hidag.inference.fitted_rows import ranks_of_fit
from hidag.inference.information.expected_information import (
    Nudges,
    n_parameters,
    nudges,
    rows_seen,
    spread_of_estimates,
)
from hidag.inference.refit import can_be_kept
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.results import FitResult, as_result, reorder_items

if TYPE_CHECKING:
    from hidag.estimator import DCRL


Array = NDArray[np.float64]

#: The information is computed with joint states listed, up to so many.
MOST_STATES = 1 << 10
#: More parameters take more than a gigabyte and a minute.
MOST_PARAMETERS = 5000
#: No probability of a drawn law is below this, unless it was zero in the fit.
SMALLEST = 1e-6


@dataclass(frozen=True)
class _Family:
    """Where the free parameters of one row of a table are: log ratios of its probabilities."""

    latent: int
    row: tuple[int, ...]
    begin: int


class LawDraws(Iterator[FitResult]):
    """Fits drawn around another, to be taken once.

    Parameters
    ----------
    draws : iterator of FitResult
        They hold still in directions that the rows tell nothing of.
    hidden : Nudges or None
        The fit moved in these directions; None if there are none.
    """

    def __init__(self, draws: Iterator[FitResult], hidden: Nudges | None) -> None:
        self._draws = draws
        self.hidden = hidden

    def __next__(self) -> FitResult:
        return next(self._draws)


def draws_of_law(
    result: FitResult | DCRL, n_draws: int = 200, *, random_state: int = 0
) -> LawDraws:
    """Return fits with law and coefficients drawn around those of a fit, graph and Q held.

    For the intervals of :func:`hidag.causal.average_effects`. They know which cells were missing
    together and how unequal the rows' weights were, as long as neither has to do with the answers;
    weights are those of a survey, of which only ratios count, whole numbers too. Rows that were
    seen several times are to be repeated for a fit instead: see :func:`hidag.survey_weights`.

    Where the rows tell nothing of a part of the model, draws hold still there, with a warning.
    Effects that depend on it get no interval.

    Parameters
    ----------
    result : FitResult or DCRL
    n_draws : int
    random_state : int

    Raises
    ------
    SettingError
        If joint states are too many to list, an item is nominal, or the fit had missing cells or
        weights and was saved without saying which.
    """
    fitted = as_result(result)
    draws, reason = draws_or_reason(fitted, n_draws, random_state=random_state)
    if draws is None:
        raise SettingError("no-asymptotic-draws", str(reason))
    if draws.hidden is not None:
        warnings.warn(
            f"{draws.hidden.in_words()}; draws hold still there, and average_effects gives no "
            "interval to what depends on it",
            HidagWarning,
            stacklevel=2,
        )
    return draws


def draws_or_reason(
    result: FitResult,
    n_draws: int = 200,
    *,
    random_state: int = 0,
    instead: str = "give replicates of a bootstrap instead",
) -> tuple[LawDraws | None, str | None]:
    """Return what :func:`draws_of_law` returns; or None, and why there are none, in words.

    ``instead`` says what to do where refits would make intervals.
    """
    reason = why_no_draws(result, instead=instead)
    if reason is not None:
        return None, reason
    law_design, families = _law_design(result.law)
    order = _items_by_contents(result)
    ordered = reorder_items(result, order)
    spread = spread_of_estimates(ordered, law_design, random_state)
    places = np.argsort(order)

    def moved(step: Array) -> FitResult:
        items, n_used = _moved_items(ordered.parameters, spread.coefficient_maps, step)
        law = _moved_law(result.law, families, step[n_used:])
        return replace(result, parameters=items.reordered(items=places), law=law)

    hidden = nudges(moved, spread.n_untold, spread.untold_steps, spread.any_steps)
    return LawDraws(map(moved, _steps(spread.root, n_draws, random_state)), hidden), None


def why_no_draws(result: FitResult, *, instead: str) -> str | None:
    """Return why no fits can be drawn around another, in words; None if they can.

    Nothing that takes long is computed. ``instead`` is said where refits would make intervals.
    """
    reason = _why_not_known(result)
    if reason is None:
        number = n_parameters(result, _law_design(result.law)[0])
        if number <= MOST_PARAMETERS:
            return None
        reason = (
            f"intervals from the information are there for at most {MOST_PARAMETERS:,} parameters "
            f"of items and law, but there are {number:,}"
        )
    # Without a law, refits have no effects either.
    return f"{reason}; {instead}" if can_be_kept(result.law) else reason


def _items_by_contents(result: FitResult) -> NDArray[np.intp]:
    """Return an order of items (J,) that goes by what was fitted for them and which rows have them.

    Answers are drawn item by item: in any other order that of the table's columns would have a say
    in the intervals.
    """
    told, ranks = rows_seen(result), ranks_of_fit(result)
    labels = [str(rank) for rank in ranks]
    _, by_rows = canonical_order(told.seen.astype(np.float64), labels, told.counted)
    return np.lexsort((np.argsort(by_rows), ranks))


def _steps(root: Array, n_draws: int, seed: int) -> Iterator[Array]:
    """Yield steps (P,) whose covariance has the root (P, rank)."""
    rng = np.random.default_rng(seed)
    for _ in range(n_draws):
        yield root @ rng.standard_normal(root.shape[1])


def _why_not_known(result: FitResult) -> str | None:
    """Return why a fit does not say enough for its information, in words; None if it does."""
    space = result.law.space
    if space.n_states > MOST_STATES:
        return (
            f"intervals from the information need joint states listed, at most {MOST_STATES}, but "
            f"there are {space.n_states_text()}"
        )
    if not result.responses.plain:
        return "intervals from the information are not there for unordered categories"
    if result.seen_rows is None and result.weighted:
        return (
            "intervals from the information need to know how unequal the weights of rows were, "
            "but the fit was saved by a version that did not keep it"
        )
    if result.seen_rows is None and result.missing_share > 0:
        return (
            "intervals from the information need to know which cells were missing together, but "
            "the fit was saved by a version that did not keep it"
        )
    return None


def _law_design(law: LatentLaw) -> tuple[Array, list[_Family]]:
    """Return the derivative of each state's log probability by the law's parameters, (S, P)."""
    if not isinstance(law, NetworkLaw):
        p = np.asarray(law.probabilities)
        return np.eye(len(p)) - p, [_Family(-1, (), 0)]
    states = law.space.states()
    columns: list[Array] = []
    families = []
    for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        for row in np.ndindex(*table.shape[:-1]):
            there = (states[:, list(causes)] == np.array(row, dtype=np.int64)).all(axis=1)
            families.append(_Family(k, row, len(columns)))
            columns += [
                there * ((states[:, k] == v) - table[row][v]) for v in range(table.shape[-1])
            ]
    return np.column_stack(columns), families


def _moved_items(
    parameters: MeasurementParameters, maps: tuple[Array, ...], step: Array
) -> tuple[MeasurementParameters, int]:
    """Return the items with their free parameters moved, and how many steps these took.

    ``maps`` take an item's free coefficients to its intercept and loadings: items of which any
    latent is enough have one coefficient, and several loadings.
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
            cutpoints[j, : family.n_cutpoints] = np.maximum.accumulate(np.maximum(moved, SMALLEST))
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


def _moved(p: Array, step: Array) -> Array:
    """Return probabilities moved to first order along log ratios, kept inside their bounds.

    On the scale of probabilities, because log ratios of rare levels have no useful spread.
    """
    moved = p + p * (step - p @ step)
    moved = np.where(p > 0, np.maximum(moved, np.minimum(SMALLEST, p)), 0.0)
    return np.asarray(moved / moved.sum())


def _moved_law(law: LatentLaw, families: list[_Family], step: Array) -> LatentLaw:
    if not isinstance(law, NetworkLaw):
        return SaturatedLaw(law.space, _moved(np.asarray(law.probabilities), step))
    tables = [np.array(table) for table in law.tables]
    for one in families:
        table = tables[one.latent]
        part = step[one.begin : one.begin + table.shape[-1]]
        table[one.row] = _moved(table[one.row], part)
    return NetworkLaw(law.space, law.parents, tuple(tables))
