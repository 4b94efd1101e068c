"""What all other items say of an item: its expectation given them, and where they place rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.working import WorkingData
from hidag.explain.free_parameters import FreeParameters
from hidag.explain.scored_columns import ScoredColumns
from hidag.explain.state_tables import TreeTables
from hidag.measurement import Terms

Array = NDArray[np.float64]

#: Exponentials of more would overflow.
LARGEST_EXPONENT = 600.0
#: Sums a row over levels of an item's own latents; beyond, weights of all states are as cheap.
MOST_SUMS = 256


def left_out(free: FreeParameters, columns: ScoredColumns) -> Iterator[tuple[int, Array, Array]]:
    """Yield each column with what it shows beyond the other items, and the latents so seen.

    Yields
    ------
    column : int
    residual : ndarray, shape (N,)
        The column less its expectation given all other items; 0 where nothing was observed.
    levels : ndarray, shape (N, F)
        One where a latent's most probable level given all other items reaches a level.
    """
    latents = Terms.main(free.result.law.space.levels)
    if isinstance(free.tables, TreeTables):
        for item in np.unique(columns.item).tolist():
            yield from _by_small_sums(free, free.tables, columns, latents, item)
        return
    residuals, levels = _without_own_item(free, columns, latents)
    for g, item in enumerate(columns.item.tolist()):
        yield g, residuals[:, g], levels[item]


def _by_small_sums(
    free: FreeParameters, tables: TreeTables, columns: ScoredColumns, latents: Terms, item: int
) -> Iterator[tuple[int, Array, Array]]:
    """Yield the columns of one item as :func:`left_out` does: rows are summed without it."""
    data = _without_responses(free.data, np.flatnonzero(free.result.responses.item == item))
    own = np.flatnonzero(columns.item == item)
    table = int(columns.expected.table[own[0]])
    means = np.column_stack([columns.expected.column(int(g)) for g in own])
    expected = np.empty((data.n_samples, len(own)))
    levels = np.empty((data.n_samples, latents.n_main))
    for rows, groups in tables.tree.groups(data, free.working):
        expected[rows] = groups.over(tables.scopes[table]) @ means
        for k in range(len(latents.levels)):
            mode = groups.over((k,)).argmax(axis=1)
            mine = np.flatnonzero(latents.main_latents == k)
            levels[rows, mine[0] : mine[-1] + 1] = mode[:, None] >= latents.main_levels[mine]
    for g, mean in zip(own.tolist(), expected.T, strict=True):
        gap = columns.values[:, g] - mean
        yield g, np.where(np.isnan(gap), 0.0, gap), levels


def _without_responses(data: WorkingData, responses: NDArray[np.intp]) -> WorkingData:
    """Return rows in which some responses were not observed; sums over rows are not renewed."""
    extended = data.extended.copy()
    extended[:, np.flatnonzero(np.isin(data.column_item, responses))] = 0.0
    shape = (data.n_samples, data.n_items)
    seen = np.ones(shape, dtype=np.uint8) if data.observed is None else data.observed.copy()
    seen[:, responses] = 0
    return replace(data, extended=extended, observed=seen)


def _without_own_item(
    free: FreeParameters, columns: ScoredColumns, latents: Terms
) -> tuple[Array, list[Array]]:
    """Return the columns less their expectation given the other items, and the latents so seen.

    An item tells apart only the levels of its own latents, so rows' chances are first summed by
    those, once for all items with the same latents.

    Returns
    -------
    residuals : ndarray, shape (N, G)
        Zero where nothing was observed.
    levels : list of J arrays, shape (N, F)
        One where a latent's most probable level given all items but one reaches a level.
    """
    data, space = free.data, free.result.law.space
    states = space.states()
    theta, partition = free.working.tables(free.working.terms.features(states))
    residuals = np.zeros_like(columns.values)
    reached = [np.zeros((data.n_samples, latents.n_main)) for _ in free.result.item_names]
    # One, and whether each latent reaches each level.
    asked = np.hstack([np.ones((len(states), 1)), latents.features(states)])
    patterns, kin = np.unique(free.result.q_matrix, axis=0, return_inverse=True)
    for block in free.row_blocks():
        rows, posterior = block.rows, block.posteriors[0]
        likeliest = posterior.argmax(axis=1)
        for p, pattern in enumerate(patterns):
            _, first, group = np.unique(
                states[:, pattern != 0], axis=0, return_index=True, return_inverse=True
            )
            inside = group[:, None] == np.arange(len(first))
            few = len(first) * asked.shape[1] <= MOST_SUMS
            if few:
                by_group = posterior @ (inside[:, :, None] * asked[:, None]).reshape(len(group), -1)
                by_group = by_group.reshape(len(posterior), len(first), -1)
            for j in np.flatnonzero(kin.ravel() == p):
                density = np.zeros((len(posterior), len(first)))
                for r in np.flatnonzero(free.result.responses.item == j):
                    here = slice(data.columns.starts[r], data.columns.starts[r + 1])
                    log_density = data.x[rows, here] @ theta[here][:, first] - partition[r, first]
                    if data.observed is not None:
                        log_density *= data.observed[rows, r][:, None]
                    density += log_density
                # What the item said is taken out again; the likeliest state keeps its weight, so
                # that nothing vanishes, and what has next to none cannot overflow.
                weight = np.take_along_axis(density, group[likeliest][:, None], axis=1) - density
                np.exp(np.minimum(weight, LARGEST_EXPONENT, out=weight), out=weight)
                if few:
                    sums = np.einsum("nm,nmf->nf", weight, by_group)
                    rest, means = weight * by_group[:, :, 0], columns.means[first]
                else:
                    rest, means = posterior * weight[:, group], columns.means
                    sums = rest @ asked
                for g in np.flatnonzero(columns.item == j):
                    gap = columns.values[rows, g] - rest @ means[:, g] / sums[:, 0]
                    residuals[rows, g] = np.where(np.isnan(gap), 0.0, gap)
                reached[j][rows] = _most_probable(sums / sums[:, :1], latents)
    return residuals, reached


def _most_probable(at_least: Array, latents: Terms) -> Array:
    """Return whether latents' most probable levels reach each level, (n, 1 + F) to (n, F).

    ``at_least`` are chances of nothing in particular, one, and of reaching each level.
    """
    out = np.empty((len(at_least), latents.n_main))
    for k in range(len(latents.levels)):
        own = np.flatnonzero(latents.main_latents == k)
        reaching = np.column_stack([at_least[:, 0], at_least[:, 1 + own], np.zeros(len(at_least))])
        mode = (reaching[:, :-1] - reaching[:, 1:]).argmax(axis=1)
        out[:, own] = mode[:, None] >= latents.main_levels[own]
    return out
