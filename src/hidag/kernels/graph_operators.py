"""Insert, delete and reverse operators of a greedy equivalence search.

An operator on the pair (x, y) has a set C of neighbours of y. Gains are cached between steps and
updated for pairs marked dirty, because they depend only on the neighbourhood of the pair; the path
condition is checked when an operator is about to be applied. Pairs without a valid C are skipped.
If a local score is missing, the call requests it and returns; the caller computes it and repeats.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_sets import (
    BELOW,
    CHILDREN,
    DELETE,
    INSERT,
    JOINED,
    NEIGHBOURS,
    ONE,
    PARENTS,
    REVERSE,
    ZERO,
    add,
    drop,
    in_word,
    lowest,
    next_in,
    size,
)
from hidag.kernels.local_scores import parent_gain

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "74899012b4b7"

#: Answers of ``propose``.
ASKS, FOUND, NOTHING = 0, 1, 2


@njit(cache=True)
def kind_of(x, y, graph):
    """Return the kind of operator of the pair (x, y)."""
    if not in_word(graph[JOINED, y, x >> 6], x):
        return INSERT
    if in_word(graph[CHILDREN, y, x >> 6], x):
        return REVERSE
    return DELETE


@njit(cache=True)
def has_no_set(x, y, kind, graph):
    """Return whether the variables below y exclude every C."""
    if kind == INSERT:
        return in_word(graph[BELOW, y, x >> 6], x)
    if kind == REVERSE:
        for w in range(graph.shape[2]):
            word = graph[PARENTS, x, w] & graph[BELOW, y, w]
            if y >> 6 == w:
                word &= ~(ONE << np.uint64(y & 63))
            if word != ZERO:
                return True
    return False


@njit(cache=True, forceinline=True)
def smallest_set(x, y, kind, graph, chosen, may_join):
    """Write the smallest C and its possible extensions ``may_join[0]``; return False if invalid."""
    n_words = graph.shape[2]
    if kind == DELETE:
        for w in range(n_words):
            chosen[w] = ZERO
            may_join[0, w] = graph[NEIGHBOURS, y, w] & graph[JOINED, x, w]
        return True
    # The smallest C must be a clique, and additions must be adjacent to all of it.
    for w in range(n_words):
        chosen[w] = graph[NEIGHBOURS, y, w] & graph[JOINED, x, w]
        may_join[0, w] = graph[NEIGHBOURS, y, w] & ~graph[JOINED, x, w]
    k = next_in(chosen, 0)
    while k >= 0:
        for v in range(n_words):
            rest = chosen[v]
            if k >> 6 == v:
                rest &= ~(ONE << np.uint64(k & 63))
            if rest & ~graph[JOINED, k, v] != ZERO:
                return False
            may_join[0, v] &= graph[JOINED, k, v]
        k = next_in(chosen, k + 1)
    return True


@njit(cache=True, forceinline=True)
def next_set(graph, chosen, may_join, taken, depth):
    """Write the next clique C, depth first, and return its depth, -1 after the last."""
    n_words = graph.shape[2]
    while depth >= 0:
        for w in range(n_words):
            word = may_join[depth, w]
            if word != ZERO:
                k = w * 64 + lowest(word)
                may_join[depth, w] = word & (word - ONE)
                taken[depth] = k
                add(chosen, k)
                for v in range(n_words):
                    may_join[depth + 1, v] = may_join[depth, v] & graph[JOINED, k, v]
                return depth + 1
        depth -= 1
        if depth >= 0:
            drop(chosen, taken[depth])
    return depth


@njit(cache=True)
def paths_are_blocked(x, y, kind, graph, chosen, seen, queue):
    """Return whether C blocks all partially directed paths from y to x, given work arrays."""
    if kind == DELETE:
        return True
    n_words = chosen.shape[0]
    for w in range(n_words):
        seen[w] = chosen[w]
        if kind == REVERSE:
            seen[w] |= graph[NEIGHBOURS, x, w]
    add(seen, y)
    queue[0] = y
    first, last = 0, 1
    while first < last:
        v = queue[first]
        first += 1
        for w in range(n_words):
            fresh = (graph[CHILDREN, v, w] | graph[NEIGHBOURS, v, w]) & ~seen[w]
            if kind == REVERSE and v == y and x >> 6 == w:
                fresh &= ~(ONE << np.uint64(x & 63))
            if fresh == ZERO:
                continue
            if x >> 6 == w and in_word(fresh, x):
                return False
            seen[w] |= fresh
            while fresh != ZERO:
                queue[last] = w * 64 + lowest(fresh)
                last += 1
                fresh &= fresh - ONE
    return True


@njit(cache=True)
def work_arrays(n, n_words):
    """Return work arrays: C, parents, additions to C by depth, last score, paths."""
    return (
        np.empty(n_words, dtype=np.uint64),
        np.empty(n_words, dtype=np.uint64),
        np.empty((n + 2, n_words), dtype=np.uint64),
        np.empty(n + 2, dtype=np.int64),
        np.zeros(n_words + 1, dtype=np.uint64),
        np.zeros(1),
        np.empty(n_words, dtype=np.uint64),
        np.empty(n + 2, dtype=np.int64),
    )


@njit(cache=True, forceinline=True)
def _tie_key(chosen, mix):
    """Return a pseudorandom key of a set that breaks ties."""
    out = ZERO
    k = next_in(chosen, 0)
    while k >= 0:
        out += mix[k]
        k = next_in(chosen, k + 1)
    return out


@njit(cache=True, forceinline=True)
def _is_refused(x, y, chosen, refused):
    """Return whether this operator was rejected before."""
    pairs, sets = refused
    for i in range(pairs.shape[0]):
        if pairs[i, 0] == x and pairs[i, 1] == y and (sets[i] == chosen).all():
            return True
    return False


@njit(cache=True)
def rate(x, y, kind, exact, search, best_set):
    """Return the best gain of the pair's operator over all C, and write that C to ``best_set``.

    Without ``exact`` the path condition and earlier rejections are ignored. NaN means that a score
    was missing. ``search`` is (graph, mix, max_parents, table, refused, work arrays); see
    :func:`propose`.
    """
    graph, mix, max_parents, table, refused, work = search
    chosen, row, may_join, taken, last_row, last_value, seen, queue = work
    n_words = graph.shape[2]
    if not smallest_set(x, y, kind, graph, chosen, may_join):
        return -np.inf
    shift = 0.0
    if kind == REVERSE:
        for w in range(n_words):
            row[w] = graph[PARENTS, x, w]
        drop(row, y)
        shift = -parent_gain(table, x, row, y, last_row, last_value)
    best, best_key, missing, depth = -np.inf, ZERO, False, 0
    while depth >= 0:
        for w in range(n_words):
            row[w] = graph[PARENTS, y, w] | chosen[w]
        drop(row, x)
        if kind == DELETE or size(row) < max_parents:
            gain = parent_gain(table, y, row, x, last_row, last_value)
            gain = -gain if kind == DELETE else gain + shift
            if np.isnan(gain):
                missing = True
            elif gain >= best:
                key = _tie_key(chosen, mix)
                if (gain > best or key > best_key) and (
                    exact == 0
                    or (
                        not _is_refused(x, y, chosen, refused)
                        and paths_are_blocked(x, y, kind, graph, chosen, seen, queue)
                    )
                ):
                    best, best_key = gain, key
                    for w in range(n_words):
                        best_set[w] = chosen[w]
        depth = next_set(graph, chosen, may_join, taken, depth)
    return np.nan if missing else best


@njit(cache=True)
def rate_pairs(pairs, graph, mix, max_parents, table, sets):
    """Return the best valid gain of each pair (-inf: none, NaN: not scored), its C in ``sets``."""
    work = work_arrays(graph.shape[1], graph.shape[2])
    search = (graph, mix, max_parents, table, (pairs[:0], sets[:0]), work)
    out = np.empty(pairs.shape[0])
    for i in range(pairs.shape[0]):
        x, y = pairs[i, 0], pairs[i, 1]
        kind = kind_of(x, y, graph)
        if has_no_set(x, y, kind, graph):
            out[i] = -np.inf
        else:
            out[i] = rate(x, y, kind, np.int64(1), search, sets[i])
    return out


@njit(cache=True)
def _is_allowed(x, y, kind, rules, allowed, excluded):
    """Return whether constraints and caller allow the pair's operator."""
    if (allowed >> kind) & 1 == 0:
        return False
    if kind == DELETE:
        return rules[x, y] & 2 == 0
    if kind == INSERT and x == excluded[0] and y == excluded[1]:
        return False
    return rules[x, y] & 1 == 0


