"""Ratings of the search's operators: the best gain of a pair over all sets C it may come with.

The gain is the change of the local score of y (reverse: and of x). It and the conditions on C other
than which ways it meets depend on the surroundings of the pair only. Constants are passed on as
np.int64(..): a literal would make numba compile the callee once more.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_numbers import DELETE, ONE, PARENTS, REVERSE, ZERO
from hidag.kernels.graph_score_table import worth
from hidag.kernels.graph_sets import drop, lowest, size
from hidag.kernels.graph_validity import (
    has_no_set,
    kind_of,
    next_set,
    smallest_set,
    ways_are_met,
)

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "3b48f06f25eb"


@njit(cache=True)
def make_room(n, n_words):
    """Return the arrays that rating works in.

    C, a row of parents, what may join C and what has joined it by depth, the last score without x
    and its key, and a set and a queue for ways through the graph.
    """
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
def _settles_ties(chosen, mix):
    """Return a number that settles ties between sets, drawn from what is in them."""
    out = ZERO
    for w in range(chosen.shape[0]):
        word = chosen[w]
        while word != ZERO:
            out += mix[w * 64 + lowest(word)]
            word &= word - ONE
    return out


@njit(cache=True, forceinline=True)
def _is_refused(x, y, chosen, refused_pairs, refused_sets):
    """Return whether this operator was refused before."""
    for i in range(refused_pairs.shape[0]):
        if refused_pairs[i, 0] == x and refused_pairs[i, 1] == y:
            same = True
            for w in range(chosen.shape[0]):
                same = same and refused_sets[i, w] == chosen[w]
            if same:
                return True
    return False


@njit(cache=True)
def rate(
    x,
    y,
    kind,
    exact,
    graph,
    mix,
    max_parents,
    table,
    refused_pairs,
    refused_sets,
    room,
    best_set,
):
    """Return the best gain of the pair's operator over all C, and write that C to ``best_set``.

    Without ``exact`` only the conditions that depend on the surroundings are checked, and operators
    refused before count like others. NaN means that a score was missing.
    """
    chosen, row, may_join, taken, last_row, last_value, seen, queue = room
    n_words = graph.shape[2]
    if not smallest_set(x, y, kind, graph, chosen, may_join):
        return -np.inf
    shift = 0.0
    if kind == REVERSE:
        for w in range(n_words):
            row[w] = graph[PARENTS, x, w]
        drop(row, y)
        shift = -worth(table, x, row, y, last_row, last_value)
    best = -np.inf
    best_key = ZERO
    missing = False
    depth = 0
    while depth >= 0:
        for w in range(n_words):
            row[w] = graph[PARENTS, y, w] | chosen[w]
        drop(row, x)
        if kind == DELETE or size(row) < max_parents:
            gain = worth(table, y, row, x, last_row, last_value)
            gain = -gain if kind == DELETE else gain + shift
            if np.isnan(gain):
                missing = True
            elif gain >= best:
                key = _settles_ties(chosen, mix)
                if (gain > best or key > best_key) and (
                    exact == 0
                    or (
                        not _is_refused(x, y, chosen, refused_pairs, refused_sets)
                        and ways_are_met(x, y, kind, graph, chosen, seen, queue)
                    )
                ):
                    best = gain
                    best_key = key
                    for w in range(n_words):
                        best_set[w] = chosen[w]
        depth = next_set(graph, chosen, may_join, taken, depth)
    return np.nan if missing else best


@njit(cache=True)
def rate_pairs(pairs, graph, mix, max_parents, table, sets):
    """Return the best valid gain, losses included, of each pair (x, y); write its C to ``sets``.

    A pair without a valid operator has minus infinity, one with a missing score NaN.
    """
    room = make_room(graph.shape[1], graph.shape[2])
    no_pairs, no_sets = pairs[:0], sets[:0]
    out = np.empty(pairs.shape[0])
    for i in range(pairs.shape[0]):
        x, y = pairs[i, 0], pairs[i, 1]
        kind = kind_of(x, y, graph)
        if has_no_set(x, y, kind, graph):
            out[i] = -np.inf
        else:
            out[i] = rate(
                x,
                y,
                kind,
                np.int64(1),
                graph,
                mix,
                max_parents,
                table,
                no_pairs,
                no_sets,
                room,
                sets[i],
            )
    return out
