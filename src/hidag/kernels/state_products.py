"""Products of tables over parts of the latents, row by row.

They are loops over short runs of numbers, where a call for each run would cost more than the run.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def multiply_out(left, right, between, out):
    """Fill ``out[i, s, a, r t] = left[i, s, a] * right[i, r t] * between[i, s, t]``.

    Parameters
    ----------
    left : ndarray, shape (n, S, A)
    right : ndarray, shape (n, R T)
    between : ndarray, shape (n, S, T)
    out : ndarray, shape (n, S, A, R T)
    """
    n_rows, n_outer, n_inner = between.shape
    n_left, n_right = left.shape[2], right.shape[1]
    facing = np.empty(n_right)
    for i in range(n_rows):
        for s in range(n_outer):
            for r in range(0, n_right, n_inner):
                for t in range(n_inner):
                    facing[r + t] = between[i, s, t] * right[i, r + t]
            for a in range(n_left):
                factor = left[i, s, a]
                for b in range(n_right):
                    out[i, s, a, b] = factor * facing[b]
