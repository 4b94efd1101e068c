"""Markov equivalence classes of a graph search: completion, constraints, and moves.

Sets of variables are rows of 64-bit words; the parts of a graph are those of ``graph_sets``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_sets import (
    BELOW,
    CHILDREN,
    DELETE,
    JOINED,
    NEIGHBOURS,
    ONE,
    PARENTS,
    REVERSE,
    ZERO,
    add,
    drop,
    has,
    next_in,
    size,
)

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "e44a4ea252f5"


@njit(cache=True)
def _must_point(b, c, graph, with_rule_four):
    """Return whether one of Meek's rules directs the undirected edge b - c as b -> c."""
    parents, children = graph[PARENTS], graph[CHILDREN]
    neighbours, joined = graph[NEIGHBOURS], graph[JOINED]
    n_words = parents.shape[1]
    for w in range(n_words):
        if parents[b, w] & ~joined[c, w] != ZERO:
            return True
        if children[b, w] & parents[c, w] != ZERO:
            return True
    d = next_in(parents[c], 0)
    while d >= 0:
        if has(neighbours[b], d):
            for v in range(n_words):
                rest = neighbours[b, v] & parents[c, v] & ~joined[d, v]
                if d >> 6 == v:
                    rest &= ~(ONE << np.uint64(d & 63))
                if rest != ZERO:
                    return True
        if with_rule_four and has(joined[b], d):
            for v in range(n_words):
                if parents[d, v] & neighbours[b, v] & ~joined[c, v] != ZERO:
                    return True
        d = next_in(parents[c], d + 1)
    return False


@njit(cache=True)
def _orient(graph, b, c, active):
    drop(graph[NEIGHBOURS, b], c)
    drop(graph[NEIGHBOURS, c], b)
    add(graph[CHILDREN, b], c)
    add(graph[PARENTS, c], b)
    # Only edges at these and adjacent variables can become directed.
    for end in (b, c):
        active[end] = 1
        k = next_in(graph[JOINED, end], 0)
        while k >= 0:
            active[k] = 1
            k = next_in(graph[JOINED, end], k + 1)


@njit(cache=True)
def _close(graph, active, with_rule_four):
    """Apply Meek's rules around the active variables until nothing changes."""
    n = graph.shape[1]
    changed = True
    while changed:
        changed = False
        for b in range(n):
            if not active[b]:
                continue
            active[b] = 0
            c = next_in(graph[NEIGHBOURS, b], 0)
            while c >= 0:
                if _must_point(b, c, graph, with_rule_four):
                    _orient(graph, b, c, active)
                    changed = True
                elif _must_point(c, b, graph, with_rule_four):
                    _orient(graph, c, b, active)
                    changed = True
                c = next_in(graph[NEIGHBOURS, b], c + 1)


@njit(cache=True)
def _find_below(graph):
    """Write the set BELOW of each variable in one pass over the chain components from the last."""
    n, n_words = graph.shape[1], graph.shape[2]
    component = np.full(n, -1, dtype=np.int64)
    stack = np.empty(n, dtype=np.int64)
    listed = np.empty(n, dtype=np.int64)
    first = np.empty(n + 1, dtype=np.int64)
    n_components = 0
    n_listed = 0
    for k in range(n):
        if component[k] >= 0:
            continue
        first[n_components] = n_listed
        component[k] = n_components
        stack[0] = k
        height = 1
        while height > 0:
            height -= 1
            v = stack[height]
            listed[n_listed] = v
            n_listed += 1
            u = next_in(graph[NEIGHBOURS, v], 0)
            while u >= 0:
                if component[u] < 0:
                    component[u] = n_components
                    stack[height] = u
                    height += 1
                u = next_in(graph[NEIGHBOURS, v], u + 1)
        n_components += 1
    first[n_components] = n
    n_arrows = np.zeros(n_components, dtype=np.int64)
    for k in range(n):
        n_arrows[component[k]] += size(graph[PARENTS, k])
    order = np.empty(n_components, dtype=np.int64)
    n_order = 0
    for c in range(n_components):
        if n_arrows[c] == 0:
            order[n_order] = c
            n_order += 1
    i = 0
    while i < n_order:
        for m in range(first[order[i]], first[order[i] + 1]):
            child = next_in(graph[CHILDREN, listed[m]], 0)
            while child >= 0:
                c = component[child]
                n_arrows[c] -= 1
                if n_arrows[c] == 0:
                    order[n_order] = c
                    n_order += 1
                child = next_in(graph[CHILDREN, listed[m]], child + 1)
        i += 1
    reach = np.zeros((n_components, n_words), dtype=np.uint64)
    for i in range(n_order - 1, -1, -1):
        c = order[i]
        for m in range(first[c], first[c + 1]):
            v = listed[m]
            add(reach[c], v)
            child = next_in(graph[CHILDREN, v], 0)
            while child >= 0:
                graph[BELOW, v] |= reach[component[child]]
                child = next_in(graph[CHILDREN, v], child + 1)
            reach[c] |= graph[BELOW, v]


