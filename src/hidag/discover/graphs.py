"""Graphs: a directed acyclic graph, and the completed graph of its Markov equivalence class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from hidag.discover import membership
from hidag.discover.exchange import ObjectFormats
from hidag.discover.formats import TextFormats
from hidag.discover.named_graph import adjacency_of_edges, adjacency_of_parents
from hidag.discover.orientation import close, complete, extend, topological_order
from hidag.errors import GraphError


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
        return cls(adjacency_of_edges(names, edges, ()), names)

    @classmethod
    def from_parents(
        cls, parents: Sequence[Sequence[int]], names: Sequence[str] | None = None
    ) -> DAG:
        """Return the graph in which variable k has the parents ``parents[k]``, counting from 0."""
        return cls(adjacency_of_parents(parents), names)

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
        return CPDAG(complete(self.adjacency), self.names)

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
        return cls(adjacency_of_edges(names, directed, undirected), names)

    def is_valid(self) -> bool:
        """Return whether this is the completed graph of some Markov equivalence class."""
        dag = extend(self._mixed)
        return dag is not None and np.array_equal(complete(dag), self.adjacency)

    def is_closed(self) -> bool:
        """Return whether it has a member and Meek's rules direct no further edge.

        This is the validity check of a result with background knowledge; every completed graph
        passes it too.
        """
        return (
            extend(self._mixed) is not None
            and close(self._mixed.copy()).neighbours == self._mixed.neighbours
        )

    def to_dag(self) -> DAG:
        """Return one member: same edges, directions and v-structures.

        Which member depends on the order of the variables; use :meth:`sample_member` for one
        that does not.
        """
        dag = extend(self._mixed)
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
        return [DAG(a, self.names) for a in membership.list_members(self._mixed, limit)]

    def n_members(self) -> int:
        """Return how many DAGs the graph stands for."""
        self._require_member()
        return membership.count_members(self._mixed, completed=self.is_valid())

    def sample_member(self, rng: np.random.Generator) -> DAG:
        """Return one member, each with the same probability."""
        self._require_member()
        drawn = membership.sample_member(self._mixed, rng, completed=self.is_valid())
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
