"""The operator that the search takes next: the best valid one of all pairs of variables.

Ratings are kept between steps and renewed for pairs marked dirty, because they depend on the
surroundings of the pair only; which ways C meets is checked when a pair is about to be taken.
Pairs that have no valid C for certain are not rated at all. Where a local score is missing the call
ends with a question; the caller answers and calls again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_numbers import DELETE, INSERT
from hidag.kernels.graph_ratings import make_room, rate
from hidag.kernels.graph_validity import has_no_set, kind_of

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "e113f4d74bde"

#: Answers of ``propose``.
ASKS = 0
FOUND = 1
NOTHING = 2


@njit(cache=True)
def _is_allowed(x, y, kind, rules, allowed, banned_x, banned_y):
    """Return whether the rules and the caller allow the pair's operator."""
    if (allowed >> kind) & 1 == 0:
        return False
    if kind == DELETE:
        return rules[x, y] & 2 == 0
    if kind == INSERT and x == banned_x and y == banned_y:
        return False
    return rules[x, y] & 1 == 0


@njit(cache=True)
def _best_of_row(y, graph, ratings, ranks, row_best, row_x):
    """Renew, for each kind of operator, the best x of row y; equal ratings go by rank."""
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
    """Return the row with the best rating above the threshold, -1 if none is; ties go by rank."""
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
    graph,
    kept,
    ranks,
    mix,
    rules,
    allowed,
    banned_x,
    banned_y,
    max_parents,
    threshold,
    table,
    refused_pairs,
    refused_sets,
    best_set,
    out,
):
    """Renew dirty ratings and return ASKS, FOUND or NOTHING.

    Parameters
    ----------
    graph : uint64, (5, K, n_words)
        Parents, children, neighbours, all joined variables, and the variables below.
    kept : tuple of arrays
        ``ratings`` (K, K): ``ratings[y, x]`` is the best gain of the operator of pair (x, y);
        ``dirty`` and ``dirty_rows``, uint8, (K, K) and (K,); ``row_best`` and ``row_x``, (3, K):
        the best rating of each row by kind of operator, and its x.
    ranks, mix : int64 and uint64, (K,)
        Rank of each variable by content, and a number drawn from it: they settle exact ties.
    rules : uint8, (K, K)
        ``rules[x, y]``: 1 if x -> y must not be made, 2 if the edge must not be deleted.
    allowed : int
        Bit set of kinds; the first kind with a gain above ``threshold`` is taken, in the order
        delete, reverse, insert.
    banned_x, banned_y : int
        A pair that must not be inserted, or -1.
    table : tuple of arrays
        Local scores, as in ``graph_score_table``.
    refused_pairs, refused_sets : int64 (n, 2), uint64 (n, n_words)
        Operators that must not be proposed again.
    best_set, out : uint64 (n_words,), float64 (4,)
        The operator found: its C; its kind, x, y and gain.
    """
    ratings, dirty, dirty_rows, row_best, row_x = kept
    n = ratings.shape[0]
    room = make_room(n, graph.shape[2])
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
                and _is_allowed(x, y, kind, rules, allowed, banned_x, banned_y)
                and not has_no_set(x, y, kind, graph)
            ):
                rating = rate(
                    x,
                    y,
                    kind,
                    np.int64(0),
                    graph,
                    mix,
                    max_parents,
                    table,
                    refused_pairs,
                    refused_sets,
                    room,
                    best_set,
                )
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
    answer = NOTHING
    for kind in range(3):
        if (allowed >> kind) & 1 == 0:
            continue
        while answer == NOTHING:
            y = _best_row(kind, ranks, row_best, row_x, threshold)
            if y < 0:
                break
            x = row_x[kind, y]
            gain = rate(
                x,
                y,
                kind,
                np.int64(1),
                graph,
                mix,
                max_parents,
                table,
                refused_pairs,
                refused_sets,
                room,
                best_set,
            )
            if gain == ratings[y, x]:
                out[0] = kind
                out[1] = x
                out[2] = y
                out[3] = gain
                answer = FOUND
            else:
                touched[n_touched, 0] = y
                touched[n_touched, 1] = x
                before[n_touched] = ratings[y, x]
                n_touched += 1
                ratings[y, x] = gain
                _best_of_row(y, graph, ratings, ranks, row_best, row_x)
    # The lowered ratings hold for this graph only: elsewhere an edge may open the way again.
    for i in range(n_touched - 1, -1, -1):
        y, x = touched[i, 0], touched[i, 1]
        ratings[y, x] = before[i]
        _best_of_row(y, graph, ratings, ranks, row_best, row_x)
    return answer
