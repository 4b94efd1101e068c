"""Named graphs and their conversion to other formats.

Text formats are JSON, Graphviz DOT, GML and Tetrad; objects are networkx graphs, data frames,
causal-learn matrices and pgmpy graphs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, Self

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import Advice, Choices, GraphError, MissingPackageError, invalid_setting
from hidag.structure.dot_format import dot_quote, read_dot
from hidag.structure.orientation import MixedGraph, find_cycle, find_v_structures

Edges = list[tuple[str, str]]

_JSON_FORMAT = "hidag-graph"
_JSON_VERSION = 1

_TETRAD_EDGE = re.compile(r"^\s*(?:\d+\.)?\s*(\S+)\s+([<o-][-o][o>-])\s+(\S+)")

#: Endpoint marks of causal-learn.
_TAIL, _ARROW = -1, 1


def _check_square(matrix: ArrayLike, what: str) -> NDArray[Any]:
    out = np.asarray(matrix)
    if out.ndim != 2 or out.shape[0] != out.shape[1]:
        raise GraphError(
            "matrix-not-square",
            "{what} must be square, got shape {shape}",
            {"what": what, "shape": out.shape},
        )
    return out


def _check_adjacency(adjacency: ArrayLike) -> NDArray[np.int8]:
    given = _check_square(adjacency, "an adjacency matrix")
    if given.size and not np.isin(given, (0, 1)).all():
        raise GraphError("adjacency-not-binary", "an adjacency matrix must contain only 0 and 1")
    out = np.array(given, dtype=np.int8)
    if out.diagonal().any():
        raise GraphError(
            "self-loop",
            "variable {variable} has an edge to itself; the diagonal of an adjacency matrix must "
            "be 0",
            variable=int(np.argmax(out.diagonal())),
        )
    out.setflags(write=False)
    return out


def _check_names(names: Sequence[str] | None, n_variables: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"Z{k + 1}" for k in range(n_variables))
    out = tuple(str(name) for name in names)
    if len(out) != n_variables:
        raise GraphError(
            "wrong-number-of-names",
            "{expected} variables need {expected} names, got {found}",
            {"expected": n_variables, "found": len(out)},
        )
    if len(set(out)) != len(out):
        name = next(name for name in out if out.count(name) > 1)
        raise GraphError(
            "duplicate-name",
            "names must be unique, but {name!r} occurs {count} times",
            {"name": name, "count": out.count(name)},
        )
    return out


def cycle_error(path: Sequence[str], edges: str = "directed edges") -> GraphError:
    """Return the error about edges that form a cycle, given by the names along it."""
    return GraphError(
        "cycle",
        "the {edges} form a cycle: {path}",
        {"edges": edges, "path": " -> ".join(path)},
        advice=Advice("break-cycle", "remove or reverse one of them"),
    )


def parents_to_adjacency(parents: Sequence[Sequence[int]]) -> NDArray[np.int8]:
    """Return the adjacency matrix, shape (K, K), of a DAG given by its K parent sets."""
    out = np.zeros((len(parents), len(parents)), dtype=np.int8)
    for child, causes in enumerate(parents):
        out[list(causes), child] = 1
    return out


def edges_to_adjacency(
    names: Sequence[str],
    directed: Iterable[tuple[str, str]],
    undirected: Iterable[tuple[str, str]],
) -> NDArray[np.int8]:
    """Return the adjacency matrix, shape (K, K), of edges given as pairs of names."""
    index = {name: k for k, name in enumerate(names)}
    out = np.zeros((len(index), len(index)), dtype=np.int8)
    pairs = list(undirected)
    for a, b in (*directed, *pairs, *((b, a) for a, b in pairs)):
        for name in (a, b):
            if name not in index:
                raise GraphError(
                    "unknown-variable", "an edge names {name!r}, which is not a variable", name=name
                )
        out[index[a], index[b]] = 1
    return out


class NamedGraph:
    """Immutable graph with names and an adjacency matrix; equality is by content."""

    __slots__ = ("__dict__", "_adjacency", "_names")

    _adjacency: NDArray[np.int8]
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
    def skeleton(self) -> NDArray[np.int8]:
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
        return [
            (self._names[a], self._names[c], self._names[b])
            for a, c, b in find_v_structures(self._mixed)
        ]

    def permute(self, order: Sequence[int]) -> Self:
        """Return the same graph with variable ``order[k]`` in place k."""
        where = np.asarray(order, dtype=np.int64)
        if sorted(where.tolist()) != list(range(self.n_variables)):
            raise GraphError(
                "invalid-order",
                "order must contain each of 0..{last} once, got {order}",
                {"last": self.n_variables - 1, "order": where.tolist()},
            )
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


class GraphFormats(NamedGraph):
    """Conversion to and from other formats; the order of names and edges is preserved."""

    @classmethod
    def _from_named_edges(cls, names: Iterable[Any], directed: Any, undirected: Any = ()) -> Self:
        words = [str(name) for name in names]
        pairs = ([(str(a), str(b)) for a, b in edges] for edges in (directed, undirected))
        return cls(edges_to_adjacency(words, *pairs), words)

    def to_json(self) -> str:
        """Return JSON with ``names``, ``directed`` (cause, effect) and ``undirected`` pairs."""
        return json.dumps(
            {
                "format": _JSON_FORMAT,
                "version": _JSON_VERSION,
                "kind": type(self).__name__,
                "names": list(self.names),
                "directed": [list(edge) for edge in self.directed_edges],
                "undirected": [list(edge) for edge in self.undirected_edges],
            },
            indent=1,
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the graph of :meth:`to_json`."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise GraphError("invalid-json", "the text is not JSON: {why}", why=error) from error
        if not isinstance(content, dict) or content.get("format") != _JSON_FORMAT:
            raise GraphError(
                "not-a-graph",
                "the JSON text is not a graph: it lacks format={format!r}",
                format=_JSON_FORMAT,
            )
        if content.get("version") != _JSON_VERSION:
            raise GraphError(
                "graph-version",
                "the graph has format version {found!r}; this release reads version {expected}",
                {"found": content.get("version"), "expected": _JSON_VERSION},
            )
        return cls._from_named_edges(content["names"], content["directed"], content["undirected"])

    def to_dot(self) -> str:
        """Return Graphviz text; undirected edges have the attribute ``dir=none``."""
        name = {name: dot_quote(name) for name in self.names}
        lines = [f"  {quoted};" for quoted in name.values()]
        lines += [f"  {name[a]} -> {name[b]};" for a, b in self.directed_edges]
        lines += [f"  {name[a]} -> {name[b]} [dir=none];" for a, b in self.undirected_edges]
        return "\n".join(["digraph {", *lines, "}", ""])

    @classmethod
    def from_dot(cls, text: str) -> Self:
        """Return the graph of Graphviz text: nodes, ``->`` and ``--`` edges, ``dir`` attributes.

        Subgraphs and ports are not supported.
        """
        return cls._from_named_edges(*read_dot(text))

    def to_gml(self) -> str:
        """Return GML text of a directed graph; an undirected edge is written in both directions."""
        return "\n".join(nx.generate_gml(self.to_networkx())) + "\n"

    @classmethod
    def from_gml(cls, text: str) -> Self:
        """Return the graph of GML text; edges in both directions are one undirected edge."""
        try:
            return cls.from_networkx(nx.parse_gml(text))
        except nx.NetworkXError as error:
            raise GraphError("invalid-gml", "the text is not GML: {why}", why=error) from error

    def to_tetrad(self) -> str:
        """Return Tetrad's graph text: ``-->`` for directed and ``---`` for undirected edges."""
        for name in self.names:
            if not name or re.search(r"[\s;,]", name):
                raise GraphError(
                    "name-for-tetrad",
                    "names in Tetrad files must not be empty or contain blanks, commas or "
                    "semicolons, got {name!r}",
                    advice=Advice("rename", "rename the variables first"),
                    name=name,
                )
        edges = [f"{a} --> {b}" for a, b in self.directed_edges]
        edges += [f"{a} --- {b}" for a, b in self.undirected_edges]
        numbered = [f"{i}. {edge}" for i, edge in enumerate(edges, start=1)]
        return "\n".join(["Graph Nodes:", ";".join(self.names), "", "Graph Edges:", *numbered, ""])

    @classmethod
    def from_tetrad(cls, text: str) -> Self:
        """Return the graph of Tetrad's graph text; sections after the edges are ignored."""
        lines = [line.strip() for line in text.splitlines()]
        if "Graph Nodes:" not in lines or "Graph Edges:" not in lines:
            raise GraphError(
                "not-a-graph",
                "the text is not a Tetrad graph: it lacks 'Graph Nodes:' or 'Graph Edges:'",
            )
        node_line = lines[lines.index("Graph Nodes:") + 1]
        directed: Edges = []
        undirected: Edges = []
        for line in lines[lines.index("Graph Edges:") + 1 :]:
            if not line:
                break
            found = _TETRAD_EDGE.match(line)
            if found is None or found[2] not in ("-->", "<--", "---"):
                raise GraphError(
                    "unsupported-edge",
                    "only -->, <-- and --- edges are supported, got {line!r}",
                    line=line,
                )
            a, sign, b = found.groups()
            if sign == "---":
                undirected.append((a, b))
            else:
                directed.append((a, b) if sign == "-->" else (b, a))
        names = [name for name in re.split(r"[;,\s]+", node_line) if name]
        return cls._from_named_edges(names, directed, undirected)

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``; an undirected edge is present in both directions."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from(self.directed_edges)
        for a, b in self.undirected_edges:
            graph.add_edges_from([(a, b), (b, a)])
        return graph

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Return the graph of a networkx graph.

        In a ``DiGraph`` edges in both directions are one undirected edge; in a ``Graph`` all
        edges are undirected. Nodes are named by ``str(node)``.
        """
        edges = ((), graph.edges()) if not graph.is_directed() else (graph.edges(), ())
        return cls._from_named_edges(graph.nodes, *edges)

    def to_frame(self, frame: str | None = None) -> Any:
        """Return the adjacency matrix as a table: the row's variable causes the column's variable.

        Parameters
        ----------
        frame : "pandas", "polars" or None
            None returns a dict of columns. The first column, ``cause``, names the row; in
            row i, column j, 1 means i -> j, and 1 there and in row j, column i means i - j.
        """
        first = "cause"
        while first in self.names:
            first += "_"
        columns: dict[str, list[Any]] = {first: list(self.names)}
        for j, name in enumerate(self.names):
            columns[name] = self.adjacency[:, j].tolist()
        if frame is None:
            return columns
        if frame not in ("pandas", "polars"):
            raise invalid_setting("frame", Choices(("pandas", "polars", None)), frame)
        return _import(frame, "to_frame").DataFrame(columns)

    @classmethod
    def from_frame(cls, table: Any) -> Self:
        """Return the graph of :meth:`to_frame`: a dict of columns, a pandas or polars frame."""
        columns = list(table.keys() if isinstance(table, dict) else table.columns)
        names = [str(name) for name in columns[1:]]
        rows = [str(name) for name in table[columns[0]]]
        if rows != names:
            raise GraphError(
                "rows-and-columns-differ",
                "the first column of an adjacency table must name the rows as the other columns "
                "are named, {columns}, got {rows}",
                {"rows": rows, "columns": names},
            )
        values = [list(table[name]) for name in columns[1:]]
        return cls(np.array(values).T.reshape(len(names), len(names)), names)

    def to_causal_learn(self) -> NDArray[np.int64]:
        """Return causal-learn's matrix of endpoints, shape (K, K).

        ``m[i, j]`` is the mark at i of the edge between i and j: i -> j is ``m[i, j] = -1``
        (tail), ``m[j, i] = 1`` (arrow); i - j has -1 on both sides.
        """
        a = self.adjacency.astype(np.int64)
        return np.where(a == 1, _TAIL, np.where(a.T == 1, _ARROW, 0))

    @classmethod
    def from_causal_learn(cls, graph: Any, names: Sequence[str] | None = None) -> Self:
        """Return the graph of a causal-learn graph or of its matrix of endpoints, shape (K, K)."""
        graph = getattr(graph, "G", graph)  # constraint-based searches return a wrapper
        if hasattr(graph, "get_nodes"):
            if names is None:
                names = [node.get_name() for node in graph.get_nodes()]
            graph = graph.graph
        marks = _check_square(graph, "a matrix of endpoints")
        tail = marks == _TAIL
        known = (tail & np.isin(marks.T, (_TAIL, _ARROW))) | ((marks == _ARROW) & tail.T)
        known |= (marks == 0) & (marks.T == 0)
        if not known.all():
            i, j = np.argwhere(~known)[0].tolist()
            raise GraphError(
                "unsupported-edge",
                "only i -> j and i - j edges are supported, but variables {i} and {j} have the "
                "endpoints {here} and {there}",
                {"i": i, "j": j, "here": int(marks[i, j]), "there": int(marks[j, i])},
            )
        return cls(tail.astype(np.int8), names)

    def to_pgmpy(self) -> Any:
        """Return a ``pgmpy.base.DAG``, or a ``pgmpy.base.PDAG`` if any edge may be undirected."""
        base = _import("pgmpy.base", "to_pgmpy")
        if type(self).__name__ == "DAG":
            graph = base.DAG(self.directed_edges)
        else:
            graph = base.PDAG(
                directed_ebunch=self.directed_edges, undirected_ebunch=self.undirected_edges
            )
        graph.add_nodes_from(self.names)
        return graph

    @classmethod
    def from_pgmpy(cls, graph: Any, names: Sequence[str] | None = None) -> Self:
        """Return the graph of a pgmpy graph; ``names`` sets the order of the variables."""
        directed = getattr(graph, "directed_edges", None)
        return cls._from_named_edges(
            graph.nodes() if names is None else names,
            graph.edges() if directed is None else directed,
            getattr(graph, "undirected_edges", ()),
        )


def _import(module: str, method: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            "missing-package",
            "{use} needs {package}, which is not installed",
            {"use": method, "package": module.partition(".")[0]},
            advice=Advice("install-package", "use pip install {package}"),
        ) from error
