"""Algorithms on partially directed graphs: cycles, v-structures, Meek rules, CPDAGs, extensions.

A graph is stored as bit sets (Python integers): parents, children and neighbours (undirected
edges) of each variable. These functions serve the graph classes and are the reference
implementation for the compiled search.
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
    """Mutable partially directed graph: bit sets of parents, children and neighbours."""

    parents: list[int]
    children: list[int]
    neighbours: list[int]

    @classmethod
    def from_adjacency(cls, adjacency: NDArray[np.int8]) -> MixedGraph:
        """Return the graph of an adjacency matrix, shape (K, K)."""
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
        """Return the bit set of the variables adjacent to ``i``."""
        return self.parents[i] | self.children[i] | self.neighbours[i]

    def orient(self, i: int, j: int) -> None:
        """Replace the undirected edge i - j by i -> j."""
        self.neighbours[i] &= ~(1 << j)
        self.neighbours[j] &= ~(1 << i)
        self.children[i] |= 1 << j
        self.parents[j] |= 1 << i


def find_cycle(adjacency: NDArray[np.int8]) -> list[int] | None:
    """Return the variables of a directed cycle (first repeated at the end), or None.

    Undirected edges are ignored.
    """
    graph = MixedGraph.from_adjacency(adjacency)
    left = (1 << graph.n) - 1
    while sources := [i for i in bits(left) if not graph.parents[i] & left]:
        for i in sources:
            left &= ~(1 << i)
    if not left:
        return None
    # Every remaining variable has a parent among them, so a walk upwards must repeat a variable.
    walk = [next(bits(left))]
    while True:
        before = next(bits(graph.parents[walk[-1]] & left))
        if before in walk:
            return [before, *reversed(walk[walk.index(before) :])]
        walk.append(before)


def reachable(
    adjacency: NDArray[np.integer | np.bool_], through: Iterable[int]
) -> NDArray[np.bool_]:
    """Return whether a directed path leads from i to j, shape (K, K).

    Parameters
    ----------
    adjacency : ndarray, shape (K, K)
    through : iterable of int
        Variables that may be inner nodes of a path; its end points are arbitrary.
    """
    out = np.asarray(adjacency, dtype=bool)
    for k in through:
        out = out | np.outer(out[:, k], out[k])
    return out


def topological_order(adjacency: NDArray[np.int8]) -> list[int]:
    """Return the variables of a DAG, parents before children, lowest index first."""
    graph = MixedGraph.from_adjacency(adjacency)
    order: list[int] = []
    left = (1 << graph.n) - 1
    while left:
        source = next(i for i in bits(left) if not graph.parents[i] & left)
        order.append(source)
        left &= ~(1 << source)
    return order


def find_v_structures(graph: MixedGraph) -> list[tuple[int, int, int]]:
    """Return the triples (a, c, b), a < b, with a -> c <- b and a, b not adjacent."""
    out: list[tuple[int, int, int]] = []
    for c in range(graph.n):
        for a in bits(graph.parents[c]):
            others = graph.parents[c] & ~graph.adjacent(a) & ~((1 << (a + 1)) - 1)
            out.extend((a, c, b) for b in bits(others))
    return sorted(out)


def meek_orients(graph: MixedGraph, b: int, c: int) -> bool:
    """Return whether one of the four Meek rules orients the undirected edge b - c as b -> c."""
    if graph.parents[b] & ~graph.adjacent(c):  # rule 1: b <- c would be a new v-structure at b
        return True
    if graph.children[b] & graph.parents[c]:  # rule 2: b <- c would close a cycle
        return True
    middle = graph.neighbours[b] & graph.parents[c]
    for d in bits(middle):  # rule 3: two nonadjacent parents of c, both neighbours of b
        if middle & ~graph.adjacent(d) & ~(1 << d):
            return True
    # Rule 4 is needed only with background knowledge.
    return any(
        graph.parents[e] & graph.neighbours[b] & ~graph.adjacent(c)
        for e in bits(graph.parents[c] & graph.adjacent(b))
    )


def apply_meek_rules(graph: MixedGraph) -> MixedGraph:
    """Orient in place every compelled edge by the Meek rules; return the graph."""
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
    """Return the CPDAG, shape (K, K), of the Markov equivalence class of a DAG.

    The v-structures stay directed, all other edges lose their direction, and the Meek rules
    direct the remaining compelled edges.
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
    """Return a consistent extension, shape (K, K), or None if there is none.

    The extension is a DAG with the same edges, directions and v-structures (Dor and Tarsi 1992):
    repeatedly take a sink whose neighbours are adjacent to all other variables adjacent to it,
    direct its undirected edges towards it, and remove it.
    """
    rest = graph.copy()
    out = np.zeros((graph.n, graph.n), dtype=np.int8)
    left = list(range(graph.n))
    while left:
        for x in left:
            if rest.children[x]:
                continue
            joined = rest.parents[x] | rest.neighbours[x]
            if all(not joined & ~(1 << y) & ~rest.adjacent(y) for y in bits(rest.neighbours[x])):
                break
        else:
            return None
        for y in bits(joined):
            out[y, x] = 1
            for sets in (rest.parents, rest.children, rest.neighbours):
                sets[y] &= ~(1 << x)
        left.remove(x)
    return out
