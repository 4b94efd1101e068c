"""Graphs: a directed acyclic graph, and the completed graph of its Markov equivalence class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import GraphError
from hidag.structure.graph_io import (
    ObjectFormats,
    TextFormats,
    edges_to_adjacency,
    parents_to_adjacency,
)
from hidag.structure.orientation import (
    MixedGraph,
    apply_meek_rules,
    bits,
    dag_to_cpdag,
    extend_to_dag,
    topological_order,
)

# --- Members of a partially directed graph: list, count and draw the DAGs it stands for


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
            waiting.append(apply_meek_rules(branch))


def list_members(graph: MixedGraph, limit: int | None) -> list[NDArray[np.int8]]:
    """Return the adjacencies, each (K, K), of at most ``limit`` members."""
    everyone = (1 << graph.n) - 1
    return [at.adjacency() for at in islice(_walk(apply_meek_rules(graph.copy()), everyone), limit)]


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
    return apply_meek_rules(inner)


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
    closed = apply_meek_rules(graph.copy())
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
    out = apply_meek_rules(graph.copy())
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


# ---


class DAG(TextFormats, ObjectFormats):
    """A directed acyclic graph with names.

    Parameters
    ----------
    adjacency : array_like, shape (K, K)
        ``adjacency[i, j] = 1`` means i -> j.
    names : sequence of str, length K, optional
        Default ``Z1 .. ZK``.

    Raises
    ------
    GraphError
        If the edges form a cycle (the sentence names it), or the shapes do not fit.
    """

    def __init__(self, adjacency: ArrayLike, names: Sequence[str] | None = None) -> None:
        super().__init__(adjacency, names)
        both = np.argwhere(np.triu(self.adjacency & self.adjacency.T))
        if len(both):
            i, j = both[0]
            raise GraphError(
                f"the directed edges form a cycle: {self.names[i]} -> {self.names[j]} -> "
                f"{self.names[i]}; remove or turn one of them"
            )

    @classmethod
    def from_edges(cls, names: Sequence[str], edges: Iterable[tuple[str, str]]) -> DAG:
        """Return the graph with these names, length K, and (cause, effect) pairs of names."""
        return cls(edges_to_adjacency(names, edges, ()), names)

    @classmethod
    def from_parents(
        cls, parents: Sequence[Sequence[int]], names: Sequence[str] | None = None
    ) -> DAG:
        """Return the graph in which variable k has the parents ``parents[k]``, counting from 0."""
        return cls(parents_to_adjacency(parents), names)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs (cause, effect) of names, in index order."""
        return self.directed_edges

    @property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """For each variable the indices of its parents, ascending."""
        return tuple(
            tuple(np.flatnonzero(self.adjacency[:, k]).tolist()) for k in range(self.n_variables)
        )

    def order(self) -> tuple[int, ...]:
        """Return the indices of the variables, parents before children."""
        return tuple(topological_order(self.adjacency))

    def to_cpdag(self) -> CPDAG:
        """Return the completed graph of the Markov equivalence class of this graph."""
        return CPDAG(dag_to_cpdag(self.adjacency), self.names)

    def __repr__(self) -> str:
        return f"DAG({self.n_variables} variables, {self.n_edges} edges)"


class CPDAG(TextFormats, ObjectFormats):
    """A partially directed graph that stands for a set of DAGs: its members.

    A search without background knowledge returns the *completed* graph of a Markov equivalence
    class: an edge is directed exactly if it points the same way in all members
    (:meth:`is_valid`). With background knowledge more edges may be directed; the graph is then
    closed under Meek's rules (:meth:`is_closed`) and its members are those DAGs of the class
    that agree with the directed edges.

    Parameters
    ----------
    adjacency : array_like, shape (K, K)
        ``a[i, j] = 1, a[j, i] = 0`` means i -> j; both 1 means i - j.
    names : sequence of str, length K, optional
        Default ``Z1 .. ZK``.

    Raises
    ------
    GraphError
        If the directed edges form a cycle, or the shapes do not fit.
    """

    @classmethod
    def from_edges(
        cls,
        names: Sequence[str],
        directed: Iterable[tuple[str, str]] = (),
        undirected: Iterable[tuple[str, str]] = (),
    ) -> CPDAG:
        """Return the graph with these names, length K, and edges given as pairs of names."""
        return cls(edges_to_adjacency(names, directed, undirected), names)

    def is_valid(self) -> bool:
        """Return whether this is the completed graph of some Markov equivalence class."""
        dag = extend_to_dag(self._mixed)
        return dag is not None and np.array_equal(dag_to_cpdag(dag), self.adjacency)

    def is_closed(self) -> bool:
        """Return whether it has a member and Meek's rules direct no further edge.

        This is the validity check of a result with background knowledge; every completed graph
        passes it too.
        """
        return (
            extend_to_dag(self._mixed) is not None
            and apply_meek_rules(self._mixed.copy()).neighbours == self._mixed.neighbours
        )

    def to_dag(self) -> DAG:
        """Return one member: same edges, directions and v-structures.

        Which member depends on the order of the variables; use :meth:`sample_member` for one
        that does not.
        """
        dag = extend_to_dag(self._mixed)
        if dag is None:
            raise GraphError(
                "the graph has no member: its undirected edges cannot be directed without a cycle "
                "or a new v-structure"
            )
        return DAG(dag, self.names)

    def _require_member(self) -> None:
        self.to_dag()

    def members(self, limit: int | None = None) -> list[DAG]:
        """Return the member DAGs, at most ``limit`` of them.

        The number of members grows very fast with undirected edges; :meth:`n_members` counts
        without listing.
        """
        self._require_member()
        return [DAG(a, self.names) for a in list_members(self._mixed, limit)]

    def n_members(self) -> int:
        """Return how many DAGs the graph stands for."""
        self._require_member()
        return count_members(self._mixed, completed=self.is_valid())

    def sample_member(self, rng: np.random.Generator) -> DAG:
        """Return one member, each with the same probability."""
        self._require_member()
        drawn = sample_member(self._mixed, rng, completed=self.is_valid())
        return DAG(drawn, self.names)

    def contains(self, dag: DAG) -> bool:
        """Return whether ``dag`` has the skeleton, the v-structures and all directions of this."""
        return (
            dag.names == self.names
            and np.array_equal(dag.skeleton, self.skeleton)
            and dag.v_structures == self.v_structures
            and bool((dag.adjacency <= self.adjacency).all())
        )

    def __repr__(self) -> str:
        return (
            f"CPDAG({self.n_variables} variables, {len(self.directed_edges)} directed edges, "
            f"{len(self.undirected_edges)} undirected edges)"
        )
