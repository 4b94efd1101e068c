"""Does each item behave as the model says, given all the other items?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from hidag.data.sample_weights import effective_sample_size, weighted_mean_std
from hidag.diagnostics.moment_tests import LocalScores, ScoredColumns, chi_square
from hidag.diagnostics.pair_residuals import FEWEST_DEPARTURES, LEAST_FOURTH
from hidag.em.design_data import WorkingData
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.posterior_tables import TreeTables
from hidag.inference.result_tables import N_EFFECTIVE, Table
from hidag.measurement.terms import Terms

# --- What all other items say of an item: its expectation given them, and where they place

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
    for rows, groups in tables.tree.iterate_marginals(data, free.working):
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
    extended[:, np.flatnonzero(np.isin(data.columns.item, responses))] = 0.0
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


# ---

COLUMNS = (
    "item", "observed", "expected", "rmsd", "chi_square", "degrees", "p_value", "n_rows",
)  # fmt: skip

#: Directions of which the fitted parameters leave next to nothing have variances that a thousand
#: rows do not tell: with them true models would be rejected too often.
LEAST_SPREAD = 0.05
#: Of a direction twice as much has to be left as the scores take by chance alone: where parameters
#: are half as many as rows, what is left is mostly chance, and its variance is told far too small.
LEAST_LEFT = 2.0


def item_fit(free: FreeParameters, columns: ScoredColumns, scores: LocalScores) -> Table:
    """Return observed and expected means and how items agree with the rest.

    *rmsd* is the root mean square of observed less expected means over joint states (over those of
    the item's own latents where joint states are too many to list), states weighted by how common
    they are and rows by how likely they are in them: in probabilities for answers of yes and no, in
    standard deviations for other items. *chi_square* tests whether what
    an item shows beyond its expectation given all other items goes with any latent, as the other
    items show it: each latent's most probable level given the others. Directions that rest on too
    few rows are left out, and where none is left there is no test. Rows count by their weights, if
    ``free`` has some, in sums and in the spread of these.

    Parameters
    ----------
    free : FreeParameters
    columns : ScoredColumns
    scores : LocalScores
        Of the same rows.
    """
    means, weights = columns.expected.means(), free.data.row_weights
    distances = _distances(free, columns)
    rows, worth = [], []
    for g, own, levels in left_out(free, columns):
        seen = ~np.isnan(columns.values[:, g])
        item = int(columns.item[g])
        # A direction for the mean, and one for each level of each latent.
        moments = np.column_stack([own, own[:, None] * levels])
        x, counted = columns.values[seen, g], weights[seen]
        number = rests_on(moments, weights, whole=bool((x % 1.0 == 0.0).all()))
        enough = number >= FEWEST_DEPARTURES
        moments, fewest = moments[:, enough], number[enough].min(initial=np.inf)
        value, degrees = chi_square(
            scores.of_item(item), free.data.weighted(moments), LEAST_SPREAD, LEAST_LEFT
        )
        mean, spread = weighted_mean_std(x, counted)
        worth.append(effective_sample_size(counted))
        rows.append(
            (
                columns.names[g],
                mean,
                float(means[g]),
                distances[g] / (1.0 if np.isin(x, (0.0, 1.0)).all() else spread or 1.0),
                value,
                degrees,
                # Variances from so few rows are not known but estimated, hence not chi-square.
                float(f.sf(value / degrees, degrees, fewest)) if degrees else np.nan,
                int(seen.sum()),
            )
        )
    found = Table.of(COLUMNS, rows)
    return found if free.data.weights is None else found.with_column(N_EFFECTIVE, worth)


def rests_on(moments: Array, weights: Array, *, whole: bool) -> Array:
    """Return how many rows that vary alike would vary as much as each column, (N, m) to (m,).

    Rows count by ``weights`` (N,); ``whole`` says that moments come from whole numbers, which
    cannot be off by a little.
    """
    squares, squared = moments**2, weights**2
    total, fourth = squared @ squares, squared**2 @ squares**2
    if whole:
        fourth = np.maximum(fourth, LEAST_FOURTH * (squared**2 @ squares))
    return np.asarray(total**2 / np.where(fourth > 0, fourth, np.inf))


def _distances(free: FreeParameters, columns: ScoredColumns) -> Array:
    """Return root mean square distances of observed and expected means over states, shape (G,)."""
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
        for g, tally, count, mean in zip(
            expected.columns(t), tallies[t], counts[t], part.T, strict=True
        ):
            if count.any():
                difference = tally / np.maximum(count, 1e-12) - mean
                out[g] = np.sqrt(count / count.sum() @ difference**2)
    return out
