"""The fewest items to add so that a Q-matrix meets the conditions of the generic theorems."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hidag.identify.blocks import BlockSearch
from hidag.identify.containment import (
    codes_needed,
    contained_pairs,
    fewest_separating_items,
)
from hidag.identify.flow import Bools, Ints, group_rows
from hidag.identify.programme import Programme

#: Variables that tie new items to containments: up to the first number a search looks for few
#: loadings, up to the second for any solution, beyond it is left out.
_SMALL_SEARCH, _LARGEST_SEARCH = 200, 1500
_MAX_NODES = 5_000
#: Codes of more items are not listed.
_LONGEST_CODE = 12


@dataclass(frozen=True, eq=False)
class Additions:
    """Items whose addition fulfils the conditions.

    Attributes
    ----------
    loads : ndarray of bool, shape (n, K)
        What each new item should load on; it must not load on anything else if containments are
        to be undone.
    exact : bool
        Whether no smaller number would do. Otherwise the number is enough, but perhaps too large.
    """

    loads: Bools
    exact: bool


def fewest_additions(q: Bools, per_block: Ints, search: BlockSearch, *, subset: bool) -> Additions:
    """Return the fewest items to add, with few loadings.

    Parameters
    ----------
    q : ndarray of bool, shape (J, K)
    per_block : ndarray of int, shape (K,)
    search : BlockSearch
        The outcome of `find_blocks` for the same matrix.
    subset : bool
        Whether containments of columns have to be undone as well.
    """
    basis = block_additions(search)
    pairs = contained_pairs(q) if subset else np.zeros((0, 2), dtype=np.int64)
    if not len(pairs):
        return Additions(basis, search.exact)
    fewest = max(len(basis), fewest_separating_items(q.shape[1], pairs))
    construction = _constructed(basis, pairs)
    proven = search.exact
    for number in range(fewest, len(construction)):
        loads = _greedy(basis, pairs, number)
        small = number * len(pairs) <= _SMALL_SEARCH
        if loads is not None and not small:
            return Additions(loads, proven)
        if number * len(pairs) > _LARGEST_SEARCH:
            proven = False
            continue
        # A small search is worth its while even where a solution is known: it has fewer loadings.
        if number >= len(basis):
            better, decided = _codes(basis, pairs, number, None)
            loads = loads if better is None else better
            proven &= decided or loads is not None
        if loads is None and search.part.any():
            loads, decided = _codes(basis[:0], pairs, number, (q, per_block, search))
            proven &= decided or loads is not None
        if loads is not None:
            return Additions(loads, proven)
    return Additions(construction, proven)


def block_additions(search: BlockSearch) -> Bools:
    """Return the fewest new items for the blocks and the rest alone, shape (n, K)."""
    alone = np.eye(len(search.missing), dtype=bool).repeat(search.missing, axis=0)
    if search.uncovered.any():
        alone = np.vstack([alone, search.uncovered])
    return alone


def _constructed(basis: Bools, pairs: Ints) -> Bools:
    """Return items that do for certain: those for the blocks, then codes for what they leave."""
    left = pairs[[not (basis[:, q] & ~basis[:, p]).any() for p, q in pairs]]
    if not len(left):
        return basis
    latents = np.unique(left)
    size = codes_needed(len(latents))
    codes = np.zeros((size, basis.shape[1]), dtype=bool)
    for k, chosen in zip(latents, combinations(range(size), size // 2), strict=False):
        codes[list(chosen), k] = True
    return np.vstack([basis, codes])


def _greedy(basis: Bools, pairs: Ints, number: int) -> Bools | None:
    """Return loadings of ``number`` new items that undo the containments, None if none was found.

    Each latent gets a code, the set of new items that load on it. Outer latents come first and take
    the smallest code that is allowed. Codes below some size are left out, as the codes of equal
    columns must not contain one another; several such sizes are tried.
    """
    if not len(basis) <= number <= _LONGEST_CODE:
        return None
    n_latents = basis.shape[1]
    required = [sum(1 << int(i) for i in np.flatnonzero(basis[:, k])) for k in range(n_latents)]
    codes = sorted(range(1 << number), key=lambda code: (code.bit_count(), code))
    contains = np.zeros((n_latents, n_latents), dtype=bool)
    contains[pairs[:, 0], pairs[:, 1]] = True
    order = np.argsort(-contains.sum(axis=1), kind="stable").tolist()
    for smallest in range(number // 2 + 1):
        chosen: dict[int, int] = {}
        for k in order:
            inside = [code for p, code in chosen.items() if contains[p, k]]
            around = [code for q, code in chosen.items() if contains[k, q]]
            touched = contains[k].any() or contains[:, k].any()
            chosen[k] = next(
                (
                    code
                    for code in (codes if touched else required[k : k + 1])
                    if code & required[k] == required[k]
                    and (not touched or code.bit_count() >= smallest)
                    and all(code & ~other for other in inside)
                    and all(other & ~code for other in around)
                ),
                -1,
            )
            if chosen[k] < 0:
                break
        else:
            bits = np.array([chosen[k] for k in range(n_latents)])
            return np.asarray((bits >> np.arange(number)[:, None]) & 1, dtype=bool)
    return None


def _codes(
    basis: Bools, pairs: Ints, number: int, blocks: tuple[Bools, Ints, BlockSearch] | None
) -> tuple[Bools | None, bool]:
    """Return loadings of ``number`` new items that undo the containments, and if that is certain.

    The first items keep the loadings of ``basis``. With ``blocks`` the new items also have to fill
    what the blocks and the rest lack, in any way.
    """
    width = basis.shape[1]
    programme = Programme()
    loads = programme.variables((number, width), whole=True)
    for i, k in np.argwhere(basis):
        programme.at_least([(loads[i, k], 1.0)], 1.0)
    for outer, inner in pairs:
        tells = programme.variables((number,))
        for i in range(number):
            programme.at_least([(loads[i, inner], 1.0), (tells[i], -1.0)], 0.0)
            programme.at_most([(loads[i, outer], 1.0), (tells[i], 1.0)], 1.0)
        programme.at_least([(variable, 1.0) for variable in tells], 1.0)
    if blocks is not None:
        _fill_blocks(programme, loads, *blocks)
    if number * len(pairs) <= _SMALL_SEARCH:
        for variable in loads.ravel():
            programme.cost(variable, 1.0)
    solution, decided = programme.solve(_MAX_NODES)
    return (None if solution is None else solution[loads] > 0.5), decided


def _fill_blocks(
    programme: Programme, loads: Ints, q: Bools, per_block: Ints, search: BlockSearch
) -> None:
    """Demand two blocks and a covering rest, made of the items that are there and the new ones."""
    latents = np.flatnonzero(search.part)
    rows = group_rows(q[q[:, latents].any(axis=1)][:, latents])
    kept_out = programme.variables((len(rows.members),), whole=True, upper=rows.counts)
    new_out = programme.variables((len(loads),), whole=True)
    gives = programme.variables(rows.loads.shape, upper=rows.counts[:, None] * rows.loads)
    new_gives = programme.variables((len(loads), len(latents)))
    new_covers = programme.variables((len(loads), len(latents)))
    for pattern, count in enumerate(rows.counts):
        terms = [(kept_out[pattern], 1.0), *((v, 1.0) for v in gives[pattern])]
        programme.at_most(terms, float(count))
    for i in range(len(loads)):
        programme.at_most([(new_out[i], 1.0), *((v, 1.0) for v in new_gives[i])], 1.0)
        for place, k in enumerate(latents):
            for part in (new_gives, new_covers):
                programme.at_least([(loads[i, k], 1.0), (part[i, place], -1.0)], 0.0)
            programme.at_least([(new_out[i], 1.0), (new_covers[i, place], -1.0)], 0.0)
    for place, k in enumerate(latents):
        programme.at_least(
            [(v, 1.0) for v in (*gives[:, place], *new_gives[:, place])], float(2 * per_block[k])
        )
        outside = [kept_out[t] for t in np.flatnonzero(rows.loads[:, place])]
        programme.at_least([(v, 1.0) for v in (*outside, *new_covers[:, place])], 1.0)
