"""Where prerequisites rule joint states out: what items' coefficients are known by those left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.identify.features import item_design, item_designs
from hidag.identify.findings import Finding, items_phrase
from hidag.identify.flow import Bools, Ints
from hidag.identify.question import Question
from hidag.latent import StateSpace

Array = NDArray[np.float64]

#: What a state's features have outside those of states that occur, where they follow from these.
_ROUNDING = 1e-9


def possible_states(asked: Question) -> Ints:
    """Return the joint states that may occur, shape (n, K)."""
    states = StateSpace(asked.levels).states()
    return states if asked.ruled_out is None else states[~asked.ruled_out]


def n_told_apart(asked: Question) -> int:
    """Return how many coefficients of all items states that occur tell apart, intercepts too."""
    states = possible_states(asked)
    return sum(
        int(np.linalg.matrix_rank(item_design(asked, row, own)[0]))
        for row, own in zip(asked.q, _own_patterns(asked, states), strict=True)
    )


def known_in_sum(asked: Question) -> Finding | None:
    """Return whether states that occur tell all coefficients apart; None where all states do."""
    if asked.ruled_out is None:
        return None
    source = "states that prerequisites rule out"
    items = []
    for j, own in enumerate(_own_patterns(asked, possible_states(asked))):
        design, _ = item_design(asked, asked.q[j], own)
        # An item that answers to all of its latents together has one coefficient.
        if not asked.conjunctive and np.linalg.matrix_rank(design) < design.shape[1]:
            items.append(j)
    if not items:
        sentence = "the states that occur tell the coefficients of every item apart"
        return Finding("known-in-sum", source, "holds", sentence, required=False)
    names = asked.items(items)
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


def only_told(asked: Question, tables: Sequence[Array]) -> tuple[Array, ...]:
    """Return items' predictors with NaN where they do not follow from states that occur.

    Parameters
    ----------
    asked : Question
    tables : sequence of J ndarrays
        An axis for each of an item's own latents.
    """
    if asked.ruled_out is None:
        return tuple(tables)
    out = []
    patterns = _own_patterns(asked, possible_states(asked))
    for row, own, table in zip(asked.q, patterns, tables, strict=True):
        every = np.zeros((table.size, asked.n_latents), dtype=np.int64)
        every[:, row] = np.indices(table.shape).reshape(table.ndim, table.size).T
        _, sizes, turned = np.linalg.svd(item_design(asked, row, own)[0])
        idle = turned[int((sizes > _ROUNDING * sizes[0]).sum()) :]
        moved = item_design(asked, row, every)[0] @ idle.T
        told = (moved**2).sum(axis=1) <= _ROUNDING
        out.append(np.where(told.reshape(table.shape), table, np.nan))
    return tuple(out)


def told_designs(asked: Question) -> tuple[list[Array], list[list[str]]]:
    """Return `item_designs` in states that occur, without features that follow from earlier ones.

    So a sum of coefficients that is known is counted once.
    """
    designs, names = item_designs(asked)
    if asked.ruled_out is None:
        return designs, names
    possible = [design[~asked.ruled_out] for design in designs]
    kept = [_independent(design) for design in possible]
    return (
        [design[:, columns] for design, columns in zip(possible, kept, strict=True)],
        [[words[c] for c in columns] for words, columns in zip(names, kept, strict=True)],
    )


def _independent(design: Array) -> list[int]:
    """Return the columns that are no combination of those before them."""
    out: list[int] = []
    for column in range(design.shape[1]):
        if np.linalg.matrix_rank(design[:, [*out, column]]) > len(out):
            out.append(column)
    return out


def _own_patterns(asked: Question, states: Ints) -> list[Ints]:
    """Return for each item the patterns of its own latents that occur, others at 0, (n_j, K)."""
    rows, place = np.unique(asked.q, axis=0, return_inverse=True)
    found = [_distinct(states, row) for row in rows]
    return [found[number] for number in place.ravel()]


def _distinct(states: Ints, row: Bools) -> Ints:
    return np.asarray(np.unique(np.where(row, states, 0), axis=0), dtype=np.int64)
