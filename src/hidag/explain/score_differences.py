"""The observed information where joint states are too many to list: differences of exact scores.

A parameter is moved a little to either side, and the scores of all rows are summed anew. Each sum
is as quick as the sums over small tables that it is made of, so that this takes two of them for a
parameter, whatever the number of joint states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.item_channels import auxiliary_of, channels_of_response, moved, moves
from hidag.explain.row_scores import iterate_scores
from hidag.explain.state_tables import TreeTables
from hidag.latent import NetworkLaw
from hidag.measurement import MeasurementParameters, family_named

Array = NDArray[np.float64]

#: How far parameters are moved: errors are about its square, and rounding about 1e-16 by it.
STEP = 1e-4


def information_by_differences(free: FreeParameters) -> Array:
    """Return minus the second derivatives of the log-likelihood, shape (P, P).

    Parameters
    ----------
    free : FreeParameters
        Told over small tables.
    """
    out = np.empty((free.n_parameters, free.n_parameters))
    for p in range(free.n_parameters):
        up, down = (_summed_scores(with_moved(free, p, sign * STEP)) for sign in (1, -1))
        out[p] = (down - up) / (2 * STEP)
    return np.asarray(0.5 * (out + out.T))


def _summed_scores(free: FreeParameters) -> Array:
    weights = free.data.row_weights
    total = np.zeros(free.n_parameters)
    for rows, scores in iterate_scores(free):
        total += weights[rows] @ scores
    return total


def with_moved(free: FreeParameters, parameter: int, by: float) -> FreeParameters:
    """Return a fit's parameters with one of them moved, on the working scale."""
    channel = int(free.channel[parameter])
    if channel == len(free.channels):
        return _with_moved_law(free, parameter, by)
    one = free.channels[channel]
    r, place = one.response, int(np.flatnonzero(free.of_channel(channel) == parameter)[0])
    working = free.working
    if one.kind == "predictor":
        step = by * free.coefficient_maps[r][:, place]
        intercept, loadings = working.intercept.copy(), working.loadings.copy()
        intercept[r] += step[0]
        loadings[r] += step[1:]
        working = replace(working, intercept=intercept, loadings=loadings)
    else:
        working = with_moved_shape(working, r, one.place, by)
    table = int(free.tables.of_response[r])
    eta = list(free.eta)
    eta[r] = working.predictors(free.tables.states(table))[r]
    renewed = iter(channels_of_response(working, r, eta[r]))
    channels = [next(renewed) if old.response == r else old for old in free.channels]
    return replace(free, working=working, eta=tuple(eta), channels=channels)


def with_moved_shape(
    parameters: MeasurementParameters, response: int, place: int, by: float
) -> MeasurementParameters:
    """Return parameters with the dispersion of a response moved, or one of its cutpoints."""
    family = family_named(parameters.families[response])
    own = moved(family, auxiliary_of(parameters, response), by * list(moves(family))[place])
    if family.n_cutpoints:
        cutpoints = parameters.cutpoints.copy()
        cutpoints[response, : family.n_cutpoints] = own
        return replace(parameters, cutpoints=cutpoints)
    dispersion = parameters.dispersion.copy()
    dispersion[response] = own
    return replace(parameters, dispersion=dispersion)


def _with_moved_law(free: FreeParameters, parameter: int, by: float) -> FreeParameters:
    """Return a fit's parameters with a log ratio of the law moved."""
    assert isinstance(free.tables, TreeTables)
    ends = free.n_of_items + np.cumsum([len(block.free) for block in free.blocks])
    b = int(np.searchsorted(ends, parameter, side="right"))
    block = free.blocks[b]
    turned = block.moved(parameter - int(ends[b]) + len(block.free), by)
    law = free.tables.tree.law
    table = law.tables[block.latent].copy()
    table[block.configuration] = turned
    tables = (*law.tables[: block.latent], table, *law.tables[block.latent + 1 :])
    blocks = [replace(one, probabilities=turned) if i == b else one
              for i, one in enumerate(free.blocks)]  # fmt: skip
    moved_law = NetworkLaw(law.space, law.parents, tables)
    return replace(free, tables=free.tables.under(moved_law), blocks=blocks)
