"""Does each item behave as the model says, given all the other items?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.left_out import left_out
from hidag.explain.local_scores import LocalScores
from hidag.explain.moment_tests import chi_square
from hidag.explain.pair_tests import FEWEST_DEPARTURES
from hidag.explain.pairs import LEAST_FOURTH
from hidag.explain.scored_columns import ScoredColumns
from hidag.explain.tables import N_EFFECTIVE, Table
from hidag.row_weights import effective_number, mean_and_spread

Array = NDArray[np.float64]

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
        mean, spread = mean_and_spread(x, counted)
        worth.append(effective_number(counted))
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
