"""From latent classes to joint states of binary latents: whose means add up like effects?

The means of 2^K classes are put on a scale on which effects add up and noise has variance one. Then
classes get states and items get effects in turn, each the best given the other, and Q has the
effects that an item cannot do without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.latent import StateSpace
from hidag.start.geomin import geomin
from hidag.start.varimax import varimax

Floats = NDArray[np.float64]

#: Rounds of giving states and effects, at the most, from each of how many beginnings.
ROUNDS, BEGINNINGS = 50, 20

#: Sums of squares that differ by a smaller share are the same.
SAME = 1e-9


@dataclass(frozen=True)
class Matched:
    """States for classes.

    Attributes
    ----------
    states : ndarray of int, shape (C,)
        Numbers of joint states of K binary latents; several classes may have the same.
    q_matrix : ndarray of int8, shape (J, K)
    unexplained : float
        Share of the weighted variation of the classes' means that states leave over.
    """

    states: NDArray[np.int64]
    q_matrix: NDArray[np.int8]
    unexplained: float


def match_classes(
    means: Floats, weights: Floats, n_latents: int, rng: np.random.Generator
) -> Matched:
    """Return the states of K binary latents that explain the classes' means best.

    Parameters
    ----------
    means : ndarray, shape (C, J)
        On a scale on which a row of a class has variance one around them.
    weights : ndarray, shape (C,)
        How many rows each class stands for.
    n_latents : int
    rng : Generator
        Turns the factors of the means, for further beginnings.
    """
    space = StateSpace.binary(n_latents)
    states = space.states().astype(np.float64)
    centred = means - np.average(means, axis=0, weights=weights)
    root = np.sqrt(weights)[:, None]
    _, _, right = np.linalg.svd(root * centred, full_matrices=False)
    plain = right[:n_latents].T
    best, lowest = None, np.inf
    for turn in range(BEGINNINGS):
        basis = plain
        if turn:
            basis = plain @ np.linalg.qr(rng.standard_normal((plain.shape[1],) * 2))[0]
        loadings = geomin(basis, varimax(basis))
        given = _padded(centred @ loadings @ np.linalg.pinv(loadings.T @ loadings), n_latents) > 0
        numbers = space.number(given.astype(np.int64))
        numbers, left = _alternate(numbers, states, means, weights)
        # The same states under other names are no better for a rounding error.
        if left < lowest * (1.0 - SAME):
            best, lowest = numbers, left
    assert best is not None
    total = float((weights[:, None] * centred**2).sum())
    q_matrix = _needed(states[best], means, weights)
    return Matched(best, q_matrix, lowest / max(total, 1e-300))


def _padded(scores: Floats, n_columns: int) -> Floats:
    return np.hstack([scores, np.zeros((len(scores), n_columns - scores.shape[1]))])


def _alternate(
    numbers: NDArray[np.int64], states: Floats, means: Floats, weights: Floats
) -> tuple[NDArray[np.int64], float]:
    """Return the classes' states after states and effects have settled, and what is left over."""
    left = np.inf
    for _ in range(ROUNDS):
        effects = _effects(states[numbers], means, weights)
        expected = np.hstack([np.ones((len(states), 1)), states]) @ effects
        far = ((means[:, None] - expected) ** 2).sum(axis=2)
        numbers = far.argmin(axis=1)
        value = float((weights * far.min(axis=1)).sum())
        if value >= left:
            break
        left = value
    return numbers, left


def _effects(chosen: Floats, means: Floats, weights: Floats) -> Floats:
    """Return intercepts and effects by weighted least squares, shape (1 + columns, J)."""
    root = np.sqrt(weights)[:, None]
    design = np.hstack([np.ones((len(chosen), 1)), chosen])
    return np.asarray(np.linalg.lstsq(root * design, root * means, rcond=None)[0])


def _left_over(chosen: Floats, means: Floats, weights: Floats) -> Floats:
    """Return each item's weighted sum of squares that the chosen latents leave over, (J,)."""
    design = np.hstack([np.ones((len(chosen), 1)), chosen])
    gaps = means - design @ _effects(chosen, means, weights)
    return np.asarray((weights[:, None] * gaps**2).sum(axis=0))


def _needed(chosen: Floats, means: Floats, weights: Floats) -> NDArray[np.int8]:
    """Return Q (J, K): for each item the latents with the best information criterion.

    Means that classes have beyond what states explain count as noise: an item's squares are
    divided by what all latents leave over for each spare class, if that is more than one.
    """
    n_classes, n_latents = chosen.shape
    spare = max(n_classes - n_latents - 1, 1)
    noise = np.maximum(_left_over(chosen, means, weights) / spare, 1.0)
    price = 0.5 * np.log(weights.sum())
    subsets = StateSpace.binary(n_latents).states().astype(bool)
    values = np.stack(
        [
            0.5 * _left_over(chosen[:, subset], means, weights) / noise + price * subset.sum()
            for subset in subsets
        ]
    )
    return np.asarray(subsets[values.argmin(axis=0)], dtype=np.int8)
