"""Block condition (i) of the generic theorems: Q = [Q1, Q2, Q3] after a permutation of rows.

Latent k needs ``m_k`` items in each of Q1 and Q2, all different (a maximum-flow problem), and Q3
must have no all-zero column (an NP-hard covering problem). The search assigns one more item per
latent, restricts the problem to the deficient latents if that fails, and solves each connected part
by an exact integer program over the distinct rows of Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, maximum_flow

from hidag.identifiability.design import Bools, Ints

#: Limit of the branch-and-bound search, in nodes.
MAX_NODES = 200_000

Kind = Literal["blocks", "rest", "joint"]


class Patterns(NamedTuple):
    """The distinct rows of a Q-matrix."""

    loads: Bools  # (T, K)
    counts: Ints  # (T,): number of items of each pattern
    members: list[Ints]  # indices of the items with that row


def distinct_rows(q: Bools) -> Patterns:
    """Return the distinct rows of Q, in the order in which they first occur."""
    if not len(q):
        return Patterns(q, np.zeros(0, dtype=np.int64), [])
    _, first, inverse = np.unique(q, axis=0, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[inverse.ravel()]
    order = np.argsort(place, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(place[order])) + 1)
    return Patterns(q[np.sort(first)], np.bincount(place), members)


def assign_items(loads: Bools, counts: Ints, demands: Ints) -> Ints:
    """Return a maximum flow (T, K) of items from patterns' counts (T,) to latents' demands (K,)."""
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
    """Return the latents (K,) that one more item would help, directly or by reassignment.

    If the flow is maximal, they violate Hall's condition. ``short`` ones lack items themselves.
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
    """A mixed-integer program with variables from 0 to an upper bound, solved by HiGHS."""

    def __init__(self) -> None:
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._minimised: ArrayLike = ()
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
        self, plus: ArrayLike, minus: ArrayLike = (), *, low: float = -np.inf, high: float = np.inf
    ) -> None:
        """Require that the sum of some variables minus the sum of others lies between bounds."""
        line = len(self._low)
        for sign, variables in ((1.0, plus), (-1.0, minus)):
            self._entries += [(line, int(v), sign) for v in np.ravel(variables)]
        self._low.append(low)
        self._high.append(high)

    def minimise_sum(self, variables: ArrayLike) -> None:
        """Give these variables unit cost."""
        self._minimised = variables

    def solve(self, max_nodes: int) -> tuple[NDArray[np.float64] | None, bool]:
        """Return a feasible solution or None, and whether it is known to be optimal."""
        n = len(self._upper)
        cost = np.zeros(n)
        cost[np.asarray(self._minimised, dtype=np.intp)] = 1.0
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


def subset_violations(q: Bools) -> Ints:
    """Return pairs (a, b), (n, 2), that violate the subset condition: items of b load on a too."""
    loads = q.astype(np.int64)
    inner_alone = loads.T @ (1 - loads)  # [a, b]: items of a that are not items of b
    inner, outer = np.nonzero((inner_alone == 0) & ~np.eye(q.shape[1], dtype=bool))
    pairs = np.column_stack([outer, inner])
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int64)


def containment_matrix(n_latents: int, pairs: Ints) -> Bools:
    """Return pairs (a, b) as a matrix, shape (K, K)."""
    out = np.zeros((n_latents, n_latents), dtype=bool)
    out[pairs[:, 0], pairs[:, 1]] = True
    return out


def min_separating_items(n_latents: int, pairs: Ints) -> int:
    """Return a lower bound on the number of new items that remove these violations.

    Codes (sets of new items) of equal columns form an antichain; along a chain all codes differ.
    """
    if not len(pairs):
        return 0
    contains = containment_matrix(n_latents, pairs)
    equal = (contains & contains.T) | np.eye(n_latents, dtype=bool)
    widest = int(equal.sum(axis=1).max())
    longest = np.ones(n_latents, dtype=np.int64)
    strictly = contains & ~contains.T
    # Outer latents first: they contain more latents than those inside them.
    for k in np.argsort(-contains.sum(axis=1), kind="stable"):
        outer = np.flatnonzero(strictly[:, k])
        if len(outer):
            longest[k] = 1 + int(longest[outer].max())
    return max(antichain_items(widest), (int(longest.max()) - 1).bit_length(), 1)


