"""Findings about the conditions of the strict theorems: two identity blocks, states that differ."""

from __future__ import annotations

import numpy as np

from hidag.identify.findings import Finding, counted, listed
from hidag.identify.question import Question
from hidag.identify.separation import (
    fewest_deciding_items,
    outside_identity_blocks,
    pure_items,
    undecided_latents,
    undecided_states,
)


def strict_theorem(asked: Question) -> str:
    """Return the name of the theorem on strict identifiability that is about such a design."""
    return "Corollary 1" if asked.main_effects else "strict theorem"


def two_identity_blocks(asked: Question) -> Finding:
    """Return whether every latent has two items of its own (strict theorems, condition (i))."""
    source = f"{strict_theorem(asked)} (i)"
    own = pure_items(asked.q)
    short = [k for k, items in enumerate(own) if len(items) < 2]
    witness = {asked.latent_names[k]: asked.items(items[:2]) for k, items in enumerate(own)}
    if not short:
        return Finding(
            "identity-blocks",
            source,
            "holds",
            "every latent has at least two items that load on it alone",
            witness,
        )
    names = asked.latents(short)
    bare = [k for k in short if not own[k]]
    have = [
        f"{asked.latent_names[k]} has only {asked.item_names[own[k][0]]}" for k in short if own[k]
    ]
    if bare:
        have.append(f"{listed(asked.latents(bare))} {'has' if len(bare) == 1 else 'have'} none")
    missing = sum(2 - len(own[k]) for k in short)
    return Finding(
        "identity-blocks",
        source,
        "fails",
        f"every latent needs two items that load on it and on nothing else, but {listed(have)}",
        {"latents": names, **{name: witness[name] for name in names}},
        f"add {counted(missing, 'item')} that load{'s' if missing == 1 else ''} on one latent "
        f"alone, so that each of these has two: {listed(names)}",
    )


def rest_tells_states_apart(asked: Question) -> Finding:
    """Return whether items outside the identity blocks tell all states apart (condition (ii))."""
    source = f"{strict_theorem(asked)} (ii)"
    rest = asked.q[outside_identity_blocks(asked.q)]
    unseen = np.flatnonzero(~rest.any(axis=0))
    if len(unseen):
        names = asked.latents(unseen)
        return Finding(
            "distinct-states",
            source,
            "fails",
            f"besides two items of its own per latent, no item loads on {listed(names)}: outside "
            "the two blocks, states that differ there look alike",
            {"latents": names},
            f"add an item that loads on {listed(names)}",
        )
    if asked.main_effects:
        return _by_main_effects(asked, rest)
    return _by_conjunctions(asked, rest) if asked.conjunctive else _by_all_effects(asked, rest)


def _by_main_effects(asked: Question, rest: np.ndarray) -> Finding:
    source = f"{strict_theorem(asked)} (ii)"
    hidden = undecided_latents(rest)
    if not len(hidden):
        return _surely_apart(source)
    names = asked.latents(hidden)
    own, fewest = fewest_deciding_items(rest)
    return Finding(
        "distinct-states",
        source,
        "undecided",
        f"depends on the coefficients: outside the two blocks every item loads on none or on "
        f"several of {listed(names)}, so effects could cancel exactly; for almost all coefficients "
        "they do not",
        {"latents": names},
        "have fitted coefficients checked; or, to be certain whatever they are, add "
        f"{counted(len(own), 'item')} with one latent only, on {listed(asked.latents(own))}"
        + (" (no smaller number will do)" if fewest else ""),
    )


def _by_all_effects(asked: Question, rest: np.ndarray) -> Finding:
    source = f"{strict_theorem(asked)} (ii)"
    pair = undecided_states(rest)
    if pair is None:
        return _surely_apart(source)
    if isinstance(pair, bool):
        return Finding(
            "distinct-states",
            source,
            "undecided",
            "the search for two states that look alike was given up at its limit",
        )
    one, other = ("".join(map(str, state)) for state in pair)
    return Finding(
        "distinct-states",
        source,
        "undecided",
        f"depends on the coefficients: nothing in Q makes an item outside the two blocks differ "
        f"between the states {one} and {other} (in the order of the latents); for almost all "
        "coefficients one does",
        {"states": [one, other]},
        "have fitted coefficients checked; or, to be certain whatever they are, add an item that "
        f"loads on {asked.latent_names[int(np.flatnonzero(pair[0] != pair[1])[0])]} alone (more "
        "may be needed)",
    )


def effects_of_their_own(asked: Question) -> Finding | None:
    """Return whether latents show by themselves where items need all of theirs (DINA, DINO).

    The theorems ask for main effects that are not zero; such items have none.
    """
    if not asked.conjunctive or asked.main_effects:
        return None
    source = "necessary for DINA and DINO"
    bare = [k for k, items in enumerate(pure_items(asked.q)) if not items]
    if not bare:
        return Finding(
            "own-items",
            source,
            "undecided",
            "every latent has an item that loads on it alone; the paper's theorems are about items "
            "in which each latent has an effect of its own, and DINA and DINO items are none",
        )
    certain = [k for k in bare if _by_itself(asked, k)]
    if not certain:
        return Finding(
            "own-items",
            source,
            "undecided",
            f"no item loads on {listed(asked.latents(bare), last='or')} alone, and whether that "
            "loses anything hangs on the states that prerequisites leave; the paper's theorems are "
            "not about DINA and DINO items",
        )
    names = asked.latents(certain)
    one = len(certain) == 1
    return Finding(
        "own-items",
        source,
        "fails",
        f"no item loads on {listed(names, last='or')} alone, so DINA and DINO items answer alike "
        f"whether {'it' if one else 'one of these'} is the only latent present (absent) or none "
        "is, and other laws give the same distribution of the data",
        {"latents": names},
        f"add an item that loads on {listed(names)} alone"
        if one
        else f"add an item for each of {listed(names)} that loads on it alone",
        provably_bad=True,
    )


def _by_itself(asked: Question, latent: int) -> bool:
    """Return whether a latent may be the only one present, and the only one absent."""
    if asked.ruled_out is None:
        return True
    top = np.array(asked.levels) - 1
    alone = np.where(np.arange(asked.n_latents) == latent, top, 0)
    both = np.ravel_multi_index(tuple(np.stack([alone, top - alone], axis=1)), asked.levels)
    return not asked.ruled_out[both].any()


def _by_conjunctions(asked: Question, rest: np.ndarray) -> Finding:
    source = f"{strict_theorem(asked)} (ii)"
    bare = [k for k, items in enumerate(pure_items(rest)) if not items]
    if not bare:
        return _surely_apart(source)
    names = asked.latents(bare)
    return Finding(
        "distinct-states",
        source,
        "fails",
        f"outside the two blocks no item loads on {listed(names, last='or')} alone, and DINA and "
        "DINO items with several latents do not tell whether it is the only one present (absent)",
        {"latents": names},
        f"add an item that loads on one latent alone for {listed(names)}",
    )


def _surely_apart(source: str) -> Finding:
    return Finding(
        "distinct-states",
        source,
        "holds",
        "any two states differ in some item outside the two blocks, whatever the coefficients",
    )
