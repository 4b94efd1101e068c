"""The observed information, latents summed out (Louis 1982).

It is what complete data would have, less what is lost because the latents are not seen:
``E[B | x] - Var(S | x)`` for each row, with S the complete-data score and B minus its derivative.
That takes joint states listed; where they are too many, scores are differentiated numerically.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.e_step import run_e_step
from hidag.exceptions import SettingError
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import (
    auxiliary_of,
    channels_of_response,
    curvature_of,
    moved,
    moves,
    told_in_rows,
)
from hidag.inference.information.posterior_tables import TreeTables
from hidag.inference.information.row_scores import (
    RowChannels,
    answers_of,
    iterate_scores,
    row_bases,
)
from hidag.latent.laws import NetworkLaw
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters

# --- The observed information where joint states are too many to list: differences of exact

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


# ---

#: A row whose chance of a state is below this adds nothing to sums by state.
NO_WEIGHT = 1e-12
#: More multiplications than these are not begun: they take many minutes.
MOST_WORK = 1e12


@dataclass(frozen=True)
class CompleteInformation:
    """What data in which the latents were seen would tell, as it is expected given the rows.

    Attributes
    ----------
    matrix : ndarray, shape (P, P)
        The information about all free parameters.
    told : list of R arrays, shape (S_t,)
        About each response's predictor in each state of its table, in rows: see
        :func:`hidag.inference.information.item_derivatives.told_in_rows`.
    """

    matrix: Array
    told: list[Array]


@dataclass(frozen=True)
class _Expected:
    """Rows as they are expected in the states of tables.

    Attributes
    ----------
    states : list of T arrays, shape (S_t,)
        Rows in each state.
    counts : list of R arrays, shape (S_t,)
        Those that a response was observed in.
    sums : list of R arrays, shape (D_r, S_t)
        Sums of a response's columns.
    """

    states: list[Array]
    counts: list[Array]
    sums: list[Array]


def _expected(free: FreeParameters) -> _Expected:
    data, responses = free.data, np.arange(free.data.n_items)
    starts = data.columns.starts
    if free.is_listed:
        features = free.working.terms.features(free.tables.states(0))
        statistics, _ = run_e_step(free.working, free.probabilities, data, features)
        counts = statistics.item_counts(responses, data.incomplete)
        sums = [statistics.sum_x[starts[r] : starts[r + 1]] for r in responses]
        return _Expected([statistics.count], list(counts), sums)
    tables, weights = free.tables, data.row_weights
    out = _Expected(
        [np.zeros(len(tables.shares(t))) for t in range(tables.n_tables)],
        [np.zeros(len(own)) for own in free.eta],
        [np.zeros((starts[r + 1] - starts[r], len(own))) for r, own in enumerate(free.eta)],
    )
    for block in free.row_blocks():
        counted = weights[block.rows]
        for total, posterior in zip(out.states, block.posteriors, strict=True):
            total += counted @ posterior
        x = data.x[block.rows] * counted[:, None]
        for r in responses:
            posterior = block.posteriors[tables.of_response[r]]
            seen = counted if data.observed is None else counted * data.observed[block.rows, r]
            out.counts[r] += seen @ posterior
            out.sums[r] += x[:, starts[r] : starts[r + 1]].T @ posterior
    return out


def complete_information(free: FreeParameters) -> CompleteInformation:
    """Return the expected information of complete data given the rows."""
    expected = _expected(free)
    out = np.zeros((free.n_parameters, free.n_parameters))
    weights = free.data.row_weights
    told = []
    place = 0
    for r in range(free.data.n_items):
        family = family_named(free.working.families[r])
        seen, cells = answers_of(free, r)
        auxiliary = auxiliary_of(free.working, r)
        curved = curvature_of(
            family,
            auxiliary,
            free.eta[r],
            expected.sums[r],
            expected.counts[r],
            np.stack([cells, weights[seen]]),
        )
        told.append(told_in_rows(family, auxiliary, curved.predictor, expected.counts[r]))
        n_auxiliary = len(curved.auxiliary)
        size = free.coefficient_maps[r].shape[1]
        own, more = (
            np.arange(place, place + size),
            np.arange(place + size, place + size + n_auxiliary),
        )
        design = free.designs[free.channel[place]]
        out[np.ix_(own, own)] = design.T @ (curved.predictor[:, None] * design)
        out[np.ix_(more, own)] = curved.mixed @ design
        out[np.ix_(own, more)] = out[np.ix_(more, own)].T
        out[np.ix_(more, more)] = curved.auxiliary
        place += size + n_auxiliary
    for block in free.blocks:
        own = np.arange(place, place + len(block.free))
        out[np.ix_(own, own)] = block.curvature(expected.states[block.table])
        place += len(own)
    return CompleteInformation(out, told)


def lost_information(free: FreeParameters, scores: Array) -> Array:
    """Return what is lost because latents are not seen: the scores' variance given rows, (P, P).

    ``scores`` (N, P) are those of :func:`row_scores`.
    """
    n_states, n_channels = len(free.probabilities), len(free.channels)
    work = free.data.n_samples * n_states * n_channels**2 + n_states * free.n_parameters**2
    if work > MOST_WORK:
        raise SettingError(
            f"the observed information of {free.n_parameters} parameters over {n_states} joint "
            "states and this many rows takes too long; use kind='scores', which needs a small part "
            "of the time"
        )
    channels = RowChannels(free, 0, row_bases(free))
    weights = free.data.row_weights
    # The law's parameters share one more channel, which is one in every row.
    moments = np.zeros((n_states, n_channels + 1, n_channels + 1))
    for block in free.row_blocks():
        rows, posterior = block.rows, block.posteriors[0]
        columns, seen, bases = channels.columns(rows), channels.seen(rows), channels.bases[rows]
        for s in range(n_states):
            inside = np.flatnonzero(posterior[:, s] > NO_WEIGHT)
            value = bases[inside] - channels.falls[s]
            for d in range(len(columns)):
                value += columns[d][inside] * channels.slopes[d, s]
            value *= seen[inside]
            value = np.hstack([value, np.ones((len(inside), 1))])
            counted = posterior[inside, s] * weights[rows][inside]
            moments[s] += value.T @ (counted[:, None] * value)
    out = -(scores.T @ (weights[:, None] * scores))
    own = free.channel
    for s in range(n_states):
        active = np.flatnonzero(free.design[s])
        at = free.design[s, active]
        inner = moments[s][np.ix_(own[active], own[active])]
        out[np.ix_(active, active)] += at[:, None] * inner * at
    return out


def observed_information(
    free: FreeParameters, scores: Array, complete: CompleteInformation | None = None
) -> Array:
    """Return minus the second derivatives of the log-likelihood, shape (P, P).

    Parameters
    ----------
    free : FreeParameters
    scores : ndarray, shape (N, P)
    complete : CompleteInformation, optional
        If that is known already.
    """
    if not free.is_listed:
        return information_by_differences(free)
    known = complete_information(free) if complete is None else complete
    return known.matrix - lost_information(free, scores)
