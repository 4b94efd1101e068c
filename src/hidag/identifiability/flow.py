"""Assignment of items to latents by maximum flow, and small integer programs.

Equal rows of Q form one pattern with a count, so the cost depends on the number of distinct rows.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        Indices of the items with that row.
    """

    loads: Bools
    members: tuple[Ints, ...]

    @property
    def counts(self) -> Ints:
        """Number of items of each pattern, shape (T,)."""
        return np.array([len(rows) for rows in self.members], dtype=np.int64)


def distinct_rows(q: Bools) -> Patterns:
    """Return the distinct rows of Q, in the order in which they first occur."""
    if not len(q):
        return Patterns(np.zeros((0, q.shape[1]), dtype=bool), ())
    _, first, inverse = np.unique(q, axis=0, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[inverse.ravel()]
    order = np.argsort(place, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(place[order])) + 1)
    return Patterns(q[np.sort(first)], tuple(np.asarray(rows, dtype=np.int64) for rows in members))


def assign_items(loads: Bools, counts: Ints, demands: Ints) -> Ints:
    """Return a maximum flow from latents to patterns, shape (T, K): items assigned to each latent.

    Parameters
    ----------
    loads : ndarray of bool, shape (T, K)
    counts : ndarray of int, shape (T,)
        Items of each pattern; no more are assigned.
    demands : ndarray of int, shape (K,)
        Items that each latent needs; no more are assigned.
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
    capacity = np.concatenate([demands, counts[patterns], counts]).astype(np.int32)
    # scipy 1.11 accepts 32-bit indices only, and a sparse array keeps the type it is given.
    places = (tails.astype(np.int32), heads.astype(np.int32))
    graph = coo_array((capacity, places), shape=(sink + 1, sink + 1)).tocsr()
    flow = maximum_flow(graph, source, sink).flow.tocsr()
    assigned = flow[1 : 1 + n_latents, 1 + n_latents : sink].toarray()
    return np.maximum(assigned, 0).T.astype(np.int64)


def deficient_latents(loads: Bools, assigned: Ints, short: Bools) -> Bools:
    """Return the latents that an additional item would help, directly or by reassignment, (K,).

    If the flow is maximal, all items of these latents are assigned to them, and they are fewer than
    these latents need: the set violates Hall's condition.

    Parameters
    ----------
    loads : ndarray of bool, shape (T, K)
    assigned : ndarray of int, shape (T, K)
        A maximum flow.
    short : ndarray of bool, shape (K,)
        Latents with fewer items than they need.
    """
    reached = short
    while True:
        # A latent could take any item that loads on it, from the latents that have it now.
        contested = loads[:, reached].any(axis=1)
        more = reached | (assigned[contested] > 0).any(axis=0)
        if (more == reached).all():
            return more
        reached = more


def minimal_hall_violator(loads: Bools, counts: Ints, demands: Ints) -> Ints | None:
    """Return a minimal set of latents with fewer items than they need, or None."""

    def violator(chosen: Ints) -> Ints:
        rows = loads[:, chosen].any(axis=1)
        part = loads[np.ix_(rows, chosen)]
        assigned = assign_items(part, counts[rows], demands[chosen])
        short = np.flatnonzero(assigned.sum(axis=0) < demands[chosen])
        if not len(short):
            return chosen[:0]
        return chosen[deficient_latents(part, assigned, np.arange(len(chosen)) == short[0])]

    current = violator(np.arange(loads.shape[1]))
    if not len(current):
        return None
    for latent in current.tolist():
        if latent in current:
            smaller = violator(current[current != latent])
            current = smaller if len(smaller) else current
    return current


class IntegerProgram:
    """A mixed-integer linear program, built row by row and solved by HiGHS.

    Variables lie between zero and an upper bound; the cost is minimised.
    """

    def __init__(self) -> None:
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._cost: dict[int, float] = {}
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def variables(
        self, shape: tuple[int, ...], *, integer: bool = False, upper: ArrayLike = 1.0
    ) -> Ints:
        """Return the indices of new variables, in an array of that shape."""
        bounds = np.broadcast_to(np.asarray(upper, dtype=np.float64), shape)
        first = len(self._upper)
        self._upper += bounds.ravel().tolist()
        self._integer += [integer] * bounds.size
        return np.arange(first, first + bounds.size, dtype=np.int64).reshape(shape)

    def add(
        self,
        plus: ArrayLike,
        minus: ArrayLike = (),
        *,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> None:
        """Require that the sum of some variables minus the sum of others lies between bounds."""
        line = len(self._low)
        for sign, variables in ((1.0, plus), (-1.0, minus)):
            self._entries += [(line, int(v), sign) for v in np.ravel(variables)]
        self._low.append(low)
        self._high.append(high)

    def minimise_sum(self, variables: Iterable[int | np.integer]) -> None:
        """Give these variables unit cost."""
        self._cost.update((int(v), 1.0) for v in variables)

    def solve(self, max_nodes: int) -> tuple[NDArray[np.float64] | None, bool]:
        """Return a solution (None if none was found), and whether it is known to be optimal.

        A solution that may not be optimal still satisfies all constraints. The limit is a number of
        nodes, not seconds, so that the result is the same on every machine.
        """
        n = len(self._upper)
        cost = np.zeros(n)
        for variable, value in self._cost.items():
            cost[variable] = value
        lines, columns, factors = zip(*self._entries, strict=True)
        # scipy 1.11 accepts 32-bit indices only.
        places = (np.array(lines, dtype=np.int32), np.array(columns, dtype=np.int32))
        matrix = coo_array((np.array(factors), places), shape=(len(self._low), n)).tocsr()
        found = milp(
            cost,
            integrality=np.array(self._integer, dtype=np.int64),
            bounds=Bounds(0, np.array(self._upper)),
            constraints=LinearConstraint(matrix, self._low, self._high),
            options={"node_limit": max_nodes, "mip_rel_gap": 0.0},
        )
        solution = None if found.x is None else np.asarray(found.x, dtype=np.float64)
        return solution, found.status in (0, 2)
