"""What all graphs share: names, a read-only adjacency, edges as pairs of names, equality."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.discover.orientation import MixedGraph, find_cycle, v_structure_triples
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


def adjacency_of_parents(parents: Sequence[Sequence[int]]) -> NDArray[np.int8]:
    """Return the adjacency, shape (K, K), of a graph in which k has the parents ``parents[k]``."""
    out = np.zeros((len(parents), len(parents)), dtype=np.int8)
    for child, causes in enumerate(parents):
        out[list(causes), child] = 1
    return out


def adjacency_of_edges(
    names: Sequence[str],
    directed: Iterable[tuple[str, str]],
    undirected: Iterable[tuple[str, str]],
) -> NDArray[np.int8]:
    """Return the adjacency, shape (K, K), of edges given as pairs of names."""
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


class NamedGraph:
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
    def undirected_edges(self) -> list[tuple[str, str]]:
        """Pairs of names joined by an undirected edge, each once, in index order."""
        rows, columns = np.nonzero(np.triu(self._adjacency & self._adjacency.T))
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
        assert isinstance(other, NamedGraph)
        return self._names == other._names and np.array_equal(self._adjacency, other._adjacency)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._names, self._adjacency.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (np.array(self._adjacency), self._names)
