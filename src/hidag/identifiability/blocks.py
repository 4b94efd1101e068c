"""Two blocks of items with a third beside them: condition (i) of the generic theorems.

Latent k needs ``m_k`` items in each of two blocks, all of them different, and the items left over
must load on every latent. Choosing items for the blocks alone is a flow. That the rest must still
cover every latent makes the choice a covering problem as well, which is NP-hard in general (exact
cover by 3-sets can be written as one), so:

1. If the items can be given out with one more item per latent, that item is left over: done.
2. Otherwise only the latents in want matter (`flow.in_want`): all others can be served from items
   that none of these loads on. They have fewer items than they ask for, so few.
3. For these, per connected part, an integer program over row patterns decides, exactly.
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
    Ints,
    Programme,
    give_out,
    group_rows,
    in_want,
    smallest_lack,
)

# --- No latent's items may contain another's: condition (ii) of the generic theorems (all


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


# ---

#: Nodes of a branch-and-bound search before it is given up; a count, not seconds, so that the
#: answer is the same on every machine.
MAX_NODES = 200_000


@dataclass(frozen=True)
class Blocks:
    """Rows that fulfil the condition.

    Attributes
    ----------
    first, second : tuple of K tuples of int
        Items of each latent in the two blocks, ``m_k`` each.
    third : tuple of int, length K
        One item of each latent outside the blocks; latents may share it.
    """

    first: tuple[tuple[int, ...], ...]
    second: tuple[tuple[int, ...], ...]
    third: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BlockSearch:
    """What the search for two blocks and a rest found.

    Attributes
    ----------
    blocks : Blocks or None
    missing : ndarray of int, shape (K,)
        Block items that each latent lacks, in a choice with as few missing as possible.
    uncovered : ndarray of bool, shape (K,)
        Latents without an item outside the blocks, in such a choice with as few of them as
        possible.
    part : ndarray of bool, shape (K,)
        The latents that the search was about; all others have items to spare.
    exact : bool
        False if a limit ended the search before the answer was certain.
    """

    blocks: Blocks | None
    missing: Ints
    uncovered: Bools
    part: Bools
    exact: bool

    @property
    def holds(self) -> bool | None:
        """True, False, or None where a limit ended the search."""
        if self.blocks is not None:
            return True
        return False if self.exact else None

    @property
    def n_to_add(self) -> int:
        """Smallest number of items whose addition fulfils the condition."""
        return int(self.missing.sum()) + int(self.uncovered.any())


def items_per_block(levels: Sequence[int]) -> Ints:
    """Return ``m_k = ceil(log2 M_k)``, the items per block that tell M_k levels apart, (K,)."""
    return np.array([(m - 1).bit_length() for m in levels], dtype=np.int64)


def find_blocks(q: Bools, per_block: Ints) -> BlockSearch:
    """Return rows for two blocks and a rest that covers every latent, or what is missing.

    Parameters
    ----------
    q : ndarray of bool, shape (J, K)
    per_block : ndarray of int, shape (K,)
        Items per latent and block, at least 1.
    """
    n_latents = q.shape[1]
    rows = group_rows(q)
    given = give_out(rows.loads, rows.counts, 2 * per_block + 1)
    part = in_want(rows.loads, given, given.sum(axis=0) < 2 * per_block + 1)
    taken: list[list[int]] = [[] for _ in range(n_latents)]
    third = np.full(n_latents, -1)
    for pattern, members in enumerate(rows.members):
        shares = np.where(part, 0, given[pattern])
        ends = np.cumsum(shares)
        for k in np.flatnonzero(shares):
            taken[k] += members[ends[k] - shares[k] : ends[k]].tolist()
    for k in np.flatnonzero(~part):
        third[k] = taken[k].pop()
    missing = np.zeros(n_latents, dtype=np.int64)
    uncovered = np.zeros(n_latents, dtype=bool)
    exact = True
    for latents in connected_parts(q, part):
        items = np.flatnonzero(q[:, latents].any(axis=1))
        choice = _choose(q[np.ix_(items, latents)], 2 * per_block[latents])
        exact &= choice.exact
        missing[latents], uncovered[latents] = choice.missing, choice.uncovered
        for k, own, outside in zip(latents, choice.taken, choice.third, strict=True):
            taken[k] = items[own].tolist()
            third[k] = items[outside] if outside >= 0 else -1
    if missing.any() or uncovered.any():
        return BlockSearch(None, missing, uncovered, part, exact)
    halves = [(tuple(own[: len(own) // 2]), tuple(own[len(own) // 2 :])) for own in taken]
    blocks = Blocks(
        tuple(first for first, _ in halves),
        tuple(second for _, second in halves),
        tuple(int(j) for j in third),
    )
    return BlockSearch(blocks, missing, uncovered, part, True)


def connected_parts(q: Bools, among: Bools) -> list[Ints]:
    """Return the latents ``among`` all, in groups that share no item with one another."""
    latents = np.flatnonzero(among)
    if not len(latents):
        return []
    inside = q[:, latents].astype(np.int64)
    _, labels = connected_components(csr_array(inside.T @ inside), directed=False)
    return [latents[labels == label] for label in range(int(labels.max()) + 1)]


@dataclass(frozen=True, eq=False)
class _Choice:
    taken: list[list[int]]
    third: list[int]
    missing: Ints
    uncovered: Bools
    exact: bool


def _choose(q: Bools, demands: Ints) -> _Choice:
    """Return the best choice for latents that lack items: fewest missing, then fewest uncovered.

    Parameters
    ----------
    q : ndarray of bool, shape (n, k)
    demands : ndarray of int, shape (k,)
        Items in both blocks together.
    """
    rows = group_rows(q)
    counts = rows.counts
    most = int(give_out(rows.loads, counts, demands).sum())
    spare, exact = _spare(rows.loads, counts, demands, most)
    given = give_out(rows.loads, counts - spare, demands)
    exact = exact and int(given.sum()) == most
    taken: list[list[int]] = [[] for _ in range(q.shape[1])]
    third = [-1] * q.shape[1]
    for pattern, members in enumerate(rows.members):
        ends = np.cumsum(given[pattern])
        for k in np.flatnonzero(rows.loads[pattern]):
            taken[k] += members[ends[k] - given[pattern, k] : ends[k]].tolist()
            if ends[-1] < len(members):
                third[k] = int(members[-1])
    return _Choice(
        taken,
        third,
        demands - given.sum(axis=0),
        np.array([outside < 0 for outside in third]),
        exact,
    )


def _spare(loads: Bools, counts: Ints, demands: Ints, most: int) -> tuple[Ints, bool]:
    """Return how many items of each pattern to keep out of the blocks, and if that is certain.

    As many block places as possible, ``most``, stay filled, and as few latents as possible are
    left without an item outside. Only the numbers kept out need to be whole: what is left is then
    a flow, which is whole by itself.
    """
    n_patterns, n_latents = loads.shape
    if int(counts.sum()) == most:
        return np.zeros(n_patterns, dtype=np.int64), True
    programme = Programme()
    kept_out = programme.variables((n_patterns,), whole=True, upper=counts)
    gives = programme.variables(loads.shape, upper=counts[:, None] * loads)
    bare = programme.variables((n_latents,))
    for pattern, count in enumerate(counts):
        terms = [(kept_out[pattern], 1.0), *((v, 1.0) for v in gives[pattern])]
        programme.at_most(terms, float(count))
    programme.at_least([(v, 1.0) for v in gives.ravel()], float(most))
    for k in range(n_latents):
        programme.at_most([(v, 1.0) for v in gives[:, k]], float(demands[k]))
        outside = [(v, 1.0) for v in kept_out[loads[:, k]]]
        programme.at_least([*outside, (bare[k], 1.0)], 1.0)
        programme.cost(bare[k], 1.0)
    solution, certain = programme.solve(MAX_NODES)
    if solution is None:
        return np.zeros(n_patterns, dtype=np.int64), False
    return np.round(solution[kept_out]).astype(np.int64), certain


# --- Why two blocks and a rest cannot be had: the latents and items that prove it


@dataclass(frozen=True)
class Lack:
    """Latents with too few items.

    Attributes
    ----------
    kind : {"blocks", "rest", "joint"}
        "blocks": fewer items than the two blocks need. "rest": just enough, so that none is left
        over. "joint": every latent could be served, but not all at once; found by search.
    latents, items : tuple of int
        The latents, and all items that load on any of them.
    needed : int
        Items that these latents need at the least, in the blocks and outside.
    bare : tuple of int
        For "joint": latents without an item outside in the best choice there is.
    """

    kind: Literal["blocks", "rest", "joint"]
    latents: tuple[int, ...]
    items: tuple[int, ...]
    needed: int
    bare: tuple[int, ...] = ()

    @property
    def n_more(self) -> int:
        """Items that these latents lack, at the least."""
        return max(1, self.needed - len(self.items))


def find_lacks(q: Bools, per_block: Ints, search: BlockSearch) -> tuple[Lack, ...]:
    """Return one proof for each group of latents that the condition fails for.

    Parameters
    ----------
    q : ndarray of bool, shape (J, K)
    per_block : ndarray of int, shape (K,)
    search : BlockSearch
        The outcome of `find_blocks` for the same matrix.
    """
    lacks = []
    for latents in connected_parts(q, search.part):
        if search.missing[latents].any() or search.uncovered[latents].any():
            lacks.append(_lack_of(q, per_block, latents, search))
    return tuple(lacks)


def _lack_of(q: Bools, per_block: Ints, latents: Ints, search: BlockSearch) -> Lack:
    rows = group_rows(q[q[:, latents].any(axis=1)][:, latents])
    demands = 2 * per_block[latents]
    short = smallest_lack(rows.loads, rows.counts, demands)
    if short is not None:
        return _proof("blocks", q, per_block, latents[short])
    bare = search.uncovered[latents]
    smallest = None
    for place in np.argsort(~bare, kind="stable"):
        one_more = demands.copy()
        one_more[place] += 1
        tight = smallest_lack(rows.loads, rows.counts, one_more)
        # The fewer latents a proof names, the more it says about where items are missing.
        if tight is not None and (smallest is None or len(tight) < len(smallest)):
            smallest = tight
    if smallest is not None:
        return _proof("rest", q, per_block, latents[smallest])
    return _proof("joint", q, per_block, latents, tuple(latents[bare].tolist()))


def _proof(
    kind: Literal["blocks", "rest", "joint"],
    q: Bools,
    per_block: Ints,
    latents: Ints,
    bare: tuple[int, ...] = (),
) -> Lack:
    return Lack(
        kind,
        tuple(latents.tolist()),
        tuple(np.flatnonzero(q[:, latents].any(axis=1)).tolist()),
        2 * int(per_block[latents].sum()) + 1,
        bare,
    )
