"""Sums over rows of sampled latents: sufficient statistics, and scores of loadings."""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.gibbs import place_in_table


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


#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "10f14d0a5aa6"


@njit(cache=True, nogil=True)
def tally(
    states,
    start,
    stop,
    x,
    observed,
    has_gaps,
    item_ptr,
    item_parents,
    item_strides,
    table_ptr,
    parent_ptr,
    parents,
    parent_strides,
    law_ptr,
    weights,
    count,
    sum_x,
    families,
):
    """Add rows ``start`` to ``stop`` with weights (N,) to the tables.

    ``count`` and ``sum_x`` (float64) are over the items' sub-states, ``families`` over the latents'
    parent configurations and levels; the other arguments are those of the Gibbs sweeps.
    """
    n_items = item_ptr.shape[0] - 1
    n_latents = parent_ptr.shape[0] - 1
    for i in range(start, stop):
        state, weight = states[i], weights[i]
        for j in range(n_items):
            if has_gaps and observed[i, j] == 0:
                continue
            code = place_in_table(table_ptr[j], state, j, item_ptr, item_parents, item_strides)
            count[code] += weight
            sum_x[code] += weight * x[i, j]
        for k in range(n_latents):
            code = place_in_table(
                law_ptr[k] + np.int64(state[k]), state, k, parent_ptr, parents, parent_strides
            )
            families[code] += weight


@njit(cache=True, nogil=True)
def residuals(
    states,
    start,
    stop,
    x,
    observed,
    has_gaps,
    item_ptr,
    item_parents,
    item_strides,
    table_ptr,
    dtheta,
    dpartition,
    out,
):
    """Write ``x theta' - A'`` of rows ``start`` to ``stop`` to ``out`` (rows, J); 0 if missing."""
    n_items = item_ptr.shape[0] - 1
    for i in range(start, stop):
        state = states[i]
        for j in range(n_items):
            if has_gaps and observed[i, j] == 0:
                out[i - start, j] = 0.0
                continue
            code = place_in_table(table_ptr[j], state, j, item_ptr, item_parents, item_strides)
            out[i - start, j] = x[i, j] * dtheta[code] - dpartition[code]


@njit(cache=True, nogil=True)
def item_scores(
    draws,
    start,
    stop,
    first_column,
    last_column,
    x,
    observed,
    has_gaps,
    item_ptr,
    item_parents,
    item_strides,
    table_ptr,
    dtheta,
    dpartition,
    latents,
    levels,
    weights,
    gradient,
    information,
):
    """Add one item's scores of rows ``start`` to ``stop``, and their second moments.

    Parameters
    ----------
    draws : uint8 (R, N, K)
        The two halves of the draws estimate each row's score independently, so that their product
        is unbiased for the second moment.
    first_column, last_column : int
        The item's columns: from the first to before the last.
    latents, levels : int64 (C,)
        Terms ``1{Z_k >= u}`` of the scores after the intercept.
    weights : float64 (N,)
        Of the rows.
    gradient, information : float64 (1 + C,), (1 + C, 1 + C)
        Accumulators.
    """
    n_draws = draws.shape[0]
    half = n_draws // 2
    size = latents.shape[0] + 1
    first = np.empty(size)
    second = np.empty(size)
    for i in range(start, stop):
        if has_gaps and observed[i, first_column] == 0:
            continue
        for c in range(size):
            first[c] = 0.0
            second[c] = 0.0
        for r in range(n_draws):
            state = draws[r, i]
            sub = place_in_table(
                np.int64(0), state, first_column, item_ptr, item_parents, item_strides
            )
            u = 0.0
            for column in range(first_column, last_column):
                code = table_ptr[column] + sub
                u += x[i, column] * dtheta[code] - dpartition[code]
            if r < half:
                first[0] += u
                for c in range(1, size):
                    # A product is faster than a branch that half of the rows take.
                    first[c] += u * (state[latents[c - 1]] >= levels[c - 1])
            else:
                second[0] += u
                for c in range(1, size):
                    second[c] += u * (state[latents[c - 1]] >= levels[c - 1])
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
