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
    table = np.empty(n_states)
    for g in range(n_graphs):
        laws[g] = 1.0
        for k in range(levels.size):
            own, m = cells[g, k], levels[k]
            size = own.max() + 1
            table[:size] = 0.0
            for s in range(n_states):
                table[own[s]] += counts[g, s]
            for first in range(0, size, m):
                given = 0.0
                for c in range(first, first + m):
                    given += table[c]
                for c in range(first, first + m):
                    table[c] = table[c] / given if given > 1e-200 else 1.0 / m
            for s in range(n_states):
                laws[g, s] *= table[own[s]]
        laws[g] /= laws[g].sum()


@njit(cache=True, nogil=True)
def sums_over_margins(counts, prior, levels, out):
    """Write sums over the cells of the margins of all sets of latents, (2, 2^K).

    The first is of m log m for counts m, the second the log of the probability of such counts one
    by one under a Dirichlet prior with parameters ``prior``; both (S,).
    """
    n, last_set = levels.size, (1 << levels.size) - 1
    sizes = np.ones(last_set + 1, dtype=np.int64)
    for mask in range(1, last_set + 1):
        for a in range(n):
            if mask >> a & 1:
                sizes[mask] *= levels[a]
    first = np.cumsum(sizes) - sizes
    cells = np.zeros((2, sizes.sum()))
    cells[0, first[last_set] :], cells[1, first[last_set] :] = counts, prior
    for mask in range(last_set, -1, -1):
        if mask < last_set:
            # From a margin with one latent more, after which all others are in the set.
            last, inner = n - 1, 1
            while mask >> last & 1:
                inner *= levels[last]
                last -= 1
            larger, block = first[mask | 1 << last], inner * levels[last]
            for place in range(sizes[mask]):
                begin = larger + place // inner * block + place % inner
                for row in range(2):
                    for v in range(levels[last]):
                        cells[row, first[mask] + place] += cells[row, begin + v * inner]
        out[:, mask] = 0.0
        for place in range(first[mask], first[mask] + sizes[mask]):
            m, a = cells[0, place], cells[1, place]
            if m > 0.0:
                out[0, mask] += m * math.log(m)
            if a > 0.0:
                out[1, mask] += math.lgamma(a + m) - math.lgamma(a)


@njit(cache=True, nogil=True)
def imsets(graphs, words, out):
    """Write the coordinates (n, c) of graphs (n, K), and return a number for each one's class.

    The coordinates are the pairs, then the triples, of the characteristic imset: whether one of the
    members has the others as parents. ``words`` (c,) are random numbers.
    """
    n = graphs.shape[1]
    keys = np.zeros(len(graphs), dtype=np.uint64)
    for g in range(len(graphs)):
        parents, place, triple = graphs[g], 0, n * (n - 1) // 2
        for a in range(n):
            for b in range(a + 1, n):
                if (parents[a] >> b | parents[b] >> a) & 1:
                    out[g, place] = 1
                    keys[g] += words[place]
                place += 1
                for c in range(b + 1, n):
                    found = parents[a] >> b & parents[a] >> c
                    found |= parents[b] >> a & parents[b] >> c
                    found |= parents[c] >> a & parents[c] >> b
                    if found & 1:
                        out[g, triple] = 1
                        keys[g] += words[triple]
                    triple += 1
    return keys


@njit(cache=True, nogil=True)
def families_of_imset(effects, out):
    """Write the tables (K, 2^K) of families whose sums over a graph are effects (c,) of imsets."""
    n, place, triple = len(out), 0, len(out) * (len(out) - 1) // 2
    pairs, triples = np.zeros((n, n)), np.zeros((n, n, n))
    for a in range(n):
        for b in range(a + 1, n):
            pairs[a, b] = pairs[b, a] = effects[place]
            place += 1
            for c in range(b + 1, n):
                triples[a, b, c] = triples[b, a, c] = triples[c, a, b] = effects[triple]
                triple += 1
    for k in range(n):
        out[k, 0] = 0.0
        last = 0
        for mask in range(1, out.shape[1]):
            last += mask == 1 << (last + 1)
            value = out[k, mask ^ 1 << last] + pairs[k, last]
            for a in range(last):
                if mask >> a & 1:
                    value += triples[k, a, last]
            out[k, mask] = value


