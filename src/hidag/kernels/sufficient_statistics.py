"""Sums over rows of sampled latents: sufficient statistics, and scores of loadings."""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.gibbs import place_in_table


@njit(cache=True, nogil=True)
def multiply_out(left, right, between, out):
    """Fill ``out[i, s, a, r t] = left[i, s, a] * right[i, r t] * between[i, s, t]``."""
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


#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "ab35a13945f3"


@njit(cache=True, nogil=True)
def tally(states, start, stop, cells, items, network, weights, count, sum_x, families):
    """Add rows ``start`` to ``stop`` with weights (N,) to flat tables, as in the Gibbs sweeps."""
    x, observed, has_gaps = cells
    for i in range(start, stop):
        state, weight = states[i], weights[i]
        for j in range(items[0].shape[0] - 1):
            if not has_gaps or observed[i, j] != 0:
                code = place_in_table(state, j, items)
                count[code] += weight
                sum_x[code] += weight * x[i, j]
        for k in range(network[0].shape[0] - 1):
            families[place_in_table(state, k, network) + np.int64(state[k])] += weight


@njit(cache=True, nogil=True)
def residuals(states, start, stop, cells, items, derivatives, out):
    """Write ``x theta' - A'`` of rows ``start`` to ``stop`` to ``out`` (rows, J); 0 if missing."""
    (x, observed, has_gaps), (dtheta, dpartition) = cells, derivatives
    for i in range(start, stop):
        for j in range(items[0].shape[0] - 1):
            out[i - start, j] = 0.0
            if not has_gaps or observed[i, j] != 0:
                code = place_in_table(states[i], j, items)
                out[i - start, j] = x[i, j] * dtheta[code] - dpartition[code]


@njit(cache=True, nogil=True)
def item_scores(
    draws, start, stop, first_column, last_column, cells, items, derivatives, terms, weights,
    gradient, information,
):  # fmt: skip
    """Add one item's scores of rows ``start`` to ``stop``, and their second moments.

    The two halves of the draws (R, N, K) estimate each row's score independently, so that their
    product is unbiased for the second moment. The item has the columns from the first to before the
    last; ``terms`` are latents and levels (C,) of the terms ``1{Z_k >= u}`` after the intercept.
    """
    (x, observed, has_gaps), (dtheta, dpartition), (latents, levels) = cells, derivatives, terms
    table_ptr = items[3]
    n_draws = draws.shape[0]
    half = n_draws // 2
    size = latents.shape[0] + 1
    sums = np.empty((2, size))
    first, second = sums
    for i in range(start, stop):
        if has_gaps and observed[i, first_column] == 0:
            continue
        sums[:] = 0.0
        for r in range(n_draws):
            state, own = draws[r, i], sums[int(r >= half)]
            sub = place_in_table(state, first_column, items) - table_ptr[first_column]
            u = 0.0
            for column in range(first_column, last_column):
                code = table_ptr[column] + sub
                u += x[i, column] * dtheta[code] - dpartition[code]
            own[0] += u
            for c in range(1, size):
                # A product is faster than a branch that half of the rows take.
                own[c] += u * (state[latents[c - 1]] >= levels[c - 1])
        for c in range(size):
            gradient[c] += weights[i] * (first[c] + second[c]) / n_draws
            first[c] /= half
            second[c] /= n_draws - half
        for c in range(size):
            for d in range(c + 1):
                value = 0.5 * (first[c] * second[d] + first[d] * second[c])
                information[c, d] += weights[i] * value
    for c in range(size):
        for d in range(c):
            information[d, c] = information[c, d]
