"""Items given out to latents that ask for several: maximum flows and the sets that prove a lack.

Rows of Q that are alike are one *pattern* with a count, so thousands of items cost what their
distinct rows cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
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
        Latents that did not get what they design for.
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


# --- A small integer program, built row by row and solved exactly (HiGHS, through scipy)

Terms = Sequence[tuple[int | np.integer, float]]


class Programme:
    """Variables between zero and a bound, linear constraints, and a cost to be made small."""

    def __init__(self) -> None:
        self._upper: list[float] = []
        self._whole: list[bool] = []
        self._cost: dict[int, float] = {}
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def variables(
        self, shape: tuple[int, ...], *, whole: bool = False, upper: ArrayLike = 1.0
    ) -> NDArray[np.int64]:
        """Return the numbers of new variables, in an array of that shape."""
        bounds = np.broadcast_to(np.asarray(upper, dtype=np.float64), shape)
        first = len(self._upper)
        self._upper += bounds.ravel().tolist()
        self._whole += [whole] * bounds.size
        return np.arange(first, first + bounds.size, dtype=np.int64).reshape(shape)

    def at_least(self, terms: Terms, bound: float) -> None:
        """Demand that a sum of terms (variable, factor) reaches the bound."""
        self._add(terms, bound, np.inf)

    def at_most(self, terms: Terms, bound: float) -> None:
        """Demand that a sum of terms does not pass the bound."""
        self._add(terms, -np.inf, bound)

    def cost(self, variable: int | np.integer, price: float) -> None:
        """Set what one unit of a variable costs."""
        self._cost[int(variable)] = price

    def solve(self, max_nodes: int) -> tuple[NDArray[np.float64] | None, bool]:
        """Return a cheapest solution (None if none was found), and whether that is certain.

        A solution that was found fulfils all demands even where it is not certain to be the
        cheapest. Nodes are counted, not seconds, so that the answer is the same on every machine.
        """
        n = len(self._upper)
        price = np.zeros(n)
        for variable, value in self._cost.items():
            price[variable] = value
        lines, columns, factors = zip(*self._entries, strict=True)
        # A sparse array keeps the type of its places, and scipy 1.11 solves with 32 bits alone.
        places = (np.array(lines, dtype=np.int32), np.array(columns, dtype=np.int32))
        matrix = coo_array((np.array(factors), places), shape=(len(self._low), n)).tocsr()
        found = milp(
            price,
            integrality=np.array(self._whole, dtype=np.int64),
            bounds=Bounds(0, np.array(self._upper)),
            constraints=LinearConstraint(matrix, self._low, self._high),
            options={"node_limit": max_nodes, "mip_rel_gap": 0.0},
        )
        solution = None if found.x is None else np.asarray(found.x, dtype=np.float64)
        return solution, found.status in (0, 2)

    def _add(self, terms: Terms, low: float, high: float) -> None:
        line = len(self._low)
        self._entries += [(line, int(variable), factor) for variable, factor in terms]
        self._low.append(low)
        self._high.append(high)