@njit(cache=True)
def complete(parents, graph):
    """Write the CPDAG, (5, K, n_words), of the DAG with these parents, (K, n_words)."""
    n, n_words = parents.shape
    graph[:] = ZERO
    active = np.zeros(n, dtype=np.uint8)
    for c in range(n):
        graph[JOINED, c] |= parents[c]
        a = next_in(parents[c], 0)
        while a >= 0:
            add(graph[JOINED, a], c)
            a = next_in(parents[c], a + 1)
    for c in range(n):
        a = next_in(parents[c], 0)
        while a >= 0:
            compelled = False
            for v in range(n_words):
                apart = parents[c, v] & ~graph[JOINED, a, v]
                if a >> 6 == v:
                    apart &= ~(ONE << np.uint64(a & 63))
                compelled = compelled or apart != ZERO
            if compelled:
                add(graph[PARENTS, c], a)
                add(graph[CHILDREN, a], c)
            else:
                add(graph[NEIGHBOURS, c], a)
                add(graph[NEIGHBOURS, a], c)
                active[a] = 1
                active[c] = 1
            a = next_in(parents[c], a + 1)
    _close(graph, active, False)
    _find_below(graph)


@njit(cache=True)
def direct_by_rules(graph, rules):
    """Orient by the constraints and Meek's rules; return whether no constraint is violated.

    In a closed graph this fails edge by edge only if no member satisfies all constraints.
    """
    n = graph.shape[1]
    active = np.zeros(n, dtype=np.uint8)
    for i in range(n):
        j = next_in(graph[NEIGHBOURS, i], 0)
        while j >= 0:
            if rules[i, j] & 1:
                _orient(graph, j, i, active)
                _close(graph, active, True)
            j = next_in(graph[NEIGHBOURS, i], j + 1)
    for i in range(n):
        j = next_in(graph[CHILDREN, i], 0)
        while j >= 0:
            if rules[i, j] & 1:
                return False
            j = next_in(graph[CHILDREN, i], j + 1)
    return True


@njit(cache=True)
def _member(graph, first, n_first, parents):
    """Write the parents of the member DAG, by maximum cardinality search from ``first`` on."""
    neighbours = graph[NEIGHBOURS]
    n = neighbours.shape[0]
    placed = np.zeros(n, dtype=np.uint8)
    n_placed_neighbours = np.zeros(n, dtype=np.int64)
    open_nodes = np.empty(n, dtype=np.int64)
    n_open = 0
    for k in range(n):
        parents[k, :] = graph[PARENTS, k]
        if (neighbours[k] != ZERO).any():
            open_nodes[n_open] = k
            n_open += 1
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
        k = next_in(neighbours[chosen], 0)
        while k >= 0:
            if not placed[k]:
                add(parents[k], chosen)
                n_placed_neighbours[k] += 1
            k = next_in(neighbours[chosen], k + 1)
        if (neighbours[chosen] != ZERO).any():
            left -= 1


@njit(cache=True)
def move(graph, kind, x, y, chosen, parents):
    """Write the parents of a DAG of the class that operator (kind, x, y, C = chosen) leads to."""
    first = np.empty(graph.shape[1] + 2, dtype=np.int64)
    n_first = 0
    k = next_in(chosen, 0)
    while k >= 0:
        first[n_first] = k
        n_first += 1
        k = next_in(chosen, k + 1)
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
    """Mark the pairs whose gain may differ between two graphs."""
    n = before.shape[1]
    for y in range(n):
        parents_changed = (before[PARENTS, y] != after[PARENTS, y]).any()
        if parents_changed or (before[NEIGHBOURS, y] != after[NEIGHBOURS, y]).any():
            dirty_rows[y] = 1
            dirty[y, :] = 1
        if parents_changed:
            # The gain of a reversal depends on the parents of both ends.
            k = next_in(after[PARENTS, y], 0)
            while k >= 0:
                dirty[k, y] = 1
                dirty_rows[k] = 1
                k = next_in(after[PARENTS, y], k + 1)
        turned = before[BELOW, y] ^ after[BELOW, y]
        k = next_in(turned, 0)
        while k >= 0:
            dirty[y, k] = 1
            k = next_in(turned, k + 1)
        if (turned != ZERO).any():
            dirty_rows[y] = 1
            k = next_in(after[CHILDREN, y], 0)
            while k >= 0:
                dirty[y, k] = 1
                k = next_in(after[CHILDREN, y], k + 1)
    for a in range(n):
        changed = before[JOINED, a] ^ after[JOINED, a]
        b = next_in(changed, 0)
        while b >= 0:
            dirty[b, a] = 1
            dirty_rows[b] = 1
            for y in range(n):
                if has(after[NEIGHBOURS, y], b):
                    dirty[y, a] = 1
                    dirty_rows[y] = 1
                    if has(after[NEIGHBOURS, y], a):
                        dirty[y, :] = 1
            b = next_in(changed, b + 1)
