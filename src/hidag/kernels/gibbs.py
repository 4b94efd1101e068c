"""Gibbs sweeps over the latents of each row, given a list of joint states or a network.

Under a network, the full conditional of a latent depends on its Markov blanket and on the items
that load on it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: Increment of SplitMix64, and the factor from 53 random bits to [0, 1).
GOLDEN, TO_UNIT = np.uint64(0x9E3779B97F4A7C15), 1.0 / 9007199254740992.0


@njit(cache=True, nogil=True)
def mix(x):
    """Return a well-mixed 64-bit word (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def draw_level(weights, n_levels, draw, keep):
    """Return a level drawn by log odds against level 0; ``keep`` turns them into probabilities."""
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
def place_in_table(state, k, layout):
    """Return the position of a state in the table of k (an item or a latent).

    ``layout``: where the parents of each k begin, parents, their strides, where its table begins.
    """
    ptr, parents, strides, table_ptr = layout
    place = table_ptr[k]
    for a in range(ptr[k], ptr[k + 1]):
        place += np.int64(state[parents[a]]) * strides[a]
    return place


@njit(cache=True, nogil=True, forceinline=True)
def add_item_evidence(log_odds, i, k, on, level, sub, cells, latents, tables):
    """Return the log odds of ``level`` of latent k against level 0 after the items of row i.

    ``sub`` are the items' places in their tables at level ``on``; for others: `sweep_listed`.
    """
    (x, observed, has_gaps), (latent_ptr, latent_items, latent_strides) = cells, latents
    theta, partition = tables
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
def sweep_listed(states, start, stop, cells, law, latents, items, tables, stream):
    """Update the state numbers (N,) of rows ``start`` to ``stop`` in place.

    ``cells``: responses (N, J) with zeros in missing cells, mask of observed cells (N, J), and
    whether the mask is to be read. ``law``: log probabilities (S,), increase of the state number
    per level of each latent (K,), levels (K,). ``latents``: items that load on each latent, and the
    latent's stride in their sub-states. ``items``: layout for :func:`place_in_table`. ``tables``:
    theta and log partitions over the sub-states. ``stream``: seed, iteration, number of sweeps;
    random numbers depend on (seed, iteration, row) only, not on the number of threads.
    """
    x, (log_law, strides, levels), (seed, iteration, n_sweeps) = cells[0], law, stream
    latent_ptr, latent_items, latent_strides = latents
    item_ptr, item_parents, item_strides, table_ptr = items
    n_latents = strides.shape[0]
    n_items = x.shape[1]
    sub = np.empty(n_items, dtype=np.int64)
    order = np.empty(n_latents, dtype=np.int64)
    weights = np.empty(levels.max())
    for i in range(start, stop):
        word = mix(np.uint64(seed) + GOLDEN * np.uint64(iteration + 1))
        word = mix(word ^ (GOLDEN * np.uint64(i + 1)))
        state = states[i]
        for j in range(n_items):
            code = table_ptr[j]
            for a in range(item_ptr[j], item_ptr[j + 1]):
                k = item_parents[a]
                code += (state // strides[k]) % levels[k] * item_strides[a]
            sub[j] = code
        for _ in range(n_sweeps):
            for k in range(n_latents):
                word += GOLDEN
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
                    weights[level] = add_item_evidence(
                        log_odds, i, k, on, level, sub, cells, latents, tables
                    )
                word += GOLDEN
                draw = float(mix(word) >> np.uint64(11)) * TO_UNIT
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
    states, start, stop, cells, levels, items, tables, latents, network, log_law, offspring, stream,
    totals,
):  # fmt: skip
    """Update the latent states (N, K) of rows ``start`` to ``stop`` in place.

    ``cells``, ``items``, ``tables``, ``latents`` are those of :func:`sweep_listed`. ``network``:
    layout of the log conditional tables ``log_law``; a latent's own level changes fastest.
    ``offspring``: children of each latent, and the latent's stride in their tables. ``stream``:
    seed, iteration, addresses (N,), number of sweeps and coldness; random numbers depend on (seed,
    iteration, address) only, and log odds are multiplied by the coldness: 1 samples, large values
    maximise. ``totals``: if the first is set, the probability of each level u > 0 of latent k is
    added to column ``sum_ptr[k] + u - 1`` of sums (N, F); it has less noise than the draws.
    """
    latent_ptr, latent_items, latent_strides = latents
    child_ptr, children, child_strides = offspring
    (seed, iteration, addresses, n_sweeps, coldness), (keep, sums, sum_ptr) = stream, totals
    n_items, n_latents = items[0].shape[0] - 1, latent_ptr.shape[0] - 1
    sub = np.empty(n_items, dtype=np.int64)
    family = np.empty(n_latents, dtype=np.int64)
    weights = np.empty(levels.max())
    root = mix(np.uint64(seed) + GOLDEN * np.uint64(iteration + 1))
    for i in range(start, stop):
        word = mix(root ^ (GOLDEN * (addresses[i] + np.uint64(1))))
        state = states[i]
        for j in range(n_items):
            sub[j] = place_in_table(state, j, items)
        for k in range(n_latents):
            family[k] = place_in_table(state, k, network)
        for _ in range(n_sweeps):
            for k in range(n_latents):
                on = np.int64(state[k])
                n_levels = levels[k]
                # Log odds of each level against level 0.
                for level in range(1, n_levels):
                    log_odds = log_law[family[k] + level] - log_law[family[k]]
                    for a in range(child_ptr[k], child_ptr[k + 1]):
                        child = children[a]
                        zero = family[child] - on * child_strides[a] + np.int64(state[child])
                        log_odds += log_law[zero + level * child_strides[a]] - log_law[zero]
                    log_odds = add_item_evidence(
                        log_odds, i, k, on, level, sub, cells, latents, tables
                    )
                    weights[level] = coldness * log_odds
                word += GOLDEN
                draw = float(mix(word) >> np.uint64(11)) * TO_UNIT
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
def log_joint(states, cells, items, tables, network, log_law, out):
    """Write each row's ``log f(x, z)`` without the part free of latents to ``out`` (N,)."""
    (x, observed, has_gaps), (theta, partition) = cells, tables
    for i in range(states.shape[0]):
        state = states[i]
        total = 0.0
        for j in range(items[0].shape[0] - 1):
            if not has_gaps or observed[i, j] != 0:
                code = place_in_table(state, j, items)
                total += x[i, j] * theta[code] - partition[code]
        for k in range(network[0].shape[0] - 1):
            total += log_law[place_in_table(state, k, network) + np.int64(state[k])]
        out[i] = total
