"""Conversion of named graphs from and to other formats.

Text formats are JSON, Graphviz DOT, GML and Tetrad; objects are networkx graphs, data frames,
causal-learn matrices and pgmpy graphs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Advice, Choices, GraphError, import_extra, invalid_setting
from hidag.structure.mixed_graphs import Edges, NamedGraph, check_square, edges_to_adjacency

_JSON_FORMAT = "hidag-graph"
_JSON_VERSION = 1

_TETRAD_EDGE = re.compile(r"^\s*(?:\d+\.)?\s*(\S+)\s+([<o-][-o][o>-])\s+(\S+)")

_TAIL, _ARROW = -1, 1  # Endpoint marks of causal-learn.
_DOT_DEFAULTS = ("node", "edge", "graph")  # Keywords that introduce default attributes.
_DOT_TOKEN = re.compile(
    r"""\s*(?: (?P<quoted>"(?:\\.|[^"\\])*") | (?P<sign>->|--|[{}\[\];,=])
    | (?P<word>[^\s{}\[\];,="]+?)(?=->|--|[\s{}\[\];,="]|$) )""",
    re.VERBOSE | re.DOTALL,
)
_DOT_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|^\s*\#[^\n]*', re.S | re.M)


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
        name = {one: '"' + re.sub(r'(["\\])', r"\\\1", one) + '"' for one in self.names}
        lines = [f"  {quoted};" for quoted in name.values()]
        lines += [f"  {name[a]} -> {name[b]};" for a, b in self.directed_edges]
        lines += [f"  {name[a]} -> {name[b]} [dir=none];" for a, b in self.undirected_edges]
        return "\n".join(["digraph {", *lines, "}", ""])

    @classmethod
    def from_dot(cls, text: str) -> Self:
        """Return the graph of Graphviz text with ``->``, ``--`` and ``dir``, without subgraphs."""
        return cls._from_named_edges(*_read_dot(text))

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
                text = "names in Tetrad files must not be empty or contain blanks, commas or "
                text += "semicolons, got {name!r}"
                advice = Advice("rename", "rename the variables first")
                raise GraphError("name-for-tetrad", text, advice=advice, name=name)
        edges = [f"{a} --> {b}" for a, b in self.directed_edges]
        edges += [f"{a} --- {b}" for a, b in self.undirected_edges]
        numbered = [f"{i}. {edge}" for i, edge in enumerate(edges, start=1)]
        return "\n".join(["Graph Nodes:", ";".join(self.names), "", "Graph Edges:", *numbered, ""])

    @classmethod
    def from_tetrad(cls, text: str) -> Self:
        """Return the graph of Tetrad's graph text; sections after the edges are ignored."""
        lines = [line.strip() for line in text.splitlines()]
        if "Graph Nodes:" not in lines or "Graph Edges:" not in lines:
            problem = "the text is not a Tetrad graph: it lacks 'Graph Nodes:' or 'Graph Edges:'"
            raise GraphError("not-a-graph", problem)
        node_line = lines[lines.index("Graph Nodes:") + 1]
        directed: Edges = []
        undirected: Edges = []
        for line in lines[lines.index("Graph Edges:") + 1 :]:
            if not line:
                break
            found = _TETRAD_EDGE.match(line)
            if found is None or found[2] not in ("-->", "<--", "---"):
                problem = "only -->, <-- and --- edges are supported, got {line!r}"
                raise GraphError("unsupported-edge", problem, line=line)
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
        """Return a networkx graph with nodes named by ``str``; edges both ways are undirected."""
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
        return import_extra(frame, "to_frame", "").DataFrame(columns)

    @classmethod
    def from_frame(cls, table: Any) -> Self:
        """Return the graph of :meth:`to_frame`: a dict of columns, a pandas or polars frame."""
        columns = list(table.keys() if isinstance(table, dict) else table.columns)
        names = [str(name) for name in columns[1:]]
        rows = [str(name) for name in table[columns[0]]]
        if rows != names:
            text = "the first column of an adjacency table must name the rows as the other columns "
            text += "are named, {columns}, got {rows}"
            raise GraphError("rows-and-columns-differ", text, {"rows": rows, "columns": names})
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
        marks = check_square(graph, "a matrix of endpoints")
        tail = marks == _TAIL
        known = (tail & np.isin(marks.T, (_TAIL, _ARROW))) | ((marks == _ARROW) & tail.T)
        known |= (marks == 0) & (marks.T == 0)
        if not known.all():
            i, j = np.argwhere(~known)[0].tolist()
            text = "only i -> j and i - j edges are supported, but variables {i} and {j} have the "
            text += "endpoints {here} and {there}"
            params = {"i": i, "j": j, "here": int(marks[i, j]), "there": int(marks[j, i])}
            raise GraphError("unsupported-edge", text, params)
        return cls(tail.astype(np.int8), names)

    def to_pgmpy(self) -> Any:
        """Return a ``pgmpy.base.DAG``, or a ``pgmpy.base.PDAG`` if any edge may be undirected."""
        base = import_extra("pgmpy.base", "to_pgmpy", "")
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


