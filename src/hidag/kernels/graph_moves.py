"""Moves of the search: change one edge of the equivalence class.

A move picks the member DAG in which the operator is one edge change, and changes that edge;
completing the result is up to ``graph_classes``. Then the pairs are marked whose ratings the
move may have changed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_numbers import (
    BELOW,
    CHILDREN,
    DELETE,
    JOINED,
    NEIGHBOURS,
    ONE,
    PARENTS,
    REVERSE,
    ZERO,
)
from hidag.kernels.graph_sets import add, drop, has, lowest

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "98e0780d9a1c"


@njit(cache=True)
def _member(graph, first, n_first, parents):
    """Write the parents of the member DAG in which the variables ``first`` come first.

    Maximum cardinality search directs the undirected part without new v-structures: the next
    variable is always one with the most neighbours already placed.
    """
    neighbours = graph[NEIGHBOURS]
    n, n_words = neighbours.shape
    placed = np.zeros(n, dtype=np.uint8)
    n_placed_neighbours = np.zeros(n, dtype=np.int64)
    open_nodes = np.empty(n, dtype=np.int64)
    n_open = 0
    for k in range(n):
        for w in range(n_words):
            parents[k, w] = graph[PARENTS, k, w]
        for w in range(n_words):
            if neighbours[k, w] != ZERO:
                open_nodes[n_open] = k
                n_open += 1
                break
    step = 0
    left = n_open
    while left > 0:
        chosen = -1
        if step < n_first:
            chosen = first[step]
            step += 1
            if placed[chosen]:
                continue
        else:
            for i in range(n_open):
                k = open_nodes[i]
                if not placed[k] and (
                    chosen < 0 or n_placed_neighbours[k] > n_placed_neighbours[chosen]
                ):
                    chosen = k
        placed[chosen] = 1
        is_open = False
        for w in range(n_words):
            word = neighbours[chosen, w]
            is_open = is_open or word != ZERO
            while word != ZERO:
                k = w * 64 + lowest(word)
                word &= word - ONE
                if not placed[k]:
                    add(parents[k], chosen)
                    n_placed_neighbours[k] += 1
        if is_open:
            left -= 1


@njit(cache=True)
def move(graph, kind, x, y, chosen, parents):
    """Write the parents of a DAG of the class that operator (kind, x, y, C = chosen) leads to."""
    n, n_words = graph.shape[1], graph.shape[2]
    first = np.empty(n + 2, dtype=np.int64)
    n_first = 0
    for w in range(n_words):
        word = chosen[w]
        while word != ZERO:
            first[n_first] = w * 64 + lowest(word)
            n_first += 1
            word &= word - ONE
    if kind == DELETE and has(graph[NEIGHBOURS, y], x):
        first[n_first] = x
        n_first += 1
    first[n_first] = y
    n_first += 1
    if kind == REVERSE:
        first[n_first] = x
        n_first += 1
    _member(graph, first, n_first, parents)
    if kind == DELETE:
        drop(parents[y], x)
    else:
        add(parents[y], x)
        if kind == REVERSE:
            drop(parents[x], y)


@njit(cache=True)
def mark_dirty(before, after, dirty, dirty_rows):
    """Mark the pairs whose rating may differ between two graphs."""
    n, n_words = before.shape[1], before.shape[2]
    for y in range(n):
        parents_changed = False
        changed = False
        for w in range(n_words):
            parents_changed = parents_changed or before[PARENTS, y, w] != after[PARENTS, y, w]
            changed = changed or before[NEIGHBOURS, y, w] != after[NEIGHBOURS, y, w]
        changed = changed or parents_changed
        if changed:
            dirty_rows[y] = 1
            for x in range(n):
                dirty[y, x] = 1
        if parents_changed:
            # The gain of turning an edge depends on the parents of both ends.
            for w in range(n_words):
                word = after[PARENTS, y, w]
                while word != ZERO:
                    k = w * 64 + lowest(word)
                    word &= word - ONE
                    dirty[k, y] = 1
                    dirty_rows[k] = 1
        turned = ZERO
        for w in range(n_words):
            word = before[BELOW, y, w] ^ after[BELOW, y, w]
            turned |= word
            while word != ZERO:
                dirty[y, w * 64 + lowest(word)] = 1
                dirty_rows[y] = 1
                word &= word - ONE
        if turned != ZERO:
            for w in range(n_words):
                word = after[CHILDREN, y, w]
                while word != ZERO:
                    dirty[y, w * 64 + lowest(word)] = 1
                    word &= word - ONE
    for a in range(n):
        for w in range(n_words):
            word = before[JOINED, a, w] ^ after[JOINED, a, w]
            while word != ZERO:
                b = w * 64 + lowest(word)
                word &= word - ONE
                dirty[b, a] = 1
                dirty_rows[b] = 1
                for y in range(n):
                    if has(after[NEIGHBOURS, y], b):
                        dirty[y, a] = 1
                        dirty_rows[y] = 1
                        if has(after[NEIGHBOURS, y], a):
                            for x in range(n):
                                dirty[y, x] = 1
