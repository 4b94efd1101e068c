"""Conditions that only a fit can decide: positive law, monotone items. Pure functions on arrays.

An item's predictor depends on its own latents only, so it is a table with an axis for each of them,
in their order: no joint states are listed, however many latents there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from hidag.identifiability.design import MeasurementDesign
from hidag.identifiability.findings import Finding, items_phrase
from hidag.identifiability.flow import Bools, Ints
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace

# --- The features that an item's coefficients multiply: thresholds of its latents, and

Array = NDArray[np.float64]


def item_designs(design: MeasurementDesign) -> tuple[list[Array], list[list[str]]]:
    """Return, for each item, its features in every joint state, shape (S, P_j), and their names.

    The features are one, 1{Z_k >= u} for each latent of the item and each threshold u = 1, ...,
    M_k - 1, and products of such indicators of different latents up to the order design for.
    """
    states = StateSpace(design.levels).states()
    found = [item_design(design, row, states) for row in design.q]
    return [features for features, _ in found], [words for _, words in found]


def item_design(
    design: MeasurementDesign, row: NDArray[np.bool_], states: NDArray[np.integer]
) -> tuple[Array, list[str]]:
    """Return the features of an item with a row of Q (K,) in states (n, K), (n, P), and names."""
    columns, words = [np.ones(len(states))], ["intercept"]
    for size in range(1, design.order + 1):
        for latents in combinations(np.flatnonzero(row).tolist(), size):
            for steps in product(*(range(1, design.levels[k]) for k in latents)):
                reached = states[:, latents] >= np.array(steps)
                columns.append(np.asarray(reached.all(axis=1), dtype=np.float64))
                words.append(
                    "*".join(_word(design, k, u) for k, u in zip(latents, steps, strict=True))
                )
    return np.column_stack(columns), words


def _word(design: MeasurementDesign, latent: int, step: int) -> str:
    name = design.latent_names[latent]
    return name if design.levels[latent] == 2 else f"{name}>={step}"


# ---

#: A state, or an entry of a conditional table, with less probability than this counts as absent:
#: no table shows such a state.
SMALLEST_PROBABILITY = 1e-12


def absent_states(probabilities: Array) -> Ints:
    """Return the joint states without probability (Assumption 1(a) asks that there are none)."""
    return np.flatnonzero(~(probabilities > SMALLEST_PROBABILITY))


def empty_entries(law: NetworkLaw) -> list[tuple[int, tuple[int, ...]]]:
    """Return entries of conditional tables without probability: the latent and the indices.

    All joint states occur if and only if there are none, as a product of positive entries is
    positive. The product itself says nothing: with many latents every state is rare.
    """
    return [
        (k, tuple(int(i) for i in where))
        for k, table in enumerate(law.tables)
        for where in np.argwhere(~(table > SMALLEST_PROBABILITY))
    ]


def own_tables(eta: Array, q: Bools, levels: tuple[int, ...]) -> tuple[Array, ...]:
    """Return each item's predictor over its own latents, others at their lowest level.

    Parameters
    ----------
    eta : ndarray, shape (J, S)
        Over joint states, numbered as in `hidag.latent.StateSpace`.
    q : ndarray of bool, shape (J, K)
    levels : tuple of int, length K
    """
    return tuple(
        np.asarray(line.reshape(levels)[tuple(slice(None) if own else 0 for own in row)])
        for line, row in zip(eta, q, strict=True)
    )


def not_highest_at_the_top(tables: Sequence[Array]) -> Ints:
    """Return items whose predictor is not highest where all their latents are highest.

    Assumption 1(b), and for more than two levels the first half of its ordered analogue: the
    predictor must be larger there than where one of the item's latents is not at its highest level.
    """
    bad = []
    for j, table in enumerate(tables):
        values = table.ravel()
        # What does not follow from states that occur says nothing.
        others = values[:-1][~np.isnan(values[:-1])]
        if len(others) and not values[-1] > others.max():
            bad.append(j)
    return np.array(bad, dtype=np.int64)


def ladders_out_of_order(tables: Sequence[Array], q: Bools) -> list[tuple[int, int]]:
    """Return pairs (item, latent) whose predictor does not rise level by level.

    Second half of the ordered analogue: while the other latents of the item are at their highest
    levels, every step up in one latent must raise the predictor.
    """
    bad = []
    for j, table in enumerate(tables):
        for axis, k in enumerate(np.flatnonzero(q[j])):
            edge = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)[:, -1]
            if not (np.diff(edge[~np.isnan(edge)]) > 0).all():
                bad.append((j, int(k)))
    return bad


def column_sums(tables: Sequence[Array], q: Bools) -> Array:
    """Return the sum of each latent's main effects over items, shape (K,) (Assumption 1'(b)).

    The effect is that of the step from level 0 to level 1 while all other latents are at 0.
    """
    out = np.zeros(q.shape[1])
    for j, table in enumerate(tables):
        for axis, k in enumerate(np.flatnonzero(q[j])):
            edge = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)[:, 0]
            out[k] += edge[1] - edge[0]
    return out


def items_with_ties(tables: Sequence[Array], relative: float = 1e-9) -> Ints:
    """Return items with equal predictors for different combinations of their latents.

    Differences below the share ``relative`` of an item's range count as none.
    """
    bad = []
    for j, table in enumerate(tables):
        values = np.sort(table[~np.isnan(table)])
        if len(values) > 1 and np.diff(values).min() <= relative * (values[-1] - values[0]):
            bad.append(j)
    return np.array(bad, dtype=np.int64)


# --- Where prerequisites rule joint states out: what items' coefficients are known by those

#: What a state's features have outside those of states that occur, where they follow from these.
_ROUNDING = 1e-9


def possible_states(design: MeasurementDesign) -> Ints:
    """Return the joint states that may occur, shape (n, K)."""
    states = StateSpace(design.levels).states()
    return states if design.ruled_out is None else states[~design.ruled_out]


def n_told_apart(design: MeasurementDesign) -> int:
    """Return how many coefficients of all items states that occur tell apart, intercepts too."""
    states = possible_states(design)
    return sum(
        int(np.linalg.matrix_rank(item_design(design, row, own)[0]))
        for row, own in zip(design.q, _own_patterns(design, states), strict=True)
    )


def known_in_sum(design: MeasurementDesign) -> Finding | None:
    """Return whether states that occur tell all coefficients apart; None where all states do."""
    if design.ruled_out is None:
        return None
    source = "states that prerequisites rule out"
    items = []
    for j, own in enumerate(_own_patterns(design, possible_states(design))):
        features, _ = item_design(design, design.q[j], own)
        # An item that answers to all of its latents together has one coefficient.
        if not design.conjunctive and np.linalg.matrix_rank(features) < features.shape[1]:
            items.append(j)
    if not items:
        sentence = "the states that occur tell the coefficients of every item apart"
        return Finding("known-in-sum", source, "holds", sentence, required=False)
    names = design.items(items)
    return Finding(
        "known-in-sum",
        source,
        "fails",
        f"{items_phrase(names)}: some coefficients are known in sum only, as nobody is in the "
        "states that would tell them apart; what is expected of items in states that occur does "
        "not depend on it",
        {"items": names},
        required=False,
        provably_bad=True,
    )


def only_told(design: MeasurementDesign, tables: Sequence[Array]) -> tuple[Array, ...]:
    """Return items' predictors with NaN where they do not follow from states that occur.

    Parameters
    ----------
    design : MeasurementDesign
    tables : sequence of J ndarrays
        An axis for each of an item's own latents.
    """
    if design.ruled_out is None:
        return tuple(tables)
    out = []
    patterns = _own_patterns(design, possible_states(design))
    for row, own, table in zip(design.q, patterns, tables, strict=True):
        every = np.zeros((table.size, design.n_latents), dtype=np.int64)
        every[:, row] = np.indices(table.shape).reshape(table.ndim, table.size).T
        _, sizes, turned = np.linalg.svd(item_design(design, row, own)[0])
        idle = turned[int((sizes > _ROUNDING * sizes[0]).sum()) :]
        moved = item_design(design, row, every)[0] @ idle.T
        told = (moved**2).sum(axis=1) <= _ROUNDING
        out.append(np.where(told.reshape(table.shape), table, np.nan))
    return tuple(out)


def told_designs(design: MeasurementDesign) -> tuple[list[Array], list[list[str]]]:
    """Return `item_designs` in states that occur, without features that follow from earlier ones.

    So a sum of coefficients that is known is counted once.
    """
    designs, names = item_designs(design)
    if design.ruled_out is None:
        return designs, names
    possible = [features[~design.ruled_out] for features in designs]
    kept = [_independent(features) for features in possible]
    return (
        [features[:, columns] for features, columns in zip(possible, kept, strict=True)],
        [[words[c] for c in columns] for words, columns in zip(names, kept, strict=True)],
    )


def _independent(design: Array) -> list[int]:
    """Return the columns that are no combination of those before them."""
    out: list[int] = []
    for column in range(design.shape[1]):
        if np.linalg.matrix_rank(design[:, [*out, column]]) > len(out):
            out.append(column)
    return out


def _own_patterns(design: MeasurementDesign, states: Ints) -> list[Ints]:
    """Return for each item the patterns of its own latents that occur, others at 0, (n_j, K)."""
    rows, place = np.unique(design.q, axis=0, return_inverse=True)
    found = [_distinct(states, row) for row in rows]
    return [found[number] for number in place.ravel()]


def _distinct(states: Ints, row: Bools) -> Ints:
    return np.asarray(np.unique(np.where(row, states, 0), axis=0), dtype=np.int64)
