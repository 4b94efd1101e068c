"""Which columns of a table go with which half of the latents, and what rows are multiplied with."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.half_densities import BOUNDED, Part
from hidag.estimate.halves import Halves, offset_weights
from hidag.estimate.split import split_of
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: With fewer states listing them costs next to nothing.
FEWEST_STATES = 32


def halves_of(
    parameters: MeasurementParameters,
    log_law: Array,
    features: Array,
    tables: tuple[Array, Array],
    data: WorkingData,
    *,
    gaps: bool,
) -> Halves | None:
    """Return the halves, or None where states are better listed.

    Parameters
    ----------
    parameters : MeasurementParameters
    log_law : ndarray, shape (S,)
        Logarithms of the states' probabilities.
    features : ndarray, shape (S, T)
        The terms' values in all joint states.
    tables : tuple of ndarray, shapes (D, S) and (J, S)
        Natural parameters of columns and log partitions of items there.
    data : WorkingData
        The rows are among these.
    gaps : bool
        Whether rows may have missing cells. Log partitions of items that have any then go with the
        columns that say whether a cell was observed.
    """
    terms, (theta, partition) = parameters.terms, tables
    if len(log_law) < FEWEST_STATES or prod(terms.levels) != len(log_law):
        return None
    column_item, n_columns = data.columns.item, data.columns.n_columns
    per_unit = _per_unit(parameters)
    adds_up = ~np.isnan(per_unit)
    tabled = np.flatnonzero(~adds_up[column_item])
    gappy = data.gappy if gaps else data.gappy[:0]
    owners = np.concatenate([column_item[tabled], gappy])
    sets = parameters.support[owners] @ (1 << np.arange(terms.n_latents))
    split = split_of(terms.levels, tuple(np.unique(sets).tolist()))
    if split is None:
        return None
    additive = np.flatnonzero(adds_up[column_item])
    items = column_item[additive]
    columns = np.concatenate([tabled, n_columns + np.arange(len(gappy))])
    level = np.zeros(data.extended.shape[1])
    level[additive] = (parameters.intercept * per_unit)[items]
    largest = data.largest
    in_first = np.isin(terms.main_latents, split.first)
    slopes = parameters.loadings[items, : terms.n_main] * per_unit[items, None]

    def part(
        states: NDArray[np.int64], of_terms: NDArray[np.intp], chosen: NDArray[np.bool_]
    ) -> Part:
        of_items = chosen[: len(tabled)]
        table = np.concatenate(
            [
                theta[tabled[of_items]][:, states],
                -partition[gappy[chosen[len(tabled) :]]][:, states],
            ]
        )
        middle = 0.5 * (table.max(axis=1) + table.min(axis=1))
        table -= middle[:, None]
        level[columns[chosen]] = middle
        # Where nothing adds up there are no terms to be looked at.
        use = of_terms if len(additive) else of_terms[:0]
        reach = np.abs(slopes[:, use]).sum(axis=1) @ largest[additive]
        reach += np.abs(table).max(axis=1, initial=0.0) @ largest[columns[chosen]]
        values = features[states][:, use]
        return Part(np.ascontiguousarray(values), columns[chosen], table, bool(reach <= BOUNDED))

    here, there = ((sets & sum(1 << k for k in half)) > 0 for half in (split.first, split.second))
    first = part(split.of_first, np.flatnonzero(in_first), ~there)
    second = part(split.of_second, np.flatnonzero(~in_first), there & ~here)
    between = part(split.between.ravel(), np.zeros(0, dtype=np.intp), here & there)
    everywhere = np.ones(len(partition), dtype=bool)
    everywhere[gappy] = False
    common = partition[everywhere].sum(axis=0)
    weights, top = offset_weights(split, log_law, common)
    order = np.concatenate([np.flatnonzero(in_first), np.flatnonzero(~in_first)])
    return Halves(
        split,
        additive,
        columns,
        slopes[:, order],
        order,
        level,
        first,
        second,
        between,
        common,
        weights,
        top,
    )


def _per_unit(parameters: MeasurementParameters) -> Array:
    """Return how much of the predictor a unit of an item's column brings, NaN if not so, (J,).

    An item adds up when its natural parameter is a multiple of a predictor that is a sum over
    latents.
    """
    out = np.full(parameters.n_items, np.nan)
    if parameters.terms.interactions:
        return out
    highest = parameters.intercept + np.maximum(parameters.loadings, 0.0).sum(axis=1)
    for family, items in parameters.groups():
        adds_up = items[highest[items] < family.canonical_below]
        if len(adds_up) == 0:
            continue
        auxiliary = parameters.auxiliary(family, adds_up)[:, None]
        out[adds_up] = family.slopes(np.zeros((len(adds_up), 1)), auxiliary)[0][:, 0]
    return out
