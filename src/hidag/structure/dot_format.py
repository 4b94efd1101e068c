"""Graphviz DOT: a reader for nodes, edges and their ``dir`` attribute."""

from __future__ import annotations

import re

from hidag.exceptions import GraphError

Edges = list[tuple[str, str]]

#: Keywords that introduce default attributes.
_DEFAULTS = ("node", "edge", "graph")
_TOKEN = re.compile(
    r"""\s*(?: (?P<quoted>"(?:\\.|[^"\\])*") | (?P<sign>->|--|[{}\[\];,=])
    | (?P<word>[^\s{}\[\];,="]+?)(?=->|--|[\s{}\[\];,="]|$) )""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|^\s*\#[^\n]*', re.S | re.M)


def dot_quote(name: str) -> str:
    """Return a name as a quoted DOT identifier."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _tokenize(text: str) -> list[tuple[str, bool]]:
    """Return the tokens, each with whether it is an identifier.

    Keywords that introduce defaults are identifiers only in quotes.
    """
    text = _COMMENT.sub(lambda m: m[1] or " ", text).strip()
    out: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.end() == position:
            raise GraphError(
                "invalid-dot",
                "the DOT text cannot be read from {rest!r} on",
                rest=text[position : position + 20],
            )
        if found["quoted"] is not None:
            out.append((re.sub(r"\\(.)", r"\1", found["quoted"][1:-1], flags=re.S), True))
        elif found["sign"] is not None:
            out.append((found["sign"], False))
        else:
            out.append((found["word"], found["word"].lower() not in _DEFAULTS))
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


def read_dot(text: str) -> tuple[list[str], Edges, Edges]:
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
        is_default = not is_name and word.lower() in _DEFAULTS
        i += 1
        if not is_name and not is_default:
            if word in ("{", "}"):
                raise GraphError(
                    "dot-subgraph",
                    "subgraphs in DOT text are not supported",
                    advice="write the edges one by one",
                )
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
