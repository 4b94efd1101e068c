"""What pairs of items have in common beyond the model: observed less expected correlations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.local_scores import LocalScores
from hidag.explain.pair_tests import PairSums
from hidag.explain.row_scores import posterior_blocks
from hidag.explain.scored_columns import ScoredColumns
from hidag.explain.tables import Table

Array = NDArray[np.float64]

COLUMNS = ("first", "second", "observed", "expected", "residual", "z", "p_value", "n_rows")


#: A combination of answers that happens not to occur makes a pair's numbers look as if scores
#: explained them all. What two items have of their own given the latents is in their product
#: whatever is fitted; in large tables more than this share of its variance was always left.
LEAST_OWN = 0.5


def pair_residuals(free: FreeParameters, columns: ScoredColumns, scores: LocalScores) -> Table:
    """Return the residual correlation of every pair of items, with its z score.

    Covariances are about the model's means and divided by the observed standard deviations, so
    that a residual is in units of a correlation for every family. Rows that lack one of the two
    are left out of the pair.

    Parameters
    ----------
    free : FreeParameters
    columns : ScoredColumns
    scores : LocalScores
        Of the same rows.
    """
    probabilities = free.probabilities
    means = probabilities @ columns.means
    centred = columns.means - means
    expected = (centred * probabilities[:, None]).T @ centred
    seen = ~np.isnan(columns.values)
    x = np.where(seen, columns.values - means, 0.0)
    spread = np.array(
        [np.std(columns.values[seen[:, g], g]) if seen[:, g].any() else 0.0
         for g in range(len(means))]
    )  # fmt: skip
    apart = _spread_given_state(free, columns)
    least = LEAST_OWN * (apart * probabilities[:, None]).T @ apart
    sums = PairSums(x, seen.astype(np.float64), expected, least, columns.item, scores)
    names = np.array(columns.names, dtype=object)
    rows: list[tuple[object, ...]] = []
    for first, number, total, z in sums.blocks():
        inside = np.arange(first.start, first.stop)
        a, b = np.nonzero(columns.item[inside][:, None] < columns.item[None])
        count, shift = number[a, b], total[a, b]
        scale = spread[inside[a]] * spread[b]
        safe = np.where((scale > 0) & (count > 0), scale, np.nan)
        residual = shift / np.maximum(count, 1.0) / safe
        model = expected[inside[a], b] / safe
        chances = 2.0 * norm.sf(np.abs(z[a, b]))
        numbers = (residual + model, model, residual, z[a, b], chances, count.astype(np.intp))
        rows.extend(
            zip(names[inside[a]], names[b], *(part.tolist() for part in numbers), strict=True)
        )
    return Table(COLUMNS, tuple(rows))


def _spread_given_state(free: FreeParameters, columns: ScoredColumns) -> Array:
    """Return the columns' variances about their means in each joint state, shape (S, G)."""
    seen = ~np.isnan(columns.values)
    # About the middle of a column, so that nothing is lost to cancellation.
    middle = free.probabilities @ columns.means
    x, means = np.where(seen, columns.values - middle, 0.0), columns.means - middle
    sums = np.zeros((3, *means.shape))
    for rows, posterior, _ in posterior_blocks(free):
        for power, part in enumerate((seen[rows].astype(np.float64), x[rows], x[rows] ** 2)):
            sums[power] += posterior.T @ part
    count = np.maximum(sums[0], 1e-12)
    return np.asarray(np.maximum((sums[2] - 2.0 * means * sums[1]) / count + means**2, 0.0))
