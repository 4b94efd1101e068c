"""Item fit: the deviation of each item from its expectation given all other items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from hidag.data.rows import effective_sample_size, weighted_mean_std
from hidag.em.design_data import WorkingData
from hidag.inference.result_tables import N_EFFECTIVE, Table
from hidag.information.free_parameters import FreeParameters
from hidag.information.moment_tests import LocalScores, ScoredColumns, chi_square
from hidag.information.pair_sums import MIN_DEVIATIONS, MIN_FOURTH_MOMENT
from hidag.information.posterior_tables import TreeTables
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]

COLUMNS = (
    "item", "observed", "expected", "rmsd", "chi_square", "degrees", "p_value", "n_rows",
)  # fmt: skip
MAX_EXPONENT = 600.0  # Larger exponents would overflow
#: Up to this many sums per row, posteriors are first summed by the states of the item's latents.
MAX_GROUPED_SUMS = 256
#: Directions with a smaller relative variance are dropped: with about a thousand rows their
#: variances are so uncertain that correct models would be rejected too often.
MIN_RELATIVE_VARIANCE = 0.05
#: The regression on the scores must leave this multiple of the share that it removes by chance.
#: With half as many parameters as rows the rest is mostly noise, and its variance underestimated.
MIN_RESIDUAL_RATIO = 2.0


def compute_item_fit(free: FreeParameters, columns: ScoredColumns, scores: LocalScores) -> Table:
    """Return observed and expected means of each item, RMSD and a chi-square test.

    *rmsd* is the root mean square difference of the means over states (joint ones where
    enumerated), weighted by their posterior mass: in probabilities for binary items, else in
    standard deviations. *chi_square* tests whether the residual of an item given all other items is
    associated with any latent at its most probable level. Directions that depend on too few rows
    are dropped.
    """
    means, weights = columns.expected.means(), free.data.row_weights
    distances = _root_mean_square_distances(free, columns)
    rows, n_effective = [], []
    for g, residual, levels in leave_one_item_out(free, columns):
        seen = ~np.isnan(columns.values[:, g])
        # One direction for the mean, and one for each level of each latent.
        moments = np.column_stack([residual, residual[:, None] * levels])
        x, own_weights = columns.values[seen, g], weights[seen]
        support = effective_deviations(moments, weights, integer=bool((x % 1.0 == 0.0).all()))
        enough = support >= MIN_DEVIATIONS
        moments, least_support = moments[:, enough], support[enough].min(initial=np.inf)
        space, by_weight = scores.of_item(int(columns.item[g])), free.data.weighted(moments)
        value, degrees = chi_square(space, by_weight, MIN_RELATIVE_VARIANCE, MIN_RESIDUAL_RATIO)
        mean, spread = weighted_mean_std(x, own_weights)
        n_effective.append(effective_sample_size(own_weights))
        distance = distances[g] / (1.0 if np.isin(x, (0.0, 1.0)).all() else spread or 1.0)
        # F instead of chi-square: variances are estimated from few rows.
        p_value = float(f.sf(value / degrees, degrees, least_support)) if degrees else np.nan
        test = (value, degrees, p_value, int(seen.sum()))
        rows.append((columns.names[g], mean, float(means[g]), distance, *test))
    found = Table.of(COLUMNS, rows)
    return found if free.data.weights is None else found.with_column(N_EFFECTIVE, n_effective)


def leave_one_item_out(
    free: FreeParameters, columns: ScoredColumns
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each column's residual (N,) and latents' levels reached (N, F), given other items."""
    latents = Terms.main(free.result.law.space.levels)
    if isinstance(free.tables, TreeTables):
        for item in np.unique(columns.item).tolist():
            yield from _leave_out_by_junction_tree(free, free.tables, columns, latents, item)
        return
    residuals, levels = _leave_out_by_enumeration(free, columns, latents)
    for g, item in enumerate(columns.item.tolist()):
        yield g, residuals[:, g], levels[item]


def _leave_out_by_junction_tree(
    free: FreeParameters, tables: TreeTables, columns: ScoredColumns, latents: Terms, item: int
) -> Iterator[tuple[int, Array, Array]]:
    """Yield the columns of one item as :func:`leave_one_item_out` does."""
    data = _with_missing(free.data, np.flatnonzero(free.result.responses.item == item))
    own = np.flatnonzero(columns.item == item)
    table = int(columns.expected.table[own[0]])
    means = np.column_stack([columns.expected.column(int(g)) for g in own])
    expected = np.empty((data.n_samples, len(own)))
    levels = np.empty((data.n_samples, latents.n_main))
    for rows, groups in tables.tree.iterate_marginals(data, free.working):
        expected[rows] = groups.over(tables.scopes[table]) @ means
        modes = [groups.over((k,)).argmax(axis=1) for k in range(len(latents.levels))]
        levels[rows] = _levels_reached(modes, latents)
    for g, mean in zip(own.tolist(), expected.T, strict=True):
        residual = columns.values[:, g] - mean
        yield g, np.where(np.isnan(residual), 0.0, residual), levels


def _with_missing(data: WorkingData, responses: NDArray[np.intp]) -> WorkingData:
    """Return the data with some responses missing; sums over rows are not updated."""
    extended = data.extended.copy()
    extended[:, np.flatnonzero(np.isin(data.columns.item, responses))] = 0.0
    shape = (data.n_samples, data.n_items)
    seen = np.ones(shape, dtype=np.uint8) if data.observed is None else data.observed.copy()
    seen[:, responses] = 0
    return replace(data, extended=extended, observed=seen)


