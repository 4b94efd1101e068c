"""How many equal rows do rows with weights make, for a statistic that is a sum of squares?

A weighted mean of what rows show varies as that of so many equal rows as Kish's number says, if
weights have nothing to do with what is shown. Where they have (a survey that asked more people of
one kind than of another), some directions vary more and others less. The statistic keeps its mean,
and very nearly its law, if rows are counted by the mean of what weights do to all its directions
(Rao and Scott 1981, first order). With q a row's own sum of squares and w its weight that is
``sum(w) sum(w q) / sum(w^2 q)`` rows: Kish's number where q goes with no weight, and N where all
weights are equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Numbers of a block of rows and moments.
BLOCK_NUMBERS = 1 << 22


def effective_rows(
    values: Array,
    weights: Array,
    pairs: tuple[Indices, Indices],
    expected: Array,
    form: Array,
) -> float:
    """Return the number of equal rows that a quadratic form of means and pair products rests on.

    Parameters
    ----------
    values : ndarray, shape (N, G)
        Columns without missing cells.
    weights : ndarray, shape (N,)
    pairs : tuple of ndarray of int, shape (M - G,) each
        Columns whose products are the moments after the G means.
    expected : ndarray, shape (M,)
        Moments under the model.
    form : ndarray, shape (M, M)
        Of the statistic: what the moments' distances from their expectation are squared by.
    """
    if (weights == weights[0]).all():
        return float(len(weights))
    left, right = pairs
    squares = np.empty(len(values))
    step = max(1, BLOCK_NUMBERS // len(expected))
    for start in range(0, len(values), step):
        x = values[start : start + step]
        shown = np.hstack([x, x[:, left] * x[:, right]]) - expected
        squares[start : start + step] = ((shown @ form) * shown).sum(axis=1)
    return float(weights.sum() * (weights @ squares) / (weights**2 @ squares))
