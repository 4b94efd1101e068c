"""What pairs of items have in common beyond the model: observed less expected correlations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.local_scores import LocalScores
from hidag.explain.over_states import OverStates
from hidag.explain.pair_tests import PairSums
from hidag.explain.scored_columns import ScoredColumns
from hidag.explain.tables import N_EFFECTIVE, Table
from hidag.row_weights import mean_and_spread

Array = NDArray[np.float64]

COLUMNS = (
    "first", "second", "observed", "expected", "residual", "tested", "z", "p_value", "n_rows",
)  # fmt: skip
#: Whole numbers cannot be off by a little: their mean fourth power about the mean is at least this
#: share of their variance, as it is for yes and no at one half.
LEAST_FOURTH = 0.25


def pair_residuals(free: FreeParameters, columns: ScoredColumns, scores: LocalScores) -> Table:
    """Return the residual correlation of every pair of items, with its z score.

    Covariances are about the model's means and divided by the observed standard deviations, so
    that a residual is in units of a correlation for every family. Rows that lack one of the two
    are left out of the pair. *tested* is the part of the residual that no small change of the
    parameters would mend, and what *z* is about: the same where the likelihood is at its maximum,
    not quite after a penalised fit or in a table that was not fitted. Where *z* cannot be told it
    is NaN. Rows count by their weights, if ``free`` has some, and the spread of a weighted sum is
    that of its rows' weighted numbers, as weights that go with the answers need it.

    Parameters
    ----------
    free : FreeParameters
    columns : ScoredColumns
    scores : LocalScores
        Of the same rows.
    """
    means = columns.expected.means()
    expected = columns.expected.mean_products(means)
    seen = ~np.isnan(columns.values)
    weights = free.data.row_weights
    root = np.sqrt(weights)[:, None]
    x = np.where(seen, root * (columns.values - means), 0.0)
    spread = np.nan_to_num(
        [
            mean_and_spread(columns.values[here, g], weights[here])[1]
            for g, here in enumerate(seen.T)
        ]
    )
    own, counting = _own_share(free, columns, np.where(spread > 0, spread, 1.0))
    sums = PairSums(x, root * seen, expected, own, counting, columns.item, scores)
    names = np.array(columns.names, dtype=object)
    rows: list[tuple[object, ...]] = []
    worth: list[float] = []
    for first, both, total, rest, z, chances in sums.blocks():
        inside = np.arange(first.start, first.stop)
        a, b = np.nonzero(columns.item[inside][:, None] < columns.item[None])
        count = both.total[a, b]
        scale = spread[inside[a]] * spread[b]
        safe = np.where((scale > 0) & (count > 0), scale, np.nan)
        residual, tested = (
            part[a, b] / np.where(count > 0, count, 1.0) / safe for part in (total, rest)
        )
        model = expected[inside[a], b] / safe
        moments = (residual + model, model, residual, tested)
        numbers = (*moments, z[a, b], chances[a, b], both.number[a, b].astype(np.intp))
        rows.extend(
            zip(names[inside[a]], names[b], *(part.tolist() for part in numbers), strict=True)
        )
        worth += both.effective[a, b].tolist()
    found = Table(COLUMNS, tuple(rows))
    return found if free.data.weights is None else found.with_column(N_EFFECTIVE, worth)


def _own_share(free: FreeParameters, columns: ScoredColumns, spread: Array) -> tuple[Array, Array]:
    """Return what products of two columns vary by given the latents, and the share that counts.

    Returns
    -------
    own : ndarray, shape (G, G)
        Mean over states of the product of two columns' variances.
    counting : ndarray, shape (G, G)
        The number of rows that would vary as much if all varied alike, for each row that there is:
        small where both columns are off their states' means in a few rows only. Zero if none is.
    """
    variance, fourth = _moments_given_state(free, columns, spread)
    own, heavy = variance.mean_products(), fourth.mean_products()
    counting = np.where(heavy > 0, own**2 / np.where(heavy > 0, heavy, 1.0), 0.0)
    return own * np.outer(spread, spread) ** 2, counting


def _moments_given_state(
    free: FreeParameters, columns: ScoredColumns, spread: Array
) -> tuple[OverStates, OverStates]:
    """Return mean second and fourth powers about the means of states.

    ``spread`` (G,) is the unit of each column.
    """
    expected = columns.expected
    seen = ~np.isnan(columns.values)
    # About the middle of a column, so that little is lost to cancellation.
    middle = expected.means()
    x = np.where(seen, columns.values - middle, 0.0) / spread
    sums = {table: np.zeros((5, *part.shape)) for table, part in expected.parts.items()}
    for block in free.row_blocks():
        power = free.data.row_weights[block.rows, None] * seen[block.rows]
        for degree in range(5):
            for table, total in sums.items():
                total[degree] += block.posteriors[table].T @ power[:, expected.columns(table)]
            power = power * x[block.rows]
    whole = (np.where(seen, columns.values, 0.0) % 1.0 == 0.0).all(axis=0)
    least = np.where(whole, LEAST_FOURTH / spread**2, 0.0)
    variances, fourths = {}, {}
    for table, total in sums.items():
        own = expected.columns(table)
        shift = (middle[own] - expected.parts[table]) / spread[own]
        total /= np.maximum(total[0], 1e-12)
        variance = np.maximum(total[2] + 2.0 * shift * total[1] + shift**2, 0.0)
        fourth = (
            total[4] + 4.0 * shift * total[3] + 6.0 * shift**2 * total[2]
            + 4.0 * shift**3 * total[1] + shift**4
        )  # fmt: skip
        variances[table] = variance
        fourths[table] = np.maximum(np.maximum(fourth, variance**2), least[own] * variance)
    return expected.like(variances), expected.like(fourths)
