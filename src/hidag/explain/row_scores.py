"""Scores of rows and the observed information, latents summed out (Louis 1982).

The observed information is what complete data would have, less what is lost because the latents are
not seen: ``E[B | x] - Var(S | x)`` for each row, with S the complete-data score and B minus its
derivative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.estimate.exact import StateScores, iterate_posteriors
from hidag.estimate.expectation import expect
from hidag.explain.free_parameters import FreeParameters
from hidag.explain.item_channels import auxiliary_of, base_slopes, curvature_of
from hidag.explain.item_edges import told_in_rows
from hidag.measurement import family_named

Array = NDArray[np.float64]

#: Numbers of a block's table of rows and states.
BLOCK_NUMBERS = 1 << 22
#: A row whose chance of a state is below this adds nothing to sums by state.
NO_WEIGHT = 1e-12
#: More multiplications than these are not begun: they take many minutes.
MOST_WORK = 1e12


def posterior_blocks(free: FreeParameters) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges, probabilities of their joint states (rows, S), log densities (rows,).

    Log densities are on the working scale and without what no parameter enters.
    """
    features = free.working.terms.features(free.result.law.space.states())
    scores = StateScores.of(free.working, free.probabilities, features, free.data.gappy)
    enough = max(1, BLOCK_NUMBERS // len(free.probabilities))
    waiting: list[tuple[Array, Array]] = []
    begin = end = 0
    for rows, posterior, marginal in iterate_posteriors(scores, free.data):
        waiting.append((posterior, marginal))
        end = rows.stop
        if end - begin >= enough or end == free.data.n_samples:
            tables, marginals = zip(*waiting, strict=True)
            yield slice(begin, end), np.vstack(tables), np.concatenate(marginals)
            waiting, begin = [], end


class _RowChannels:
    """The channels' derivatives for rows: one axis runs over channels, all columns padded."""

    def __init__(self, free: FreeParameters) -> None:
        widest = max(len(one.slope) for one in free.channels)
        n_states, n_channels = len(free.probabilities), len(free.channels)
        self.slopes = np.zeros((widest, n_states, n_channels))
        self.places = np.full((widest, n_channels), -1, dtype=np.intp)
        for c, one in enumerate(free.channels):
            width = len(one.slope)
            self.slopes[:width, :, c] = one.slope
            self.places[:width, c] = free.data.columns.starts[one.response] + np.arange(width)
        self.falls = np.stack([one.fall for one in free.channels], axis=1)
        self.owner = np.array([one.response for one in free.channels], dtype=np.intp)
        self.bases = _bases(free)
        self.data = free.data

    def columns(self, rows: slice) -> Array:
        """Return the rows' columns for each channel, zero past a channel's last, (D, n, C)."""
        x = self.data.x[rows]
        return np.stack([np.where(place >= 0, x[:, place], 0.0) for place in self.places])

    def seen(self, rows: slice) -> Array:
        """Return whether a channel's response was observed, shape (n, C)."""
        if self.data.observed is None:
            return np.ones((rows.stop - rows.start, len(self.owner)))
        return self.data.observed[rows][:, self.owner].astype(np.float64)


def _bases(free: FreeParameters) -> Array:
    """Return what rows add to channels whatever the latents are, shape (N, C)."""
    data = free.data
    out = np.zeros((data.n_samples, len(free.channels)))
    for c, one in enumerate(free.channels):
        if one.kind != "predictor":
            seen, cells = _cells(free, one.response)
            family = family_named(free.working.families[one.response])
            own = auxiliary_of(free.working, one.response)
            out[seen, c] = base_slopes(family, own, cells)[:, one.place]
    return out


def _cells(free: FreeParameters, response: int) -> tuple[NDArray[np.bool_], Array]:
    """Return which rows answered, and their answers as ``base`` takes them."""
    column = free.responses[:, response]
    seen = ~np.isnan(column)
    if family_named(free.working.families[response]).is_location_scale:
        return seen, free.data.x[seen, free.data.columns.starts[response]]
    return seen, column[seen]


def item_scores(free: FreeParameters, channel: NDArray[np.intp], design: Array) -> Array:
    """Return derivatives of rows' log densities by coefficients that need not be in the model.

    Parameters
    ----------
    free : FreeParameters
    channel : ndarray of int, shape (m,)
        Of each coefficient.
    design : ndarray, shape (S, m)
        What each coefficient multiplies.

    Returns
    -------
    ndarray, shape (N, m)
    """
    channels = _RowChannels(free)
    falling = channels.falls[:, channel] * design
    rising = channels.slopes[:, :, channel] * design
    out = np.empty((free.data.n_samples, len(channel)))
    for rows, posterior, _ in posterior_blocks(free):
        columns = channels.columns(rows)
        part = channels.bases[rows][:, channel] - posterior @ falling
        for d, table in enumerate(rising):
            used = np.flatnonzero(channels.places[d, channel] >= 0)
            part[:, used] += columns[d][:, channel[used]] * (posterior @ table[:, used])
        out[rows] = part * channels.seen(rows)[:, channel]
    return out


def row_scores(free: FreeParameters) -> Array:
    """Return the derivative of each row's log density by each parameter, shape (N, P)."""
    n_items = free.n_of_items
    out = np.empty((free.data.n_samples, free.n_parameters))
    out[:, :n_items] = item_scores(free, free.channel[:n_items], free.design[:, :n_items])
    for rows, posterior, _ in posterior_blocks(free):
        out[rows, n_items:] = posterior @ free.design[:, n_items:]
    return out


@dataclass(frozen=True)
class CompleteInformation:
    """What data in which the latents were seen would tell, as it is expected given the rows.

    Attributes
    ----------
    matrix : ndarray, shape (P, P)
        The information about all free parameters.
    told : ndarray, shape (R, S)
        About each response's predictor in each state, in rows: see
        :func:`hidag.explain.item_edges.told_in_rows`.
    """

    matrix: Array
    told: Array


def complete_information(free: FreeParameters) -> CompleteInformation:
    """Return the expected information of complete data given the rows."""
    features = free.working.terms.features(free.result.law.space.states())
    statistics, _ = expect(free.working, free.probabilities, free.data, features)
    out = np.zeros((free.n_parameters, free.n_parameters))
    responses = np.arange(free.data.n_items)
    counts = statistics.item_counts(responses, free.data.gappy)
    starts, weights = free.data.columns.starts, free.data.row_weights
    told = np.empty(free.eta.shape)
    place = 0
    for r in responses:
        family = family_named(free.working.families[r])
        seen, cells = _cells(free, int(r))
        auxiliary = auxiliary_of(free.working, int(r))
        curved = curvature_of(
            family,
            auxiliary,
            free.eta[r],
            statistics.sum_x[starts[r] : starts[r + 1]],
            counts[r],
            np.stack([cells, weights[seen]]),
        )
        told[r] = told_in_rows(family, auxiliary, curved.predictor, counts[r])
        n_auxiliary = len(curved.auxiliary)
        size = free.coefficient_maps[r].shape[1]
        own, more = (
            np.arange(place, place + size),
            np.arange(place + size, place + size + n_auxiliary),
        )
        design = free.design[:, own]
        out[np.ix_(own, own)] = design.T @ (curved.predictor[:, None] * design)
        out[np.ix_(more, own)] = curved.mixed @ design
        out[np.ix_(own, more)] = out[np.ix_(more, own)].T
        out[np.ix_(more, more)] = curved.auxiliary
        place += size + n_auxiliary
    for block in free.blocks:
        own = np.arange(place, place + len(block.free))
        out[np.ix_(own, own)] = block.curvature(statistics.count)
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
    channels = _RowChannels(free)
    weights = free.data.row_weights
    # The law's parameters share one more channel, which is one in every row.
    moments = np.zeros((n_states, n_channels + 1, n_channels + 1))
    for rows, posterior, _ in posterior_blocks(free):
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


def observed_information(free: FreeParameters, scores: Array) -> Array:
    """Return minus the second derivatives of the log-likelihood, shape (P, P)."""
    return complete_information(free).matrix - lost_information(free, scores)
