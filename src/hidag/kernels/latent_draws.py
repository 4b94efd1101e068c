"""What sweeps and tallies of sampled latents share: random numbers, draws, places in tables.

What runs for every row and item is put in its caller's place (``forceinline``): as a call it would
cost more than what it does.
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
    """Return where the table of k, which begins at ``first``, has a state's levels of its parents.

    Parents of k, and what a level of each adds, stand from ``ptr[k]`` to before ``ptr[k + 1]``.
    """
    for a in range(ptr[k], ptr[k + 1]):
        first += np.int64(state[parents[a]]) * strides[a]
    return first


@njit(cache=True, nogil=True, forceinline=True)
def with_items(
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
):
    """Return log odds of ``level`` of latent k against level 0 after what the items of row i say.

    Items are where ``sub`` says in their tables, with the latent at level ``on``.
    """
    for a in range(latent_ptr[k], latent_ptr[k + 1]):
        j = latent_items[a]
        if has_gaps and observed[i, j] == 0:
            continue
        zero = sub[j] - on * latent_strides[a]
        there = zero + level * latent_strides[a]
        log_odds += x[i, j] * (theta[there] - theta[zero])
        log_odds -= partition[there] - partition[zero]
    return log_odds
