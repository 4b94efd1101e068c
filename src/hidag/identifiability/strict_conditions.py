"""Findings about the conditions of the strict theorems: two identity blocks, states that differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hidag.identifiability.design import MeasurementDesign
from hidag.identifiability.findings import Finding, counted, join_names
from hidag.identifiability.flow import Bools, Ints, Programme

# --- Conditions of the strict theorems: two identity blocks, and states that the rest tells

#: Nodes of the search for a pair of states that need not differ, and the largest sum of squared
#: item widths that it is begun with.
MAX_NODES = 20_000
_LARGEST_SEARCH = 20_000
#: Sets of so many latents are tried out one by one.
_FEW_LATENTS = 10


def pure_items(q: Bools) -> tuple[tuple[int, ...], ...]:
    """Return, for each latent, the items that load on it and on nothing else."""
    alone = q.sum(axis=1) == 1
    return tuple(tuple(np.flatnonzero(alone & q[:, k]).tolist()) for k in range(q.shape[1]))


def outside_identity_blocks(q: Bools) -> Bools:
    """Return which items are left after two pure items per latent (or those there are), (J,).

    Which of several pure items are taken makes no difference: each of them tells exactly the
    states that differ in its latent.
    """
    rest = np.ones(len(q), dtype=bool)
    for items in pure_items(q):
        rest[list(items[:2])] = False
    return rest


def undecided_latents(rest: Bools) -> Ints:
    """Return the latents whose differences main effects might cancel, empty if they never can.

    States differ in a set D of latents. An item with exactly one latent in D tells them apart, as
    its loading is not zero; an item with two or more need not, as loadings may cancel. So a
    difference may stay unseen if and only if no item has exactly one latent in D. Unions of such
    sets are such sets, so peeling off latents that are seen finds the largest.

    Parameters
    ----------
    rest : ndarray of bool, shape (n, K)
        Rows of Q outside the identity blocks.
    """
    hidden = np.ones(rest.shape[1], dtype=bool)
    while True:
        single = rest[:, hidden].sum(axis=1) == 1
        seen = hidden & rest[single].any(axis=0)
        if not seen.any():
            return np.flatnonzero(hidden)
        hidden &= ~seen


def fewest_deciding_items(rest: Bools) -> tuple[Ints, bool]:
    """Return latents that need an item of their own before nothing can stay hidden, main effects.

    A new item helps by the one latent that it shows, so items with a single latent are as good as
    any.

    Returns
    -------
    latents : ndarray of int
    fewest : bool
        Whether no smaller number would do; searched only for a few hidden latents.
    """
    hidden = undecided_latents(rest)
    own = np.eye(rest.shape[1], dtype=bool)
    chosen = hidden
    for latent in hidden:
        fewer = chosen[chosen != latent]
        if not len(undecided_latents(np.vstack([rest, own[fewer]]))):
            chosen = fewer
    if len(hidden) > _FEW_LATENTS:
        return chosen, len(chosen) <= 1
    for size in range(1, len(chosen)):
        for latents in combinations(hidden.tolist(), size):
            if not len(undecided_latents(np.vstack([rest, own[list(latents)]]))):
                return np.array(latents), True
    return chosen, True


def undecided_states(rest: Bools) -> tuple[Ints, Ints] | bool | None:
    """Return two binary states that items with interactions need not tell apart.

    Monotone items tell two states apart for certain if all their latents are 1 in exactly one of
    them, or if all their latents are 0 in one and exactly one is 1 in the other (a main effect,
    which is not zero). In all other cases there are admissible predictors that are equal.

    Returns
    -------
    pair of ndarray (shape (K,)), False or None
        None if all states differ for certain, False if a limit ended the search.
    """
    rows = np.unique(rest[rest.any(axis=1)], axis=0)
    known = rows[rows.sum(axis=1) == 1].any(axis=0)
    if known.all():
        return None
    # What has an item of its own is told apart, and items without any other latent add nothing.
    rows = rows[rows[:, ~known].any(axis=1)]
    guessed = _guess_states(rows, np.flatnonzero(~known))
    if guessed is not None:
        return guessed
    if (rows.sum(axis=1).astype(np.int64) ** 2).sum() > _LARGEST_SEARCH:
        return False
    programme = Programme()
    both, left, right = programme.variables((3, rest.shape[1]), whole=True)
    for k in range(rest.shape[1]):
        programme.at_most([(v, 1.0) for v in (both[k], left[k], right[k])], 1.0)
        if known[k]:
            programme.at_most([(left[k], 1.0), (right[k], 1.0)], 0.0)
    programme.at_least([(v, 1.0) for v in (*left, *right)], 1.0)
    for row in rows:
        own = np.flatnonzero(row).tolist()
        for k in own:
            for side in (left, right):
                # If latent k is 1 on this side only, some latent of the item must be 0 there.
                terms = [(v, -1.0) for m in own for v in (both[m], side[m])]
                programme.at_least([*terms, (side[k], -1.0)], -float(len(own)))
            # If latent k differs, another one differs too, or one is 1 in both states.
            others = [(v, 1.0) for m in own if m != k for v in (left[m], right[m])]
            common = [(both[m], 1.0) for m in own]
            programme.at_least([*others, *common, (left[k], -1.0), (right[k], -1.0)], 0.0)
    for variable in (*left, *right):
        programme.cost(variable, 1.0)
    solution, certain = programme.solve(MAX_NODES)
    if solution is None:
        return None if certain else False
    ones = solution > 0.5
    return (
        (ones[both] | ones[left]).astype(np.int64),
        (ones[both] | ones[right]).astype(np.int64),
    )


def told_apart(rows: Bools, one: Bools, other: Bools) -> bool:
    """Return whether some monotone item tells two binary states apart, whatever its coefficients.

    Parameters
    ----------
    rows : ndarray of bool, shape (n, K)
    one, other : ndarray of bool, shape (K,)
    """
    full = ~(rows & ~one).any(axis=1) != ~(rows & ~other).any(axis=1)
    single = ~(rows & (one & other)).any(axis=1) & ((rows & (one ^ other)).sum(axis=1) == 1)
    return bool((full | single).any())


def _guess_states(rows: Bools, open_latents: Ints) -> tuple[Ints, Ints] | None:
    """Return two states that need not differ if a few likely pairs hold one: a search is dearer.

    Pairs differ in one latent, or in two in opposite directions, while of the others none, or a
    random half, is present. Wide items tell such pairs apart only by chance.
    """
    rng = np.random.default_rng(0)
    n_latents = rows.shape[1]
    pairs = [(k, None) for k in open_latents]
    pairs += list(zip(open_latents, np.roll(open_latents, 1), strict=True))[: len(open_latents) - 1]
    for share in (0.0, 0.5, 0.5):
        for k, against in pairs:
            one = np.asarray(rng.random(n_latents) < share, dtype=bool)
            other = one.copy()
            one[k], other[k] = True, False
            if against is not None:
                one[against], other[against] = False, True
            if not told_apart(rows, one, other):
                return one.astype(np.int64), other.astype(np.int64)
    return None


def same_predictors(eta: NDArray[np.float64], relative: float = 1e-9) -> tuple[int, int] | None:
    """Return two states in which all predictors agree, None if there are no such states.

    Parameters
    ----------
    eta : ndarray, shape (n, S)
        Predictors of the items outside the identity blocks in every joint state.
    relative : float
        Differences below this share of an item's range count as none.
    """
    span = np.ptp(eta, axis=1)
    coded = np.round(
        (eta - eta.min(axis=1, keepdims=True))[span > 0] / (relative * span[span > 0, None])
    )
    _, first, inverse = np.unique(coded.T, axis=0, return_index=True, return_inverse=True)
    if len(first) == eta.shape[1]:
        return None
    again = first[inverse.ravel()]
    second = int(np.flatnonzero(again != np.arange(eta.shape[1]))[0])
    return int(again[second]), second


def latents_not_shown(
    tables: Sequence[NDArray[np.float64]], q: Bools, relative: float = 1e-9
) -> Ints:
    """Return the latents in which states might differ unseen, judged without listing states.

    An item whose predictor has no ties shows every difference in its latents. Where some of them
    are shown already, states that are left to compare agree there, so only ties among its other
    latents matter. If no latent is returned, any two states differ in some item; the converse need
    not be true, as items with ties may still show a difference together.

    Parameters
    ----------
    tables : sequence of n arrays
        Predictors of the items outside the identity blocks, an axis for each of an item's latents.
    q : ndarray of bool, shape (n, K)
    relative : float
        Differences below this share of an item's range count as none.
    """
    shown = np.zeros(q.shape[1], dtype=bool)
    again = True
    while again:
        again = False
        for table, row in zip(tables, q, strict=True):
            known = shown[row]
            if known.all():
                continue
            axes = [*np.flatnonzero(known), *np.flatnonzero(~known)]
            size = int(np.prod(np.array(table.shape)[~known]))
            values = np.sort(table.transpose(axes).reshape(-1, size), axis=1)
            if np.diff(values, axis=1).min() > relative * np.ptp(table):
                shown |= row
                again = True
    return np.flatnonzero(~shown)


# ---


def strict_theorem(design: MeasurementDesign) -> str:
    """Return the name of the theorem on strict identifiability that is about such a design."""
    return "Corollary 1" if design.main_effects else "strict theorem"


def two_identity_blocks(design: MeasurementDesign) -> Finding:
    """Return whether every latent has two items of its own (strict theorems, condition (i))."""
    source = f"{strict_theorem(design)} (i)"
    own = pure_items(design.q)
    short = [k for k, items in enumerate(own) if len(items) < 2]
    witness = {design.latent_names[k]: design.items(items[:2]) for k, items in enumerate(own)}
    if not short:
        return Finding(
            "identity-blocks",
            source,
            "holds",
            "every latent has at least two items that load on it alone",
            witness,
        )
    names = design.latents(short)
    bare = [k for k in short if not own[k]]
    have = [
        f"{design.latent_names[k]} has only {design.item_names[own[k][0]]}" for k in short if own[k]
    ]
    if bare:
        have.append(
            f"{join_names(design.latents(bare))} {'has' if len(bare) == 1 else 'have'} none"
        )
    missing = sum(2 - len(own[k]) for k in short)
    return Finding(
        "identity-blocks",
        source,
        "fails",
        f"every latent needs two items that load on it and on nothing else, but {join_names(have)}",
        {"latents": names, **{name: witness[name] for name in names}},
        f"add {counted(missing, 'item')} that load{'s' if missing == 1 else ''} on one latent "
        f"alone, so that each of these has two: {join_names(names)}",
    )


def rest_tells_states_apart(design: MeasurementDesign) -> Finding:
    """Return whether items outside the identity blocks tell all states apart (condition (ii))."""
    source = f"{strict_theorem(design)} (ii)"
    rest = design.q[outside_identity_blocks(design.q)]
    unseen = np.flatnonzero(~rest.any(axis=0))
    if len(unseen):
        names = design.latents(unseen)
        return Finding(
            "distinct-states",
            source,
            "fails",
            f"besides two items of its own per latent, no item loads on {join_names(names)}: "
            f"outside "
            "the two blocks, states that differ there look alike",
            {"latents": names},
            f"add an item that loads on {join_names(names)}",
        )
    if design.main_effects:
        return _by_main_effects(design, rest)
    return _by_conjunctions(design, rest) if design.conjunctive else _by_all_effects(design, rest)


def _by_main_effects(design: MeasurementDesign, rest: np.ndarray) -> Finding:
    source = f"{strict_theorem(design)} (ii)"
    hidden = undecided_latents(rest)
    if not len(hidden):
        return _surely_apart(source)
    names = design.latents(hidden)
    own, fewest = fewest_deciding_items(rest)
    return Finding(
        "distinct-states",
        source,
        "undecided",
        f"depends on the coefficients: outside the two blocks every item loads on none or on "
        f"several of {join_names(names)}, so effects could cancel exactly; for almost all "
        f"coefficients "
        "they do not",
        {"latents": names},
        "have fitted coefficients checked; or, to be certain whatever they are, add "
        f"{counted(len(own), 'item')} with one latent only, on {join_names(design.latents(own))}"
        + (" (no smaller number will do)" if fewest else ""),
    )


def _by_all_effects(design: MeasurementDesign, rest: np.ndarray) -> Finding:
    source = f"{strict_theorem(design)} (ii)"
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
        f"loads on {design.latent_names[int(np.flatnonzero(pair[0] != pair[1])[0])]} alone (more "
        "may be needed)",
    )


def effects_of_their_own(design: MeasurementDesign) -> Finding | None:
    """Return whether latents show by themselves where items need all of theirs (DINA, DINO).

    The theorems ask for main effects that are not zero; such items have none.
    """
    if not design.conjunctive or design.main_effects:
        return None
    source = "necessary for DINA and DINO"
    bare = [k for k, items in enumerate(pure_items(design.q)) if not items]
    if not bare:
        return Finding(
            "own-items",
            source,
            "undecided",
            "every latent has an item that loads on it alone; the paper's theorems are about items "
            "in which each latent has an effect of its own, and DINA and DINO items are none",
        )
    certain = [k for k in bare if _by_itself(design, k)]
    if not certain:
        return Finding(
            "own-items",
            source,
            "undecided",
            f"no item loads on {join_names(design.latents(bare), last='or')} alone, and whether "
            f"that "
            "loses anything hangs on the states that prerequisites leave; the paper's theorems are "
            "not about DINA and DINO items",
        )
    names = design.latents(certain)
    one = len(certain) == 1
    return Finding(
        "own-items",
        source,
        "fails",
        f"no item loads on {join_names(names, last='or')} alone, so DINA and DINO items answer "
        f"alike "
        f"whether {'it' if one else 'one of these'} is the only latent present (absent) or none "
        "is, and other laws give the same distribution of the data",
        {"latents": names},
        f"add an item that loads on {join_names(names)} alone"
        if one
        else f"add an item for each of {join_names(names)} that loads on it alone",
        provably_bad=True,
    )


def _by_itself(design: MeasurementDesign, latent: int) -> bool:
    """Return whether a latent may be the only one present, and the only one absent."""
    if design.ruled_out is None:
        return True
    top = np.array(design.levels) - 1
    alone = np.where(np.arange(design.n_latents) == latent, top, 0)
    both = np.ravel_multi_index(tuple(np.stack([alone, top - alone], axis=1)), design.levels)
    return not design.ruled_out[both].any()


def _by_conjunctions(design: MeasurementDesign, rest: np.ndarray) -> Finding:
    source = f"{strict_theorem(design)} (ii)"
    bare = [k for k, items in enumerate(pure_items(rest)) if not items]
    if not bare:
        return _surely_apart(source)
    names = design.latents(bare)
    return Finding(
        "distinct-states",
        source,
        "fails",
        f"outside the two blocks no item loads on {join_names(names, last='or')} alone, and "
        f"DINA and "
        "DINO items with several latents do not tell whether it is the only one present (absent)",
        {"latents": names},
        f"add an item that loads on one latent alone for {join_names(names)}",
    )


def _surely_apart(source: str) -> Finding:
    return Finding(
        "distinct-states",
        source,
        "holds",
        "any two states differ in some item outside the two blocks, whatever the coefficients",
    )
