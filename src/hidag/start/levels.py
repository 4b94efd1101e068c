"""Latents with several levels from continuous scores: where to cut them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Rounds of moving the cuts half-way between the means of their neighbours.
CUT_ROUNDS = 30


def cut(scores: Array, n_levels: int) -> NDArray[np.int64]:
    """Return the level of each centred score, shape (N,): two levels are cut at zero.

    More levels are cut where the groups' means ask for it (k-means in one dimension, begun from
    equal shares).
    """
    if n_levels == 2:
        return np.asarray(scores > 0, dtype=np.int64)
    ordered = np.sort(scores)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    edges = np.linspace(0, len(ordered), n_levels + 1).astype(np.intp)
    cuts = np.zeros(n_levels - 1)
    for _ in range(CUT_ROUNDS):
        means = np.diff(sums[edges]) / np.maximum(np.diff(edges), 1)
        fresh = 0.5 * (means[1:] + means[:-1])
        if np.array_equal(fresh, cuts):
            break
        cuts = fresh
        edges[1:-1] = np.searchsorted(ordered, cuts)
    return np.asarray(np.searchsorted(cuts, scores), dtype=np.int64)
