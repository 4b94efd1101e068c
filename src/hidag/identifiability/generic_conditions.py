"""Conditions of the theorems on generic identifiability, and items to add to satisfy them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hidag.formatting import MAX_LISTED, join_names, plural, with_noun
from hidag.identifiability.blocks import (
    BlockSearch,
    Shortage,
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


def sufficient_additions(q: Bools, search: BlockSearch, *, subset: bool) -> Additions:
    """Return few items to add, given the result of `find_blocks`, and whether no fewer suffice.

    First those that the block condition needs, with more latents where this helps, then others.
    """
    basis = block_additions(search)
    pairs = subset_violations(q) if subset else np.zeros((0, 2), dtype=np.int64)
    fewest = max(len(basis), min_separating_items(q.shape[1], pairs))
    rows: list[Bools] = []
    while len(rows) < len(basis) or len(pairs):
        start = basis[len(rows)] if len(rows) < len(basis) else np.zeros(q.shape[1], dtype=bool)
        rows.append(_separating_row(start, pairs))
        pairs = pairs[~_separates(rows[-1], pairs)]
    loads = np.array(rows, dtype=bool).reshape(-1, q.shape[1])
    return Additions(loads, search.exact and len(loads) == fewest)


def _separates(rows: Bools, pairs: Ints) -> Bools:
    """Return which pairs items with rows (..., K) separate, having the inner latent alone."""
    outer, inner = pairs.T
    return rows[..., inner] & ~rows[..., outer]


def _separating_row(row: Bools, pairs: Ints) -> Bools:
    """Return a row with more latents, one at a time as long as it separates more pairs."""
    n_separated = int(_separates(row, pairs).sum())
    while True:
        counts = _separates(row | np.eye(len(row), dtype=bool), pairs).sum(axis=1)
        best = int(counts.argmax())
        if counts[best] <= n_separated:
            return row
        row, n_separated = row | (np.arange(len(row)) == best), int(counts[best])


def block_additions(search: BlockSearch) -> Bools:
    """Return the fewest new items for the block condition alone, shape (n, K)."""
    alone = np.eye(len(search.missing), dtype=bool).repeat(search.missing, axis=0)
    return np.vstack([alone, search.uncovered]) if search.uncovered.any() else alone
