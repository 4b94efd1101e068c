"""Operators of the search: rate every ordered pair of variables and pick the best valid one.

Sets of variables are rows of 64-bit words. A pair (x, y) has exactly one operator, decided by
the graph: *insert* x -> y if the two are not joined, *reverse* y -> x into x -> y if y points at
x, else *delete* x -> y or x - y. Each comes with a set C of neighbours of y that become its
parents. With A the neighbours of y joined to x, C has to be

- insert (Chickering 2002, theorem 15): A and possibly more neighbours of y, all joined to each
  other, such that every way from y to x that never runs against an arrow meets C;
- delete (Chickering 2002, theorem 17): a part of A, all joined to each other;
- reverse (Nazaret and Blei 2024): as insert, but the ways may also meet a neighbour of x,
  and the edge y -> x itself does not count.

The gain is the change of the local score of y (reverse: and of x). It and the first half of the
conditions depend on the surroundings of the pair only, so ratings are kept between steps and
renewed for pairs marked dirty; the second half is checked when a pair is about to be taken.
A way that leaves y along an arrow cannot meet C, nor can one that enters x along an arrow meet
a neighbour of x, because a completed graph has no partially directed cycle. Such pairs, the bulk
of those without a valid C, are told from the variables below y and are not rated at all.

Local scores come from a hash table. What is missing there is written down as a question and the
call ends; the caller answers and calls again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_numbers import DELETE, INSERT, ONE, PLACES, REVERSE, SHUFFLE, ZERO

#: Answers of ``propose``.
ASKS = 0
FOUND = 1
NOTHING = 2

# Constants are passed on as np.int64(..): a literal would make numba compile the callee once more.


@njit(cache=True)
def _has(sets, i, k):
    return (sets[i, k >> 6] >> np.uint64(k & 63)) & ONE != ZERO


@njit(cache=True)
def _lowest(word):
    return PLACES[((word & (~word + ONE)) * SHUFFLE) >> np.uint64(58)]


@njit(cache=True)
def _look_up(keys, values, asked, counters, node, row):
    """Return the local score, or NaN after writing the question down.

    ``counters`` holds the number of stored scores and of open questions.
    """
    n_words = row.shape[0]
    mask = np.uint64(keys.shape[0] - 1)
    h = np.uint64(node + 1) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(n_words):
        h = (h ^ row[w]) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
    # A product's low bits know nothing of its factors' high bits: fold once more.
    h *= np.uint64(0x94D049BB133111EB)
    h ^= h >> np.uint64(32)
    slot = h & mask
    while True:
        if keys[slot, 0] == ZERO:
            if counters[1] == asked.shape[0] or 2 * counters[0] >= keys.shape[0]:
                return np.nan
            keys[slot, 0] = np.uint64(node + 1)
            for w in range(n_words):
                keys[slot, w + 1] = row[w]
            values[slot] = np.nan
            asked[counters[1]] = slot
            counters[0] += 1
            counters[1] += 1
            return np.nan
        if keys[slot, 0] == np.uint64(node + 1):
            same = True
            for w in range(n_words):
                if keys[slot, w + 1] != row[w]:
                    same = False
                    break
            if same:
                return values[slot]
        slot = (slot + ONE) & mask


@njit(cache=True)
def _worth(keys, values, asked, counters, node, row, x, memo, memo_value):
    """Return what parent x adds to the local score; ``row`` holds the others, and then x too.

    The score without x is the same for most x in a row of pairs; the last one is remembered.
    """
    known = memo[0] == np.uint64(node + 1)
    for w in range(row.shape[0]):
        known = known and memo[w + 1] == row[w]
    out = 0.0
    for turn in range(2):
        if turn == 0 and known:
            out = memo_value[0]
        else:
            out = _look_up(keys, values, asked, counters, node, row) - out
        if turn == 0:
            if not known and not np.isnan(out):
                memo[0] = np.uint64(node + 1)
                for w in range(row.shape[0]):
                    memo[w + 1] = row[w]
                memo_value[0] = out
            row[x >> 6] |= ONE << np.uint64(x & 63)
    return out


@njit(cache=True)
def _reaches(y, x, closed, reverse, children, neighbours, seen, queue):
    """Return whether a way from y that avoids ``closed`` and no arrow backwards ends at x."""
    n_words = closed.shape[0]
    for w in range(n_words):
        seen[w] = closed[w]
        if reverse == 1:
            seen[w] |= neighbours[x, w]
    seen[y >> 6] |= ONE << np.uint64(y & 63)
    queue[0] = y
    first = 0
    last = 1
    while first < last:
        v = queue[first]
        first += 1
        for w in range(n_words):
            fresh = (children[v, w] | neighbours[v, w]) & ~seen[w]
            if reverse == 1 and v == y and x >> 6 == w:
                fresh &= ~(ONE << np.uint64(x & 63))
            if fresh == ZERO:
                continue
            if x >> 6 == w and (fresh >> np.uint64(x & 63)) & ONE != ZERO:
                return True
            seen[w] |= fresh
            while fresh != ZERO:
                bit = _lowest(fresh)
                queue[last] = w * 64 + bit
                last += 1
                fresh &= fresh - ONE
    return False


@njit(cache=True)
def _kind(x, y, children, joined):
    if not _has(joined, y, x):
        return INSERT
    if _has(children, y, x):
        return REVERSE
    return DELETE


@njit(cache=True)
def _never(x, y, kind, parents, below):
    """Return whether the variables below y rule out every C."""
    if kind == INSERT:
        return _has(below, y, x)
    if kind == REVERSE:
        for w in range(parents.shape[1]):
            word = parents[x, w] & below[y, w]
            if y >> 6 == w:
                word &= ~(ONE << np.uint64(y & 63))
            if word != ZERO:
                return True
    return False


@njit(cache=True)
def _rate(
    x,
    y,
    kind,
    exact,
    parents,
    children,
    neighbours,
    joined,
    mix,
    max_parents,
    keys,
    values,
    asked,
    counters,
    refused_pairs,
    refused_sets,
    n_refused,
    work,
    chosen,
    row,
    seen,
    memo,
    memo_value,
    queue,
    best_set,
):
    """Return the best gain of the pair's operator over all C, and write that C to ``best_set``.

    Without ``exact`` only the conditions that depend on the surroundings are checked.
    NaN means that a score was missing.
    """
    n_words = parents.shape[1]
    first = 6  # rows of ``work`` from here on: what may still join C, by depth
    for w in range(n_words):
        chosen[w] = ZERO
        work[4, w] = neighbours[y, w] & joined[x, w]
    if kind != DELETE:
        # A must be complete; what is added must be joined to all of A.
        for w in range(n_words):
            chosen[w] = work[4, w]
            work[5, w] = neighbours[y, w] & ~joined[x, w]
        for w in range(n_words):
            word = chosen[w]
            while word != ZERO:
                k = w * 64 + _lowest(word)
                word &= word - ONE
                for v in range(n_words):
                    rest = chosen[v]
                    if k >> 6 == v:
                        rest &= ~(ONE << np.uint64(k & 63))
                    if rest & ~joined[k, v] != ZERO:
                        return -np.inf
                    work[5, v] &= joined[k, v]
        for w in range(n_words):
            work[4, w] = work[5, w]
    for w in range(n_words):
        work[first, w] = work[4, w]
    shift = 0.0
    if kind == REVERSE:
        for w in range(n_words):
            row[w] = parents[x, w]
        row[y >> 6] &= ~(ONE << np.uint64(y & 63))
        shift = -_worth(keys, values, asked, counters, x, row, y, memo, memo_value)
    x_word = x >> 6
    x_bit = ONE << np.uint64(x & 63)
    best = -np.inf
    best_key = ZERO
    missing = False
    depth = 0
    entered = True
    while True:
        if entered:
            entered = False
            n_base = 0
            for w in range(n_words):
                work[1, w] = parents[y, w] | chosen[w]
            work[1, x_word] &= ~x_bit
            for w in range(n_words):
                row[w] = work[1, w]
                word = work[1, w]
                while word != ZERO:
                    n_base += 1
                    word &= word - ONE
            if kind == DELETE or n_base < max_parents:
                gain = _worth(keys, values, asked, counters, y, row, x, memo, memo_value)
                gain = -gain if kind == DELETE else gain + shift
                if np.isnan(gain):
                    missing = True
                elif gain >= best:
                    key = ZERO
                    for w in range(n_words):
                        word = chosen[w]
                        while word != ZERO:
                            key += mix[w * 64 + _lowest(word)]
                            word &= word - ONE
                    fine = gain > best or key > best_key
                    if fine and exact == 1:
                        for i in range(n_refused):
                            if refused_pairs[i, 0] == x and refused_pairs[i, 1] == y:
                                same = True
                                for w in range(n_words):
                                    same = same and refused_sets[i, w] == chosen[w]
                                if same:
                                    fine = False
                                    break
                        if fine and kind != DELETE:
                            fine = not _reaches(
                                y,
                                x,
                                chosen,
                                np.int64(kind == REVERSE),
                                children,
                                neighbours,
                                seen,
                                queue,
                            )
                    if fine:
                        best = gain
                        best_key = key
                        for w in range(n_words):
                            best_set[w] = chosen[w]
        # Next clique: take the lowest variable still allowed at this depth.
        k = -1
        for w in range(n_words):
            if work[first + depth, w] != ZERO:
                k = w * 64 + _lowest(work[first + depth, w])
                work[first + depth, w] &= work[first + depth, w] - ONE
                break
        if k >= 0:
            queue[queue.shape[0] - 1 - depth] = k
            chosen[k >> 6] |= ONE << np.uint64(k & 63)
            for w in range(n_words):
                work[first + depth + 1, w] = work[first + depth, w] & joined[k, w]
            depth += 1
            entered = True
        else:
            depth -= 1
            if depth < 0:
                break
            k = queue[queue.shape[0] - 1 - depth]
            chosen[k >> 6] &= ~(ONE << np.uint64(k & 63))
    return np.nan if missing else best


@njit(cache=True)
def _best_of_row(y, children, joined, ratings, ranks, row_best, row_x):
    """Renew, for each kind of operator, the best x of row y; equal ratings go by rank."""
    for kind in range(3):
        row_best[kind, y] = -np.inf
        row_x[kind, y] = -1
    for x in range(ratings.shape[0]):
        rating = ratings[y, x]
        if rating == -np.inf:
            continue
        kind = _kind(x, y, children, joined)
        best = row_best[kind, y]
        if rating > best or (rating == best and ranks[x] < ranks[row_x[kind, y]]):
            row_best[kind, y] = rating
            row_x[kind, y] = x


@njit(cache=True)
def propose(
    graph,
    ratings,
    dirty,
    dirty_rows,
    row_best,
    row_x,
    ranks,
    mix,
    rules,
    allowed,
    banned_x,
    banned_y,
    max_parents,
    threshold,
    keys,
    values,
    asked,
    counters,
    refused_pairs,
    refused_sets,
    n_refused,
    best_set,
    out,
):
    """Renew dirty ratings and return ASKS, FOUND or NOTHING.

    Parameters
    ----------
    graph : uint64, (5, K, n_words)
        Parents, children, neighbours, all joined variables, and the variables below.
    ratings : float64, (K, K)
        ``ratings[y, x]``: best gain of the operator of pair (x, y).
    dirty, dirty_rows : uint8, (K, K) and (K,)
    row_best, row_x : (3, K)
        Best rating of each row by kind of operator.
    ranks, mix : int64 and uint64, (K,)
        Rank of each variable by content, and a number drawn from it: they settle exact ties.
    rules : uint8, (K, K)
        ``rules[x, y]``: 1 if x -> y must not be made, 2 if the edge must not be deleted.
    allowed : int
        Bit set of kinds; the first kind with a gain above ``threshold`` is taken, in the order
        delete, reverse, insert.
    banned_x, banned_y : int
        A pair that must not be inserted, or -1.
    best_set, out : uint64 (n_words,), float64 (4,)
        The operator found: its C; its kind, x, y and gain.
    """
    n = ratings.shape[0]
    n_words = graph.shape[2]
    parents, children, neighbours, joined = graph[0], graph[1], graph[2], graph[3]
    work = np.empty((n + 8, n_words), dtype=np.uint64)
    chosen, row, seen = work[0], work[2], work[3]
    memo = np.zeros(n_words + 1, dtype=np.uint64)
    memo_value = np.zeros(1)
    queue = np.empty(2 * n + 2, dtype=np.int64)
    asks = False
    for y in range(n):
        if dirty_rows[y] == 0:
            continue
        clean = True
        for x in range(n):
            if dirty[y, x] == 0:
                continue
            ratings[y, x] = -np.inf
            if x != y:
                kind = _kind(x, y, children, joined)
                skip = (allowed >> kind) & 1 == 0
                if kind == DELETE:
                    skip = skip or rules[x, y] & 2 != 0
                else:
                    skip = skip or rules[x, y] & 1 != 0
                if kind == INSERT and x == banned_x and y == banned_y:
                    skip = True
                skip = skip or _never(x, y, kind, parents, graph[4])
                if not skip:
                    rating = _rate(
                        x,
                        y,
                        kind,
                        np.int64(0),
                        parents,
                        children,
                        neighbours,
                        joined,
                        mix,
                        max_parents,
                        keys,
                        values,
                        asked,
                        counters,
                        refused_pairs,
                        refused_sets,
                        np.int64(0),
                        work,
                        chosen,
                        row,
                        seen,
                        memo,
                        memo_value,
                        queue,
                        best_set,
                    )
                    if np.isnan(rating):
                        clean = False
                        continue
                    ratings[y, x] = rating
            dirty[y, x] = 0
        if clean:
            dirty_rows[y] = 0
            _best_of_row(y, children, joined, ratings, ranks, row_best, row_x)
        else:
            asks = True
    if asks:
        return ASKS
    n_touched = 0
    touched = np.empty((n * n, 2), dtype=np.int64)
    before = np.empty(n * n)
    answer = NOTHING
    for kind in range(3):
        if (allowed >> kind) & 1 == 0:
            continue
        while True:
            y = np.int64(-1)
            for k in range(n):
                if row_best[kind, k] <= threshold:
                    continue
                if y < 0 or row_best[kind, k] > row_best[kind, y]:
                    y = k
                elif row_best[kind, k] == row_best[kind, y]:
                    rank, least = ranks[k], ranks[y]
                    if rank < least or (
                        rank == least and ranks[row_x[kind, k]] < ranks[row_x[kind, y]]
                    ):
                        y = k
            if y < 0:
                break
            x = row_x[kind, y]
            gain = _rate(
                x,
                y,
                kind,
                np.int64(1),
                parents,
                children,
                neighbours,
                joined,
                mix,
                max_parents,
                keys,
                values,
                asked,
                counters,
                refused_pairs,
                refused_sets,
                n_refused,
                work,
                chosen,
                row,
                seen,
                memo,
                memo_value,
                queue,
                best_set,
            )
            if gain == ratings[y, x]:
                out[0] = kind
                out[1] = x
                out[2] = y
                out[3] = gain
                answer = FOUND
                break
            touched[n_touched, 0] = y
            touched[n_touched, 1] = x
            before[n_touched] = ratings[y, x]
            n_touched += 1
            ratings[y, x] = gain
            _best_of_row(y, children, joined, ratings, ranks, row_best, row_x)
        if answer == FOUND:
            break
    # The lowered ratings hold for this graph only: elsewhere an edge may open the way again.
    for i in range(n_touched - 1, -1, -1):
        y, x = touched[i, 0], touched[i, 1]
        ratings[y, x] = before[i]
        _best_of_row(y, children, joined, ratings, ranks, row_best, row_x)
    return answer


@njit(cache=True)
def rate_pairs(pairs, graph, mix, max_parents, keys, values, asked, counters, sets):
    """Return the best valid gain, losses included, of each pair (x, y); write its C to ``sets``.

    A pair without a valid operator has minus infinity, one with a missing score NaN.
    """
    n, n_words = graph.shape[1], graph.shape[2]
    parents, children, neighbours, joined = graph[0], graph[1], graph[2], graph[3]
    work = np.empty((n + 8, n_words), dtype=np.uint64)
    chosen, row, seen = work[0], work[2], work[3]
    memo = np.zeros(n_words + 1, dtype=np.uint64)
    memo_value = np.zeros(1)
    queue = np.empty(2 * n + 2, dtype=np.int64)
    out = np.empty(pairs.shape[0])
    for i in range(pairs.shape[0]):
        x, y = pairs[i, 0], pairs[i, 1]
        if _never(x, y, _kind(x, y, children, joined), parents, graph[4]):
            out[i] = -np.inf
            continue
        out[i] = _rate(
            x,
            y,
            _kind(x, y, children, joined),
            np.int64(1),
            parents,
            children,
            neighbours,
            joined,
            mix,
            max_parents,
            keys,
            values,
            asked,
            counters,
            pairs,
            sets,
            np.int64(0),
            work,
            chosen,
            row,
            seen,
            memo,
            memo_value,
            queue,
            sets[i],
        )
    return out


@njit(cache=True)
def ask_many(keys, values, asked, counters, nodes, rows):
    """Return the scores of many questions, NaN where they have to be answered first."""
    out = np.empty(nodes.shape[0])
    for i in range(nodes.shape[0]):
        out[i] = _look_up(keys, values, asked, counters, nodes[i], rows[i])
    return out


@njit(cache=True)
def move_scores(keys, values, new_keys, new_values, asked, counters):
    """Copy all scores to a larger, empty table."""
    counters[0] = 0
    for slot in range(keys.shape[0]):
        if keys[slot, 0] != ZERO:
            counters[1] = 0
            _look_up(
                new_keys, new_values, asked, counters, np.int64(keys[slot, 0]) - 1, keys[slot, 1:]
            )
            new_values[asked[0]] = values[slot]
    counters[1] = 0
