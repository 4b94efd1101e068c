"""Gibbs sweeps over the latents of each row, given a list of joint states or a network.

Under a network, the full conditional of a latent depends on its Markov blanket and on the items
that load on it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def mix(x):
    """Return a well-mixed 64-bit word (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def draw_level(weights, n_levels, draw, keep):
    """Return a level drawn with the log odds ``weights[1:]`` against level 0.

    With ``keep`` the weights come back as probabilities.
    """
    if n_levels == 2:
        # Two levels need one exponential only.
        odds_against = math.exp(-weights[1])
        if keep:
            weights[1] = 1.0 / (1.0 + odds_against)
        return 1 if draw * (1.0 + odds_against) < 1.0 else 0
    top = 0.0
    for level in range(1, n_levels):
        top = max(top, weights[level])
    total = math.exp(-top)
    for level in range(1, n_levels):
        weights[level] = math.exp(weights[level] - top)
        total += weights[level]
    left = draw * total
    new = 0
    for level in range(n_levels - 1, 0, -1):
        if left < weights[level]:
            new = level
            break
        left -= weights[level]
    if keep:
        for level in range(1, n_levels):
            weights[level] /= total
    return new


@njit(cache=True, nogil=True, forceinline=True)
def place_in_table(first, state, k, ptr, parents, strides):
    """Return the position of a state in the table of k, which begins at ``first``.

    The parents of k and their strides are the entries ``ptr[k]`` to ``ptr[k + 1] - 1``.
    """
    for a in range(ptr[k], ptr[k + 1]):
        first += np.int64(state[parents[a]]) * strides[a]
    return first


@njit(cache=True, nogil=True, forceinline=True)
def add_item_evidence(log_odds, i, k, on, level, sub, items):
    """Return the log odds of ``level`` of latent k against level 0 after the items of row i.

    ``sub`` are the positions of the items in their tables, with the latent at level ``on``;
    ``items`` is a tuple (x, observed, has_gaps, latent_ptr, latent_items, latent_strides, theta,
    partition) as in :func:`sweep_listed`.
    """
    x, observed, has_gaps, latent_ptr, latent_items, latent_strides, theta, partition = items
    for a in range(latent_ptr[k], latent_ptr[k + 1]):
        j = latent_items[a]
        if has_gaps and observed[i, j] == 0:
            continue
        zero = sub[j] - on * latent_strides[a]
        there = zero + level * latent_strides[a]
        log_odds += x[i, j] * (theta[there] - theta[zero])
        log_odds -= partition[there] - partition[zero]
    return log_odds


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
        Increase of the state number per level of latent k.
    levels : int64 (K,)
    latent_ptr, latent_items, latent_strides : int64
        Items that load on each latent, and the latent's stride in the item's own sub-states.
    item_ptr, item_parents, item_strides : int64
        Latents that load on each item, and their strides in its sub-states.
    table_ptr, theta, partition : int64 (J,), float64, float64
        Concatenated tables over the sub-states of each item.
    seed, iteration, n_sweeps : uint64, int, int
        Random numbers depend on (seed, iteration, row) only, not on the number of threads.
    """
    n_latents = strides.shape[0]
    n_items = x.shape[1]
    sub = np.empty(n_items, dtype=np.int64)
    order = np.empty(n_latents, dtype=np.int64)
    weights = np.empty(levels.max())
    golden = np.uint64(0x9E3779B97F4A7C15)
    to_unit = 1.0 / 9007199254740992.0
    items = (x, observed, has_gaps, latent_ptr, latent_items, latent_strides, theta, partition)
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
                    log_odds = add_item_evidence(log_odds, i, k, on, level, sub, items)
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
    """Add weighted rows to count (S,), sum_x (S, J) and gap_count (S, M)."""
    for i in range(states.shape[0]):
        s, w = states[i], weights[i]
        count[s] += w
        for j in range(x.shape[1]):
            sum_x[s, j] += w * x[i, j]
        for m in range(gaps.shape[1]):
            gap_count[s, m] += w * gaps[i, m]


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
        Latents that load on each item, and their strides in its sub-states.
    table_ptr, theta, partition : int64 (J + 1,), float64, float64
        Concatenated tables over the sub-states of each item.
    latent_ptr, latent_items, latent_strides : int64
        Items that load on each latent, and the latent's stride in the item's sub-states.
    parent_ptr, parents, parent_strides : int64
        Parents of each latent, and their strides in its table.
    law_ptr, log_law : int64 (K + 1,), float64
        Concatenated log conditional tables; a latent's own level changes fastest.
    child_ptr, children, child_strides : int64
        Children of each latent, and the latent's stride in the child's table.
    seed, iteration, addresses : uint64, int, uint64 (N,)
        Random numbers depend on (seed, iteration, row's address) only, not on the number of
        threads.
    n_sweeps, coldness : int, float
        Log odds are multiplied by ``coldness``: 1 samples, large values maximise.
    keep, sums, sum_ptr : bool, float64 (N, F), int64 (K,)
        With ``keep``, the probability of each level u > 0 of latent k is added to column
        ``sum_ptr[k] + u - 1``; it has less Monte Carlo noise than the draws.
    """
    n_items = item_ptr.shape[0] - 1
    n_latents = latent_ptr.shape[0] - 1
    sub = np.empty(n_items, dtype=np.int64)
    family = np.empty(n_latents, dtype=np.int64)
    weights = np.empty(levels.max())
    golden = np.uint64(0x9E3779B97F4A7C15)
    to_unit = 1.0 / 9007199254740992.0
    items = (x, observed, has_gaps, latent_ptr, latent_items, latent_strides, theta, partition)
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
                    log_odds = add_item_evidence(log_odds, i, k, on, level, sub, items)
                    weights[level] = coldness * log_odds
                word += golden
                draw = float(mix(word) >> np.uint64(11)) * to_unit
                if n_levels == 2:
                    # Binary latents, the usual case, need no array.
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
    """Write each row's ``log f(x, z)`` without the part free of latents to ``out`` (N,)."""
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
