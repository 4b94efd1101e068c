"""Moves of the search: change one edge of the equivalence class and complete the graph again.

The class is held as parents, children, neighbours, joined variables and variables below (those
that can be reached by going along an arrow first and never against one), each a (K, n_words)
array of 64-bit words. A move picks the member DAG in which the operator is one edge change,
changes that edge, and completes the result.
"""

from __future__ import annotations

import numpy as np
from numba import njit

DELETE = 0
REVERSE = 1
INSERT = 2

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_SHUFFLE = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.zeros(64, dtype=np.int64)
for _place in range(64):
    _PLACES[(int(_SHUFFLE) << _place & (1 << 64) - 1) >> 58] = _place


@njit(cache=True)
def _has(row, k):
    return (row[k >> 6] >> np.uint64(k & 63)) & _ONE != _ZERO


@njit(cache=True)
def _add(row, k):
    row[k >> 6] |= _ONE << np.uint64(k & 63)


@njit(cache=True)
def _drop(row, k):
    row[k >> 6] &= ~(_ONE << np.uint64(k & 63))


@njit(cache=True)
def _lowest(word):
    # The lowest one times this number has the place of that one in its top six bits, shuffled.
    return _PLACES[((word & (~word + _ONE)) * _SHUFFLE) >> np.uint64(58)]


@njit(cache=True)
def _member(graph, first, n_first, parents):
    """Write the parents of the member DAG in which the variables ``first`` come first.

    Maximum cardinality search directs the undirected part without new v-structures: the next
    variable is always one with the most neighbours already placed.
    """
    neighbours = graph[2]
    n, n_words = neighbours.shape
    placed = np.zeros(n, dtype=np.uint8)
    n_placed_neighbours = np.zeros(n, dtype=np.int64)
    open_nodes = np.empty(n, dtype=np.int64)
    n_open = 0
    for k in range(n):
        for w in range(n_words):
            parents[k, w] = graph[0, k, w]
        for w in range(n_words):
            if neighbours[k, w] != _ZERO:
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
            is_open = is_open or word != _ZERO
            while word != _ZERO:
                k = w * 64 + _lowest(word)
                word &= word - _ONE
                if not placed[k]:
                    _add(parents[k], chosen)
                    n_placed_neighbours[k] += 1
        if is_open:
            left -= 1


@njit(cache=True)
def _must_point(b, c, graph, with_rule_four):
    """Return whether one of Meek's rules directs the undirected edge b - c as b -> c."""
    parents, children, neighbours, joined = graph[0], graph[1], graph[2], graph[3]
    n_words = parents.shape[1]
    for w in range(n_words):
        if parents[b, w] & ~joined[c, w] != _ZERO:
            return True
        if children[b, w] & parents[c, w] != _ZERO:
            return True
    for w in range(n_words):
        word = neighbours[b, w] & parents[c, w]
        while word != _ZERO:
            d = w * 64 + _lowest(word)
            word &= word - _ONE
            for v in range(n_words):
                rest = neighbours[b, v] & parents[c, v] & ~joined[d, v]
                if d >> 6 == v:
                    rest &= ~(_ONE << np.uint64(d & 63))
                if rest != _ZERO:
                    return True
    if with_rule_four:
        for w in range(n_words):
            word = parents[c, w] & joined[b, w]
            while word != _ZERO:
                e = w * 64 + _lowest(word)
                word &= word - _ONE
                for v in range(n_words):
                    if parents[e, v] & neighbours[b, v] & ~joined[c, v] != _ZERO:
                        return True
    return False


@njit(cache=True)
def _orient(graph, b, c, active):
    _drop(graph[2, b], c)
    _drop(graph[2, c], b)
    _add(graph[1, b], c)
    _add(graph[0, c], b)
    # Only edges around the two can be directed because of this one.
    for end in (b, c):
        active[end] = 1
        for w in range(graph.shape[2]):
            word = graph[3, end, w]
            while word != _ZERO:
                active[w * 64 + _lowest(word)] = 1
                word &= word - _ONE