def antichain_items(n: int) -> int:
    """Return the smallest number of items whose subsets contain an antichain of n sets."""
    size = 0
    while comb(size, size // 2) < n:
        size += 1
    return size


@dataclass(frozen=True)
class Blocks:
    """Rows of Q that satisfy the block condition: the ``first``, ``second`` and ``third`` block."""

    # items of each latent in Q1 and Q2, ``m_k`` each
    first: tuple[tuple[int, ...], ...]
    second: tuple[tuple[int, ...], ...]
    third: tuple[int, ...]  # length K: one item of each latent in Q3; latents may share it


@dataclass(frozen=True, eq=False)
class BlockSearch:
    """Result of the search for blocks."""

    blocks: Blocks | None
    # (K,): items that each latent lacks in Q1 and Q2, in a choice with the fewest missing items
    missing: Ints
    # (K,): latents without an item in Q3, in such a choice with the fewest of them
    uncovered: Bools
    part: Bools  # (K,): the deficient latents; all others have items to spare
    exact: bool  # False if the node limit ended the search

    @property
    def holds(self) -> bool | None:
        """True, False, or None if the node limit ended the search."""
        return True if self.blocks is not None else False if self.exact else None


def items_per_block(levels: Sequence[int]) -> Ints:
    """Return ``m_k = ceil(log2 M_k)``, the items of latent k in each block, shape (K,)."""
    return np.array([(m - 1).bit_length() for m in levels], dtype=np.int64)


def find_blocks(q: Bools, per_block: Ints) -> BlockSearch:
    """Return rows of Q that satisfy the block condition, or the missing items per latent (K,)."""
    n_latents = q.shape[1]
    rows = distinct_rows(q)
    assigned = assign_items(rows.loads, rows.counts, 2 * per_block + 1)
    part = deficient_latents(rows.loads, assigned, assigned.sum(axis=0) < 2 * per_block + 1)
    taken = _assigned_members(rows, np.where(part, 0, assigned))
    third = np.full(n_latents, -1)
    for k in np.flatnonzero(~part):
        third[k] = taken[k].pop()
    missing = np.zeros(n_latents, dtype=np.int64)
    exact = True
    for latents in connected_parts(q, part):
        items = np.flatnonzero(q[:, latents].any(axis=1))
        demands = 2 * per_block[latents]
        chosen, outside, certain = _choose_items(q[np.ix_(items, latents)], demands)
        exact &= certain
        missing[latents] = demands - [len(own) for own in chosen]
        for k, own, other in zip(latents, chosen, outside, strict=True):
            taken[k] = items[own].tolist()
            third[k] = items[other] if other >= 0 else -1
    uncovered = third < 0
    if missing.any() or uncovered.any():
        return BlockSearch(None, missing, uncovered, part, exact)
    halves = [(tuple(own[: len(own) // 2]), tuple(own[len(own) // 2 :])) for own in taken]
    first, second = zip(*halves, strict=True)
    return BlockSearch(Blocks(first, second, tuple(third.tolist())), missing, uncovered, part, True)


def _assigned_members(rows: Patterns, assigned: Ints) -> list[list[int]]:
    """Return the items of each latent, given the number it takes of each pattern, (T, K)."""
    taken: list[list[int]] = [[] for _ in range(assigned.shape[1])]
    for members, shares in zip(rows.members, assigned, strict=True):
        ends = np.cumsum(shares)
        for k in np.flatnonzero(shares):
            taken[k] += members[ends[k] - shares[k] : ends[k]].tolist()
    return taken


def connected_parts(q: Bools, latents: Bools) -> list[Ints]:
    """Return some of the latents in groups that have no item in common."""
    numbers = np.flatnonzero(latents)
    if not len(numbers):
        return []
    inside = q[:, numbers].astype(np.int64)
    _, labels = connected_components(csr_array(inside.T @ inside), directed=False)
    return [numbers[labels == label] for label in range(int(labels.max()) + 1)]


def _choose_items(q: Bools, demands: Ints) -> tuple[list[list[int]], list[int], bool]:
    """Return items of latents in Q1 and Q2 and in Q3 (or -1), fewest missing, and if exact."""
    rows = distinct_rows(q)
    largest = int(assign_items(rows.loads, rows.counts, demands).sum())
    reserved, exact = _reserve_items(rows.loads, rows.counts, demands, largest)
    assigned = assign_items(rows.loads, rows.counts - reserved, demands)
    third = np.full(q.shape[1], -1)
    for loads, members, taken in zip(rows.loads, rows.members, assigned, strict=True):
        if taken.sum() < len(members):
            third[loads] = members[-1]
    exact &= int(assigned.sum()) == largest
    return _assigned_members(rows, assigned), third.tolist(), exact


def _reserve_items(loads: Bools, counts: Ints, demands: Ints, largest: int) -> tuple[Ints, bool]:
    """Return how many items of each pattern to reserve for Q3, and if that is optimal.

    The flow of size ``largest`` into Q1 and Q2 remains possible, and is integer by itself.
    """
    n_patterns, n_latents = loads.shape
    if int(counts.sum()) == largest:
        return np.zeros(n_patterns, dtype=np.int64), True
    program = IntegerProgram()
    reserved = program.variables((n_patterns,), integer=True, upper=counts)
    flows = program.variables(loads.shape, upper=counts[:, None] * loads)
    uncovered = program.variables((n_latents,))
    for pattern, count in enumerate(counts):
        program.add([reserved[pattern], *flows[pattern]], high=float(count))
    program.add(flows, low=float(largest))
    for k in range(n_latents):
        program.add(flows[:, k], high=float(demands[k]))
        program.add([*reserved[loads[:, k]], uncovered[k]], low=1.0)
    program.minimise_sum(uncovered)
    solution, certain = program.solve(MAX_NODES)
    if solution is None:
        return np.zeros(n_patterns, dtype=np.int64), False
    return np.round(solution[reserved]).astype(np.int64), certain


@dataclass(frozen=True)
class Shortage:
    """Latents with too few items for the block condition."""

    # "blocks": fewer items than Q1 and Q2 need. "rest": just enough for these, so that none is
    # left for Q3. "joint": no such set explains the failure; found by exhaustive search.
    kind: Kind
    # latents and items: the latents, and all items that load on any of them
    latents: tuple[int, ...]
    items: tuple[int, ...]
    needed: int  # lower bound on the number of items that these latents need
    uncovered: tuple[int, ...] = ()  # for "joint": latents without an item in Q3 in the best choice

    @property
    def n_missing(self) -> int:
        """Lower bound on the number of items that these latents lack."""
        return max(1, self.needed - len(self.items))


def find_shortages(q: Bools, per_block: Ints, search: BlockSearch) -> tuple[Shortage, ...]:
    """Return a proof for each connected part of Q for which the block condition fails."""
    return tuple(
        _explain_part(q, per_block, latents, search.uncovered[latents])
        for latents in connected_parts(q, search.part)
        if search.missing[latents].any() or search.uncovered[latents].any()
    )


def _explain_part(q: Bools, per_block: Ints, latents: Ints, uncovered: Bools) -> Shortage:
    rows = distinct_rows(q[q[:, latents].any(axis=1)][:, latents])
    demands = 2 * per_block[latents]

    def shortage(kind: Kind, some: Ints, bare: tuple[int, ...] = ()) -> Shortage:
        items = np.flatnonzero(q[:, some].any(axis=1))
        needed = 2 * int(per_block[some].sum()) + 1
        return Shortage(kind, tuple(some.tolist()), tuple(items.tolist()), needed, bare)

    violator = minimal_hall_violator(rows.loads, rows.counts, demands)
    if violator is not None:
        return shortage("blocks", latents[violator])
    proofs = []
    for place in np.argsort(~uncovered, kind="stable"):
        one_more = demands + (np.arange(len(demands)) == place)
        tight = minimal_hall_violator(rows.loads, rows.counts, one_more)
        if tight is not None:
            proofs.append(tight)
    if proofs:  # the fewer latents a proof names, the more specific it is
        return shortage("rest", latents[min(proofs, key=len)])
    return shortage("joint", latents, tuple(latents[uncovered].tolist()))
