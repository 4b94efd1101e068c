"""Conditions that only a fit can decide: positive law, monotone items. Pure functions on arrays.

An item's predictor depends on its own latents only, so it is a table with an axis for each of them,
in their order: no joint states are listed, however many latents there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.identify.flow import Bools, Ints
from hidag.latent import NetworkLaw

Array = NDArray[np.float64]

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
