"""Does each item behave as the model says, given all the other items?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.local_scores import LocalScores
from hidag.explain.moment_tests import chi_square
from hidag.explain.pair_tests import FEWEST_DEPARTURES
from hidag.explain.pairs import LEAST_FOURTH
from hidag.explain.row_scores import posterior_blocks
from hidag.explain.scored_columns import ScoredColumns
from hidag.explain.tables import N_EFFECTIVE, Table
from hidag.measurement import Terms
from hidag.row_weights import effective_number, mean_and_spread

Array = NDArray[np.float64]

#: Exponentials of more would overflow.
LARGEST_EXPONENT = 600.0
#: Sums a row over levels of an item's own latents; beyond, weights of all states are as cheap.
MOST_SUMS = 256

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

    *rmsd* is the root mean square of observed less expected means over joint states, states
    weighted by how common they are and rows by how likely they are in them: in probabilities for
    answers of yes and no, in standard deviations for other items. *chi_square* tests whether what
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
    latents = Terms.main(free.result.law.space.levels)
    residuals, levels = _without_own_item(free, columns, latents)
    tallies, counts = _by_state(free, columns)
    weights = free.data.row_weights
    rows, worth = [], []
    for g, name in enumerate(columns.names):
        seen = ~np.isnan(columns.values[:, g])
        item = int(columns.item[g])
        own = residuals[:, g]
        # A direction for the mean, and one for each level of each latent.
        moments = np.column_stack([own, own[:, None] * levels[item]])
        x, counted = columns.values[seen, g], weights[seen]
        number = rests_on(moments, weights, whole=bool((x % 1.0 == 0.0).all()))
        enough = number >= FEWEST_DEPARTURES
        moments, fewest = moments[:, enough], number[enough].min(initial=np.inf)
        value, degrees = chi_square(
            scores.of_item(item), free.data.weighted(moments), LEAST_SPREAD, LEAST_LEFT
        )
        mean, spread = mean_and_spread(x, counted)
        worth.append(effective_number(counted))
        rows.append(
            (
                name,
                mean,
                float(free.probabilities @ columns.means[:, g]),
                _rmsd(
                    tallies[g],
                    counts[g],
                    columns.means[:, g],
                    1.0 if np.isin(x, (0.0, 1.0)).all() else spread or 1.0,
                ),
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


def _rmsd(tallies: Array, counts: Array, means: Array, unit: float) -> float:
    """Return the distance of observed and expected means over states, in a unit."""
    if not counts.any():
        return float("nan")
    shares = counts / counts.sum()
    difference = tallies / np.maximum(counts, 1e-12) - means
    return float(np.sqrt(shares @ difference**2)) / unit


def _by_state(free: FreeParameters, columns: ScoredColumns) -> tuple[Array, Array]:
    """Return expected sums of the columns and rows that observed them, by state, (G, S) each."""
    seen = free.data.weighted((~np.isnan(columns.values)).astype(np.float64))
    x = np.where(seen > 0, columns.values * free.data.row_weights[:, None], 0.0)
    tallies = np.zeros((x.shape[1], len(free.probabilities)))
    counts = np.zeros_like(tallies)
    for rows, posterior, _ in posterior_blocks(free):
        tallies += x[rows].T @ posterior
        counts += seen[rows].T @ posterior
    return tallies, counts


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
    for rows, posterior, _ in posterior_blocks(free):
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
