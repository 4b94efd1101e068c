"""Varimax: the rotation that makes loadings sparse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def varimax(loadings: Array, *, max_iter: int = 500, tolerance: float = 1e-10) -> Array:
    """Return the rotation R (K, K) that maximises the Varimax criterion of ``loadings @ R``.

    Parameters
    ----------
    loadings : ndarray, shape (J, K)
    max_iter, tolerance : int, float
        Iterations of the singular-value form end when the criterion grows by less than
        ``tolerance`` of itself.
    """
    n_items, size = loadings.shape
    rotation = np.eye(size)
    value = 0.0
    for _ in range(max_iter):
        rotated = loadings @ rotation
        target = rotated**3 - rotated * ((rotated**2).sum(axis=0) / n_items)
        left, singular, right = np.linalg.svd(loadings.T @ target)
        rotation = left @ right
        new = float(singular.sum())
        if new <= value * (1.0 + tolerance):
            break
        value = new
    return rotation
