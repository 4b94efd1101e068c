"""Partially directed graphs, as bit sets and with names: cycles, Meek rules, CPDAGs, extensions.

A `MixedGraph` stores bit sets (Python integers): parents, children and neighbours (undirected
edges) of each variable. The functions on it serve the graph classes and are the reference
implementation for the compiled search.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import Advice, GraphError
from hidag.views import Content, View, svg_of

Edges = list[tuple[str, str]]
Adjacency = NDArray[np.int8]
_JSON_FORMAT, _JSON_VERSION = "hidag-graph", 1


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
    def from_adjacency(cls, adjacency: Adjacency) -> MixedGraph:
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

    def adjacency(self) -> Adjacency:
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


def cliques(graph: MixedGraph, inside: int) -> Iterator[int]:
    """Yield the cliques inside a set of variables as bit sets, the empty one first."""
    yield 0
    for v in bits(inside):
        later = inside & ~((1 << (v + 1)) - 1) & graph.adjacent(v)
        for rest in cliques(graph, later):
            yield rest | 1 << v


def find_cycle(adjacency: Adjacency) -> list[int] | None:
    """Return the variables of a directed cycle (first repeated at the end), or None."""
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
    """Return whether a directed path leads from i to j by way of ``through``, shape (K, K)."""
    out = np.asarray(adjacency, dtype=bool)
    for k in through:
        out = out | np.outer(out[:, k], out[k])
    return out


def topological_order(
    adjacency: NDArray[np.generic], priority: Sequence[float] | None = None
) -> list[int]:
    """Return the variables of a DAG, parents before children, least priority or index first."""
    graph = nx.from_numpy_array(adjacency, create_using=nx.DiGraph)
    key = None if priority is None else priority.__getitem__
    return list(nx.lexicographical_topological_sort(graph, key))


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


def dag_to_cpdag(dag: Adjacency) -> Adjacency:
    """Return the CPDAG, (K, K), of a DAG: v-structures, and what the Meek rules direct."""
    directed = MixedGraph.from_adjacency(dag)
    n = directed.n
    graph = MixedGraph([0] * n, [0] * n, [directed.adjacent(i) for i in range(n)])
    for a, c, b in find_v_structures(directed):
        for parent in (a, b):
            if graph.neighbours[parent] >> c & 1:
                graph.orient(parent, c)
    return apply_meek_rules(graph).adjacency()


def extend_to_dag(graph: MixedGraph) -> Adjacency | None:
    """Return a DAG (K, K) with the same v-structures and edges, or None (Dor and Tarsi 1992)."""
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


def check_square(matrix: ArrayLike, what: str) -> NDArray[Any]:
    """Return a square matrix as an array."""
    out = np.asarray(matrix)
    if out.ndim != 2 or out.shape[0] != out.shape[1]:
        text = "{what} must be square, got shape {shape}"
        raise GraphError("matrix-not-square", text, {"what": what, "shape": out.shape})
    return out


def _check_adjacency(adjacency: ArrayLike) -> Adjacency:
    given = check_square(adjacency, "an adjacency matrix")
    if given.size and not np.isin(given, (0, 1)).all():
        raise GraphError("adjacency-not-binary", "an adjacency matrix must contain only 0 and 1")
    out = np.array(given, dtype=np.int8)
    if out.diagonal().any():
        text = "variable {variable} has an edge to itself; the diagonal of an adjacency matrix "
        text += "must be 0"
        raise GraphError("self-loop", text, variable=int(np.argmax(out.diagonal())))
    out.setflags(write=False)
    return out


def _check_names(names: Sequence[str] | None, n_variables: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"Z{k + 1}" for k in range(n_variables))
    out = tuple(str(name) for name in names)
    if len(out) != n_variables:
        text = "{expected} variables need {expected} names, got {found}"
        params = {"expected": n_variables, "found": len(out)}
        raise GraphError("wrong-number-of-names", text, params)
    if len(set(out)) != len(out):
        name = next(name for name in out if out.count(name) > 1)
        text = "names must be unique, but {name!r} occurs {count} times"
        raise GraphError("duplicate-name", text, {"name": name, "count": out.count(name)})
    return out


def cycle_error(path: Sequence[str], edges: str = "directed edges") -> GraphError:
    """Return the error about edges that form a cycle, given by the names along it."""
    text = "the {edges} form a cycle: {path}"
    params = {"edges": edges, "path": " -> ".join(path)}
    return GraphError(
        "cycle", text, params, advice=Advice("break-cycle", "remove or reverse one of them")
    )


def parents_to_adjacency(parents: Sequence[Sequence[int]]) -> Adjacency:
    """Return the adjacency matrix, shape (K, K), of a DAG given by its K parent sets."""
    out = np.zeros((len(parents), len(parents)), dtype=np.int8)
    for child, causes in enumerate(parents):
        out[list(causes), child] = 1
    return out


def edges_to_adjacency(
    names: Sequence[str], directed: Iterable[tuple[str, str]], undirected: Iterable[tuple[str, str]]
) -> Adjacency:
    """Return the adjacency matrix, shape (K, K), of edges given as pairs of names."""
    index = {name: k for k, name in enumerate(names)}
    out = np.zeros((len(index), len(index)), dtype=np.int8)
    pairs = list(undirected)
    for a, b in (*directed, *pairs, *((b, a) for a, b in pairs)):
        for name in (a, b):
            if name not in index:
                text = "an edge names {name!r}, which is not a variable"
                raise GraphError("unknown-variable", text, name=name)
        out[index[a], index[b]] = 1
    return out


class NamedGraph(View, frames={"adjacency": "_matrix", "edges": "_edge_list"}):
    """Immutable graph with names and an adjacency matrix; equality is by content."""

    __slots__ = ("_adjacency", "_names")

    _adjacency: Adjacency
    _names: tuple[str, ...]

    def __init__(self, adjacency: ArrayLike, names: Sequence[str] | None = None) -> None:
        checked = _check_adjacency(adjacency)
        object.__setattr__(self, "_adjacency", checked)
        object.__setattr__(self, "_names", _check_names(names, len(checked)))
        cycle = find_cycle(checked)
        if cycle is not None:
            raise cycle_error([self._names[k] for k in cycle])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; build a new one")

    @property
    def adjacency(self) -> Adjacency:
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

    def _named_pairs(self, where: NDArray[np.bool_]) -> Edges:
        return [(self._names[i], self._names[j]) for i, j in np.argwhere(where)]

    @property
    def directed_edges(self) -> Edges:
        """Pairs (cause, effect) of names, in index order."""
        return self._named_pairs(self._adjacency > self._adjacency.T)

    @property
    def undirected_edges(self) -> Edges:
        """Pairs of names joined by an undirected edge, each once, in index order."""
        return self._named_pairs(np.triu(self._adjacency & self._adjacency.T) > 0)

    @property
    def skeleton(self) -> Adjacency:
        """Symmetric matrix, shape (K, K): 1 where two variables are adjacent."""
        return np.maximum(self._adjacency, self._adjacency.T)

    @property
    def n_edges(self) -> int:
        """Number of adjacent pairs."""
        return int(self.skeleton.sum()) // 2

    @cached_property
    def _mixed(self) -> MixedGraph:
        return MixedGraph.from_adjacency(self._adjacency)

    @property
    def v_structures(self) -> list[tuple[str, str, str]]:
        """Triples (a, c, b) of names with a -> c <- b and a, b not adjacent, in index order."""
        n = self._names
        return [(n[a], n[c], n[b]) for a, c, b in find_v_structures(self._mixed)]

    def _matrix(self) -> Content:
        first = "cause"
        while first in self.names:
            first += "_"
        rows = zip(self.names, self.adjacency.tolist(), strict=True)
        return (first, *self.names), [(name, *row) for name, row in rows]

    def _edge_list(self) -> Content:
        rows = [(a, "->", b) for a, b in self.directed_edges]
        return ("one", "mark", "other"), rows + [(a, "-", b) for a, b in self.undirected_edges]

    def _drawing(self) -> str:
        return svg_of(self)

    def permute(self, order: Sequence[int]) -> Self:
        """Return the same graph with variable ``order[k]`` in place k."""
        where = np.asarray(order, dtype=np.int64)
        if sorted(where.tolist()) != list(range(self.n_variables)):
            text = "order must contain each of 0..{last} once, got {order}"
            params = {"last": self.n_variables - 1, "order": where.tolist()}
            raise GraphError("invalid-order", text, params)
        names = tuple(self._names[k] for k in where)
        return type(self)(self._adjacency[np.ix_(where, where)], names)

    def rename(self, names: Sequence[str]) -> Self:
        """Return the same graph under other names, length K."""
        return type(self)(self._adjacency, names)

    @classmethod
    def _from_named_edges(cls, names: Iterable[Any], directed: Any, undirected: Any = ()) -> Self:
        words = [str(name) for name in names]
        pairs = ([(str(a), str(b)) for a, b in edges] for edges in (directed, undirected))
        return cls(edges_to_adjacency(words, *pairs), words)

    def to_json(self) -> str:
        """Return JSON with ``names``, ``directed`` (cause, effect) and ``undirected`` pairs."""
        content = {
            "format": _JSON_FORMAT,
            "version": _JSON_VERSION,
            "kind": type(self).__name__,
            "names": list(self.names),
            "directed": [list(edge) for edge in self.directed_edges],
            "undirected": [list(edge) for edge in self.undirected_edges],
        }
        return json.dumps(content, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the graph of :meth:`to_json`."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise GraphError("invalid-json", "the text is not JSON: {why}", why=error) from error
        if not isinstance(content, dict) or content.get("format") != _JSON_FORMAT:
            problem = "the JSON text is not a graph: it lacks format={format!r}"
            raise GraphError("not-a-graph", problem, format=_JSON_FORMAT)
        if content.get("version") != _JSON_VERSION:
            problem = "the graph has format version {found!r}; this release reads version "
            problem += "{expected}"
            params = {"found": content.get("version"), "expected": _JSON_VERSION}
            raise GraphError("graph-version", problem, params)
        return cls._from_named_edges(content["names"], content["directed"], content["undirected"])

    def to_dot(self) -> str:
        """Return Graphviz text; undirected edges have the attribute ``dir=none``."""
        name = {one: quote_for_dot(one) for one in self.names}
        lines = [f"  {quoted};" for quoted in name.values()]
        lines += [f"  {name[a]} -> {name[b]};" for a, b in self.directed_edges]
        lines += [f"  {name[a]} -> {name[b]} [dir=none];" for a, b in self.undirected_edges]
        return "\n".join(["digraph {", *lines, "}", ""])

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``; an undirected edge is present in both directions.

        networkx converts it to many other formats.
        """
        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from(self.directed_edges)
        for a, b in self.undirected_edges:
            graph.add_edges_from([(a, b), (b, a)])
        return graph

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Return a networkx graph with nodes named by ``str``; edges both ways are undirected."""
        edges = ((), graph.edges()) if not graph.is_directed() else (graph.edges(), ())
        return cls._from_named_edges(graph.nodes, *edges)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, NamedGraph)
        return self._names == other._names and np.array_equal(self._adjacency, other._adjacency)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._names, self._adjacency.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (np.array(self._adjacency), self._names)


def quote_for_dot(text: str) -> str:
    """Return a text in quotes, as Graphviz reads names."""
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
