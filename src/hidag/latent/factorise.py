"""Laws over a graph from counts of joint states: the families' shares, when states are listed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hidag.latent.laws import NetworkLaw, Parents
from hidag.latent.state_space import StateSpace

Array = NDArray[np.float64]
#: Neighbours and colliders: see :func:`class_of`.
Class = tuple[frozenset[frozenset[int]], frozenset[tuple[frozenset[int], int]]]

#: Counts below this are zero: dividing by them would overflow.
NEVER = 1e-200


def _shares(cube: Array, k: int, parents: tuple[int, ...]) -> Array:
    """Return P(k | parents) over the cube's axes; axes of other latents have length 1."""
    others = tuple(a for a in range(cube.ndim) if a != k and a not in parents)
    joint = cube.sum(axis=others, keepdims=True)
    given = joint.sum(axis=k, keepdims=True)
    # A configuration that never occurs leaves its child undecided: every level alike.
    occurs = given > NEVER
    return np.asarray(np.where(occurs, joint / np.where(occurs, given, 1.0), 1.0 / cube.shape[k]))


def factorised(counts: Array, parents: Parents, space: StateSpace) -> Array:
    """Return the most likely law over a graph given ``counts`` of states, both shape (S,)."""
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)
    out = np.ones(space.levels)
    for k, causes in enumerate(parents):
        out = out * _shares(cube, k, causes)
    flat = out.ravel()
    return np.asarray(flat / flat.sum())


def network_of_counts(counts: Array, parents: Parents, space: StateSpace) -> NetworkLaw:
    """Return the same law as :func:`factorised` with its conditional tables."""
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)
    tables = []
    for k, causes in enumerate(parents):
        shares = _shares(cube, k, causes)
        front = np.moveaxis(shares, (*causes, k), range(len(causes) + 1))
        tables.append(front.reshape([space.levels[a] for a in (*causes, k)]))
    return NetworkLaw(space, parents, tuple(tables))


def class_of(parents: Parents) -> Class:
    """Return what all graphs have in common over which laws are the same.

    These are the pairs of neighbours, and the pairs of causes that are none, with their effect.
    """
    joined = frozenset(frozenset((a, k)) for k, causes in enumerate(parents) for a in causes)
    pairs = (
        (frozenset(pair), k) for k, causes in enumerate(parents) for pair in combinations(causes, 2)
    )
    return joined, frozenset((pair, k) for pair, k in pairs if pair not in joined)


def equivalent(one: Parents, other: Parents) -> bool:
    """Return whether laws over two graphs are the same: same neighbours, same colliders."""
    return class_of(one) == class_of(other)


def n_free_probabilities(
    parents: Parents, space: StateSpace, possible: NDArray[np.bool_] | None = None
) -> int:
    """Return how many free probabilities a law over the graph has.

    Parameters
    ----------
    parents : tuple of tuples of int
    space : StateSpace
    possible : ndarray of bool, shape (S,), optional
        Joint states that may occur, all unless given; no other has a probability to be free. The
        steps of the hierarchy that rules them out are edges of the graph, or laws over it could not
        keep to it.
    """
    total = 0
    for k, causes in enumerate(parents):
        if possible is None:
            total += int(np.prod([space.levels[a] for a in causes])) * (space.levels[k] - 1)
        else:
            total += n_free_in_table(possible_cells(possible, space, k, causes))
    return total


def is_any_law(
    parents: Parents, space: StateSpace, possible: NDArray[np.bool_] | None = None
) -> bool:
    """Return whether a law over the graph may be anything on the joint states that may occur."""
    n_states = space.n_states if possible is None else int(possible.sum())
    return n_free_probabilities(parents, space, possible) == n_states - 1


def possible_cells(
    possible: NDArray[np.bool_], space: StateSpace, k: int, causes: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return which cells of a latent's table some possible joint state (S,) is in, shape (q, M).

    Rows are combinations of the causes' levels, the last cause changing fastest.
    """
    return possible_among(possible, space, (*causes, k)).reshape(-1, space.levels[k])


def possible_among(
    possible: NDArray[np.bool_], space: StateSpace, latents: Sequence[int]
) -> NDArray[np.bool_]:
    """Return which joint states of some latents a possible state (S,) has, one axis per latent."""
    out = np.zeros(tuple(space.levels[k] for k in latents), dtype=np.bool_)
    states = np.argwhere(possible.reshape(space.levels))
    out[tuple(states[:, list(latents)].T)] = True
    return out


def n_free_in_table(cells: NDArray[np.bool_]) -> int:
    """Return how many free probabilities a conditional table has, of its possible cells (q, M)."""
    # A combination of the causes' levels that cannot occur has no distribution at all.
    return int(np.maximum(cells.sum(axis=1) - 1, 0).sum())
