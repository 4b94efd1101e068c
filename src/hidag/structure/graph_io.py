"""Graphs as text, and back: JSON, Graphviz DOT, GML and Tetrad's graph files."""

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

from hidag.exceptions import GraphError, SettingError
from hidag.structure.orientation import MixedGraph, find_cycle, find_v_structures

# --- What all graphs share: names, a read-only adjacency, edges as pairs of names, equality


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


def parents_to_adjacency(parents: Sequence[Sequence[int]]) -> NDArray[np.int8]:
    """Return the adjacency, shape (K, K), of a graph in which k has the parents ``parents[k]``."""
    out = np.zeros((len(parents), len(parents)), dtype=np.int8)
    for child, causes in enumerate(parents):
        out[list(causes), child] = 1
    return out


def edges_to_adjacency(
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
            for a, c, b in find_v_structures(self._mixed)
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


# ---

Edges = list[tuple[str, str]]

_JSON_FORMAT = "hidag-graph"
_JSON_VERSION = 1

#: Words that attributes for all that follows are given to.
_DOT_DEFAULTS = ("node", "edge", "graph")
_DOT_TOKEN = re.compile(
    r"""\s*(?: (?P<quoted>"(?:\\.|[^"\\])*") | (?P<sign>->|--|[{}\[\];,=])
    | (?P<word>[^\s{}\[\];,="]+?)(?=->|--|[\s{}\[\];,="]|$) )""",
    re.VERBOSE | re.DOTALL,
)
_DOT_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|^\s*\#[^\n]*', re.S | re.M)
_TETRAD_EDGE = re.compile(r"^\s*(?:\d+\.)?\s*(\S+)\s+([<o-][-o][o>-])\s+(\S+)")


class TextFormats(NamedGraph):
    """Text formats of a graph. A new order of names or edges in the text is kept as it is."""

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
            raise GraphError(f"the text is not JSON: {error}") from error
        if not isinstance(content, dict) or content.get("format") != _JSON_FORMAT:
            raise GraphError(f"the JSON text is not a graph: it lacks format={_JSON_FORMAT!r}")
        if content.get("version") != _JSON_VERSION:
            raise GraphError(
                f"the graph has format version {content.get('version')!r}, "
                f"this release reads version {_JSON_VERSION}"
            )
        names = [str(name) for name in content["names"]]
        directed = [(str(a), str(b)) for a, b in content["directed"]]
        undirected = [(str(a), str(b)) for a, b in content["undirected"]]
        return cls(edges_to_adjacency(names, directed, undirected), names)

    def to_dot(self) -> str:
        """Return Graphviz text; undirected edges carry ``dir=none``."""
        lines = [f"  {_dot_quote(name)};" for name in self.names]
        lines += [f"  {_dot_quote(a)} -> {_dot_quote(b)};" for a, b in self.directed_edges]
        lines += [
            f"  {_dot_quote(a)} -> {_dot_quote(b)} [dir=none];" for a, b in self.undirected_edges
        ]
        return "\n".join(["digraph {", *lines, "}", ""])

    @classmethod
    def from_dot(cls, text: str) -> Self:
        """Return the graph of Graphviz text: nodes, ``->`` and ``--`` edges, ``dir`` attributes.

        Subgraphs and ports are not read.
        """
        names, directed, undirected = _read_dot(text)
        return cls(edges_to_adjacency(names, directed, undirected), names)

    def to_gml(self) -> str:
        """Return GML text of a directed graph; an undirected edge is written in both directions."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from(self.directed_edges)
        for a, b in self.undirected_edges:
            graph.add_edges_from([(a, b), (b, a)])
        return "\n".join(nx.generate_gml(graph)) + "\n"

    @classmethod
    def from_gml(cls, text: str) -> Self:
        """Return the graph of GML text; edges in both directions are one undirected edge."""
        try:
            graph = nx.parse_gml(text)
        except nx.NetworkXError as error:
            raise GraphError(f"the text is not GML: {error}") from error
        names = [str(name) for name in graph.nodes]
        edges = [(str(a), str(b)) for a, b in graph.edges()]
        if graph.is_directed():
            return cls(edges_to_adjacency(names, edges, ()), names)
        return cls(edges_to_adjacency(names, (), edges), names)

    def to_tetrad(self) -> str:
        """Return Tetrad's graph text: ``-->`` for directed and ``---`` for undirected edges."""
        for name in self.names:
            if not name or re.search(r"[\s;,]", name):
                raise GraphError(
                    f"Tetrad reads no names with blanks, commas or semicolons, got {name!r}; "
                    f"rename the variables first"
                )
        edges = [f"{a} --> {b}" for a, b in self.directed_edges]
        edges += [f"{a} --- {b}" for a, b in self.undirected_edges]
        numbered = [f"{i}. {edge}" for i, edge in enumerate(edges, start=1)]
        return "\n".join(["Graph Nodes:", ";".join(self.names), "", "Graph Edges:", *numbered, ""])

    @classmethod
    def from_tetrad(cls, text: str) -> Self:
        """Return the graph of Tetrad's graph text; what follows the edges is left out."""
        lines = [line.strip() for line in text.splitlines()]
        if "Graph Nodes:" not in lines or "Graph Edges:" not in lines:
            raise GraphError(
                "the text is not a Tetrad graph: it lacks 'Graph Nodes:' or 'Graph Edges:'"
            )
        node_line = lines[lines.index("Graph Nodes:") + 1]
        names = [name for name in re.split(r"[;,\s]+", node_line) if name]
        directed: Edges = []
        undirected: Edges = []
        for line in lines[lines.index("Graph Edges:") + 1 :]:
            if not line:
                break
            found = _TETRAD_EDGE.match(line)
            if found is None or found[2] not in ("-->", "<--", "---"):
                raise GraphError(f"only -->, <-- and --- can be read as edges, got {line!r}")
            a, sign, b = found.groups()
            if sign == "---":
                undirected.append((a, b))
            else:
                directed.append((a, b) if sign == "-->" else (b, a))
        return cls(edges_to_adjacency(names, directed, undirected), names)


def _dot_quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _dot_tokens(text: str) -> list[tuple[str, bool]]:
    """Return the tokens, each with whether it is an identifier.

    Words that open a list of defaults are none, unless they are in quotes.
    """
    text = _DOT_COMMENT.sub(lambda m: m[1] or " ", text).strip()
    out: list[tuple[str, bool]] = []
    place = 0
    while place < len(text):
        found = _DOT_TOKEN.match(text, place)
        if found is None or found.end() == place:
            raise GraphError(f"the DOT text cannot be read from {text[place : place + 20]!r} on")
        if found["quoted"] is not None:
            out.append((re.sub(r"\\(.)", r"\1", found["quoted"][1:-1], flags=re.S), True))
        elif found["sign"] is not None:
            out.append((found["sign"], False))
        else:
            out.append((found["word"], found["word"].lower() not in _DOT_DEFAULTS))
        place = found.end()
    return out


def _read_dot(text: str) -> tuple[list[str], Edges, Edges]:
    tokens = _dot_tokens(text)
    opening = next((i for i, token in enumerate(tokens) if token == ("{", False)), None)
    if opening is None or tokens[-1] != ("}", False):
        raise GraphError("the text is not a DOT graph: it lacks { or }")
    names: dict[str, None] = {}
    directed: Edges = []
    undirected: Edges = []
    i = opening + 1
    while i < len(tokens) - 1:
        word, is_name = tokens[i]
        opens_defaults = not is_name and word.lower() in _DOT_DEFAULTS
        if not is_name and not opens_defaults:
            if word in ("{", "}"):
                raise GraphError("subgraphs in DOT text cannot be read; write the edges one by one")
            i += 1
            continue
        chain, signs = [word], []
        i += 1
        while tokens[i] in (("->", False), ("--", False)):
            signs.append(tokens[i][0])
            chain.append(tokens[i + 1][0])
            i += 2
        if tokens[i] == ("=", False):  # a setting of the whole graph
            i += 2
            continue
        attributes: dict[str, str] = {}
        while tokens[i] == ("[", False):
            i += 1
            while tokens[i] != ("]", False):
                if tokens[i + 1] == ("=", False):
                    attributes[tokens[i][0]] = tokens[i + 2][0]
                    i += 2
                i += 1
            i += 1
        if not signs and opens_defaults:
            continue
        names.update(dict.fromkeys(chain))
        for a, sign, b in zip(chain[:-1], signs, chain[1:], strict=True):
            direction = attributes.get("dir", "forward" if sign == "->" else "none")
            if direction in ("none", "both"):
                undirected.append((a, b))
            else:
                directed.append((b, a) if direction == "back" else (a, b))
    return list(names), directed, undirected


# --- Graphs as objects of other packages, and back: networkx, tables, causal-learn, pgmpy

#: causal-learn's marks at the end of an edge.
_TAIL, _ARROW = -1, 1


def _import(package: str, why: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        root = package.partition(".")[0]
        raise SettingError(f"{why} needs {root}; install it with: pip install {root}") from error


class ObjectFormats(NamedGraph):
    """Formats that are objects rather than text."""

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``; an undirected edge is there in both directions."""
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
        names = [str(node) for node in graph.nodes]
        edges = [(str(a), str(b)) for a, b in graph.edges()]
        if graph.is_directed():
            return cls(edges_to_adjacency(names, edges, ()), names)
        return cls(edges_to_adjacency(names, (), edges), names)

    def to_frame(self, frame: str | None = None) -> Any:
        """Return the adjacency as a table: the row's variable causes the column's variable.

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
            raise SettingError(f"frame must be 'pandas', 'polars' or None, got {frame!r}")
        return _import(frame, f"frame={frame!r}").DataFrame(columns)

    @classmethod
    def from_frame(cls, table: Any) -> Self:
        """Return the graph of :meth:`to_frame`: a dict of columns, a pandas or polars frame."""
        columns = list(table.keys() if isinstance(table, dict) else table.columns)
        names = [str(name) for name in columns[1:]]
        rows = [str(name) for name in table[columns[0]]]
        if rows != names:
            raise GraphError(
                f"the first column of an adjacency table names the rows {rows}, "
                f"the other columns are {names}; they must agree"
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
        if hasattr(graph, "G"):  # what causal-learn's constraint-based searches return
            graph = graph.G
        if hasattr(graph, "get_nodes"):
            if names is None:
                names = [node.get_name() for node in graph.get_nodes()]
            graph = graph.graph
        marks = np.asarray(graph)
        if marks.ndim != 2 or marks.shape[0] != marks.shape[1]:
            raise GraphError(f"a matrix of endpoints must be square, got shape {marks.shape}")
        known = ((marks == _TAIL) & np.isin(marks.T, (_TAIL, _ARROW))) | (
            (marks == _ARROW) & (marks.T == _TAIL)
        )
        if not (known | ((marks == 0) & (marks.T == 0))).all():
            i, j = np.argwhere(~(known | ((marks == 0) & (marks.T == 0))))[0]
            raise GraphError(
                f"only i -> j and i - j can be read, but variables {i} and {j} have the "
                f"endpoints {marks[i, j]} and {marks[j, i]}"
            )
        return cls((marks == _TAIL).astype(np.int8), names)

    def to_pgmpy(self) -> Any:
        """Return a ``pgmpy.base.DAG``, or a ``pgmpy.base.PDAG`` if any edge may be undirected."""
        base = _import("pgmpy.base", "to_pgmpy()")
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
        names = [str(node) for node in graph.nodes()] if names is None else list(names)
        undirected = [(str(a), str(b)) for a, b in getattr(graph, "undirected_edges", ())]
        directed = getattr(graph, "directed_edges", None)
        pairs = graph.edges() if directed is None else directed
        return cls(
            edges_to_adjacency(names, [(str(a), str(b)) for a, b in pairs], undirected), names
        )
