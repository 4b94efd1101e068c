"""Geomin: the oblique rotation that lets each item depend on few of several dependent latents.

Varimax keeps factors uncorrelated; latents that cause each other are not. An oblique rotation by
gradient projection on the factors' directions (each of length one) finds a pattern of loadings
with many near zero all the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Added to squared loadings, so that one zero in a row does not hide the others.
OFFSET = 0.01
#: Directions closer to dependent than this are not gone to.
WORST_CONDITION = 1e6
#: Halvings of a step before it is given up.
MAX_HALVINGS = 12


def _criterion(loadings: Array) -> tuple[float, Array]:
    """Return the sum over items of geometric means of squared loadings, and its gradient."""
    size = loadings.shape[1]
    squares = loadings**2 + OFFSET
    means = np.exp(np.log(squares).sum(axis=1) / size)
    return float(means.sum()), (2.0 / size) * (loadings / squares) * means[:, None]


def geomin(loadings: Array, begin: Array, *, max_iter: int = 500, tolerance: float = 1e-3) -> Array:
    """Return loadings on oblique factors with a small Geomin criterion, shape (J, K).

    Parameters
    ----------
    loadings : ndarray, shape (J, K)
        On uncorrelated factors.
    begin : ndarray, shape (K, K)
        Directions to begin with, one per column, for instance Varimax's rotation.
    max_iter, tolerance : int, float
        Steps end when the gradient along the directions is shorter than ``tolerance``.
    """
    directions = begin
    inverse = np.linalg.inv(directions)
    rotated = loadings @ inverse.T
    value, slope = _criterion(rotated)
    gradient = -(rotated.T @ slope @ inverse).T
    step = 1.0
    for _ in range(max_iter):
        along = gradient - directions * (directions * gradient).sum(axis=0)
        length = float(np.sqrt((along**2).sum()))
        if length < tolerance:
            break
        step *= 2.0
        for _ in range(MAX_HALVINGS):
            moved = directions - step * along
            moved = moved / np.maximum(np.sqrt((moved**2).sum(axis=0)), 1e-12)
            # Directions that fall together have no inverse: the step was too long.
            if np.linalg.cond(moved) < WORST_CONDITION:
                inverse = np.linalg.inv(moved)
                rotated = loadings @ inverse.T
                new, slope = _criterion(rotated)
                if new < value - 0.5 * step * length**2:
                    break
            step /= 2.0
        else:
            break
        directions, value = moved, new
        gradient = -(rotated.T @ slope @ inverse).T
    return np.asarray(loadings @ np.linalg.inv(directions).T)
