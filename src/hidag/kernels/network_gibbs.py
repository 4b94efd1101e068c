"""Gibbs sweeps over binary latents whose law is a network: a flip looks at its Markov blanket."""

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
    item_ptr,
    item_parents,
    table_ptr,
    theta,
    partition,
    latent_ptr,
    latent_items,
    latent_bits,
    parent_ptr,
    parents,
    parent_bits,
    law_ptr,
    log_law,
    child_ptr,
    children,
    child_bits,
    seed,
    iteration,
    addresses,
    n_sweeps,
    coldness,
    keep,
    sums,
):
    """Update the latent states of rows ``start`` to ``stop`` in place.

    Parameters
    ----------
    states : uint8 (N, K)
    x, observed, has_gaps : float64 (N, at least J), uint8 (N, J), bool
        Responses with zeros in missing cells; the mask is read only when ``has_gaps``.
    item_ptr, item_parents : int64
        Latents that load on each item; the first has bit 1 in the item's sub-state.
    table_ptr, theta, partition : int64 (J + 1,), float64, float64
        Tables over each item's sub-states, one after the other.
    latent_ptr, latent_items, latent_bits : int64
        Items that load on each latent, and the latent's bit in the item's sub-state.
    parent_ptr, parents, parent_bits : int64
        Parents of each latent, and their bits in its configuration.
    law_ptr, log_law : int64 (K + 1,), float64
        Log conditional tables, one after the other: entry 2 * configuration + level.
    child_ptr, children, child_bits : int64
        Children of each latent, and the latent's bit in the child's configuration.
    seed, iteration, addresses : uint64, int, uint64 (N,)
        Random numbers depend on (seed, iteration, row's address) alone, not on how rows are shared
        out.
    n_sweeps, coldness : int, float
        Log odds are multiplied with ``coldness``: 1 samples, much more climbs.
    keep, sums : bool, float64 (N, K)
        Where, if asked for, each flip's probability of a one is added: less noisy than the draws.
    """
    n_items = item_ptr.shape[0] - 1
    n_latents = latent_ptr.shape[0] - 1
    sub = np.empty(n_items, dtype=np.int64)
    family = np.empty(n_latents, dtype=np.int64)
    golden = np.uint64(0x9E3779B97F4A7C15)
    to_unit = 1.0 / 9007199254740992.0
    root = _mix(np.uint64(seed) + golden * np.uint64(iteration + 1))
    for i in range(start, stop):
        word = _mix(root ^ (golden * (addresses[i] + np.uint64(1))))
        state = states[i]
        for j in range(n_items):
            code = table_ptr[j]
            for a in range(item_ptr[j], item_ptr[j + 1]):
                code += np.int64(state[item_parents[a]]) << (a - item_ptr[j])
            sub[j] = code
        for k in range(n_latents):
            code = law_ptr[k]
            for a in range(parent_ptr[k], parent_ptr[k + 1]):
                code += 2 * np.int64(state[parents[a]]) * parent_bits[a]
            family[k] = code
        for _ in range(n_sweeps):
            for k in range(n_latents):
                on = np.int64(state[k])
                log_odds = log_law[family[k] + 1] - log_law[family[k]]
                for a in range(child_ptr[k], child_ptr[k + 1]):
                    child = children[a]
                    zero = family[child] - 2 * on * child_bits[a] + np.int64(state[child])
                    log_odds += log_law[zero + 2 * child_bits[a]] - log_law[zero]
                for a in range(latent_ptr[k], latent_ptr[k + 1]):
                    j = latent_items[a]
                    if has_gaps and observed[i, j] == 0:
                        continue
                    zero = sub[j] - on * latent_bits[a]
                    one = zero + latent_bits[a]
                    log_odds += x[i, j] * (theta[one] - theta[zero])
                    log_odds -= partition[one] - partition[zero]
                word += golden
                draw = float(_mix(word) >> np.uint64(11)) * to_unit
                odds_against = math.exp(-coldness * log_odds)
                new = 1 if draw * (1.0 + odds_against) < 1.0 else 0
                if keep:
                    sums[i, k] += 1.0 / (1.0 + odds_against)
                if new != on:
                    change = new - on
                    state[k] = new
                    for a in range(latent_ptr[k], latent_ptr[k + 1]):
                        sub[latent_items[a]] += change * latent_bits[a]
                    for a in range(child_ptr[k], child_ptr[k + 1]):
                        family[children[a]] += 2 * change * child_bits[a]


@njit(cache=True, nogil=True)
def log_joint(
    states,
    x,
    observed,
    has_gaps,
    item_ptr,
    item_parents,
    table_ptr,
    theta,
    partition,
    parent_ptr,
    parents,
    parent_bits,
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
            code = table_ptr[j]
            for a in range(item_ptr[j], item_ptr[j + 1]):
                code += np.int64(state[item_parents[a]]) << (a - item_ptr[j])
            total += x[i, j] * theta[code] - partition[code]
        for k in range(parent_ptr.shape[0] - 1):
            code = law_ptr[k] + np.int64(state[k])
            for a in range(parent_ptr[k], parent_ptr[k + 1]):
                code += 2 * np.int64(state[parents[a]]) * parent_bits[a]
            total += log_law[code]
        out[i] = total
