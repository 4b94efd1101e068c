"""Scores of rows: derivatives of their log densities by each free parameter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import base_slopes, response_auxiliary
from hidag.inference.information.posterior_tables import TreeTables
from hidag.measurement.families.base import family_named
from hidag.measurement.terms import Terms
from hidag.network_em.junction_tree import CliqueMarginals

Array = NDArray[np.float64]


class RowChannels:
    """The channels of one table of states, their statistics padded to the same number.

    Attributes
    ----------
    channels : ndarray of int, shape (C,)
        Channels of the fit whose response has this table.
    """

    def __init__(self, free: FreeParameters, table: int, bases: Array) -> None:
        everything = range(len(free.channels))
        self.channels = np.array([c for c in everything if free.table_of(c) == table], np.intp)
        own = [free.channels[c] for c in self.channels]
        widest = max((len(one.slope) for one in own), default=1)
        n_states = len(free.tables.shares(table))
        self.slopes = np.zeros((widest, n_states, len(own)))
        self.places = np.full((widest, len(own)), -1, dtype=np.intp)
        self.falls = np.zeros((n_states, len(own)))
        for c, one in enumerate(own):
            width = len(one.slope)
            self.slopes[:width, :, c] = one.slope
            self.places[:width, c] = free.data.columns.starts[one.response] + np.arange(width)
            self.falls[:, c] = one.fall
        self.owner = np.array([one.response for one in own], dtype=np.intp)
        self.bases = bases[:, self.channels]
        self.data = free.data

    def columns(self, rows: slice) -> Array:
        """Return the statistics of the rows for each channel, zero-padded, shape (D, n, C)."""
        x = self.data.x[rows]
        return np.stack([np.where(place >= 0, x[:, place], 0.0) for place in self.places])

    def seen(self, rows: slice) -> Array:
        """Return whether the response of each channel was observed, shape (n, C)."""
        if self.data.observed is None:
            return np.ones((rows.stop - rows.start, len(self.owner)))
        return self.data.observed[rows][:, self.owner].astype(np.float64)


class _CoefficientScores:
    """Derivatives of the log densities of rows by coefficients of the channels of a table.

    ``channel`` (m,) is the channel of each coefficient, ``design`` (S_t, m) its derivative.
    """

    def __init__(self, channels: RowChannels, channel: NDArray[np.intp], design: Array) -> None:
        self.channels, self.channel = channels, channel
        self.falling = channels.falls[:, channel] * design
        self.rising = channels.slopes[:, :, channel] * design

    def of(self, rows: slice, posterior: Array) -> Array:
        """Return the derivatives for rows with posteriors (n, S_t), shape (n, m)."""
        channels, channel = self.channels, self.channel
        columns = channels.columns(rows)
        part = channels.bases[rows][:, channel] - posterior @ self.falling
        for d, table in enumerate(self.rising):
            used = np.flatnonzero(channels.places[d, channel] >= 0)
            part[:, used] += columns[d][:, channel[used]] * (posterior @ table[:, used])
        return part * channels.seen(rows)[:, channel]


def row_bases(free: FreeParameters) -> Array:
    """Return the parts of the derivatives that do not depend on the latents, shape (N, C)."""
    data = free.data
    out = np.zeros((data.n_samples, len(free.channels)))
    for c, one in enumerate(free.channels):
        if one.kind != "predictor":
            seen, cells = observed_responses(free, one.response)
            family = family_named(free.working.families[one.response])
            own = response_auxiliary(free.working, one.response)
            out[seen, c] = base_slopes(family, own, cells)[:, one.place]
    return out


def observed_responses(free: FreeParameters, response: int) -> tuple[NDArray[np.bool_], Array]:
    """Return which rows have a response, and the values that ``base_term`` needs."""
    column = free.responses[:, response]
    seen = ~np.isnan(column)
    if family_named(free.working.families[response]).is_location_scale:
        return seen, free.data.x[seen, free.data.columns.starts[response]]
    return seen, column[seen]


def item_scores(free: FreeParameters, channel: NDArray[np.intp], design: Array) -> Array:
    """Return scores of coefficients that need not be in the model.

    Parameters
    ----------
    free : FreeParameters
        With listed joint states.
    channel : ndarray of int, shape (m,)
        Channel of each coefficient.
    design : ndarray, shape (S, m)
        Derivative of the channel by each coefficient.

    Returns
    -------
    ndarray, shape (N, m)
    """
    scores = _CoefficientScores(RowChannels(free, 0, row_bases(free)), channel, design)
    out = np.empty((free.data.n_samples, len(channel)))
    for block in free.row_blocks():
        out[block.rows] = scores.of(block.rows, block.posteriors[0])
    return out


def row_scores(free: FreeParameters) -> Array:
    """Return the derivatives of the log density of each row by each parameter, shape (N, P)."""
    out = np.empty((free.data.n_samples, free.n_parameters))
    for rows, scores in iterate_scores(free):
        out[rows] = scores
    return out


def iterate_scores(free: FreeParameters) -> Iterator[tuple[slice, Array]]:
    """Yield ranges of rows with the derivatives of their log densities, shape (n, P)."""
    bases = row_bases(free)
    of_items: list[tuple[int, NDArray[np.intp], _CoefficientScores]] = []
    of_law: list[tuple[int, NDArray[np.intp], Array]] = []
    ends = free.n_of_items + np.cumsum([0, *(len(block.free) for block in free.blocks)])
    for t in range(free.tables.n_tables):
        channels = RowChannels(free, t, bases)
        if len(channels.channels):
            own = np.concatenate([free.of_channel(c) for c in channels.channels])
            place = np.searchsorted(channels.channels, free.channel[own])
            design = np.hstack([free.designs[c] for c in channels.channels])
            of_items.append((t, own, _CoefficientScores(channels, place, design)))
        held = [b for b, block in enumerate(free.blocks) if block.table == t]
        if held:
            own = np.concatenate([np.arange(ends[b], ends[b + 1]) for b in held])
            of_law.append((t, own, np.hstack([free.blocks[b].scores() for b in held])))
    for block in free.row_blocks():
        out = np.empty((len(block.log_density), free.n_parameters))
        for t, own, scores in of_items:
            out[:, own] = scores.of(block.rows, block.posteriors[t])
        for t, own, design in of_law:
            out[:, own] = block.posteriors[t] @ design
        yield block.rows, out


def iterate_loading_scores(free: FreeParameters) -> Iterator[tuple[int, Array]]:
    """Yield each response with the scores of its loadings on all main terms, shape (N, T).

    For loadings inside and outside the model, if joint states are not listed.
    """
    tables, data = free.tables, free.data
    assert isinstance(tables, TreeTables)
    bases = row_bases(free)
    density = tables.tree.working_densities(data, free.working)
    for table in np.unique(tables.of_response).tolist():
        channels = RowChannels(free, table, bases)
        own = [
            c for c, one in enumerate(channels.channels) if free.channels[one].kind == "predictor"
        ]
        found = np.zeros((len(own), data.n_samples, free.result.terms.n_main))
        scope = tables.scopes[table]
        for place, state in enumerate(tables.states(table)[:, list(scope)]):
            known = tables.tree.condition_on(scope, state) if scope else tables.tree
            for rows, groups in known.iterate_marginals(data, free.working):
                share = np.exp(groups.log_density - density[rows])
                slope = (channels.columns(rows) * channels.slopes[:, place][:, None]).sum(axis=0)
                residual = (slope - channels.falls[place]) * channels.seen(rows)
                expected = _term_probabilities(groups, free.result.terms) * share[:, None]
                for c, out in zip(own, found, strict=True):
                    out[rows] += residual[:, c, None] * expected
        for c, out in zip(own, found, strict=True):
            yield free.channels[channels.channels[c]].response, out


def _term_probabilities(groups: CliqueMarginals, terms: Terms) -> Array:
    """Return the posterior probability of each main term for a block of n rows, shape (n, T)."""
    out = np.empty((len(groups.log_density), terms.n_main))
    for t, (latent, level) in enumerate(zip(terms.main_latents, terms.main_levels, strict=True)):
        shares = groups.by_state((int(latent),))
        out[:, t] = shares[level:].sum(axis=0) / shares.sum(axis=0)
    return out
