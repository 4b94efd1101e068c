"""Orientation rules on partially directed graphs: acyclicity, Meek's rules, completion, extension.

A graph is held as three lists of Python integers used as bit sets, one integer per variable:
parents, children and (undirected) neighbours. These functions are the plain reference for the
compiled search and serve the graph classes; none of them knows names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the ones of ``mask``, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass
class MixedGraph:
    """Work copy of a partially directed graph: bit sets of parents, children and neighbours."""

    parents: list[int]
    children: list[int]
    neighbours: list[int]

    @classmethod
    def from_adjacency(cls, adjacency: NDArray[np.int8]) -> MixedGraph:
        """Return the bit sets of an adjacency matrix, shape (K, K)."""
        n = len(adjacency)
        out = cls([0] * n, [0] * n, [0] * n)
        for i, j in zip(*(index.tolist() for index in np.nonzero(adjacency)), strict=True):
            if adjacency[j, i]:
                out.neighbours[i] |= 1 << j
            else:
                out.children[i] |= 1 << j
                out.parents[j] |= 1 << i
        return out

    @property
    def n(self) -> int:
        """Number of variables, K."""
        return len(self.parents)

    def adjacency(self) -> NDArray[np.int8]:
        """Return the adjacency matrix, shape (K, K)."""
        out = np.zeros((self.n, self.n), dtype=np.int8)
        for i in range(self.n):
            for j in bits(self.children[i] | self.neighbours[i]):
                out[i, j] = 1
        return out

    def copy(self) -> MixedGraph:
        """Return an independent copy."""
        return MixedGraph(list(self.parents), list(self.children), list(self.neighbours))

    def adjacent(self, i: int) -> int:
        """Return the bit set of all variables joined to ``i``."""
        return self.parents[i] | self.children[i] | self.neighbours[i]

    def orient(self, i: int, j: int) -> None:
        """Turn the undirected edge i - j into i -> j."""
        self.neighbours[i] &= ~(1 << j)
        self.neighbours[j] &= ~(1 << i)
        self.children[i] |= 1 << j
        self.parents[j] |= 1 << i


def find_cycle(adjacency: NDArray[np.int8]) -> list[int] | None:
    """Return the variables of one directed cycle (first repeated at the end), or None.

    Undirected edges are ignored.
    """
    graph = MixedGraph.from_adjacency(adjacency)
    left = (1 << graph.n) - 1
    while left:
        # Peeling off sources leaves the cycles and what hangs below them.
        sources = [i for i in bits(left) if not graph.parents[i] & left]
        if not sources:
            break
        for i in sources:
            left &= ~(1 << i)
    if not left:
        return None
    walk = [next(bits(left))]
    while True:
        before = next(bits(graph.parents[walk[-1]] & left))
        if before in walk:
            return [before, *reversed(walk[walk.index(before) :])]
        walk.append(before)


def reachable(
    adjacency: NDArray[np.integer | np.bool_], through: Iterable[int]
) -> NDArray[np.bool_]:
    """Return from where to where directed ways lead, shape (K, K).

    Parameters
    ----------
    adjacency : ndarray, shape (K, K)
    through : iterable of int
        Variables that a way may pass through; any may be its ends.
    """
    out = np.asarray(adjacency, dtype=bool)
    for k in through:
        out = out | np.outer(out[:, k], out[k])
    return out


def topological_order(adjacency: NDArray[np.int8]) -> list[int]:
    """Return the variables of an acyclic graph, parents before children, lowest index first."""
    graph = MixedGraph.from_adjacency(adjacency)
    order: list[int] = []
    left = (1 << graph.n) - 1
    while left:
        source = next(i for i in bits(left) if not graph.parents[i] & left)
        order.append(source)
        left &= ~(1 << source)
    return order


def find_v_structures(graph: MixedGraph) -> list[tuple[int, int, int]]:
    """Return the triples (a, c, b), a < b, with a -> c <- b and a, b not joined."""
    out: list[tuple[int, int, int]] = []
    for c in range(graph.n):
        for a in bits(graph.parents[c]):
            apart = graph.parents[c] & ~graph.adjacent(a) & ~((1 << (a + 1)) - 1)
            out.extend((a, c, b) for b in bits(apart))
    return sorted(out)


def meek_orients(graph: MixedGraph, b: int, c: int) -> bool:
    """Return whether one of Meek's four rules turns the undirected edge b - c into b -> c."""
    if graph.parents[b] & ~graph.adjacent(c):  # rule 1: b <- c would make a new v-structure at b
        return True
    if graph.children[b] & graph.parents[c]:  # rule 2: b <- c would close a cycle
        return True
    middle = graph.neighbours[b] & graph.parents[c]
    for d in bits(middle):  # rule 3: two unjoined parents of c, both joined to b by plain edges
        if middle & ~graph.adjacent(d) & ~(1 << d):
            return True
    for e in bits(graph.parents[c] & graph.adjacent(b)):  # rule 4, needed with knowledge only
        if graph.parents[e] & graph.neighbours[b] & ~graph.adjacent(c):
            return True
    return False


def apply_meek_rules(graph: MixedGraph) -> MixedGraph:
    """Orient in place, by Meek's rules, every edge that has only one way; return the graph."""
    changed = True
    while changed:
        changed = False
        for b in range(graph.n):
            for c in bits(graph.neighbours[b]):
                if graph.neighbours[b] >> c & 1 and meek_orients(graph, b, c):
                    graph.orient(b, c)
                    changed = True
    return graph


def dag_to_cpdag(dag: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the adjacency of the completed graph of a DAG's Markov equivalence class.

    Keeps the directions of the v-structures, forgets all others, and closes under Meek's rules.
    """
    directed = MixedGraph.from_adjacency(dag)
    n = directed.n
    graph = MixedGraph([0] * n, [0] * n, [directed.adjacent(i) for i in range(n)])
    for a, c, b in find_v_structures(directed):
        for parent in (a, b):
            if graph.neighbours[parent] >> c & 1:
                graph.orient(parent, c)
    return apply_meek_rules(graph).adjacency()


def extend_to_dag(graph: MixedGraph) -> NDArray[np.int8] | None:
    """Return a DAG with the graph's edges, directions and v-structures, or None if there is none.

    Dor and Tarsi's construction: repeatedly take a variable that can be last, that is, without
    children and such that whatever is joined to it by a plain edge is joined to all the others
    it is joined to; let its plain edges point at it; remove it.
    """
    n = graph.n
    parents, children, neighbours = (
        list(graph.parents),
        list(graph.children),
        list(graph.neighbours),
    )
    out = np.zeros((n, n), dtype=np.int8)
    left = list(range(n))
    while left:
        for x in left:
            if children[x]:
                continue
            joined = parents[x] | neighbours[x]
            if all(
                not joined & ~(1 << y) & ~(parents[y] | children[y] | neighbours[y])
                for y in bits(neighbours[x])
            ):
                break
        else:
            return None
        for y in bits(parents[x] | neighbours[x]):
            out[y, x] = 1
            parents[y] &= ~(1 << x)
            children[y] &= ~(1 << x)
            neighbours[y] &= ~(1 << x)
        left.remove(x)
    return out