def _leave_out_by_enumeration(
    free: FreeParameters, columns: ScoredColumns, latents: Terms
) -> tuple[Array, list[Array]]:
    """Return the residuals of all columns (N, G), and for each item the levels (N, F)."""
    data, space = free.data, free.result.law.space
    states = space.states()
    theta, partition = free.working.tables(free.working.terms.features(states))
    residuals = np.zeros_like(columns.values)
    reached = [np.zeros((data.n_samples, latents.n_main)) for _ in free.result.item_names]
    # A one, and whether each latent reaches each level.
    features = np.hstack([np.ones((len(states), 1)), latents.features(states)])
    patterns, pattern_of = np.unique(free.result.q_matrix, axis=0, return_inverse=True)
    for block in free.row_blocks():
        rows, posterior = block.rows, block.posteriors[0]
        modes = posterior.argmax(axis=1)
        for p, pattern in enumerate(patterns):
            _, first, group = np.unique(
                states[:, pattern != 0], axis=0, return_index=True, return_inverse=True
            )
            inside = group[:, None] == np.arange(len(first))
            grouped = len(first) * features.shape[1] <= MAX_GROUPED_SUMS
            if grouped:
                each = (inside[:, :, None] * features[:, None]).reshape(len(group), -1)
                by_group = (posterior @ each).reshape(len(posterior), len(first), -1)
            for j in np.flatnonzero(pattern_of.ravel() == p):
                density = np.zeros((len(posterior), len(first)))
                for r in np.flatnonzero(free.result.responses.item == j):
                    here = slice(data.columns.starts[r], data.columns.starts[r + 1])
                    log_density = data.x[rows, here] @ theta[here][:, first] - partition[r, first]
                    if data.observed is not None:
                        log_density *= data.observed[rows, r][:, None]
                    density += log_density
                # Divides the density of the item out of the posterior. Relative to the mode, so
                # that nothing underflows; states with almost no mass must not overflow.
                weight = np.take_along_axis(density, group[modes][:, None], axis=1) - density
                np.exp(np.minimum(weight, MAX_EXPONENT, out=weight), out=weight)
                if grouped:
                    sums = np.einsum("nm,nmf->nf", weight, by_group)
                    rest, means = weight * by_group[:, :, 0], columns.means[first]
                else:
                    rest, means = posterior * weight[:, group], columns.means
                    sums = rest @ features
                for g in np.flatnonzero(columns.item == j):
                    residual = columns.values[rows, g] - rest @ means[:, g] / sums[:, 0]
                    residuals[rows, g] = np.where(np.isnan(residual), 0.0, residual)
                reached[j][rows] = _levels_of_mode(sums / sums[:, :1], latents)
    return residuals, reached


def _levels_of_mode(at_least: Array, latents: Terms) -> NDArray[np.bool_]:
    """Return whether each latent's most probable level reaches each level, (n, F)."""
    modes = []
    for k in range(len(latents.levels)):
        own = np.flatnonzero(latents.main_latents == k)
        reaching = np.column_stack([at_least[:, 0], at_least[:, 1 + own], np.zeros(len(at_least))])
        modes.append((reaching[:, :-1] - reaching[:, 1:]).argmax(axis=1))
    return _levels_reached(modes, latents)


def _levels_reached(modes: list[NDArray[np.intp]], latents: Terms) -> NDArray[np.bool_]:
    return np.asarray(np.column_stack(modes)[:, latents.main_latents] >= latents.main_levels)


def effective_deviations(moments: Array, weights: Array, *, integer: bool) -> Array:
    """Return the number (m,) of equal deviations with the variance of each column of moments."""
    squares, squared = moments**2, weights**2
    total, fourth = squared @ squares, squared**2 @ squares**2
    if integer:
        fourth = np.maximum(fourth, MIN_FOURTH_MOMENT * (squared**2 @ squares))
    return np.asarray(total**2 / np.where(fourth > 0, fourth, np.inf))


def _root_mean_square_distances(free: FreeParameters, columns: ScoredColumns) -> Array:
    """Return the RMS distances of observed and expected means over states, shape (G,)."""
    expected = columns.expected
    seen = free.data.weighted((~np.isnan(columns.values)).astype(np.float64))
    x = np.where(seen > 0, columns.values * free.data.row_weights[:, None], 0.0)
    tallies = {t: np.zeros(part.shape[::-1]) for t, part in expected.parts.items()}
    counts = {t: np.zeros(part.shape[::-1]) for t, part in expected.parts.items()}
    for block in free.row_blocks():
        for t in expected.parts:
            own = expected.columns(t)
            tallies[t] += x[block.rows][:, own].T @ block.posteriors[t]
            counts[t] += seen[block.rows][:, own].T @ block.posteriors[t]
    out = np.full(len(columns.names), np.nan)
    for t, part in expected.parts.items():
        parts = (expected.columns(t), tallies[t], counts[t], part.T)
        for g, tally, count, mean in zip(*parts, strict=True):
            if count.any():
                difference = tally / np.maximum(count, 1e-12) - mean
                out[g] = np.sqrt(count / count.sum() @ difference**2)
    return out
