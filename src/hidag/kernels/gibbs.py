"""Gibbs sweeps over binary latents: each flip touches only the items that load on the latent."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _mix(x):
    """Return a well-mixed 64-bit word (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def sweep(
    states,
    start,
    stop,
    x,
    observed,
    has_gaps,
    log_law,
    strides,
    latent_ptr,
    latent_items,
    latent_bits,
    item_ptr,
    item_parents,
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
        What latent k adds to a state number.
    latent_ptr, latent_items, latent_bits : int64
        Items that load on each latent, and the latent's bit in the item's own sub-state.
    item_ptr, item_parents : int64
        Latents that load on each item.
    table_ptr, theta, partition : int64 (J,), float64, float64
        Tables over each item's sub-states, one after the other.
    seed, iteration, n_sweeps : uint64, int, int
        Random numbers depend on (seed, iteration, row) alone, not on how rows are shared out.
    """
    n_latents = strides.shape[0]
    n_items = x.shape[1]
    sub = np.empty(n_items, dtype=np.int64)
    order = np.empty(n_latents, dtype=np.int64)
    golden = np.uint64(0x9E3779B97F4A7C15)
    to_unit = 1.0 / 9007199254740992.0
    for i in range(start, stop):
        word = _mix(np.uint64(seed) + golden * np.uint64(iteration + 1))
        word = _mix(word ^ (golden * np.uint64(i + 1)))
        state = states[i]
        for j in range(n_items):
            code = 0
            for a in range(item_ptr[j], item_ptr[j + 1]):
                if (state // strides[item_parents[a]]) & 1:
                    code |= 1 << (a - item_ptr[j])
            sub[j] = table_ptr[j] + code
        for _ in range(n_sweeps):
            for k in range(n_latents):
                word += golden
                swap = np.int64(_mix(word) % np.uint64(k + 1))
                order[k] = order[swap]
                order[swap] = k
            for position in range(n_latents):
                k = order[position]
                on = (state // strides[k]) & 1
                low = state - on * strides[k]
                log_odds = log_law[low + strides[k]] - log_law[low]
                for a in range(latent_ptr[k], latent_ptr[k + 1]):
                    j = latent_items[a]
                    if has_gaps and observed[i, j] == 0:
                        continue
                    bit = latent_bits[a]
                    zero = sub[j] - on * bit
                    one = zero + bit
                    log_odds += x[i, j] * (theta[one] - theta[zero])
                    log_odds -= partition[one] - partition[zero]
                word += golden
                draw = float(_mix(word) >> np.uint64(11)) * to_unit
                new = 1 if draw * (1.0 + math.exp(-log_odds)) < 1.0 else 0
                if new != on:
                    change = new - on
                    state += change * strides[k]
                    for a in range(latent_ptr[k], latent_ptr[k + 1]):
                        sub[latent_items[a]] += change * latent_bits[a]
        states[i] = state


@njit(cache=True, nogil=True)
def tally(states, x, gaps, count, sum_x, gap_count):
    """Add rows to the statistics: count (S,), sum_x (S, J), gap_count (S, M)."""
    for i in range(states.shape[0]):
        s = states[i]
        count[s] += 1.0
        for j in range(x.shape[1]):
            sum_x[s, j] += x[i, j]
        for m in range(gaps.shape[1]):
            gap_count[s, m] += gaps[i, m]
