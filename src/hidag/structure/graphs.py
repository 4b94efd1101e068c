"""Directed acyclic graphs and CPDAGs, the graphs of their Markov equivalence classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from hidag.exceptions import GraphError
from hidag.structure.mixed_graphs import (
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
    >>> len(graph.members())
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
        """Return a member, which depends on the order of the variables."""
        dag = extend_to_dag(self._mixed)
        if dag is None:
            text = "the graph has no member: its undirected edges cannot be directed without a "
            text += "cycle or a new v-structure"
            raise GraphError("no-member", text)
        return DAG(dag, self.names)

    def members(self, limit: int | None = None) -> list[DAG]:
        """Return the member DAGs, at most ``limit``; there may be very many."""
        self.to_dag()  # raises if there is none
        found = _orientations(apply_meek_rules(self._mixed.copy()))
        return [DAG(member.adjacency(), self.names) for member in islice(found, limit)]

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


def _orientations(graph: MixedGraph) -> Iterator[MixedGraph]:
    """Yield all ways to direct the undirected edges of a Meek-closed graph."""
    stack = [graph]
    while stack:
        current = stack.pop()
        edge = next(((i, j) for i in range(current.n) for j in bits(current.neighbours[i])), None)
        if edge is None:
            yield current
            continue
        for a, b in (edge[::-1], edge):
            branch = current.copy()
            branch.orient(a, b)
            stack.append(apply_meek_rules(branch))
