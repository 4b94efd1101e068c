"""Members of a partially directed graph: list, count and draw the DAGs it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import factorial

import numpy as np
from numpy.typing import NDArray

from hidag.discover.orientation import MixedGraph, bits, close


def _walk(graph: MixedGraph, inside: int) -> Iterator[MixedGraph]:
    """Yield all ways to direct the undirected edges among the variables ``inside``.

    In a graph closed under Meek's rules both ways of an undirected edge have members, so no
    branch of this walk is empty.
    """
    waiting = [graph]
    while waiting:
        at = waiting.pop()
        edge = next(((i, j) for i in bits(inside) for j in bits(at.neighbours[i])), None)
        if edge is None:
            yield at
            continue
        for a, b in (edge[::-1], edge):
            branch = at.copy()
            branch.orient(a, b)
            waiting.append(close(branch))


def list_members(graph: MixedGraph, limit: int | None) -> list[NDArray[np.int8]]:
    """Return the adjacencies, each (K, K), of at most ``limit`` members."""
    everyone = (1 << graph.n) - 1
    return [at.adjacency() for at in islice(_walk(close(graph.copy()), everyone), limit)]


def _components(neighbours: list[int], inside: int) -> list[int]:
    out = []
    while inside:
        seen = inside & -inside
        front = seen
        while front:
            reached = 0
            for i in bits(front):
                reached |= neighbours[i]
            front = reached & inside & ~seen
            seen |= front
        out.append(seen)
        inside &= ~seen
    return out


def _rooted(graph: MixedGraph, component: int, root: int) -> MixedGraph:
    """Return the undirected component alone, with ``root`` its only source, Meek-closed."""
    inner = MixedGraph(
        [0] * graph.n,
        [0] * graph.n,
        [m & component if component >> i & 1 else 0 for i, m in enumerate(graph.neighbours)],
    )
    for j in bits(inner.neighbours[root]):
        inner.orient(root, j)
    return close(inner)


def _count_component(graph: MixedGraph, component: int, known: dict[int, int]) -> int:
    """Return the number of ways to direct a chordal component without a v-structure.

    Every such way has exactly one source. Fixing it directs some edges and leaves smaller
    chordal components, counted in turn (He, Jia and Yu's recursion).
    """
    size = component.bit_count()
    edges = sum((graph.neighbours[i] & component).bit_count() for i in bits(component)) // 2
    if edges == size - 1:
        return size
    if 2 * edges == size * (size - 1):
        return factorial(size)
    if component not in known:
        total = 0
        for root in bits(component):
            rest = _rooted(graph, component, root)
            ways = 1
            for inner in _components(rest.neighbours, component):
                if inner.bit_count() > 1:
                    ways *= _count_component(graph, inner, known)
            total += ways
        known[component] = total
    return known[component]


def count_members(graph: MixedGraph, *, completed: bool) -> int:
    """Return the number of members.

    Components of undirected edges are directed independently of each other. In a completed
    graph each is counted by recursion; else, with directions from background knowledge, its
    ways are walked through.
    """
    known: dict[int, int] = {}
    closed = close(graph.copy())
    total = 1
    for component in _components(closed.neighbours, (1 << graph.n) - 1):
        if completed:
            total *= _count_component(closed, component, known)
        else:
            total *= sum(1 for _ in _walk(closed, component))
    return total


def _draw(weights: list[int], rng: np.random.Generator) -> int:
    # Counts can exceed every float, so the draw is made in exact integers.
    total = sum(weights)
    n_words = total.bit_length() // 32 + 2
    number = 0
    for word in rng.integers(0, 1 << 32, size=n_words, dtype=np.uint64).tolist():
        number = number << 32 | word
    mark = number * total >> (32 * n_words)
    for k, weight in enumerate(weights):
        if mark < weight:
            return k
        mark -= weight
    raise AssertionError("weights must have a positive sum")


def sample_member(
    graph: MixedGraph, rng: np.random.Generator, *, completed: bool
) -> NDArray[np.int8]:
    """Return the adjacency, shape (K, K), of a member drawn with equal probabilities."""
    out = close(graph.copy())
    if not completed:
        for component in _components(out.neighbours, (1 << graph.n) - 1):
            directed = list(_walk(out, component))
            out = directed[int(rng.integers(len(directed)))]
        return out.adjacency()
    known: dict[int, int] = {}
    waiting = _components(out.neighbours, (1 << out.n) - 1)
    while waiting:
        component = waiting.pop()
        if component.bit_count() == 1:
            continue
        roots = list(bits(component))
        rests = [_rooted(out, component, root) for root in roots]
        pieces = [_components(rest.neighbours, component) for rest in rests]
        weights = []
        for inner in pieces:
            ways = 1
            for piece in inner:
                if piece.bit_count() > 1:
                    ways *= _count_component(out, piece, known)
            weights.append(ways)
        chosen = _draw(weights, rng)
        for i in bits(component):
            for j in bits(rests[chosen].children[i]):
                out.orient(i, j)
        waiting.extend(pieces[chosen])
    return out.adjacency()
