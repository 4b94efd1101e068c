"""Means and pair products of categorical items: what the model expects of them, and their spread.

A mean is the product of a column and a column of ones, so that all moments are pairs. Given the
latents two moments are independent unless they share an item: then and only then the product of
their expectations is not the expectation of their product. So one matrix product serves all, and
the few that share an item are put right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.scored_columns import ScoredColumns, item_second_moments

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Entries that share an item are put right so many numbers at a time.
CHUNK_CELLS = 1 << 22


def expected_moments(
    free: FreeParameters, part: ScoredColumns, left: Indices, right: Indices
) -> tuple[Array, Array, Array]:
    """Return the moments, their covariance in one row, and expected squares of the columns (G,).

    Parameters
    ----------
    free : FreeParameters
    part : ScoredColumns
        G columns of categorical items.
    left, right : ndarray of int, shape (pairs,)
        The pairs; moments are the G means, then the pairs' products.
    """
    p, n_columns = free.probabilities, len(part.names)
    seconds = _Seconds(free, part)
    ones = np.full(n_columns, n_columns)
    first = np.concatenate([np.arange(n_columns), left])
    other = np.concatenate([ones, right])
    given = seconds.means[first] * seconds.means[other]
    moments = given @ p
    products = (given * p) @ given.T
    item = seconds.item
    shared = np.zeros(products.shape, dtype=bool)
    for a in (first, other):
        for b in (first, other):
            shared |= (item[a][:, None] == item[b][None, :]) & (item[a] >= 0)[:, None]
    rows, columns = np.nonzero(np.triu(shared))
    step = max(1, CHUNK_CELLS // len(p))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        # The first column of the one may be of the item of the second of the other.
        crossed = (item[first[i]] == item[other[j]]) | (item[other[i]] == item[first[j]])
        near = np.where(crossed, other[j], first[j])
        far = np.where(crossed, first[j], other[j])
        found = (seconds.of(first[i], near) * seconds.of(other[i], far)) @ p
        products[i, j] = products[j, i] = found
    places = np.arange(n_columns)
    return moments, products - np.outer(moments, moments), seconds.of(places, places) @ p


class _Seconds:
    """E[h_a h_b | state] for any two columns, the last of which is a column of ones."""

    def __init__(self, free: FreeParameters, part: ScoredColumns) -> None:
        eta = free.result.parameters.predictors(free.result.law.space.states())
        n_states = part.means.shape[0]
        self.means = np.vstack([part.means.T, np.ones((1, n_states))])
        self.item = np.append(part.item, -1)
        blocks, n_before = [], 0
        self._place = np.full((len(self.item),) * 2, -1, dtype=np.intp)
        for j in np.unique(part.item):
            own = np.flatnonzero(part.item == j)
            block = item_second_moments(free.result, int(j), eta)
            size = len(own) ** 2
            self._place[np.ix_(own, own)] = n_before + np.arange(size).reshape(len(own), -1)
            blocks.append(block.reshape(size, n_states))
            n_before += size
        self._within = np.vstack(blocks)

    def of(self, a: Indices, b: Indices) -> Array:
        """Return them for columns taken pairwise, shape (n, S)."""
        out = self.means[a] * self.means[b]
        place = self._place[a, b]
        same = place >= 0
        out[same] = self._within[place[same]]
        return np.asarray(out)