def _tokenize(text: str) -> list[tuple[str, bool]]:
    """Return the tokens, each with whether it is an identifier: keywords are only in quotes."""
    text = _DOT_COMMENT.sub(lambda m: m[1] or " ", text).strip()
    out: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        found = _DOT_TOKEN.match(text, position)
        if found is None or found.end() == position:
            problem = "the DOT text cannot be read from {rest!r} on"
            raise GraphError("invalid-dot", problem, rest=text[position : position + 20])
        if found["quoted"] is not None:
            out.append((re.sub(r"\\(.)", r"\1", found["quoted"][1:-1], flags=re.S), True))
        elif found["sign"] is not None:
            out.append((found["sign"], False))
        else:
            out.append((found["word"], found["word"].lower() not in _DOT_DEFAULTS))
        position = found.end()
    return out


def _read_attributes(tokens: list[tuple[str, bool]], i: int) -> tuple[dict[str, str], int]:
    """Return the attributes in brackets at token i, and the index of the token after them."""
    attributes: dict[str, str] = {}
    while tokens[i] == ("[", False):
        i += 1
        while tokens[i] != ("]", False):
            if tokens[i + 1] == ("=", False):
                attributes[tokens[i][0]] = tokens[i + 2][0]
                i += 2
            i += 1
        i += 1
    return attributes, i


def _read_dot(text: str) -> tuple[list[str], Edges, Edges]:
    """Return names, directed and undirected edges of DOT text."""
    tokens = _tokenize(text)
    opening = next((i for i, token in enumerate(tokens) if token == ("{", False)), None)
    if opening is None or tokens[-1] != ("}", False):
        raise GraphError("not-a-graph", "the text is not a DOT graph: it lacks { or }")
    names: dict[str, None] = {}
    directed: Edges = []
    undirected: Edges = []
    i = opening + 1
    while i < len(tokens) - 1:
        word, is_name = tokens[i]
        is_default = not is_name and word.lower() in _DOT_DEFAULTS
        i += 1
        if not is_name and not is_default:
            if word in ("{", "}"):
                problem = "subgraphs in DOT text are not supported"
                raise GraphError("dot-subgraph", problem, advice="write the edges one by one")
            continue
        chain, signs = [word], []
        while tokens[i] in (("->", False), ("--", False)):
            signs.append(tokens[i][0])
            chain.append(tokens[i + 1][0])
            i += 2
        if tokens[i] == ("=", False):  # an attribute of the graph
            i += 2
            continue
        attributes, i = _read_attributes(tokens, i)
        if is_default and not signs:
            continue
        names.update(dict.fromkeys(chain))
        for a, sign, b in zip(chain[:-1], signs, chain[1:], strict=True):
            direction = attributes.get("dir", "forward" if sign == "->" else "none")
            if direction in ("none", "both"):
                undirected.append((a, b))
            else:
                directed.append((b, a) if direction == "back" else (a, b))
    return list(names), directed, undirected
