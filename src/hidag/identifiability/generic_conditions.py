"""Conditions of the theorems on generic identifiability, and the fewest items that satisfy them."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from hidag.formatting import MAX_LISTED, join_names, plural, with_noun
from hidag.identifiability.blocks import (
    BlockSearch,
    IntegerProgram,
    Shortage,
    antichain_items,
    containment_matrix,
    distinct_rows,
    find_blocks,
    find_shortages,
    items_per_block,
    min_separating_items,
    subset_violations,
)
from hidag.identifiability.design import (
    Bools,
    Condition,
    Finding,
    Ints,
    MeasurementDesign,
    describe_additions,
)

#: Sizes of the integer program (new items times violations): up to the first it minimises the
#: loadings, up to the second it accepts any solution, beyond that it is skipped.
_SMALL_PROGRAM, _LARGEST_PROGRAM = 200, 1500
_MAX_NODES = 5_000
#: The greedy search lists all codes of at most this many items.
_LONGEST_CODE = 12


def generic_theorem(design: MeasurementDesign) -> str:
    """Return the name of the theorem on generic identifiability that covers the design."""
    if not design.binary:
        return "Theorem S.2"
    return "Corollary S.3" if design.main_effects else "Theorem 1"


def every_latent_measured(design: MeasurementDesign) -> Finding:
    """Check that Q has no all-zero column, which is necessary."""
    condition = Condition("covered", "necessary")
    empty = design.latents(np.flatnonzero(~design.q.any(axis=0)))
    if not empty:
        return condition.holds("every latent has at least one item")
    return condition.fails(
        f"{with_noun('latent', empty)} {'has' if len(empty) == 1 else 'have'} no item, so the data "
        "contain no information about it",
        {"latents": empty},
        f"drop {with_noun('latent', empty)}, or add items that load on it",
        provably_bad=True,
    )


def block_condition(design: MeasurementDesign) -> tuple[Finding, BlockSearch]:
    """Check condition (i) of the generic theorems."""
    condition = Condition("blocks", f"{generic_theorem(design)} (i)")
    items = design.item_names
    per_block = items_per_block(design.levels)
    search = find_blocks(design.q, per_block)
    by_number: dict[int, list[str]] = {}
    for name, number in zip(design.latent_names, per_block.tolist(), strict=True):
        by_number.setdefault(number, []).append(name)
    sizes = [
        f"{plural(n, 'item')} {'per latent' if len(by_number) == 1 else f'for {join_names(names)}'}"
        for n, names in sorted(by_number.items())
    ]
    blocks = f"two disjoint blocks Q1 and Q2 with {join_names(sizes)} in each"
    blocks_found = search.blocks
    if blocks_found is not None:
        members = (blocks_found.first, blocks_found.second, blocks_found.third)
        parts = zip(design.latent_names, *members, strict=True)
        witness = {
            name: {"first": design.items(a), "second": design.items(b), "outside": items[c]}
            for name, a, b, c in parts
        }
        sentence = f"the Q-matrix contains {blocks}, and the other items (Q3) load on every latent"
        return condition.holds(sentence, witness), search
    if not search.exact:
        sentence = f"the search for {blocks} reached its limit without a decision"
        return condition.undecided(sentence), search
    shortages = find_shortages(design.q, per_block, search)
    reasons = [_describe_shortage(design, one) for one in shortages[:MAX_LISTED]]
    if len(shortages) > MAX_LISTED:
        reasons.append(f"{len(shortages) - MAX_LISTED} more groups of latents have too few items")
    proof = []
    for one in shortages:
        found = {"latents": design.latents(one.latents), "items": design.items(one.items)}
        proof.append({**found, "needed": one.needed, "kind": one.kind})
    new = [design.latents(np.flatnonzero(row)) for row in block_additions(search)]
    sentence = (
        f"the Q-matrix must contain {blocks}, and another item (Q3) for every latent, but "
        + "; ".join(reasons)
    )
    return condition.fails(sentence, {"violating": proof}, describe_additions(new)), search


def _describe_shortage(design: MeasurementDesign, shortage: Shortage) -> str:
    latents, items = design.latents(shortage.latents), design.items(shortage.items)
    names = with_noun("latent", latents)
    if shortage.kind == "joint":
        return (
            f"the {plural(len(items), 'item')} of {names} cannot fill Q1, Q2 and Q3 at once: every "
            "choice leaves some latent without an item in Q3 (the best choice leaves "
            f"{join_names(design.latents(shortage.uncovered))})"
        )
    several = len(latents) > 1
    verb = ("share" if items else "have") if several else "has"
    only = f"only {with_noun('item', items)}" if items else "no item"
    all_used = ", which Q1 and Q2 need" if shortage.kind == "rest" and items else ""
    needed = plural(shortage.n_missing, "more item")
    them = ("any of them" if len(latents) > 2 else "either") if several else "it"
    one = shortage.n_missing == 1
    return (
        f"{names} {verb} {only}{all_used}: {needed} that load{'s' * one} on {them} "
        f"{'is' if one else 'are'} needed"
    )


def subset_condition(design: MeasurementDesign) -> Finding:
    """Check condition (ii) of the generic theorems, the subset condition."""
    needed = not (design.binary and design.main_effects)
    theorem = generic_theorem(design) if needed else "Theorem 1"
    condition = Condition("subset", f"{theorem} (ii), the subset condition", needed)
    pairs = subset_violations(design.q)
    if not len(pairs):
        return condition.holds("no column of Q contains another")
    named = [(design.latent_names[a], design.latent_names[b]) for a, b in pairs]
    has_items = design.q.sum(axis=0) > 0
    words = [
        f"every item of {inner} loads on {outer} too"
        for (outer, inner), (_, b) in zip(named, pairs, strict=True)
        if has_items[b]
    ] or ["a latent has no item, so every other column of Q contains its column"]
    # The exchange of levels turns an effect of the inner latent into an interaction with the outer
    # one, so all items of the inner latent must allow every interaction of their latents. It may
    # give probability to states that were ruled out.
    widths = design.q.sum(axis=1)
    proven = (
        needed
        and design.ruled_out is None
        and any(bool((widths[design.q[:, b]] <= design.order).all()) for _, b in pairs)
    )
    outer, inner = named[0]
    advice = f"add an item that loads on {inner} but not on {outer}"
    advice += ", and likewise for the other pairs" * (len(pairs) > 1)
    advice *= needed
    if not needed:
        consequence = "with main effects and binary latents this is allowed (Corollary S.3)"
    elif proven:
        consequence = (
            f"exchanging the levels of {inner} where {outer} is 0 gives other parameters with the "
            "same distribution of the data"
        )
    else:
        where = "a hierarchy" if design.ruled_out is not None else "this order of effects"
        consequence = (
            f"the theorem does not apply, and with {where} it is unknown whether the model is "
            "identified"
        )
    return condition.fails(
        f"{join_names(words, limit=4)}; {consequence}",
        {"contained": [{"outer": a, "inner": b} for a, b in named]},
        advice,
        provably_bad=proven,
    )


class Additions(NamedTuple):
    """Items whose addition satisfies the conditions."""

    loads: Bools  # (n, K): loadings of the new items
    exact: bool  # whether no smaller number suffices


def minimal_additions(q: Bools, per_block: Ints, search: BlockSearch, *, subset: bool) -> Additions:
    """Return the fewest items to add, with few loadings, given the result of `find_blocks`."""
    basis = block_additions(search)
    pairs = subset_violations(q) if subset else np.zeros((0, 2), dtype=np.int64)
    if not len(pairs):
        return Additions(basis, search.exact)
    fewest = max(len(basis), min_separating_items(q.shape[1], pairs))
    construction = _construct_additions(basis, pairs)
    proven = search.exact
    for number in range(fewest, len(construction)):
        loads = _search_codes_greedily(basis, pairs, number)
        size = number * len(pairs)
        if loads is not None and size > _SMALL_PROGRAM:
            return Additions(loads, proven)
        if size > _LARGEST_PROGRAM:
            proven = False
            continue
        # A small program is solved even if a solution is known, because it minimises loadings.
        if number >= len(basis):
            better, decided = _search_codes(basis, pairs, number, None)
            loads = loads if better is None else better
            proven &= decided or loads is not None
        if loads is None and search.part.any():
            loads, decided = _search_codes(basis[:0], pairs, number, (q, per_block, search))
            proven &= decided or loads is not None
        if loads is not None:
            return Additions(loads, proven)
    return Additions(construction, proven)


def block_additions(search: BlockSearch) -> Bools:
    """Return the fewest new items for the block condition alone, shape (n, K)."""
    alone = np.eye(len(search.missing), dtype=bool).repeat(search.missing, axis=0)
    return np.vstack([alone, search.uncovered]) if search.uncovered.any() else alone


def _construct_additions(basis: Bools, pairs: Ints) -> Bools:
    """Return items that suffice: those for the blocks, then an antichain of codes."""
    left = pairs[[not (basis[:, b] & ~basis[:, a]).any() for a, b in pairs]]
    if not len(left):
        return basis
    latents = np.unique(left)
    size = antichain_items(len(latents))
    codes = np.zeros((size, basis.shape[1]), dtype=bool)
    for k, chosen in zip(latents, combinations(range(size), size // 2), strict=False):
        codes[list(chosen), k] = True
    return np.vstack([basis, codes])


def _search_codes_greedily(basis: Bools, pairs: Ints, number: int) -> Bools | None:
    """Return loadings of ``number`` new items that remove the violations, or None if not found.

    Outer latents take the smallest allowed code (set of items) first, for several smallest sizes.
    """
    if not len(basis) <= number <= _LONGEST_CODE:
        return None
    n_latents = basis.shape[1]
    required = [sum(1 << int(i) for i in np.flatnonzero(basis[:, k])) for k in range(n_latents)]
    codes = sorted(range(1 << number), key=lambda code: (code.bit_count(), code))
    contains = containment_matrix(n_latents, pairs)
    order = np.argsort(-contains.sum(axis=1), kind="stable").tolist()
    for smallest in range(number // 2 + 1):
        chosen: dict[int, int] = {}
        for k in order:
            outer = [code for a, code in chosen.items() if contains[a, k]]
            inner = [code for b, code in chosen.items() if contains[k, b]]
            involved = contains[k].any() or contains[:, k].any()
            allowed = (
                code
                for code in (codes if involved else required[k : k + 1])
                if code & required[k] == required[k]
                and (not involved or code.bit_count() >= smallest)
                and all(code & ~other for other in outer)
                and all(other & ~code for other in inner)
            )
            chosen[k] = next(allowed, -1)
            if chosen[k] < 0:
                break
        else:
            bits = np.array([chosen[k] for k in range(n_latents)])
            return np.asarray((bits >> np.arange(number)[:, None]) & 1, dtype=bool)
    return None


def _search_codes(
    basis: Bools, pairs: Ints, number: int, blocks: tuple[Bools, Ints, BlockSearch] | None
) -> tuple[Bools | None, bool]:
    """Return loadings of ``number`` new items that remove the violations, and if that is certain.

    The first have the loadings of ``basis``; with ``blocks`` all satisfy the block condition too.
    """
    program = IntegerProgram()
    loads = program.variables((number, basis.shape[1]), integer=True)
    for i, k in np.argwhere(basis):
        program.add(loads[i, k], low=1.0)
    for outer, inner in pairs:
        separates = program.variables((number,))
        for i in range(number):
            program.add(loads[i, inner], separates[i], low=0.0)
            program.add([loads[i, outer], separates[i]], high=1.0)
        program.add(separates, low=1.0)
    if blocks is not None:
        _require_blocks(program, loads, *blocks)
    if number * len(pairs) <= _SMALL_PROGRAM:
        program.minimise_sum(loads.ravel())
    solution, decided = program.solve(_MAX_NODES)
    return (None if solution is None else solution[loads] > 0.5), decided


def _require_blocks(
    program: IntegerProgram, loads: Ints, q: Bools, per_block: Ints, search: BlockSearch
) -> None:
    """Add the block condition for the present items and the new ones together."""
    latents = np.flatnonzero(search.part)
    rows = distinct_rows(q[q[:, latents].any(axis=1)][:, latents])
    reserved = program.variables((len(rows.members),), integer=True, upper=rows.counts)
    new_reserved = program.variables((len(loads),), integer=True)
    flows = program.variables(rows.loads.shape, upper=rows.counts[:, None] * rows.loads)
    new_flows = program.variables((len(loads), len(latents)))
    new_covers = program.variables((len(loads), len(latents)))
    for pattern, count in enumerate(rows.counts):
        program.add([reserved[pattern], *flows[pattern]], high=float(count))
    for i in range(len(loads)):
        program.add([new_reserved[i], *new_flows[i]], high=1.0)
        for place, k in enumerate(latents):
            for part in (new_flows, new_covers):
                program.add(loads[i, k], part[i, place], low=0.0)
            program.add(new_reserved[i], new_covers[i, place], low=0.0)
    for place, k in enumerate(latents):
        program.add([*flows[:, place], *new_flows[:, place]], low=float(2 * per_block[k]))
        program.add([*reserved[rows.loads[:, place]], *new_covers[:, place]], low=1.0)