@njit(cache=True)
def _best_of_row(y, graph, ratings, ranks, row_best, row_x):
    """Update the best x of row y for each kind of operator; ties are broken by rank."""
    for kind in range(3):
        row_best[kind, y] = -np.inf
        row_x[kind, y] = -1
    for x in range(ratings.shape[0]):
        rating = ratings[y, x]
        if rating == -np.inf:
            continue
        kind = kind_of(x, y, graph)
        best = row_best[kind, y]
        if rating > best or (rating == best and ranks[x] < ranks[row_x[kind, y]]):
            row_best[kind, y] = rating
            row_x[kind, y] = x


@njit(cache=True)
def _best_row(kind, ranks, row_best, row_x, threshold):
    """Return the row with the best rating above the threshold, or -1; ties are broken by rank."""
    y = np.int64(-1)
    for k in range(ranks.shape[0]):
        if row_best[kind, k] <= threshold:
            continue
        if y < 0 or row_best[kind, k] > row_best[kind, y]:
            y = k
        elif row_best[kind, k] == row_best[kind, y]:
            rank, least = ranks[k], ranks[y]
            if rank < least or (rank == least and ranks[row_x[kind, k]] < ranks[row_x[kind, y]]):
                y = k
    return y


@njit(cache=True)
def propose(
    graph, kept, ties, rules, allowed, excluded, max_parents, threshold, table, refused, answer
):
    """Update dirty ratings and return ASKS (scores are missing), FOUND or NOTHING.

    ``graph`` is as in ``graph_sets``, (5, K, n_words). ``kept`` is (ratings, dirty, dirty_rows,
    row_best, row_x): ``ratings[y, x]`` is the best gain of the operator of pair (x, y);
    ``row_best``, ``row_x`` (3, K) are the best rating of each row by kind of operator, and its x.
    ``ties``, rank of each variable by content and a hash of it, (K,), break exact ties.
    ``rules[x, y]`` is 1 if x -> y is forbidden, 2 if the edge is required. ``allowed`` is a bit set
    of kinds; the first with a gain above ``threshold`` is chosen, in the order delete, reverse,
    insert. The pair ``excluded`` is not inserted, unless it is -1; ``refused`` operators, pairs
    (n, 2) and sets (n, n_words), are not proposed again. ``table`` caches local scores, as in
    ``local_scores``. The operator found is written to ``answer``: its C, and kind, x, y and gain.
    """
    (ratings, dirty, dirty_rows, row_best, row_x), (ranks, mix) = kept, ties
    best_set, out = answer
    n = ratings.shape[0]
    search = (graph, mix, max_parents, table, refused, work_arrays(n, graph.shape[2]))
    asks = False
    for y in range(n):
        if dirty_rows[y] == 0:
            continue
        clean = True
        for x in range(n):
            if dirty[y, x] == 0:
                continue
            ratings[y, x] = -np.inf
            kind = kind_of(x, y, graph)
            if (
                x != y
                and _is_allowed(x, y, kind, rules, allowed, excluded)
                and not has_no_set(x, y, kind, graph)
            ):
                rating = rate(x, y, kind, np.int64(0), search, best_set)
                if np.isnan(rating):
                    clean = False
                    continue
                ratings[y, x] = rating
            dirty[y, x] = 0
        if clean:
            dirty_rows[y] = 0
            _best_of_row(y, graph, ratings, ranks, row_best, row_x)
        else:
            asks = True
    if asks:
        return ASKS
    n_touched = 0
    touched = np.empty((n * n, 2), dtype=np.int64)
    before = np.empty(n * n)
    found = NOTHING
    for kind in range(3):
        if (allowed >> kind) & 1 == 0:
            continue
        while found == NOTHING:
            y = _best_row(kind, ranks, row_best, row_x, threshold)
            if y < 0:
                break
            x = row_x[kind, y]
            gain = rate(x, y, kind, np.int64(1), search, best_set)
            if gain == ratings[y, x]:
                out[0], out[1], out[2], out[3] = kind, x, y, gain
                found = FOUND
            else:
                touched[n_touched, 0], touched[n_touched, 1] = y, x
                before[n_touched] = ratings[y, x]
                n_touched += 1
                ratings[y, x] = gain
                _best_of_row(y, graph, ratings, ranks, row_best, row_x)
    # The lowered ratings hold for this graph only.
    for i in range(n_touched - 1, -1, -1):
        y, x = touched[i, 0], touched[i, 1]
        ratings[y, x] = before[i]
        _best_of_row(y, graph, ratings, ranks, row_best, row_x)
    return found
