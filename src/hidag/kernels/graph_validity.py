"""Which operator a pair of variables has, and with which sets C it may be applied.

A pair (x, y) has exactly one operator, decided by the graph: *insert* x -> y if the two are not
joined, *reverse* y -> x into x -> y if y points at x, else *delete* x -> y or x - y. Each comes
with a set C of neighbours of y that become its parents. With A the neighbours of y joined to x, C
has to be

- insert (Chickering 2002, theorem 15): A and possibly more neighbours of y, all joined to each
  other, such that every way from y to x that never runs against an arrow meets C;
- delete (Chickering 2002, theorem 17): a part of A, all joined to each other;
- reverse (Nazaret and Blei 2024): as insert, but the ways may also meet a neighbour of x,
  and the edge y -> x itself does not count.

A way that leaves y along an arrow cannot meet C, nor can one that enters x along an arrow meet
a neighbour of x, because a completed graph has no partially directed cycle. Such pairs, the bulk
of those without a valid C, are told from the variables below y.

What runs for every pair is put in its caller's place (``forceinline``): a call counts the
references to all arrays that it passes on, which together took a tenth of the search.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_numbers import (
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
)
from hidag.kernels.graph_sets import add, drop, in_word, lowest

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "98e0780d9a1c"


@njit(cache=True)
def kind_of(x, y, graph):
    """Return which operator the pair (x, y) has."""
    if not in_word(graph[JOINED, y, x >> 6], x):
        return INSERT
    if in_word(graph[CHILDREN, y, x >> 6], x):
        return REVERSE
    return DELETE


@njit(cache=True)
def has_no_set(x, y, kind, graph):
    """Return whether the variables below y rule out every C."""
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
    """Write the smallest C, and what may join it to ``may_join[0]``; return False if none is."""
    n_words = graph.shape[2]
    if kind == DELETE:
        for w in range(n_words):
            chosen[w] = ZERO
            may_join[0, w] = graph[NEIGHBOURS, y, w] & graph[JOINED, x, w]
        return True
    # A must be complete; what is added must be joined to all of A.
    for w in range(n_words):
        chosen[w] = graph[NEIGHBOURS, y, w] & graph[JOINED, x, w]
        may_join[0, w] = graph[NEIGHBOURS, y, w] & ~graph[JOINED, x, w]
    for w in range(n_words):
        word = chosen[w]
        while word != ZERO:
            k = w * 64 + lowest(word)
            word &= word - ONE
            for v in range(n_words):
                rest = chosen[v]
                if k >> 6 == v:
                    rest &= ~(ONE << np.uint64(k & 63))
                if rest & ~graph[JOINED, k, v] != ZERO:
                    return False
                may_join[0, v] &= graph[JOINED, k, v]
    return True


@njit(cache=True, forceinline=True)
def next_set(graph, chosen, may_join, taken, depth):
    """Write the next C whose variables are all joined, and return its depth, -1 after the last.

    A walk over all cliques: at depth d, ``may_join[d]`` may still be added to the variables
    ``taken`` before it.
    """
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
def ways_are_met(x, y, kind, graph, chosen, seen, queue):
    """Return whether no way from y that avoids C and runs against no arrow ends at x.

    ``seen`` (n_words,) and ``queue`` (K,) are room to work in.
    """
    if kind == DELETE:
        return True
    n_words = chosen.shape[0]
    for w in range(n_words):
        seen[w] = chosen[w]
        if kind == REVERSE:
            seen[w] |= graph[NEIGHBOURS, x, w]
    add(seen, y)
    queue[0] = y
    first = 0
    last = 1
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
