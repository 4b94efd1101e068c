"""Correlations of pairs of items that no row has both of, as in tests with booklets.

Taken for zero, they would cut the items into blocks, and every block would look like latents of its
own. So they are filled in from common factors of the pairs that were seen, as few as will do: the
smallest number k such that, with the other pairs filled in from k factors, no more than k are
counted. Filling in can hide factors beyond k but adds none, and what it hides is then counted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]

#: Pulls loadings towards zero, a seen pair weighing 1: pairs nobody saw cannot hold them back.
RIDGE = 0.02
#: No item shares more of its variance than this.
MOST_SHARED = 0.98
#: Steps of the search for loadings.
STEPS = 500


def filled_correlations(
    raw: Array, unseen: NDArray[np.bool_], count: Callable[[Array], int], most: int
) -> Array:
    """Return correlations with the unseen pairs filled in from as few factors as will do.

    Parameters
    ----------
    raw : ndarray, shape (J, J)
        Correlations of the pairs that were seen.
    unseen : ndarray of bool, shape (J, J)
    count : callable
        How many factors correlations speak for.
    most : int
        No more factors than this are tried.

    Returns
    -------
    ndarray, shape (J, J)
    """
    told = ~unseen & ~np.eye(len(raw), dtype=bool)
    loadings = np.zeros((len(raw), 0))
    filled = raw
    for k in range(1, most + 1):
        loadings = _one_more(raw, told, loadings)
        shared = np.sqrt((loadings**2).sum(axis=1))
        within = (
            loadings * np.minimum(1.0, np.sqrt(MOST_SHARED) / np.maximum(shared, 1e-12))[:, None]
        )
        filled = np.where(unseen, within @ within.T, raw)
        if count(filled) <= k:
            break
    return filled


def _one_more(raw: Array, told: NDArray[np.bool_], loadings: Array) -> Array:
    """Return loadings of one more factor that fit the pairs that were told, shape (J, k + 1)."""
    rest = np.where(told, raw - loadings @ loadings.T, 0.0)
    values, vectors = np.linalg.eigh(rest)
    size = np.sqrt(max(float(values[-1]), 0.0) / max(float(told.mean()), 1e-12) / len(raw))
    new = vectors[:, -1] * max(size, np.sqrt(1e-3))
    start = np.column_stack([loadings, new])

    def lack(flat: Array) -> tuple[float, Array]:
        now = flat.reshape(start.shape)
        off = np.where(told, now @ now.T - raw, 0.0)
        value = 0.25 * float((off**2).sum()) + 0.5 * RIDGE * float((now**2).sum())
        return value, (off @ now + RIDGE * now).ravel()

    found = minimize(lack, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x).reshape(start.shape)
