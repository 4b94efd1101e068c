"""Conditions of the theorems on strict identifiability: identity blocks and separated states."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hidag.formatting import join_names, plural
from hidag.identifiability.blocks import IntegerProgram
from hidag.identifiability.design import (
    Bools,
    Condition,
    Finding,
    FittedModel,
    Ints,
    MeasurementDesign,
)

#: Limits of the search for two states that need not be separated: nodes, and the sum of squared
#: numbers of latents per item.
MAX_NODES = 20_000
_LARGEST_PROGRAM = 20_000
#: All subsets of at most this many latents are tried.
_MAX_SUBSET_LATENTS = 10
#: Differences below this share of the range of an item's predictor count as zero.
RELATIVE_TIE = 1e-9


def strict_theorem(design: MeasurementDesign) -> str:
    """Return the name of the theorem on strict identifiability that covers the design."""
    return "Corollary S.2" if design.main_effects else "Theorem S.1"


def identity_blocks(design: MeasurementDesign) -> Finding:
    """Check condition (i): Q contains two identity matrices."""
    condition = Condition("identity-blocks", f"{strict_theorem(design)} (i)")
    pure = pure_items(design.q)
    witness = {design.latent_names[k]: design.items(items[:2]) for k, items in enumerate(pure)}
    short = [k for k, items in enumerate(pure) if len(items) < 2]
    if not short:
        return condition.holds("every latent has at least two items that load on it alone", witness)
    names = design.latents(short)
    found = [f"{name} has only {witness[name][0]}" for name in names if witness[name]]
    without = [name for name in names if not witness[name]]
    if without:
        found.append(f"{join_names(without)} {'has' if len(without) == 1 else 'have'} none")
    missing = sum(2 - len(pure[k]) for k in short)
    return condition.fails(
        f"every latent needs two items that load on it alone, but {join_names(found)}",
        {"latents": names, **{name: witness[name] for name in names}},
        f"add {plural(missing, 'item')} with a single latent, so that each of these has two: "
        f"{join_names(names)}",
    )


def states_separated(design: MeasurementDesign, fitted: FittedModel | None = None) -> Finding:
    """Check condition (ii), that items outside the identity blocks separate all joint states."""
    condition = Condition("distinct-states", f"{strict_theorem(design)} (ii)")
    rest = design.q[outside_identity_blocks(design.q)]
    names = design.latents(np.flatnonzero(~rest.any(axis=0)))
    if names:
        return condition.fails(
            f"no item outside the two identity blocks loads on {join_names(names)}, so states that "
            "differ only there have equal predictors outside the blocks",
            {"latents": names},
            f"add an item that loads on {join_names(names)}",
        )
    check = _separated_by_all_effects
    if design.main_effects:
        check = _separated_by_main_effects
    elif design.effects.conjunctive:
        check = _separated_by_conjunctions
    found = check(design, rest, condition)
    if fitted is not None and (found is None or found.status == "undecided"):
        return _separated_by_fit(design, fitted, condition)
    return found or condition.holds(
        "any two states differ in an item outside the identity blocks, for all coefficients"
    )


def _separated_by_fit(
    design: MeasurementDesign, fitted: FittedModel, condition: Condition
) -> Finding:
    rest = outside_identity_blocks(design.q)
    if fitted.eta is None:
        tables = [fitted.tables[j] for j in np.flatnonzero(rest)]
        names = design.latents(unseparated_latents(tables, design.q[rest]))
        if names:
            return condition.undecided(
                "no single item outside the identity blocks separates all states that differ in "
                f"{join_names(names)}, and {fitted.law.space.n_states_text()} joint states are "
                "too many to compare in all items",
                {"latents": names},
                f"add an item that loads on one latent alone, for {join_names(names)}",
            )
        equal = None
    else:
        possible = design.possible()
        equal = find_equal_states(fitted.eta[np.ix_(rest, possible)])
    if equal is None:
        kind = "states" if design.ruled_out is None else "possible states"
        return condition.holds(
            f"with the fitted coefficients any two {kind} differ in an item outside the identity "
            "blocks"
        )
    names = design.state_names(possible[list(equal)])
    return condition.fails(
        f"with the fitted coefficients the states {names[0]} and {names[1]} (levels in the order "
        "of the latents) have equal predictors in all items outside the identity blocks",
        {"states": names},
        "add an item on a latent in which these states differ",
    )


def _separated_by_main_effects(
    design: MeasurementDesign, rest: Bools, condition: Condition
) -> Finding | None:
    hidden = design.latents(possibly_hidden_latents(rest))
    if not hidden:
        return None
    added, fewest = min_separating_latents(rest)
    return condition.undecided(
        "depends on the coefficients: every item outside the identity blocks loads on none or on "
        f"several of {join_names(hidden)}, so their effects could cancel exactly; for almost all "
        "coefficients they do not",
        {"latents": hidden},
        "check the fitted coefficients; or, for a guarantee with all coefficients, add "
        f"{plural(len(added), 'item')} with a single latent, on {join_names(design.latents(added))}"
        + (" (the smallest number)" if fewest else ""),
    )


def _separated_by_all_effects(
    design: MeasurementDesign, rest: Bools, condition: Condition
) -> Finding | None:
    pair = find_unseparated_states(rest)
    if pair is None:
        return None
    if isinstance(pair, bool):
        return condition.undecided("the search for two states that are not separated hit its limit")
    one, other = ("".join(map(str, state)) for state in pair)
    latent = design.latent_names[int(np.flatnonzero(pair[0] != pair[1])[0])]
    return condition.undecided(
        "depends on the coefficients: Q does not ensure that an item outside the identity blocks "
        f"differs between the states {one} and {other} (in the order of the latents); for almost "
        "all coefficients one does",
        {"states": [one, other]},
        "check the fitted coefficients; or, for a guarantee with all coefficients, add an item "
        f"that loads on {latent} alone (more may be needed)",
    )


def _separated_by_conjunctions(
    design: MeasurementDesign, rest: Bools, condition: Condition
) -> Finding | None:
    names = design.latents([k for k, items in enumerate(pure_items(rest)) if not items])
    if not names:
        return None
    return condition.fails(
        f"no item outside the identity blocks loads on {join_names(names, last='or')} alone, and "
        "DINA and DINO items with several latents do not show whether it is the only latent "
        "present (absent)",
        {"latents": names},
        f"add an item that loads on one latent alone for {join_names(names)}",
    )


def pure_items_condition(design: MeasurementDesign) -> Finding | None:
    """Check for pure items, which DINA and DINO need (they have no main effects); else None."""
    if not design.effects.conjunctive or design.main_effects:
        return None
    condition = Condition("own-items", "necessary for DINA and DINO")
    without = [k for k, items in enumerate(pure_items(design.q)) if not items]
    if not without:
        return condition.undecided(
            "every latent has an item that loads on it alone; the paper's theorems require nonzero "
            "main effects, which DINA and DINO items do not have"
        )
    names = design.latents([k for k in without if _can_be_alone(design, k)])
    if not names:
        phrase = join_names(design.latents(without), last="or")
        return condition.undecided(
            f"no item loads on {phrase} alone; whether the model is identified depends on the "
            "states that the hierarchy allows, and the paper's theorems do not cover such items"
        )
    return condition.fails(
        f"no item loads on {join_names(names, last='or')} alone, so DINA and DINO items have the "
        "same distribution whether that latent is the only one present (absent) or none is, and "
        "other latent distributions give the same distribution of the data",
        {"latents": names},
        f"add an item that loads on one latent alone for {join_names(names)}",
        provably_bad=True,
    )


def _can_be_alone(design: MeasurementDesign, latent: int) -> bool:
    """Return whether a latent may be the only one present, and the only one absent."""
    if design.ruled_out is None:
        return True
    top = np.array(design.levels) - 1
    alone = np.where(np.arange(len(top)) == latent, top, 0)
    both = np.ravel_multi_index(tuple(np.stack([alone, top - alone], axis=1)), design.levels)
    return not design.ruled_out[both].any()


def pure_items(q: Bools) -> tuple[tuple[int, ...], ...]:
    """Return, for each latent, the items that load on it alone."""
    alone = q.sum(axis=1) == 1
    return tuple(tuple(np.flatnonzero(alone & q[:, k]).tolist()) for k in range(q.shape[1]))


def outside_identity_blocks(q: Bools) -> Bools:
    """Return which items remain after any two pure items per latent are removed, (J,)."""
    rest = np.ones(len(q), dtype=bool)
    for items in pure_items(q):
        rest[list(items[:2])] = False
    return rest


def possibly_hidden_latents(rest: Bools) -> Ints:
    """Return the latents whose differences main effects might cancel, given Q outside the blocks.

    A difference in a set of latents may be hidden if and only if no item has exactly one of them.
    Unions of such sets are such sets, so removing latents that are separated finds the largest.
    """
    hidden = np.ones(rest.shape[1], dtype=bool)
    while True:
        single = rest[:, hidden].sum(axis=1) == 1
        separated = hidden & rest[single].any(axis=0)
        if not separated.any():
            return np.flatnonzero(hidden)
        hidden &= ~separated


def min_separating_latents(rest: Bools) -> tuple[Ints, bool]:
    """Return latents that need a pure item to hide no main effect, and if no fewer suffice."""
    hidden = possibly_hidden_latents(rest)
    pure = np.eye(rest.shape[1], dtype=bool)

    def suffices(latents: Ints) -> bool:
        return not len(possibly_hidden_latents(np.vstack([rest, pure[latents]])))

    chosen = hidden
    for latent in hidden:
        fewer = chosen[chosen != latent]
        chosen = fewer if suffices(fewer) else chosen
    if len(hidden) > _MAX_SUBSET_LATENTS:
        return chosen, len(chosen) <= 1
    subsets = (np.array(s) for n in range(1, len(chosen)) for s in combinations(hidden.tolist(), n))
    return next((subset for subset in subsets if suffices(subset)), chosen), True


def find_unseparated_states(rest: Bools) -> tuple[Ints, Ints] | bool | None:
    """Return two binary states that monotone items with interactions need not separate.

    None means that all states are separated, False that the search reached its limit.
    """
    rows = np.unique(rest[rest.any(axis=1)], axis=0)
    known = rows[rows.sum(axis=1) == 1].any(axis=0)
    if known.all():
        return None
    # Latents with a pure item are separated, and items of these alone add nothing.
    rows = rows[rows[:, ~known].any(axis=1)]
    guessed = _guess_states(rows, np.flatnonzero(~known))
    if guessed is not None:
        return guessed
    if (rows.sum(axis=1).astype(np.int64) ** 2).sum() > _LARGEST_PROGRAM:
        return False
    program = IntegerProgram()
    both, left, right = program.variables((3, rest.shape[1]), integer=True)
    for k in range(rest.shape[1]):
        program.add([both[k], left[k], right[k]], high=1.0)
        if known[k]:
            program.add([left[k], right[k]], high=0.0)
    program.add([*left, *right], low=1.0)
    for row in rows:
        own = np.flatnonzero(row).tolist()
        for k in own:
            for side in (left, right):
                # If latent k is 1 on this side only, some latent of the item must be 0 there.
                terms = [v for m in own for v in (both[m], side[m])]
                program.add([], [*terms, side[k]], low=-float(len(own)))
            # If latent k differs, another one differs too, or one is 1 in both states.
            others = [v for m in own if m != k for v in (left[m], right[m])]
            program.add([*others, *both[own]], [left[k], right[k]], low=0.0)
    program.minimise_sum([*left, *right])
    solution, certain = program.solve(MAX_NODES)
    if solution is None:
        return None if certain else False
    ones = (solution > 0.5).astype(np.int64)
    return ones[both] | ones[left], ones[both] | ones[right]


def are_separated(rows: Bools, one: Bools, other: Bools) -> bool:
    """Return whether an item with a row (n, K) separates two states (K,) for all coefficients.

    All its latents are 1 in exactly one of them, or all 0 in one and exactly one is 1 in the other.
    """
    full = ~(rows & ~one).any(axis=1) != ~(rows & ~other).any(axis=1)
    single = ~(rows & (one & other)).any(axis=1) & ((rows & (one ^ other)).sum(axis=1) == 1)
    return bool((full | single).any())


def _guess_states(rows: Bools, latents: Ints) -> tuple[Ints, Ints] | None:
    """Return two unseparated states that differ in one or two latents, a cheap guess; or None."""
    rng = np.random.default_rng(0)
    pairs = [(k, None) for k in latents]
    pairs += list(zip(latents, np.roll(latents, 1), strict=True))[: len(latents) - 1]
    for share in (0.0, 0.5, 0.5):
        for k, against in pairs:
            one = np.asarray(rng.random(rows.shape[1]) < share, dtype=bool)
            other = one.copy()
            one[k], other[k] = True, False
            if against is not None:
                one[against], other[against] = False, True
            if not are_separated(rows, one, other):
                return one.astype(np.int64), other.astype(np.int64)
    return None


def find_equal_states(eta: NDArray[np.float64]) -> tuple[int, int] | None:
    """Return two states in which all predictors, shape (n, S), are equal, or None."""
    span = np.ptp(eta, axis=1)
    shifted = (eta - eta.min(axis=1, keepdims=True))[span > 0]
    coded = np.round(shifted / (RELATIVE_TIE * span[span > 0, None]))
    _, first, inverse = np.unique(coded.T, axis=0, return_index=True, return_inverse=True)
    if len(first) == eta.shape[1]:
        return None
    again = first[inverse.ravel()]
    second = int(np.flatnonzero(again != np.arange(eta.shape[1]))[0])
    return int(again[second]), second


def unseparated_latents(tables: Sequence[NDArray[np.float64]], q: Bools) -> Ints:
    """Return the latents in which states might differ undetected, without listing states.

    Tables are predictors of items with rows ``q``. An item without ties separates its latents; once
    some are separated, only ties among the others matter. None returned: all are separated.
    """
    separated = np.zeros(q.shape[1], dtype=bool)
    changed = True
    while changed:
        changed = False
        for table, row in zip(tables, q, strict=True):
            known = separated[row]
            if known.all():
                continue
            axes = [*np.flatnonzero(known), *np.flatnonzero(~known)]
            size = int(np.prod(np.array(table.shape)[~known]))
            values = np.sort(table.transpose(axes).reshape(-1, size), axis=1)
            if np.diff(values, axis=1).min() > RELATIVE_TIE * np.ptp(table):
                separated |= row
                changed = True
    return np.flatnonzero(~separated)
