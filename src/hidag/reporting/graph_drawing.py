"""The causal graph as a drawing for an HTML page: positions, curves and conditional tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hidag.causal.exports import network_law
from hidag.causal.probability_queries import ConditionedLaw, condition_law, edge_strengths
from hidag.plotting.graph import graph_layout
from hidag.plotting.layered_layout import Point
from hidag.plotting.style import display_name

if TYPE_CHECKING:
    from hidag.latent.laws import NetworkLaw
    from hidag.results import FitResult

#: Margin of the drawing, so that nodes can be dragged a little.
_MARGIN = 14.0
#: Minimum size, so that nodes of a small graph can be dragged. Pages scale it by 1.5, to about
#: 480 by 320 pixels.
_MIN_WIDTH, _MIN_HEIGHT = 320.0, 214.0
#: Larger conditional tables are in the files only.
_MAX_CONFIGURATIONS = 64
#: Expected number of rows below which a line of a conditional table is marked as unreliable.
_FEW_ROWS = 5.0


@dataclass(frozen=True)
class TableRow:
    """A row of a conditional probability table.

    Attributes
    ----------
    given : tuple of (str, int)
        Parents and their levels.
    share : float
        Probability of these levels of the parents.
    sparse : bool
        Whether fewer than 5 rows of the data are expected there.
    probabilities : tuple of float
        Probability of each level.
    """

    given: tuple[tuple[str, int], ...]
    share: float
    sparse: bool
    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Node:
    """A latent: label, position and conditional table in one graph of the equivalence class.

    Attributes
    ----------
    name, label : str
        Full name, and the name shorten to the box.
    x, y, width, height : float
        Centre and size; y increases downwards.
    levels : tuple of int
    rows : tuple of TableRow
    undecided : tuple of str
        Neighbours joined by an undirected edge.
    """

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float
    levels: tuple[int, ...]
    rows: tuple[TableRow, ...]
    undecided: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """An edge.

    Attributes
    ----------
    source, target : int
        Indices of nodes, in any order for an undirected edge.
    directed : bool
    path : str
        SVG path before anything is dragged.
    strength : float
        Absolute correlation of the two latents in the fitted distribution.
    support : float or None
        Share of bootstrap samples in which the two are adjacent.
    direction_support : float or None
        Share of bootstrap samples in which the edge has this direction.
    """

    source: int
    target: int
    directed: bool
    path: str
    strength: float
    support: float | None
    direction_support: float | None = None


@dataclass(frozen=True)
class GraphDrawing:
    """Size, nodes and edges of a drawing."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def has_support(self) -> bool:
        """Whether edges have their bootstrap support."""
        return any(edge.support is not None for edge in self.edges)


def draw_graph(
    result: FitResult,
    support: Mapping[tuple[str, str], float] | None = None,
    directions: Mapping[tuple[str, str], float] | None = None,
) -> GraphDrawing:
    """Return the drawing of a fit's graph.

    Parameters
    ----------
    result : FitResult
    support : mapping from pair of names to float, optional
        Share of bootstrap samples in which two latents are adjacent, in either order of the pair.
    directions : mapping from (cause, effect) to float, optional
        Share of bootstrap samples in which an edge has its direction.
    """
    graph, layout = result.graph, graph_layout(result.graph)
    law = network_law(result)
    inference = condition_law(law)
    # Files of earlier versions do not state the effective sample size.
    n_rows = result.n_samples if np.isnan(result.n_counted) else result.n_counted
    strengths = edge_strengths(result)
    a = graph.adjacency
    width = max(layout.width + 2 * _MARGIN, _MIN_WIDTH)
    height = max(layout.height + 2 * _MARGIN, _MIN_HEIGHT)
    left, top = (width - layout.width) / 2, (height - layout.height) / 2
    edges = []
    for (i, j), route in layout.routes.items():
        source, target, points = (i, j, route) if a[i, j] else (j, i, route[::-1])
        names = graph.names[source], graph.names[target]
        share = None if support is None else support.get(names, support.get(names[::-1], 0.0))
        edges.append(
            Edge(
                source,
                target,
                not a[target, source],
                _svg_path([(x + left, layout.height - y + top) for x, y in points]),
                strengths[(graph.names[min(i, j)], graph.names[max(i, j)])],
                share,
                (directions or {}).get(names),
            )
        )
    nodes = tuple(
        Node(
            name,
            display_name(name),
            float(x) + left,
            float(layout.height - y) + top,
            *size,
            tuple(range(result.terms.levels[k])),
            _conditional_table(law, k, graph.names, inference, n_rows),
            tuple(graph.names[other] for other in np.flatnonzero((a[k] == 1) & (a[:, k] == 1))),
        )
        for k, (name, (x, y), size) in enumerate(
            zip(graph.names, layout.centres, layout.sizes, strict=True)
        )
    )
    return GraphDrawing(width, height, nodes, tuple(edges))


def _conditional_table(
    law: NetworkLaw, latent: int, names: tuple[str, ...], inference: ConditionedLaw, n_rows: float
) -> tuple[TableRow, ...]:
    """Return P(latent | parents), one row per configuration of parents; empty if too many."""
    table, parents = law.tables[latent], law.parents[latent]
    if table[..., 0].size > _MAX_CONFIGURATIONS:
        return ()
    shares = inference.marginal(parents) if parents else np.array(1.0)
    return tuple(
        TableRow(
            tuple((names[c], level) for c, level in zip(parents, levels, strict=True)),
            float(shares[levels]),
            bool(shares[levels] * n_rows < _FEW_ROWS),
            tuple(table[levels].tolist()),
        )
        for levels in np.ndindex(*table.shape[:-1])
    )


def _svg_path(points: list[Point]) -> str:
    """Return a curve that is vertical at each end of its segments."""
    commands = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    last = points[0]
    for start, end in zip(points[0::2], points[1::2], strict=True):
        if start != last:
            commands.append(f"L{start[0]:.1f},{start[1]:.1f}")
        half = (start[1] + end[1]) / 2
        commands.append(
            f"C{start[0]:.1f},{half:.1f} {end[0]:.1f},{half:.1f} {end[0]:.1f},{end[1]:.1f}"
        )
        last = end
    return " ".join(commands)
