"""Laws over many graphs at once, and sums over all directed acyclic graphs.

Parent sets are bit masks of at most 13 latents, and ``scores[k, mask]`` is the log weight of latent
``k`` with the parents ``mask``; a graph's weight is the product over its latents.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def project_laws(counts, cells, levels, laws):
    """Write the laws (G, S) of the conditional frequencies of counts (G, S).

    ``cells`` (G, K, S) number the configurations of a latent's parents and its own levels, which
    change fastest.
    """
    n_graphs, n_states = counts.shape
    table, margin = np.empty(2 * n_states), np.empty(n_states)
    for g in range(n_graphs):
        laws[g] = 1.0
        for k in range(levels.size):
            own, m = cells[g, k], levels[k]
            table[:] = 0.0
            margin[:] = 0.0
            for s in range(n_states):
                table[own[s]] += counts[g, s]
                margin[own[s] // m] += counts[g, s]
            for s in range(n_states):
                given = margin[own[s] // m]
                laws[g, s] *= table[own[s]] / given if given > 1e-200 else 1.0 / m
        laws[g] /= laws[g].sum()


@njit(cache=True, nogil=True)
def _makes_cycle(parents, cause, effect):
    """Return whether ``effect`` is ``cause`` or one of its ancestors."""
    reached, front = np.int64(0), np.int64(1) << cause
    while front:
        reached |= front
        further = np.int64(0)
        for v in range(parents.size):
            if front >> v & 1:
                further |= parents[v]
        front = further & ~reached
    return (reached >> effect & 1) == 1


@njit(cache=True, nogil=True)
def sample_dags(scores, parents, moves, limits, out):
    """Write graphs (n, K) of a Markov chain at equal distances, from ``parents`` on.

    ``moves`` (m, 3) propose a cause, an effect, and whether their edge is reversed instead of added
    or deleted; a move is accepted if its gain exceeds its limit (m,).
    """
    every = len(moves) // len(out)
    for t in range(len(out) * every):
        cause, effect, turned = moves[t]
        has = parents[effect] >> cause & 1
        new, back = parents[effect] ^ (np.int64(1) << cause), parents[cause]
        gain = scores[effect, new] - scores[effect, parents[effect]]
        possible = True
        if turned:
            back = parents[cause] | (np.int64(1) << effect)
            gain += scores[cause, back] - scores[cause, parents[cause]]
            possible = has == 1
        if possible and limits[t] < gain:
            old = parents[effect]
            parents[effect] = new
            cycle = has == 0 and _makes_cycle(parents, cause, effect)
            if turned:
                cycle = _makes_cycle(parents, effect, cause)
            if cycle:
                parents[effect] = old
            elif turned:
                parents[cause] = back
        if (t + 1) % every == 0:
            out[t // every] = parents


@njit(cache=True, nogil=True)
def _sum_subsets(logs):
    """Replace the log weights (2^K,) of sets by those of the sums over their subsets."""
    bit = 1
    while bit < logs.size:
        for mask in range(logs.size):
            if mask & bit and logs[mask ^ bit] > -np.inf:
                high, low = logs[mask], logs[mask ^ bit]
                if low > high:
                    high, low = low, high
                logs[mask] = high + math.log1p(math.exp(low - high))
        bit *= 2


@njit(cache=True, nogil=True)
def _sum_dags(within, total):
    """Return the log sum over all graphs (Tian and He 2009), given those over parents in sets.

    Graphs on a set are summed by their sinks, with inclusion and exclusion; ``within`` and
    ``total`` have logarithms, (K, 2^K) and (2^K,).
    """
    total[0] = 0.0
    for whole in range(1, total.size):
        top = -np.inf
        for k in range(len(within)):
            if whole >> k & 1:
                rest = whole ^ (1 << k)
                top = max(top, total[rest] + within[k, rest])
        total[whole] = -np.inf
        if top == -np.inf:
            continue
        value, sinks = 0.0, whole
        while sinks:
            rest = whole ^ sinks
            term, sign = total[rest] - top, -1.0
            for k in range(len(within)):
                if sinks >> k & 1:
                    term += within[k, rest]
                    sign = -sign
            value += sign * math.exp(term)
            sinks = (sinks - 1) & whole
        if value > 0.0:
            total[whole] = top + math.log(value)
    return total[-1]


@njit(cache=True, nogil=True)
def _sums_within(scores):
    """Return the log sums of each latent's weights over parents in sets, (K, 2^K)."""
    out = scores.copy()
    for k in range(len(out)):
        for mask in range(out.shape[1]):
            if mask >> k & 1:
                out[k, mask] = -np.inf
        _sum_subsets(out[k])
    return out


@njit(cache=True, nogil=True)
def log_sum_of_dags(scores):
    """Return the log of the sum of all graphs' weights."""
    return _sum_dags(_sums_within(scores), np.empty(scores.shape[1]))


@njit(cache=True, nogil=True)
def sum_over_dags(scores, edges):
    """Return the log of the sum of all graphs' weights; write the shares with each edge (K, K)."""
    n, size = scores.shape
    within, total = _sums_within(scores), np.empty(size)
    whole = _sum_dags(within, total)
    for k in range(n):
        every = within[k].copy()
        for a in range(n):
            edges[a, k] = 0.0
            if a == k:
                continue
            for mask in range(size):
                own = mask >> a & 1 and not mask >> k & 1
                within[k, mask] = scores[k, mask] if own else -np.inf
            _sum_subsets(within[k])
            edges[a, k] = math.exp(_sum_dags(within, total) - whole)
        within[k] = every
    return whole
