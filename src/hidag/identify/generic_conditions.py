"""Findings about the conditions of the generic theorems: blocks and a rest, no containment."""

from __future__ import annotations

import numpy as np

from hidag.identify.additions import block_additions
from hidag.identify.blocks import BlockSearch, find_blocks, items_per_block
from hidag.identify.containment import contained_pairs
from hidag.identify.findings import (
    LISTED,
    Finding,
    counted,
    items_phrase,
    latents_phrase,
    listed,
    new_items,
)
from hidag.identify.lack import Lack, find_lacks
from hidag.identify.question import Question


def generic_theorem(asked: Question) -> str:
    """Return the name of the theorem on generic identifiability that is about such a design."""
    if not asked.binary:
        return "polytomous theorem"
    return "Corollary 2" if asked.main_effects else "Theorem 1"


def every_latent_has_an_item(asked: Question) -> Finding:
    """Return whether no column of Q is empty, without which nothing can be identified."""
    empty = asked.latents(np.flatnonzero(~asked.q.any(axis=0)))
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


def blocks_and_rest(asked: Question) -> tuple[Finding, BlockSearch]:
    """Return whether two blocks and a covering rest can be had (generic, condition (i))."""
    per_block = items_per_block(asked.levels)
    search = find_blocks(asked.q, per_block)
    source = f"{generic_theorem(asked)} (i)"
    rule = "two blocks of items, " + (
        "one item per latent in each"
        if asked.binary
        else f"{_per_latent(asked, per_block.tolist())} in each"
    )
    if search.blocks is not None:
        found = search.blocks
        witness = {
            name: {
                "first": asked.items(found.first[k]),
                "second": asked.items(found.second[k]),
                "outside": asked.item_names[found.third[k]],
            }
            for k, name in enumerate(asked.latent_names)
        }
        sentence = f"there are {rule}, and the items left over load on every latent"
        return Finding("blocks", source, "holds", sentence, witness), search
    if not search.exact:
        sentence = f"the search for {rule} was given up at its limit without a decision"
        return Finding("blocks", source, "undecided", sentence), search
    lacks = find_lacks(asked.q, per_block, search)
    sentence = (
        f"there must be {rule}, and an item outside them for every latent, but "
        + "; ".join(_in_words(asked, lack) for lack in lacks[:LISTED])
        + ("" if len(lacks) <= LISTED else f"; and so in {len(lacks) - LISTED} more groups")
    )
    proof = {
        "violating": [
            {
                "latents": asked.latents(lack.latents),
                "items": asked.items(lack.items),
                "needed": lack.needed,
                "kind": lack.kind,
            }
            for lack in lacks
        ]
    }
    new = [asked.latents(np.flatnonzero(row)) for row in block_additions(search)]
    return Finding("blocks", source, "fails", sentence, proof, new_items(new)), search


def _per_latent(asked: Question, per_block: list[int]) -> str:
    by_number: dict[int, list[str]] = {}
    for name, number in zip(asked.latent_names, per_block, strict=True):
        by_number.setdefault(number, []).append(name)
    if len(by_number) == 1:
        return f"{counted(per_block[0], 'item')} per latent"
    return listed([f"{counted(n, 'item')} for {listed(by_number[n])}" for n in sorted(by_number)])


def _in_words(asked: Question, lack: Lack) -> str:
    latents, items = asked.latents(lack.latents), asked.items(lack.items)
    who = latents_phrase(latents)
    have = "have" if len(latents) > 1 else "has"
    only = f"only {items_phrase(items)}" if items else "no item"
    share = "share" if len(latents) > 1 and items else have
    any_of = "any of them" if len(latents) > 2 else "either" if len(latents) == 2 else "it"
    if lack.kind == "joint":
        bare = asked.latents(lack.bare)
        return (
            f"the {counted(len(items), 'item')} of {who} cannot serve the blocks and the rest at "
            f"once: whatever items are chosen, some latent has none left outside (at best "
            f"{listed(bare)})"
        )
    more = f"{counted(lack.n_more, 'more item')} that load{'s' if lack.n_more == 1 else ''} on"
    are = "is" if lack.n_more == 1 else "are"
    tail = ", and the blocks need all of them" if lack.kind == "rest" and items else ""
    return f"{who} {share} {only}{tail}: {more} {any_of} {are} needed"


def no_contained_column(asked: Question) -> Finding:
    """Return whether no latent's items contain another's (generic theorems, condition (ii))."""
    needed = not (asked.binary and asked.main_effects)
    theorem = generic_theorem(asked) if needed else "Theorem 1"
    source = f"{theorem} (ii), the subset condition"
    pairs = contained_pairs(asked.q)
    if not len(pairs):
        return Finding(
            "subset",
            source,
            "holds",
            "no latent has all the items of another one",
            required=needed,
        )
    named = [(asked.latent_names[p], asked.latent_names[k]) for p, k in pairs]
    outer, inner = pairs[0]
    has_items = asked.q.sum(axis=0) > 0
    words = [
        f"latent {asked.latent_names[p]} has every item of {asked.latent_names[k]}"
        for p, k in pairs
        if has_items[k]
    ] or ["a latent has no item at all, so that every other one has all its items"]
    # The exchange may give mass to states that were said not to occur.
    proven = needed and asked.ruled_out is None and _can_be_exchanged(asked, pairs)
    if not needed:
        more = "with main effects and two levels that does no harm (Corollary 2)"
    elif proven:
        more = (
            f"the levels of {named[0][1]} can then be exchanged wherever {named[0][0]} is 0, which "
            "gives other parameters with the same distribution of the data"
        )
    else:
        where = "for this order of effects" if asked.ruled_out is None else "with prerequisites"
        more = f"the theorem does not apply then; whether anything is lost is not known {where}"
    return Finding(
        "subset",
        source,
        "fails",
        f"{listed(words, limit=4)}; {more}",
        {"contained": [{"outer": p, "inner": k} for p, k in named]},
        "" if not needed else _undo(asked, int(outer), int(inner), len(pairs)),
        required=needed,
        provably_bad=proven,
    )


def _undo(asked: Question, outer: int, inner: int, n_pairs: int) -> str:
    more = "" if n_pairs == 1 else ", and so for the other pairs"
    return (
        f"add an item that loads on {asked.latent_names[inner]} but not on "
        f"{asked.latent_names[outer]}{more}"
    )


def _can_be_exchanged(asked: Question, pairs: np.ndarray) -> bool:
    """Return whether exchanging levels where another latent is 0 stays within the model.

    The exchange turns an effect of the inner latent into an interaction with the outer one. All
    items of the inner latent must therefore have room for every interaction of their latents.
    """
    widths = asked.q.sum(axis=1)
    return any(bool((widths[asked.q[:, k]] <= asked.order).all()) for _, k in pairs)
