"""Conditions that only a fit can decide: positive law, monotone items. Pure functions on arrays.

Predictors are tables over joint states, numbered as in `hidag.latent.StateSpace`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.identify.flow import Bools, Ints
from hidag.latent import StateSpace

Array = NDArray[np.float64]

#: A state with less probability than this counts as absent: no table shows such a state.
SMALLEST_PROBABILITY = 1e-12


def absent_states(probabilities: Array) -> Ints:
    """Return the joint states without probability (Assumption 1(a) asks that there are none)."""
    return np.flatnonzero(~(probabilities > SMALLEST_PROBABILITY))


def not_highest_at_the_top(eta: Array, q: Bools, levels: tuple[int, ...]) -> Ints:
    """Return items whose predictor is not highest where all their latents are highest.

    Assumption 1(b), and for more than two levels the first half of its ordered analogue: every
    state in which all latents of the item are at their highest level must have a larger predictor
    than every state in which one of them is not.

    Parameters
    ----------
    eta : ndarray, shape (J, S)
    q : ndarray of bool, shape (J, K)
    levels : tuple of int, length K
    """
    states = StateSpace(levels).states()
    at_top = states == np.array(levels) - 1
    bad = []
    for j in range(len(q)):
        top = at_top[:, q[j]].all(axis=1)
        if not top.all() and not eta[j, top].min() > eta[j, ~top].max():
            bad.append(j)
    return np.array(bad, dtype=np.int64)


def ladders_out_of_order(eta: Array, q: Bools, levels: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return pairs (item, latent) whose predictor does not rise level by level.

    Second half of the ordered analogue: while the other latents of the item are at their highest
    levels, every step up in one latent must raise the predictor.
    """
    states = StateSpace(levels).states()
    at_top = states == np.array(levels) - 1
    bad = []
    for j, k in np.argwhere(q):
        others = q[j].copy()
        others[k] = False
        edge = at_top[:, others].all(axis=1)
        steps = [eta[j, edge & (states[:, k] == level)] for level in range(levels[k])]
        highest = np.maximum.accumulate([step.max() for step in steps])
        lowest = np.minimum.accumulate([step.min() for step in steps][::-1])[::-1]
        if not (highest[:-1] < lowest[1:]).all():
            bad.append((int(j), int(k)))
    return bad


def column_sums(eta: Array, levels: tuple[int, ...]) -> Array:
    """Return the sum of each latent's main effects over items, shape (K,) (Assumption 1'(b)).

    The effect is that of the step from level 0 to level 1 while all other latents are at 0.
    """
    first_steps = np.eye(len(levels), dtype=np.int64)
    raised = StateSpace(levels).number(first_steps)
    return np.asarray((eta[:, raised] - eta[:, :1]).sum(axis=0))


def items_with_ties(eta: Array, q: Bools, levels: tuple[int, ...], relative: float = 1e-9) -> Ints:
    """Return items with equal predictors for different combinations of their latents.

    Differences below the share ``relative`` of an item's range count as none.
    """
    states = StateSpace(levels).states()
    bad = []
    for j, row in enumerate(q):
        _, first = np.unique(states[:, row], axis=0, return_index=True)
        values = np.sort(eta[j, first])
        if len(values) > 1 and np.diff(values).min() <= relative * (values[-1] - values[0]):
            bad.append(j)
    return np.array(bad, dtype=np.int64)
