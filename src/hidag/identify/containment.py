"""No latent's items may contain another's: condition (ii) of the generic theorems (all effects)."""

from __future__ import annotations

from math import comb

import numpy as np

from hidag.identify.flow import Bools, Ints


def contained_pairs(q: Bools) -> Ints:
    """Return pairs (p, q) such that every item of latent q is also an item of latent p, (n, 2).

    The condition is about the whole Q-matrix, not about a part of its rows. Equal columns give
    both pairs.
    """
    loads = q.astype(np.int64)
    inner_alone = loads.T @ (1 - loads)  # [a, b]: items of a that are not items of b
    inner, outer = np.nonzero((inner_alone == 0) & ~np.eye(q.shape[1], dtype=bool))
    pairs = np.column_stack([outer, inner])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int64)


def fewest_separating_items(n_latents: int, pairs: Ints) -> int:
    """Return a number of new items that undoing these containments takes at the least.

    New items give each latent a code, the set of new items that load on it. Among latents with
    equal columns no code may contain another, so Sperner's theorem bounds their number. Along a
    chain of containments no code may be contained in an earlier one, so all are different.
    """
    if not len(pairs):
        return 0
    contains = np.zeros((n_latents, n_latents), dtype=bool)
    contains[pairs[:, 0], pairs[:, 1]] = True
    equal = (contains & contains.T) | np.eye(n_latents, dtype=bool)
    widest = int(equal.sum(axis=1).max())
    longest = np.ones(n_latents, dtype=np.int64)
    strictly = contains & ~contains.T
    # Outer latents first: a latent is strictly inside only latents that have more inside them.
    for k in np.argsort(-contains.sum(axis=1), kind="stable"):
        outer = np.flatnonzero(strictly[:, k])
        if len(outer):
            longest[k] = 1 + int(longest[outer].max())
    return max(codes_needed(widest), (int(longest.max()) - 1).bit_length(), 1)


def codes_needed(n: int) -> int:
    """Return the fewest items whose subsets hold n sets of which none contains another."""
    size = 0
    while comb(size, size // 2) < n:
        size += 1
    return size
