"""Block condition (i) of the generic theorems: Q = [Q1, Q2, Q3] after a permutation of rows.

Latent k needs ``m_k`` items in each of the blocks Q1 and Q2, all different, and Q3 must have no
all-zero column. Choosing items for Q1 and Q2 is a maximum-flow problem. The requirement on Q3 adds
a covering problem, which is NP-hard (exact cover by 3-sets reduces to it). The search therefore

1. assigns one more item per latent; if that succeeds, the additional items are in Q3;
2. otherwise restricts the problem to the deficient latents (`flow.deficient_latents`); all others
   can be served by items that do not load on these;
3. solves each connected part of the rest by an exact integer program over row patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hidag.identifiability.flow import (
    Bools,
    IntegerProgram,
    Ints,
    assign_items,
    deficient_latents,
    distinct_rows,
    minimal_hall_violator,
)

#: Limit of the branch-and-bound search, in nodes.
MAX_NODES = 200_000


def subset_violations(q: Bools) -> Ints:
    """Return pairs (a, b), shape (n, 2), such that every item of latent b loads on latent a too.

    This is the subset condition (ii) for the whole Q-matrix. Equal columns give both pairs.
    """
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

    New items give each latent a code, the set of new items that load on it. Codes of latents with
    equal columns must form an antichain, so Sperner's theorem bounds their number. Along a chain of
    containments all codes must differ.
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
    """Rows of Q that satisfy the block condition.

    Attributes
    ----------
    first, second : tuple of K tuples of int
        Items of each latent in Q1 and Q2, ``m_k`` each.
    third : tuple of int, length K
        One item of each latent in Q3; latents may share it.
    """

    first: tuple[tuple[int, ...], ...]
    second: tuple[tuple[int, ...], ...]
    third: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BlockSearch:
    """Result of the search for blocks.

    Attributes
    ----------
    blocks : Blocks or None
    missing : ndarray of int, shape (K,)
        Items that each latent lacks in Q1 and Q2, in a choice with the fewest missing items.
    uncovered : ndarray of bool, shape (K,)
        Latents without an item in Q3, in such a choice with the fewest of them.
    part : ndarray of bool, shape (K,)
        The deficient latents; all others have items to spare.
    exact : bool
        False if the node limit ended the search.
    """

    blocks: Blocks | None
    missing: Ints
    uncovered: Bools
    part: Bools
    exact: bool

    @property
    def holds(self) -> bool | None:
        """True, False, or None if the node limit ended the search."""
        if self.blocks is not None:
            return True
        return False if self.exact else None


def items_per_block(levels: Sequence[int]) -> Ints:
    """Return ``m_k = ceil(log2 M_k)``, the items of latent k in each block, shape (K,)."""
    return np.array([(m - 1).bit_length() for m in levels], dtype=np.int64)


def find_blocks(q: Bools, per_block: Ints) -> BlockSearch:
    """Return rows that satisfy the block condition, or the number of missing items.

    Parameters
    ----------
    q : ndarray of bool, shape (J, K)
    per_block : ndarray of int, shape (K,)
        Items per latent and block, at least 1.
    """
    n_latents = q.shape[1]
    rows = distinct_rows(q)
    assigned = assign_items(rows.loads, rows.counts, 2 * per_block + 1)
    part = deficient_latents(rows.loads, assigned, assigned.sum(axis=0) < 2 * per_block + 1)
    taken: list[list[int]] = [[] for _ in range(n_latents)]
    third = np.full(n_latents, -1)
    for pattern, members in enumerate(rows.members):
        shares = np.where(part, 0, assigned[pattern])
        ends = np.cumsum(shares)
        for k in np.flatnonzero(shares):
            taken[k] += members[ends[k] - shares[k] : ends[k]].tolist()
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


def connected_parts(q: Bools, latents: Bools) -> list[Ints]:
    """Return some of the latents in groups that have no item in common."""
    numbers = np.flatnonzero(latents)
    if not len(numbers):
        return []
    inside = q[:, numbers].astype(np.int64)
    _, labels = connected_components(csr_array(inside.T @ inside), directed=False)
    return [numbers[labels == label] for label in range(int(labels.max()) + 1)]


def _choose_items(q: Bools, demands: Ints) -> tuple[list[list[int]], list[int], bool]:
    """Return a choice with the fewest missing items, then the fewest latents not covered by Q3.

    Parameters
    ----------
    q : ndarray of bool, shape (n, k)
    demands : ndarray of int, shape (k,)
        Items in Q1 and Q2 together.

    Returns
    -------
    taken : list of k lists
        Items in Q1 and Q2.
    third : list of k ints
        An item in Q3, or -1.
    exact : bool
    """
    rows = distinct_rows(q)
    counts = rows.counts
    largest = int(assign_items(rows.loads, counts, demands).sum())
    reserved, exact = _reserve_items(rows.loads, counts, demands, largest)
    assigned = assign_items(rows.loads, counts - reserved, demands)
    taken: list[list[int]] = [[] for _ in range(q.shape[1])]
    third = [-1] * q.shape[1]
    for pattern, members in enumerate(rows.members):
        ends = np.cumsum(assigned[pattern])
        for k in np.flatnonzero(rows.loads[pattern]):
            taken[k] += members[ends[k] - assigned[pattern, k] : ends[k]].tolist()
            if ends[-1] < len(members):
                third[k] = int(members[-1])
    return taken, third, exact and int(assigned.sum()) == largest


def _reserve_items(loads: Bools, counts: Ints, demands: Ints, largest: int) -> tuple[Ints, bool]:
    """Return the number of items of each pattern to reserve for Q3, and if that is optimal.

    The flow of size ``largest`` into Q1 and Q2 remains possible. Only the reserved numbers need to
    be integer variables: the rest is a flow, which is integer by itself.
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
    """Latents with too few items for the block condition.

    Attributes
    ----------
    kind : {"blocks", "rest", "joint"}
        "blocks": fewer items than Q1 and Q2 need. "rest": just enough for these, so that none is
        left for Q3. "joint": no such set explains the failure; found by exhaustive search.
    latents, items : tuple of int
        The latents, and all items that load on any of them.
    needed : int
        Lower bound on the number of items that these latents need.
    uncovered : tuple of int
        For "joint": latents without an item in Q3 in the best choice.
    """

    kind: Literal["blocks", "rest", "joint"]
    latents: tuple[int, ...]
    items: tuple[int, ...]
    needed: int
    uncovered: tuple[int, ...] = ()

    @property
    def n_missing(self) -> int:
        """Lower bound on the number of items that these latents lack."""
        return max(1, self.needed - len(self.items))


