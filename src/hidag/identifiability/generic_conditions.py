"""Findings about the conditions of the generic theorems: blocks and a rest, no containment."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hidag.identifiability.blocks import (
    BlockSearch,
    Lack,
    codes_needed,
    contained_pairs,
    fewest_separating_items,
    find_blocks,
    find_lacks,
    items_per_block,
)
from hidag.identifiability.design import MeasurementDesign
from hidag.identifiability.findings import (
    LISTED,
    Finding,
    counted,
    items_phrase,
    join_names,
    latents_phrase,
    new_items,
)
from hidag.identifiability.flow import Bools, Ints, Programme, group_rows

# --- The fewest items to add so that a Q-matrix meets the conditions of the generic theorems

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


# ---


def generic_theorem(design: MeasurementDesign) -> str:
    """Return the name of the theorem on generic identifiability that is about such a design."""
    if not design.binary:
        return "polytomous theorem"
    return "Corollary 2" if design.main_effects else "Theorem 1"


def every_latent_has_an_item(design: MeasurementDesign) -> Finding:
    """Return whether no column of Q is empty, without which nothing can be identified."""
    empty = design.latents(np.flatnonzero(~design.q.any(axis=0)))
    source = "necessary"
    if not empty:
        return Finding("covered", source, "holds", "every latent has at least one item")
    return Finding(
        "covered",
        source,
        "fails",
        f"{latents_phrase(empty)} {'has' if len(empty) == 1 else 'have'} no item: nothing in the "
        "data depends on it, so nothing about it can be learned",
        {"latents": empty},
        f"drop {latents_phrase(empty)}, or add items that load on it",
        provably_bad=True,
    )


def blocks_and_rest(design: MeasurementDesign) -> tuple[Finding, BlockSearch]:
    """Return whether two blocks and a covering rest can be had (generic, condition (i))."""
    per_block = items_per_block(design.levels)
    search = find_blocks(design.q, per_block)
    source = f"{generic_theorem(design)} (i)"
    rule = "two blocks of items, " + (
        "one item per latent in each"
        if design.binary
        else f"{_per_latent(design, per_block.tolist())} in each"
    )
    if search.blocks is not None:
        found = search.blocks
        witness = {
            name: {
                "first": design.items(found.first[k]),
                "second": design.items(found.second[k]),
                "outside": design.item_names[found.third[k]],
            }
            for k, name in enumerate(design.latent_names)
        }
        sentence = f"there are {rule}, and the items left over load on every latent"
        return Finding("blocks", source, "holds", sentence, witness), search
    if not search.exact:
        sentence = f"the search for {rule} was given up at its limit without a decision"
        return Finding("blocks", source, "undecided", sentence), search
    lacks = find_lacks(design.q, per_block, search)
    sentence = (
        f"there must be {rule}, and an item outside them for every latent, but "
        + "; ".join(_in_words(design, lack) for lack in lacks[:LISTED])
        + ("" if len(lacks) <= LISTED else f"; and so in {len(lacks) - LISTED} more groups")
    )
    proof = {
        "violating": [
            {
                "latents": design.latents(lack.latents),
                "items": design.items(lack.items),
                "needed": lack.needed,
                "kind": lack.kind,
            }
            for lack in lacks
        ]
    }
    new = [design.latents(np.flatnonzero(row)) for row in block_additions(search)]
    return Finding("blocks", source, "fails", sentence, proof, new_items(new)), search


def _per_latent(design: MeasurementDesign, per_block: list[int]) -> str:
    by_number: dict[int, list[str]] = {}
    for name, number in zip(design.latent_names, per_block, strict=True):
        by_number.setdefault(number, []).append(name)
    if len(by_number) == 1:
        return f"{counted(per_block[0], 'item')} per latent"
    return join_names(
        [f"{counted(n, 'item')} for {join_names(by_number[n])}" for n in sorted(by_number)]
    )


def _in_words(design: MeasurementDesign, lack: Lack) -> str:
    latents, items = design.latents(lack.latents), design.items(lack.items)
    who = latents_phrase(latents)
    have = "have" if len(latents) > 1 else "has"
    only = f"only {items_phrase(items)}" if items else "no item"
    share = "share" if len(latents) > 1 and items else have
    any_of = "any of them" if len(latents) > 2 else "either" if len(latents) == 2 else "it"
    if lack.kind == "joint":
        bare = design.latents(lack.bare)
        return (
            f"the {counted(len(items), 'item')} of {who} cannot serve the blocks and the rest at "
            f"once: whatever items are chosen, some latent has none left outside (at best "
            f"{join_names(bare)})"
        )
    more = f"{counted(lack.n_more, 'more item')} that load{'s' if lack.n_more == 1 else ''} on"
    are = "is" if lack.n_more == 1 else "are"
    tail = ", and the blocks need all of them" if lack.kind == "rest" and items else ""
    return f"{who} {share} {only}{tail}: {more} {any_of} {are} needed"


def no_contained_column(design: MeasurementDesign) -> Finding:
    """Return whether no latent's items contain another's (generic theorems, condition (ii))."""
    needed = not (design.binary and design.main_effects)
    theorem = generic_theorem(design) if needed else "Theorem 1"
    source = f"{theorem} (ii), the subset condition"
    pairs = contained_pairs(design.q)
    if not len(pairs):
        return Finding(
            "subset",
            source,
            "holds",
            "no latent has all the items of another one",
            required=needed,
        )
    named = [(design.latent_names[p], design.latent_names[k]) for p, k in pairs]
    outer, inner = pairs[0]
    has_items = design.q.sum(axis=0) > 0
    words = [
        f"latent {design.latent_names[p]} has every item of {design.latent_names[k]}"
        for p, k in pairs
        if has_items[k]
    ] or ["a latent has no item at all, so that every other one has all its items"]
    # The exchange may give mass to states that were said not to occur.
    proven = needed and design.ruled_out is None and _can_be_exchanged(design, pairs)
    if not needed:
        more = "with main effects and two levels that does no harm (Corollary 2)"
    elif proven:
        more = (
            f"the levels of {named[0][1]} can then be exchanged wherever {named[0][0]} is 0, which "
            "gives other parameters with the same distribution of the data"
        )
    else:
        where = "for this order of effects" if design.ruled_out is None else "with prerequisites"
        more = f"the theorem does not apply then; whether anything is lost is not known {where}"
    return Finding(
        "subset",
        source,
        "fails",
        f"{join_names(words, limit=4)}; {more}",
        {"contained": [{"outer": p, "inner": k} for p, k in named]},
        "" if not needed else _undo(design, int(outer), int(inner), len(pairs)),
        required=needed,
        provably_bad=proven,
    )


def _undo(design: MeasurementDesign, outer: int, inner: int, n_pairs: int) -> str:
    more = "" if n_pairs == 1 else ", and so for the other pairs"
    return (
        f"add an item that loads on {design.latent_names[inner]} but not on "
        f"{design.latent_names[outer]}{more}"
    )


def _can_be_exchanged(design: MeasurementDesign, pairs: np.ndarray) -> bool:
    """Return whether exchanging levels where another latent is 0 stays within the model.

    The exchange turns an effect of the inner latent into an interaction with the outer one. All
    items of the inner latent must therefore have room for every interaction of their latents.
    """
    widths = design.q.sum(axis=1)
    return any(bool((widths[design.q[:, k]] <= design.order).all()) for _, k in pairs)