@njit(cache=True)
def _close(graph, active, with_rule_four):
    """Apply Meek's rules around the active variables until nothing changes."""
    n, n_words = graph.shape[1], graph.shape[2]
    changed = True
    while changed:
        changed = False
        for b in range(n):
            if not active[b]:
                continue
            active[b] = 0
            for w in range(n_words):
                word = graph[2, b, w]
                while word != _ZERO:
                    c = w * 64 + _lowest(word)
                    word &= word - _ONE
                    if not _has(graph[2, b], c):
                        continue
                    if _must_point(b, c, graph, with_rule_four):
                        _orient(graph, b, c, active)
                        changed = True
                    elif _must_point(c, b, graph, with_rule_four):
                        _orient(graph, c, b, active)
                        changed = True


@njit(cache=True)
def _find_below(graph):
    """Write the variables below each one.

    Variables connected by undirected edges reach the same ones, and the arrows between such
    components form no cycle: one pass from the last component to the first is enough.
    """
    n, n_words = graph.shape[1], graph.shape[2]
    component = np.empty(n, dtype=np.int64)
    component[:] = -1
    stack = np.empty(n, dtype=np.int64)
    members = np.empty(n, dtype=np.int64)
    first = np.empty(n + 1, dtype=np.int64)
    n_components = 0
    n_members = 0
    for k in range(n):
        if component[k] >= 0:
            continue
        first[n_components] = n_members
        component[k] = n_components
        stack[0] = k
        height = 1
        while height > 0:
            height -= 1
            v = stack[height]
            members[n_members] = v
            n_members += 1
            for w in range(n_words):
                word = graph[2, v, w]
                while word != _ZERO:
                    u = w * 64 + _lowest(word)
                    word &= word - _ONE
                    if component[u] < 0:
                        component[u] = n_components
                        stack[height] = u
                        height += 1
        n_components += 1
    first[n_components] = n
    n_arrows = np.zeros(n_components, dtype=np.int64)
    for k in range(n):
        for w in range(n_words):
            word = graph[0, k, w]
            while word != _ZERO:
                n_arrows[component[k]] += 1
                word &= word - _ONE
    order = np.empty(n_components, dtype=np.int64)
    n_order = 0
    for c in range(n_components):
        if n_arrows[c] == 0:
            order[n_order] = c
            n_order += 1
    i = 0
    while i < n_order:
        for m in range(first[order[i]], first[order[i] + 1]):
            for w in range(n_words):
                word = graph[1, members[m], w]
                while word != _ZERO:
                    c = component[w * 64 + _lowest(word)]
                    word &= word - _ONE
                    n_arrows[c] -= 1
                    if n_arrows[c] == 0:
                        order[n_order] = c
                        n_order += 1
        i += 1
    reach = np.zeros((n_components, n_words), dtype=np.uint64)
    for i in range(n_order - 1, -1, -1):
        c = order[i]
        for m in range(first[c], first[c + 1]):
            v = members[m]
            _add(reach[c], v)
            for w in range(n_words):
                word = graph[1, v, w]
                while word != _ZERO:
                    child = component[w * 64 + _lowest(word)]
                    word &= word - _ONE
                    for t in range(n_words):
                        graph[4, v, t] |= reach[child, t]
            for t in range(n_words):
                reach[c, t] |= graph[4, v, t]


@njit(cache=True)
def complete(parents, graph):
    """Write the completed graph, (5, K, n_words), of the DAG with these parents, (K, n_words)."""
    n, n_words = parents.shape
    graph[:] = _ZERO
    active = np.zeros(n, dtype=np.uint8)
    for c in range(n):
        for w in range(n_words):
            graph[3, c, w] |= parents[c, w]
            word = parents[c, w]
            while word != _ZERO:
                _add(graph[3, w * 64 + _lowest(word)], c)
                word &= word - _ONE
    for c in range(n):
        for w in range(n_words):
            word = parents[c, w]
            while word != _ZERO:
                a = w * 64 + _lowest(word)
                word &= word - _ONE
                compelled = False
                for v in range(n_words):
                    apart = parents[c, v] & ~graph[3, a, v]
                    if a >> 6 == v:
                        apart &= ~(_ONE << np.uint64(a & 63))
                    compelled = compelled or apart != _ZERO
                if compelled:
                    _add(graph[0, c], a)
                    _add(graph[1, a], c)
                else:
                    _add(graph[2, c], a)
                    _add(graph[2, a], c)
                    active[a] = 1
                    active[c] = 1
    _close(graph, active, False)
    _find_below(graph)


