"""What pairs of items have in common beyond the model: observed less expected correlations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hidag.explain.moment_tests import ScoreSpace, z_scores
from hidag.explain.scored_columns import ScoredColumns
from hidag.explain.tables import Table

Array = NDArray[np.float64]

COLUMNS = ("first", "second", "observed", "expected", "residual", "z", "p_value", "n_rows")
#: Numbers of a block of rows and pairs.
BLOCK_NUMBERS = 1 << 23


def pair_residuals(columns: ScoredColumns, probabilities: Array, space: ScoreSpace) -> Table:
    """Return the residual correlation of every pair of items, with its z score.

    Covariances are about the model's means and divided by the observed standard deviations, so
    that a residual is in units of a correlation for every family. Rows that lack one of the two
    are left out of the pair.

    Parameters
    ----------
    columns : ScoredColumns
    probabilities : ndarray, shape (S,)
    space : ScoreSpace
        Of the scores of the same rows.
    """
    left, right = columns.pairs()
    means = probabilities @ columns.means
    centred = columns.means - means
    expected = (centred * probabilities[:, None]).T @ centred
    seen = ~np.isnan(columns.values)
    x = np.where(seen, columns.values - means, 0.0)
    spread = np.array(
        [np.std(columns.values[seen[:, g], g]) if seen[:, g].any() else 0.0
         for g in range(len(means))]
    )  # fmt: skip
    rows: list[tuple[object, ...]] = []
    step = max(1, BLOCK_NUMBERS // max(len(x), 1))
    for begin in range(0, len(left), step):
        a, b = left[begin : begin + step], right[begin : begin + step]
        both = seen[:, a] & seen[:, b]
        moments = both * (x[:, a] * x[:, b] - expected[a, b])
        z = z_scores(space, moments)
        number = both.sum(axis=0)
        scale = spread[a] * spread[b]
        safe = np.where((scale > 0) & (number > 0), scale, np.nan)
        residual = moments.sum(axis=0) / np.maximum(number, 1) / safe
        model = expected[a, b] / safe
        chances = 2.0 * norm.sf(np.abs(z))
        first, second = ([columns.names[g] for g in side] for side in (a, b))
        numbers = (residual + model, model, residual, z, chances, number)
        rows.extend(zip(first, second, *(part.tolist() for part in numbers), strict=True))
    return Table.of(COLUMNS, rows)
