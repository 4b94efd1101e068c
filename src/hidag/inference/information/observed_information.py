"""The observed information with the latents summed out (Louis 1982).

It is the information of complete data minus the part lost because the latents are not observed:
``E[B | x] - Var(S | x)`` for each row, with S the complete-data score and B minus its derivative.
If there are too many joint states to list, exact scores are differentiated numerically.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.e_step import run_e_step
from hidag.exceptions import Setting, SettingError
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import (
    auxiliary_directions,
    channels_of_response,
    curvature_of,
    information_in_rows,
    response_auxiliary,
    shift_auxiliary,
)
from hidag.inference.information.posterior_tables import TreeTables
from hidag.inference.information.row_scores import (
    RowChannels,
    iterate_scores,
    observed_responses,
    row_bases,
)
from hidag.latent.laws import NetworkLaw
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]

#: Step of numerical derivatives; errors are about its square, and rounding about 1e-16 / STEP.
STEP = 1e-4
#: Rows with a smaller posterior probability of a state are omitted from its sums.
NO_WEIGHT = 1e-12
#: More multiplications would take many minutes.
MAX_WORK = 1e12


def numerical_information(free: FreeParameters) -> Array:
    """Return the negative second derivatives of the log-likelihood by differences, shape (P, P)."""
    out = np.empty((free.n_parameters, free.n_parameters))
    for p in range(free.n_parameters):
        up, down = (_total_score(with_moved(free, p, sign * STEP)) for sign in (1, -1))
        out[p] = (down - up) / (2 * STEP)
    return np.asarray(0.5 * (out + out.T))


def _total_score(free: FreeParameters) -> Array:
    weights = free.data.row_weights
    total = np.zeros(free.n_parameters)
    for rows, scores in iterate_scores(free):
        total += weights[rows] @ scores
    return total


def with_moved(free: FreeParameters, parameter: int, by: float) -> FreeParameters:
    """Return the free parameters of a fit with one of them changed, on the working scale."""
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
    updated = iter(channels_of_response(working, r, eta[r]))
    channels = [next(updated) if old.response == r else old for old in free.channels]
    return replace(free, working=working, eta=tuple(eta), channels=channels)


def with_moved_shape(
    parameters: MeasurementParameters, response: int, place: int, by: float
) -> MeasurementParameters:
    """Return parameters with the dispersion or one cutpoint of a response changed."""
    family = family_named(parameters.families[response])
    step = by * list(auxiliary_directions(family))[place]
    own = shift_auxiliary(family, response_auxiliary(parameters, response), step)
    if family.n_cutpoints:
        cutpoints = parameters.cutpoints.copy()
        cutpoints[response, : family.n_cutpoints] = own
        return replace(parameters, cutpoints=cutpoints)
    dispersion = parameters.dispersion.copy()
    dispersion[response] = own
    return replace(parameters, dispersion=dispersion)


def _with_moved_law(free: FreeParameters, parameter: int, by: float) -> FreeParameters:
    """Return the free parameters of a fit with one log ratio of the law changed."""
    assert isinstance(free.tables, TreeTables)
    ends = free.n_of_items + np.cumsum([len(block.free) for block in free.blocks])
    b = int(np.searchsorted(ends, parameter, side="right"))
    block = free.blocks[b]
    p = block.moved(parameter - int(ends[b]) + len(block.free), by)
    law = free.tables.tree.law
    tables = list(law.tables)
    tables[block.latent] = tables[block.latent].copy()
    tables[block.latent][block.configuration] = p
    blocks = [replace(one, probabilities=p) if one is block else one for one in free.blocks]
    moved_law = NetworkLaw(law.space, law.parents, tuple(tables))
    return replace(free, tables=free.tables.under(moved_law), blocks=blocks)


@dataclass(frozen=True)
class CompleteInformation:
    """The information of complete data (latents observed), expected given the rows.

    Attributes
    ----------
    matrix : ndarray, shape (P, P)
        On all free parameters.
    of_predictors : list of R arrays, shape (S_t,)
        On the predictor of each response in each state of its table, in units of rows: see
        :func:`hidag.inference.information.item_derivatives.information_in_rows`.
    """

    matrix: Array
    of_predictors: list[Array]


@dataclass(frozen=True)
class _ExpectedStatistics:
    """Expected sufficient statistics of complete data.

    Attributes
    ----------
    states : list of T arrays, shape (S_t,)
        Counts of the states of each table.
    counts : list of R arrays, shape (S_t,)
        Counts of rows in which the response was observed.
    sums : list of R arrays, shape (D_r, S_t)
        Sums of the statistics of a response.
    """

    states: list[Array]
    counts: list[Array]
    sums: list[Array]


def _expected_statistics(free: FreeParameters) -> _ExpectedStatistics:
    data, responses = free.data, np.arange(free.data.n_items)
    starts = data.columns.starts
    if free.is_listed:
        features = free.working.terms.features(free.tables.states(0))
        statistics, _ = run_e_step(free.working, free.probabilities, data, features)
        counts = statistics.item_counts(responses, data.incomplete)
        sums = [statistics.sum_x[starts[r] : starts[r + 1]] for r in responses]
        return _ExpectedStatistics([statistics.count], list(counts), sums)
    tables, weights = free.tables, data.row_weights
    out = _ExpectedStatistics(
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
    expected = _expected_statistics(free)
    out = np.zeros((free.n_parameters, free.n_parameters))
    weights = free.data.row_weights
    of_predictors = []
    place = 0
    for r in range(free.data.n_items):
        family = family_named(free.working.families[r])
        seen, cells = observed_responses(free, r)
        auxiliary = response_auxiliary(free.working, r)
        curved = curvature_of(
            family,
            auxiliary,
            free.eta[r],
            expected.sums[r],
            expected.counts[r],
            np.stack([cells, weights[seen]]),
        )
        of_predictors.append(
            information_in_rows(family, auxiliary, curved.predictor, expected.counts[r])
        )
        n_auxiliary = len(curved.auxiliary)
        size = free.coefficient_maps[r].shape[1]
        own = np.arange(place, place + size)
        more = np.arange(place + size, place + size + n_auxiliary)
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
    return CompleteInformation(out, of_predictors)


def lost_information(free: FreeParameters, scores: Array) -> Array:
    """Return the information lost by not observing the latents, shape (P, P).

    It is the conditional variance of the complete-data scores given the rows; ``scores`` (N, P)
    are those of :func:`row_scores`.
    """
    n_states, n_channels = len(free.probabilities), len(free.channels)
    work = free.data.n_samples * n_states * n_channels**2 + n_states * free.n_parameters**2
    if work > MAX_WORK:
        raise SettingError(
            "too-much-work",
            "the observed information of {n_parameters} parameters over {n_states} joint states "
            "and {n_rows:,} rows takes too long",
            advice="use {kind}, which is much faster",
            n_parameters=free.n_parameters,
            n_states=n_states,
            n_rows=free.data.n_samples,
            kind=Setting("kind", "scores"),
        )
    channels = RowChannels(free, 0, row_bases(free))
    weights = free.data.row_weights
    # The parameters of the law share one more channel, which is 1 in every row.
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
    """Return the negative second derivatives of the log-likelihood, shape (P, P).

    Parameters
    ----------
    free : FreeParameters
    scores : ndarray, shape (N, P)
    complete : CompleteInformation, optional
        If it was computed before.
    """
    if not free.is_listed:
        return numerical_information(free)
    known = complete_information(free) if complete is None else complete
    return known.matrix - lost_information(free, scores)