@njit(cache=True)
def direct_by_rules(graph, rules):
    """Direct what the rules leave one way, close, and return whether no rule is broken.

    In a closed graph both ways of an undirected edge have members, so directing edge by edge
    fails only if no member obeys all rules.
    """
    n, n_words = graph.shape[1], graph.shape[2]
    active = np.zeros(n, dtype=np.uint8)
    for i in range(n):
        for w in range(n_words):
            word = graph[2, i, w]
            while word != _ZERO:
                j = w * 64 + _lowest(word)
                word &= word - _ONE
                if rules[i, j] & 1 and _has(graph[2, i], j):
                    _orient(graph, j, i, active)
                    _close(graph, active, True)
    for i in range(n):
        for w in range(n_words):
            word = graph[1, i, w]
            while word != _ZERO:
                j = w * 64 + _lowest(word)
                word &= word - _ONE
                if rules[i, j] & 1:
                    return False
    return True


@njit(cache=True)
def move(graph, kind, x, y, chosen, after):
    """Write to ``after`` the completed graph that operator (kind, x, y, C = chosen) leads to."""
    n, n_words = graph.shape[1], graph.shape[2]
    first = np.empty(n + 2, dtype=np.int64)
    n_first = 0
    for w in range(n_words):
        word = chosen[w]
        while word != _ZERO:
            first[n_first] = w * 64 + _lowest(word)
            n_first += 1
            word &= word - _ONE
    if kind == DELETE and _has(graph[2, y], x):
        first[n_first] = x
        n_first += 1
    first[n_first] = y
    n_first += 1
    if kind == REVERSE:
        first[n_first] = x
        n_first += 1
    parents = np.empty((n, n_words), dtype=np.uint64)
    _member(graph, first, n_first, parents)
    if kind == DELETE:
        _drop(parents[y], x)
    else:
        _add(parents[y], x)
        if kind == REVERSE:
            _drop(parents[x], y)
    complete(parents, after)


@njit(cache=True)
def mark_dirty(before, after, dirty, dirty_rows):
    """Mark the pairs whose rating may differ between two graphs."""
    n, n_words = before.shape[1], before.shape[2]
    for y in range(n):
        parents_changed = False
        changed = False
        for w in range(n_words):
            parents_changed = parents_changed or before[0, y, w] != after[0, y, w]
            changed = changed or before[2, y, w] != after[2, y, w]
        changed = changed or parents_changed
        if changed:
            dirty_rows[y] = 1
            for x in range(n):
                dirty[y, x] = 1
        if parents_changed:
            # The gain of turning an edge depends on the parents of both ends.
            for w in range(n_words):
                word = after[0, y, w]
                while word != _ZERO:
                    k = w * 64 + _lowest(word)
                    word &= word - _ONE
                    dirty[k, y] = 1
                    dirty_rows[k] = 1
        turned = _ZERO
        for w in range(n_words):
            word = before[4, y, w] ^ after[4, y, w]
            turned |= word
            while word != _ZERO:
                dirty[y, w * 64 + _lowest(word)] = 1
                dirty_rows[y] = 1
                word &= word - _ONE
        if turned != _ZERO:
            for w in range(n_words):
                word = after[1, y, w]
                while word != _ZERO:
                    dirty[y, w * 64 + _lowest(word)] = 1
                    word &= word - _ONE
    for a in range(n):
        for w in range(n_words):
            word = before[3, a, w] ^ after[3, a, w]
            while word != _ZERO:
                b = w * 64 + _lowest(word)
                word &= word - _ONE
                dirty[b, a] = 1
                dirty_rows[b] = 1
                for y in range(n):
                    if _has(after[2, y], b):
                        dirty[y, a] = 1
                        dirty_rows[y] = 1
                        if _has(after[2, y], a):
                            for x in range(n):
                                dirty[y, x] = 1
