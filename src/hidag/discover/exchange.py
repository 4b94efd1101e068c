"""Graphs as objects of other packages, and back: networkx, tables, causal-learn, pgmpy.

Packages that hidag does not need are imported when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Self

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.discover.named_graph import NamedGraph, adjacency_of_edges
from hidag.errors import GraphError, SettingError

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
            return cls(adjacency_of_edges(names, edges, ()), names)
        return cls(adjacency_of_edges(names, (), edges), names)

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
            adjacency_of_edges(names, [(str(a), str(b)) for a, b in pairs], undirected), names
        )