@njit(cache=True, nogil=True)
def members_of_class(graph, most):
    """Return the graphs (n, K) of a Markov equivalence class, at most about ``most``.

    Members are connected by reversals of covered edges (Chickering 1995).
    """
    n = graph.size
    found = np.empty((most + n * n, n), dtype=np.int64)
    found[0] = graph
    size, now = 1, 0
    while now < size and size < most:
        for k in range(n):
            for a in range(n):
                covered = found[now, k] >> a & 1 and found[now, k] ^ 1 << a == found[now, a]
                if not covered:
                    continue
                found[size] = found[now]
                found[size, k] = found[now, a]
                found[size, a] = found[now, a] | 1 << k
                new = True
                for other in range(size):
                    new = new and (found[other] != found[size]).any()
                size += new
        now += 1
    return found[:size]


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
def _log_products(within, total, rest, lowest, logs):
    """Write the log weights of graphs on larger sets whose members outside ``rest`` are sinks.

    ``logs`` (2^K,) has them by the sinks; ``lowest`` (2^K,) is the first member of each set.
    """
    others = (total.size - 1) ^ rest
    logs[0] = total[rest]
    sinks = -others & others
    while sinks:
        k = lowest[sinks]
        logs[sinks] = logs[sinks ^ (1 << k)] + within[k, rest]
        sinks = (sinks - others) & others


@njit(cache=True, nogil=True)
def sum_over_dags(scores, edges):
    """Return the log of the sum of all graphs' weights; write the shares with each edge (K, K).

    Graphs on a set are summed by their sinks, with inclusion and exclusion (Tian and He 2009). The
    derivatives of the log sum, by the chain rule backwards, are the shares of graphs in which a
    latent's parents are in a set.
    """
    n, size = scores.shape
    within, logs = scores.copy(), np.empty(size)
    lowest, signs = np.zeros(size, dtype=np.int64), np.ones(size)
    for mask in range(1, size):
        while not mask >> lowest[mask] & 1:
            lowest[mask] += 1
        signs[mask] = -signs[mask & (mask - 1)]
    for k in range(n):
        for mask in range(size):
            if mask >> k & 1:
                within[k, mask] = -np.inf
        _sum_subsets(within[k])
    # Sums are values times the exponential of the largest term.
    total, values = np.full(size, -np.inf), np.zeros(size)
    total[0], values[0] = 0.0, 1.0
    for rest in range(size):
        total[rest] = total[rest] + math.log(values[rest]) if values[rest] > 0.0 else -np.inf
        if total[rest] == -np.inf:
            continue
        _log_products(within, total, rest, lowest, logs)
        others = (size - 1) ^ rest
        sinks = -others & others
        while sinks:
            whole = rest | sinks
            if logs[sinks] > total[whole]:
                values[whole] = values[whole] * math.exp(total[whole] - logs[sinks]) - signs[sinks]
                total[whole] = logs[sinks]
            elif logs[sinks] > -np.inf:
                values[whole] -= signs[sinks] * math.exp(logs[sinks] - total[whole])
            sinks = (sinks - others) & others
    slopes, of_families = np.zeros(size), np.empty(n)
    slopes[-1] = 1.0
    edges[:] = 0.0
    for rest in range(size - 2, -1, -1):
        if total[rest] == -np.inf:
            continue
        _log_products(within, total, rest, lowest, logs)
        of_families[:] = 0.0
        others = (size - 1) ^ rest
        sinks = -others & others
        while sinks:
            whole = rest | sinks
            if slopes[whole] != 0.0 and logs[sinks] > -np.inf and total[whole] > -np.inf:
                share = -signs[sinks] * slopes[whole] * math.exp(logs[sinks] - total[whole])
                slopes[rest] += share
                left = sinks
                while left:
                    of_families[lowest[left]] += share
                    left &= left - 1
            sinks = (sinks - others) & others
        for k in range(n):
            if of_families[k] == 0.0:
                continue
            for a in range(n):
                if rest >> a & 1:
                    fewer = within[k, rest ^ (1 << a)] - within[k, rest]
                    edges[a, k] -= of_families[k] * math.expm1(fewer)
    return total[-1]