def find_shortages(q: Bools, per_block: Ints, search: BlockSearch) -> tuple[Shortage, ...]:
    """Return a proof for each connected part of Q for which the block condition fails.

    Parameters
    ----------
    q : ndarray of bool, shape (J, K)
    per_block : ndarray of int, shape (K,)
    search : BlockSearch
        The result of `find_blocks` for the same matrix.
    """
    return tuple(
        _explain_part(q, per_block, latents, search.uncovered[latents])
        for latents in connected_parts(q, search.part)
        if search.missing[latents].any() or search.uncovered[latents].any()
    )


def _explain_part(q: Bools, per_block: Ints, latents: Ints, uncovered: Bools) -> Shortage:
    rows = distinct_rows(q[q[:, latents].any(axis=1)][:, latents])
    demands = 2 * per_block[latents]

    def shortage(
        kind: Literal["blocks", "rest", "joint"], some: Ints, bare: tuple[int, ...] = ()
    ) -> Shortage:
        items = np.flatnonzero(q[:, some].any(axis=1))
        needed = 2 * int(per_block[some].sum()) + 1
        return Shortage(kind, tuple(some.tolist()), tuple(items.tolist()), needed, bare)

    violator = minimal_hall_violator(rows.loads, rows.counts, demands)
    if violator is not None:
        return shortage("blocks", latents[violator])
    smallest = None
    for place in np.argsort(~uncovered, kind="stable"):
        one_more = demands + (np.arange(len(demands)) == place)
        tight = minimal_hall_violator(rows.loads, rows.counts, one_more)
        # The fewer latents a proof names, the more specific it is.
        if tight is not None and (smallest is None or len(tight) < len(smallest)):
            smallest = tight
    if smallest is not None:
        return shortage("rest", latents[smallest])
    return shortage("joint", latents, tuple(latents[uncovered].tolist()))
