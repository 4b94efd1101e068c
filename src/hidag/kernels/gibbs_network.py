"""Gibbs sweeps under a law over a graph: a draw looks at the latent's Markov blanket alone.

Of the items it touches only those that load on the latent.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hidag.kernels.latent_draws import draw_level, mix, place_in_table, with_items

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "3dc71f54164d"


@njit(cache=True, nogil=True)
def sweep_network(
    states,
    start,
    stop,
    x,
    observed,
    has_gaps,
    levels,
    item_ptr,
    item_parents,
    item_strides,
    table_ptr,
    theta,
    partition,
    latent_ptr,
    latent_items,
    latent_strides,
    parent_ptr,
    parents,
    parent_strides,
    law_ptr,
    log_law,
    child_ptr,
    children,
    child_strides,
    seed,
    iteration,
    addresses,
    n_sweeps,
    coldness,
    keep,
    sums,
    sum_ptr,
):
    """Update the latent states of rows ``start`` to ``stop`` in place.

    Parameters
    ----------
    states : uint8 (N, K)
    x, observed, has_gaps : float64 (N, at least J), uint8 (N, J), bool
        Responses with zeros in missing cells; the mask is read only when ``has_gaps``.
    levels : int64 (K,)
    item_ptr, item_parents, item_strides : int64
        Latents that load on each item, and what a level adds to the number of its sub-state.
    table_ptr, theta, partition : int64 (J + 1,), float64, float64
        Tables over each item's sub-states, one after the other.
    latent_ptr, latent_items, latent_strides : int64
        Items that load on each latent, and the latent's stride in the item's sub-states.
    parent_ptr, parents, parent_strides : int64
        Parents of each latent, and their strides in its table.
    law_ptr, log_law : int64 (K + 1,), float64
        Log conditional tables, one after the other; a latent's own level changes fastest.
    child_ptr, children, child_strides : int64
        Children of each latent, and the latent's stride in the child's table.
    seed, iteration, addresses : uint64, int, uint64 (N,)
        Random numbers depend on (seed, iteration, row's address) alone, not on how rows are shared
        out.
    n_sweeps, coldness : int, float
        Log odds are multiplied with ``coldness``: 1 samples, much more climbs.
    keep, sums, sum_ptr : bool, float64 (N, F), int64 (K,)
        Where, if asked for, the probability of each level above 0 is added, level u of latent k in
        column ``sum_ptr[k] + u - 1``: less noisy than the draws.
    """
    n_items = item_ptr.shape[0] - 1
    n_latents = latent_ptr.shape[0] - 1
    sub = np.empty(n_items, dtype=np.int64)
    family = np.empty(n_latents, dtype=np.int64)
    weights = np.empty(levels.max())
    golden = np.uint64(0x9E3779B97F4A7C15)
    to_unit = 1.0 / 9007199254740992.0
    root = mix(np.uint64(seed) + golden * np.uint64(iteration + 1))
    for i in range(start, stop):
        word = mix(root ^ (golden * (addresses[i] + np.uint64(1))))
        state = states[i]
        for j in range(n_items):
            sub[j] = place_in_table(table_ptr[j], state, j, item_ptr, item_parents, item_strides)
        for k in range(n_latents):
            family[k] = place_in_table(law_ptr[k], state, k, parent_ptr, parents, parent_strides)
        for _ in range(n_sweeps):
            for k in range(n_latents):
                on = np.int64(state[k])
                n_levels = levels[k]
                log_odds = 0.0
                # Log odds of each level against level 0.
                for level in range(1, n_levels):
                    log_odds = log_law[family[k] + level] - log_law[family[k]]
                    for a in range(child_ptr[k], child_ptr[k + 1]):
                        child = children[a]
                        zero = family[child] - on * child_strides[a] + np.int64(state[child])
                        log_odds += log_law[zero + level * child_strides[a]] - log_law[zero]
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
                    weights[level] = coldness * log_odds
                word += golden
                draw = float(mix(word) >> np.uint64(11)) * to_unit
                if n_levels == 2:
                    # Most latents are binary: nothing goes through memory.
                    odds_against = math.exp(-coldness * log_odds)
                    new = 1 if draw * (1.0 + odds_against) < 1.0 else 0
                    if keep:
                        sums[i, sum_ptr[k]] += 1.0 / (1.0 + odds_against)
                else:
                    new = draw_level(weights, n_levels, draw, keep)
                    if keep:
                        for level in range(1, n_levels):
                            sums[i, sum_ptr[k] + level - 1] += weights[level]
                if new != on:
                    change = new - on
                    state[k] = new
                    for a in range(latent_ptr[k], latent_ptr[k + 1]):
                        sub[latent_items[a]] += change * latent_strides[a]
                    for a in range(child_ptr[k], child_ptr[k + 1]):
                        family[children[a]] += change * child_strides[a]


@njit(cache=True, nogil=True)
def log_joint(
    states,
    x,
    observed,
    has_gaps,
    item_ptr,
    item_parents,
    item_strides,
    table_ptr,
    theta,
    partition,
    parent_ptr,
    parents,
    parent_strides,
    law_ptr,
    log_law,
    out,
):
    """Write each row's ``log f(x, z)``, without the part that no latent enters, to ``out`` (N,)."""
    for i in range(states.shape[0]):
        state = states[i]
        total = 0.0
        for j in range(item_ptr.shape[0] - 1):
            if has_gaps and observed[i, j] == 0:
                continue
            code = place_in_table(table_ptr[j], state, j, item_ptr, item_parents, item_strides)
            total += x[i, j] * theta[code] - partition[code]
        for k in range(parent_ptr.shape[0] - 1):
            code = place_in_table(
                law_ptr[k] + np.int64(state[k]), state, k, parent_ptr, parents, parent_strides
            )
            total += log_law[code]
        out[i] = total
