"""Gibbs sweeps under a law that lists the joint states: a draw looks up one for each level.

Of the items it touches only those that load on the latent.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.latent_draws import draw_level, mix, with_items

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "3dc71f54164d"


@njit(cache=True, nogil=True)
def sweep_listed(
    states,
    start,
    stop,
    x,
    observed,
    has_gaps,
    log_law,
    strides,
    levels,
    latent_ptr,
    latent_items,
    latent_strides,
    item_ptr,
    item_parents,
    item_strides,
    table_ptr,
    theta,
    partition,
    seed,
    iteration,
    n_sweeps,
):
    """Update the latent states of rows ``start`` to ``stop`` in place.

    Parameters
    ----------
    states : int64 (N,)
        State numbers.
    x, observed, has_gaps : float64 (N, J), uint8 (N, J), bool
        Responses with zeros in missing cells; the mask is read only when ``has_gaps``.
    log_law : float64 (S,)
    strides : int64 (K,)
        What a level of latent k adds to a state number.
    levels : int64 (K,)
    latent_ptr, latent_items, latent_strides : int64
        Items that load on each latent, and the latent's stride in the item's own sub-states.
    item_ptr, item_parents, item_strides : int64
        Latents that load on each item, and their strides in its sub-states.
    table_ptr, theta, partition : int64 (J,), float64, float64
        Tables over each item's sub-states, one after the other.
    seed, iteration, n_sweeps : uint64, int, int
        Random numbers depend on (seed, iteration, row) alone, not on how rows are shared out.
    """
    n_latents = strides.shape[0]
    n_items = x.shape[1]
    sub = np.empty(n_items, dtype=np.int64)
    order = np.empty(n_latents, dtype=np.int64)
    weights = np.empty(levels.max())
    golden = np.uint64(0x9E3779B97F4A7C15)
    to_unit = 1.0 / 9007199254740992.0
    for i in range(start, stop):
        word = mix(np.uint64(seed) + golden * np.uint64(iteration + 1))
        word = mix(word ^ (golden * np.uint64(i + 1)))
        state = states[i]
        for j in range(n_items):
            code = table_ptr[j]
            for a in range(item_ptr[j], item_ptr[j + 1]):
                k = item_parents[a]
                code += (state // strides[k]) % levels[k] * item_strides[a]
            sub[j] = code
        for _ in range(n_sweeps):
            for k in range(n_latents):
                word += golden
                swap = np.int64(mix(word) % np.uint64(k + 1))
                order[k] = order[swap]
                order[swap] = k
            for position in range(n_latents):
                k = order[position]
                on = (state // strides[k]) % levels[k]
                low = state - on * strides[k]
                # Log odds of each level against level 0.
                for level in range(1, levels[k]):
                    log_odds = log_law[low + level * strides[k]] - log_law[low]
                    log_odds = with_items(
                        log_odds,
                        i,
                        k,
                        on,
                        level,
                        x,
                        observed,
                        has_gaps,
                        sub,
                        latent_ptr,
                        latent_items,
                        latent_strides,
                        theta,
                        partition,
                    )
                    weights[level] = log_odds
                word += golden
                draw = float(mix(word) >> np.uint64(11)) * to_unit
                new = draw_level(weights, levels[k], draw, False)
                if new != on:
                    change = new - on
                    state += change * strides[k]
                    for a in range(latent_ptr[k], latent_ptr[k + 1]):
                        sub[latent_items[a]] += change * latent_strides[a]
        states[i] = state


@njit(cache=True, nogil=True)
def tally(states, weights, x, gaps, count, sum_x, gap_count):
    """Add rows, as often as they count, to count (S,), sum_x (S, J) and gap_count (S, M)."""
    for i in range(states.shape[0]):
        s, w = states[i], weights[i]
        count[s] += w
        for j in range(x.shape[1]):
            sum_x[s, j] += w * x[i, j]
        for m in range(gaps.shape[1]):
            gap_count[s, m] += w * gaps[i, m]
