"""Items given out to latents that ask for several: maximum flows and the sets that prove a lack.

Rows of Q that are alike are one *pattern* with a count, so thousands of items cost what their
distinct rows cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Patterns:
    """The distinct rows of a Q-matrix.

    Attributes
    ----------
    loads : ndarray of bool, shape (T, K)
    members : tuple of T arrays
        Numbers of the items with that row.
    """

    loads: Bools
    members: tuple[Ints, ...]

    @property
    def counts(self) -> Ints:
        """Number of items of each pattern, shape (T,)."""
        return np.array([len(rows) for rows in self.members], dtype=np.int64)


def group_rows(q: Bools) -> Patterns:
    """Return the distinct rows of Q, in the order in which they first occur."""
    if not len(q):
        return Patterns(np.zeros((0, q.shape[1]), dtype=bool), ())
    _, first, inverse = np.unique(q, axis=0, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[inverse.ravel()]
    order = np.argsort(place, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(place[order])) + 1)
    return Patterns(q[np.sort(first)], tuple(np.asarray(rows, dtype=np.int64) for rows in members))


def give_out(loads: Bools, counts: Ints, demands: Ints) -> Ints:
    """Return how many items of each pattern go to each latent, shape (T, K), as many as can be.

    No pattern gives more items than it has and no latent takes more than it asks for.

    Parameters
    ----------
    loads : ndarray of bool, shape (T, K)
    counts : ndarray of int, shape (T,)
    demands : ndarray of int, shape (K,)
    """
    n_patterns, n_latents = loads.shape
    patterns, latents = np.nonzero(loads)
    if not len(patterns) or not demands.any():
        return np.zeros((n_patterns, n_latents), dtype=np.int64)
    source, sink = 0, 1 + n_latents + n_patterns
    tails = np.concatenate(
        [np.full(n_latents, source), 1 + latents, 1 + n_latents + np.arange(n_patterns)]
    )
    heads = np.concatenate(
        [1 + np.arange(n_latents), 1 + n_latents + patterns, np.full(n_patterns, sink)]
    )
    room = np.concatenate([demands, counts[patterns], counts]).astype(np.int32)
    # Places too: a sparse array keeps their type, and scipy 1.11 knows flows of 32 bits alone.
    places = (tails.astype(np.int32), heads.astype(np.int32))
    graph = coo_array((room, places), shape=(sink + 1, sink + 1)).tocsr()
    flow = maximum_flow(graph, source, sink).flow.tocsr()
    given = flow[1 : 1 + n_latents, 1 + n_latents : sink].toarray()
    return np.maximum(given, 0).T.astype(np.int64)


def in_want(loads: Bools, given: Ints, short: Bools) -> Bools:
    """Return the latents that one more item would help, directly or by passing items on, (K,).

    Where the flow is a maximum, the items of these latents are all taken, and by these latents
    only: they are fewer than these latents ask for together (Hall).

    Parameters
    ----------
    loads : ndarray of bool, shape (T, K)
    given : ndarray of int, shape (T, K)
        A maximum flow.
    short : ndarray of bool, shape (K,)
        Latents that did not get what they asked for.
    """
    reached = short
    while True:
        # A latent could take any item it loads on; whoever has that item now would then lack it.
        contested = loads[:, reached].any(axis=1)
        more = reached | (given[contested] > 0).any(axis=0)
        if (more == reached).all():
            return more
        reached = more


def smallest_lack(loads: Bools, counts: Ints, demands: Ints) -> Ints | None:
    """Return latents with fewer items than they ask for, none of them superfluous, or None.

    Dropping any of the latents returned leaves only sets with enough items.
    """

    def lacking(chosen: Ints) -> Ints:
        rows = loads[:, chosen].any(axis=1)
        part = loads[np.ix_(rows, chosen)]
        given = give_out(part, counts[rows], demands[chosen])
        short = given.sum(axis=0) < demands[chosen]
        if not short.any():
            return chosen[:0]
        one = np.zeros_like(short)
        one[np.argmax(short)] = True
        return chosen[in_want(part, given, one)]

    current = lacking(np.arange(loads.shape[1]))
    if not len(current):
        return None
    for latent in current.tolist():
        if latent in current:
            less = lacking(current[current != latent])
            current = less if len(less) else current
    return current
