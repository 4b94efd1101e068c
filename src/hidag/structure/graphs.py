"""Directed acyclic graphs and CPDAGs, the graphs of their Markov equivalence classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import factorial, prod

import numpy as np
from numpy.typing import ArrayLike

from hidag.exceptions import GraphError
from hidag.structure.mixed_graphs import (
    Adjacency,
    MixedGraph,
    NamedGraph,
    apply_meek_rules,
    bits,
    cycle_error,
    dag_to_cpdag,
    edges_to_adjacency,
    extend_to_dag,
    parents_to_adjacency,
    topological_order,
)


class DAG(NamedGraph, title="{0.n_variables} variables, {0.n_edges} edges"):
    """A directed acyclic graph; a cycle raises a GraphError that names it.

    Parameters
    ----------
    adjacency : array_like, shape (K, K)
        ``adjacency[i, j] = 1`` means i -> j.
    names : sequence of str, length K, optional
        Default ``Z1 .. ZK``.

    Examples
    --------
    >>> import hidag
    >>> dag = hidag.DAG.from_edges(["a", "b", "c"], [("a", "c"), ("b", "c")])
    >>> dag.to_cpdag().directed_edges
    [('a', 'c'), ('b', 'c')]
    """

    def __init__(self, adjacency: ArrayLike, names: Sequence[str] | None = None) -> None:
        super().__init__(adjacency, names)
        for a, b in self.undirected_edges:
            raise cycle_error((a, b, a))

    @classmethod
    def from_edges(cls, names: Sequence[str], edges: Iterable[tuple[str, str]]) -> DAG:
        """Return the graph on ``names``, length K; ``edges`` are (cause, effect) pairs of names."""
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
        return tuple(tuple(np.flatnonzero(column).tolist()) for column in self.adjacency.T)

    def order(self) -> tuple[int, ...]:
        """Return the indices of the variables, parents before children."""
        return tuple(topological_order(self.adjacency))

    def to_cpdag(self) -> CPDAG:
        """Return the CPDAG of the Markov equivalence class of this graph."""
        return CPDAG(dag_to_cpdag(self.adjacency), self.names)


class CPDAG(NamedGraph):
    """A partially directed graph that represents a set of DAGs, its members.

    A search without background knowledge returns the completed graph of a Markov equivalence
    class: an edge is directed if and only if it has the same direction in all members
    (:meth:`is_valid`). With background knowledge more edges may be directed; the graph is then
    closed under the Meek rules (:meth:`is_closed`) and its members are the DAGs of the class that
    agree with the directed edges.

    Parameters
    ----------
    adjacency : array_like, shape (K, K)
        ``a[i, j] = 1, a[j, i] = 0`` means i -> j; both 1 means i - j.
    names : sequence of str, length K, optional
        Default ``Z1 .. ZK``.

    Examples
    --------
    >>> import hidag
    >>> graph = hidag.CPDAG.from_edges(["a", "b"], undirected=[("a", "b")])
    >>> graph.n_members()
    2
    """

    @classmethod
    def from_edges(
        cls,
        names: Sequence[str],
        directed: Iterable[tuple[str, str]] = (),
        undirected: Iterable[tuple[str, str]] = (),
    ) -> CPDAG:
        """Return the graph on K ``names`` with ``directed`` and ``undirected`` pairs of names."""
        return cls(edges_to_adjacency(names, directed, undirected), names)

    def is_valid(self) -> bool:
        """Return whether this is the completed graph of a Markov equivalence class."""
        dag = extend_to_dag(self._mixed)
        return dag is not None and np.array_equal(dag_to_cpdag(dag), self.adjacency)

    def is_closed(self) -> bool:
        """Return whether there is a member and the Meek rules direct no further edge."""
        closed = apply_meek_rules(self._mixed.copy()).neighbours == self._mixed.neighbours
        return closed and extend_to_dag(self._mixed) is not None

    def to_dag(self) -> DAG:
        """Return a member, which depends on the order of variables (cf. :meth:`sample_member`)."""
        dag = extend_to_dag(self._mixed)
        if dag is None:
            text = "the graph has no member: its undirected edges cannot be directed without a "
            text += "cycle or a new v-structure"
            raise GraphError("no-member", text)
        return DAG(dag, self.names)

    def members(self, limit: int | None = None) -> list[DAG]:
        """Return the member DAGs, at most ``limit``; there may be very many (:meth:`n_members`)."""
        self.to_dag()  # raises if there is none
        found = _orientations(apply_meek_rules(self._mixed.copy()), (1 << self.n_variables) - 1)
        return [DAG(member.adjacency(), self.names) for member in islice(found, limit)]

    def n_members(self) -> int:
        """Return the number of member DAGs."""
        self.to_dag()
        return count_members(self._mixed, completed=self.is_valid())

    def sample_member(self, rng: np.random.Generator) -> DAG:
        """Return a member that ``rng`` draws uniformly at random."""
        self.to_dag()
        return DAG(sample_member(self._mixed, rng, completed=self.is_valid()), self.names)

    def contains(self, dag: DAG) -> bool:
        """Return whether ``dag`` has the skeleton, the v-structures and all directions of this."""
        return (
            dag.names == self.names
            and np.array_equal(dag.skeleton, self.skeleton)
            and dag.v_structures == self.v_structures
            and bool((dag.adjacency <= self.adjacency).all())
        )

    def _headline(self) -> str:
        counts = f"{len(self.directed_edges)} directed edges, {len(self.undirected_edges)}"
        return f"{self.n_variables} variables, {counts} undirected edges"


def _orientations(graph: MixedGraph, inside: int) -> Iterator[MixedGraph]:
    """Yield all ways to direct the undirected edges ``inside`` a Meek-closed graph."""
    stack = [graph]
    while stack:
        current = stack.pop()
        edge = next(((i, j) for i in bits(inside) for j in bits(current.neighbours[i])), None)
        if edge is None:
            yield current
            continue
        for a, b in (edge[::-1], edge):
            branch = current.copy()
            branch.orient(a, b)
            stack.append(apply_meek_rules(branch))


def _components(neighbours: list[int], inside: int) -> list[int]:
    """Return the connected components of undirected edges among ``inside``, as bit sets."""
    out = []
    while inside:
        component = front = inside & -inside
        while front:
            reached = 0
            for i in bits(front):
                reached |= neighbours[i]
            front = reached & inside & ~component
            component |= front
        out.append(component)
        inside &= ~component
    return out


def _root_component(graph: MixedGraph, component: int, root: int) -> MixedGraph:
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
    """Return the ways to direct a chordal component without v-structures (He, Jia and Yu 2015)."""
    size = component.bit_count()
    edges = sum((graph.neighbours[i] & component).bit_count() for i in bits(component)) // 2
    if edges == size - 1:
        return size
    if 2 * edges == size * (size - 1):
        return factorial(size)
    if component not in known:
        known[component] = sum(
            _count_all(graph, _components(rooted.neighbours, component), known)
            for rooted in (_root_component(graph, component, root) for root in bits(component))
        )
    return known[component]


def _count_all(graph: MixedGraph, components: Iterable[int], known: dict[int, int]) -> int:
    """Return the number of ways to direct several components, independently of each other."""
    return prod(_count_component(graph, one, known) for one in components if one.bit_count() > 1)


def count_members(graph: MixedGraph, *, completed: bool) -> int:
    """Return the number of members: by recursion if completed, else by listing orientations."""
    closed = apply_meek_rules(graph.copy())
    components = _components(closed.neighbours, (1 << graph.n) - 1)
    if completed:
        return _count_all(closed, components, {})
    return prod(sum(1 for _ in _orientations(closed, one)) for one in components)


def _draw(weights: list[int], rng: np.random.Generator) -> int:
    """Return an index drawn in proportion to integer weights that may exceed any float."""
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


def sample_member(graph: MixedGraph, rng: np.random.Generator, *, completed: bool) -> Adjacency:
    """Return the adjacency matrix, shape (K, K), of a member drawn uniformly at random."""
    out = apply_meek_rules(graph.copy())
    pending = _components(out.neighbours, (1 << graph.n) - 1)
    if not completed:
        for component in pending:
            directed = list(_orientations(out, component))
            out = directed[int(rng.integers(len(directed)))]
        return out.adjacency()
    known: dict[int, int] = {}
    while pending:
        component = pending.pop()
        if component.bit_count() == 1:
            continue
        rooted = [_root_component(out, component, root) for root in bits(component)]
        parts = [_components(one.neighbours, component) for one in rooted]
        chosen = _draw([_count_all(out, inner, known) for inner in parts], rng)
        for i in bits(component):
            for j in bits(rooted[chosen].children[i]):
                out.orient(i, j)
        pending.extend(parts[chosen])
    return out.adjacency()
