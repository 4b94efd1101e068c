"""Graphs as text, and back: JSON, Graphviz DOT, GML and Tetrad's graph files."""

from __future__ import annotations

import json
import re
from typing import Self

import networkx as nx

from hidag.discover.named_graph import NamedGraph, adjacency_of_edges
from hidag.errors import GraphError

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
        return cls(adjacency_of_edges(names, directed, undirected), names)

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
        return cls(adjacency_of_edges(names, directed, undirected), names)

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
            return cls(adjacency_of_edges(names, edges, ()), names)
        return cls(adjacency_of_edges(names, (), edges), names)

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
        return cls(adjacency_of_edges(names, directed, undirected), names)


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
