"""Scores of rows: how their log densities move with each free parameter, latents summed out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import auxiliary_of, base_slopes
from hidag.inference.information.posterior_tables import TreeTables
from hidag.measurement.families.registry import family_named
from hidag.measurement.terms import Terms
from hidag.network_em.junction_tree import CliqueMarginals

Array = NDArray[np.float64]


class RowChannels:
    """The derivatives of a table's channels for rows: one axis over channels, columns padded.

    Attributes
    ----------
    channels : ndarray of int, shape (C,)
        Which channels of the fit are told over the table.
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
        """Return the rows' columns for each channel, zero past a channel's last, (D, n, C)."""
        x = self.data.x[rows]
        return np.stack([np.where(place >= 0, x[:, place], 0.0) for place in self.places])

    def seen(self, rows: slice) -> Array:
        """Return whether a channel's response was observed, shape (n, C)."""
        if self.data.observed is None:
            return np.ones((rows.stop - rows.start, len(self.owner)))
        return self.data.observed[rows][:, self.owner].astype(np.float64)


class _CoefficientScores:
    """Derivatives of rows' log densities by coefficients of some of a table's channels.

    ``channel`` (m,) says which of the table's channels a coefficient is of, ``design`` (S_t, m)
    what it multiplies.
    """

    def __init__(self, channels: RowChannels, channel: NDArray[np.intp], design: Array) -> None:
        self.channels, self.channel = channels, channel
        self.falling = channels.falls[:, channel] * design
        self.rising = channels.slopes[:, :, channel] * design

    def of(self, rows: slice, posterior: Array) -> Array:
        """Return the derivatives, shape (n, m), for rows with a posterior (n, S_t)."""
        channels, channel = self.channels, self.channel
        columns = channels.columns(rows)
        part = channels.bases[rows][:, channel] - posterior @ self.falling
        for d, table in enumerate(self.rising):
            used = np.flatnonzero(channels.places[d, channel] >= 0)
            part[:, used] += columns[d][:, channel[used]] * (posterior @ table[:, used])
        return part * channels.seen(rows)[:, channel]


def row_bases(free: FreeParameters) -> Array:
    """Return what rows add to channels whatever the latents are, shape (N, C)."""
    data = free.data
    out = np.zeros((data.n_samples, len(free.channels)))
    for c, one in enumerate(free.channels):
        if one.kind != "predictor":
            seen, cells = answers_of(free, one.response)
            family = family_named(free.working.families[one.response])
            own = auxiliary_of(free.working, one.response)
            out[seen, c] = base_slopes(family, own, cells)[:, one.place]
    return out


def answers_of(free: FreeParameters, response: int) -> tuple[NDArray[np.bool_], Array]:
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
        With joint states listed.
    channel : ndarray of int, shape (m,)
        Of each coefficient.
    design : ndarray, shape (S, m)
        What each coefficient multiplies.

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
    """Return the derivative of each row's log density by each parameter, shape (N, P)."""
    out = np.empty((free.data.n_samples, free.n_parameters))
    for rows, scores in iterate_scores(free):
        out[rows] = scores
    return out


def iterate_scores(free: FreeParameters) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges with the derivatives of their log densities, shape (n, P)."""
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


# --- Scores of loadings that are not in the model, where joint states are too many to be


def scores_of_loadings(free: FreeParameters) -> Iterator[tuple[int, Array]]:
    """Yield responses with derivatives of rows' log densities by their loadings, shape (N, T).

    By those that are in the model and those that are not; effects add up.

    Parameters
    ----------
    free : FreeParameters
        Told over small tables.
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
                told = (channels.columns(rows) * channels.slopes[:, place][:, None]).sum(axis=0)
                residual = (told - channels.falls[place]) * channels.seen(rows)
                reached = _reached(groups, free.result.terms) * share[:, None]
                for c, out in zip(own, found, strict=True):
                    out[rows] += residual[:, c, None] * reached
        for c, out in zip(own, found, strict=True):
            yield free.channels[channels.channels[c]].response, out


def _reached(groups: CliqueMarginals, terms: Terms) -> Array:
    """Return the probability of each main term for a block of n rows, shape (n, T)."""
    out = np.empty((len(groups.log_density), terms.n_main))
    for t, (latent, level) in enumerate(zip(terms.main_latents, terms.main_levels, strict=True)):
        shares = groups.by_state((int(latent),))
        out[:, t] = shares[level:].sum(axis=0) / shares.sum(axis=0)
    return out
