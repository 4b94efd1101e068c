"""Graphs: a directed acyclic graph, and the completed graph of its Markov equivalence class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.discover import membership
from hidag.discover.orientation import (
    MixedGraph,
    close,
    complete,
    extend,
    find_cycle,
    topological_order,
    v_structure_triples,
)
from hidag.errors import GraphError


def _checked_adjacency(adjacency: ArrayLike) -> NDArray[np.int8]:
    given = np.asarray(adjacency)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise GraphError(f"an adjacency must be a square matrix, got shape {given.shape}")
    if given.size and not np.isin(given, (0, 1)).all():
        raise GraphError("an adjacency must hold 0 and 1 only")
    out = np.array(given, dtype=np.int8)
    if out.diagonal().any():
        k = int(np.argmax(out.diagonal()))
        raise GraphError(f"variable {k} points at itself: the diagonal of an adjacency must be 0")
    out.setflags(write=False)
    return out


def _checked_names(names: Sequence[str] | None, n_variables: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"Z{k + 1}" for k in range(n_variables))
    out = tuple(str(name) for name in names)
    if len(out) != n_variables:
        raise GraphError(f"{n_variables} variables need {n_variables} names, got {len(out)}")
    if len(set(out)) != len(out):
        twice = next(name for name in out if out.count(name) > 1)
        raise GraphError(f"names must differ, but {twice!r} occurs {out.count(twice)} times")
    return out


class _Graph:
    """What both kinds of graph share: names, a read-only adjacency, equality by content."""

    __slots__ = ("__dict__", "_adjacency", "_names")

    _adjacency: NDArray[np.int8]
    _names: tuple[str, ...]

    def __init__(self, adjacency: ArrayLike, names: Sequence[str] | None = None) -> None:
        checked = _checked_adjacency(adjacency)
        object.__setattr__(self, "_adjacency", checked)
        object.__setattr__(self, "_names", _checked_names(names, len(checked)))
        cycle = find_cycle(checked)
        if cycle is not None:
            path = " -> ".join(self._names[k] for k in cycle)
            raise GraphError(f"the directed edges form a cycle: {path}; remove or turn one of them")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; build a new one")

    @property
    def adjacency(self) -> NDArray[np.int8]:
        """Read-only matrix, shape (K, K): ``a[i, j] = 1`` means i -> j; both 1 means i - j."""
        return self._adjacency

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, length K."""
        return self._names

    @property
    def n_variables(self) -> int:
        """Number of variables, K."""
        return len(self._names)

    @property
    def directed_edges(self) -> list[tuple[str, str]]:
        """Pairs (cause, effect) of names, in index order."""
        a = self._adjacency
        rows, columns = np.nonzero((a == 1) & (a.T == 0))
        return [(self._names[i], self._names[j]) for i, j in zip(rows, columns, strict=True)]

    @property
    def skeleton(self) -> NDArray[np.int8]:
        """Symmetric matrix, shape (K, K): 1 where two variables are joined at all."""
        return np.maximum(self._adjacency, self._adjacency.T)

    @property
    def n_edges(self) -> int:
        """Number of joined pairs."""
        return int(self.skeleton.sum()) // 2

    @cached_property
    def _mixed(self) -> MixedGraph:
        return MixedGraph.from_adjacency(self._adjacency)

    @property
    def v_structures(self) -> list[tuple[str, str, str]]:
        """Triples (a, c, b) of names with a -> c <- b and a, b not joined, in index order."""
        return [
            (self._names[a], self._names[c], self._names[b])
            for a, c, b in v_structure_triples(self._mixed)
        ]

    def permute(self, order: Sequence[int]) -> Self:
        """Return the same graph with variable ``order[k]`` in place k."""
        where = np.asarray(order, dtype=np.int64)
        if sorted(where.tolist()) != list(range(self.n_variables)):
            raise GraphError(f"order must hold each of 0..{self.n_variables - 1} once")
        return type(self)(
            self._adjacency[np.ix_(where, where)], tuple(self._names[k] for k in where)
        )

    def rename(self, names: Sequence[str]) -> Self:
        """Return the same graph under other names, length K."""
        return type(self)(self._adjacency, names)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, _Graph)
        return self._names == other._names and np.array_equal(self._adjacency, other._adjacency)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._names, self._adjacency.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (np.array(self._adjacency), self._names)


class DAG(_Graph):
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
        return cls(_adjacency_of_edges(names, edges, ()), names)

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


class CPDAG(_Graph):
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
        return cls(_adjacency_of_edges(names, directed, undirected), names)

    @property
    def undirected_edges(self) -> list[tuple[str, str]]:
        """Pairs of names joined by an undirected edge, each once, in index order."""
        rows, columns = np.nonzero(np.triu(self.adjacency & self.adjacency.T))
        return [(self.names[i], self.names[j]) for i, j in zip(rows, columns, strict=True)]

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


def _adjacency_of_edges(
    names: Sequence[str],
    directed: Iterable[tuple[str, str]],
    undirected: Iterable[tuple[str, str]],
) -> NDArray[np.int8]:
    place = {name: k for k, name in enumerate(names)}
    out = np.zeros((len(place), len(place)), dtype=np.int8)
    for both, edges in ((False, directed), (True, undirected)):
        for a, b in edges:
            for name in (a, b):
                if name not in place:
                    raise GraphError(f"an edge names {name!r}, which is not a variable")
            out[place[a], place[b]] = 1
            if both:
                out[place[b], place[a]] = 1
    return out
