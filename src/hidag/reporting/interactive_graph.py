"""The graph as a drawing that a page can let readers take hold of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.causal.exports import network_law
from hidag.causal.probability_queries import ConditionedLaw, condition_law, edge_strengths
from hidag.plotting.graph import graph_layout
from hidag.plotting.layered_layout import Point
from hidag.plotting.style import display_name

if TYPE_CHECKING:
    from hidag.latent.laws import NetworkLaw
    from hidag.results import FitResult


Array = NDArray[np.float64]

#: Room around the drawing, for labels that are dragged a little.
_MARGIN = 14.0
#: A small graph gets at least this much, so that there is room to drag. Pages draw one and a half
#: times as large, about 480 by 320 pixels.
_LEAST_WIDTH, _LEAST_HEIGHT = 320.0, 214.0
#: A latent with more combinations of parents has its table in the files only.
_MOST_CONFIGURATIONS = 64
#: A line of a table that stands for fewer rows than this says next to nothing.
_FEW_ROWS = 5.0


@dataclass(frozen=True)
class PanelRow:
    """A line of a latent's table.

    Attributes
    ----------
    given : tuple of (str, int)
        Parents with their levels.
    share : float
        Of the rows of the table that are expected at these levels.
    thin : bool
        Whether that is hardly any row.
    chances : tuple of float
        Probability of each level.
    """

    given: tuple[tuple[str, int], ...]
    share: float
    thin: bool
    chances: tuple[float, ...]


@dataclass(frozen=True)
class PanelNode:
    """A latent: its label, where it stands, and its table given its parents in one of the graphs.

    Attributes
    ----------
    name, label : str
        The whole name, and what fits into the box.
    x, y, width, height : float
        Centre and size, y growing downwards.
    levels : tuple of int
    rows : tuple of PanelRow
    undecided : tuple of str
        Neighbours that may be its causes or its effects: in the table they are one or the other
        only because one graph had to be chosen.
    """

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float
    levels: tuple[int, ...]
    rows: tuple[PanelRow, ...]
    undecided: tuple[str, ...]


@dataclass(frozen=True)
class PanelEdge:
    """An edge.

    Attributes
    ----------
    source, target : int
        Latents; of an edge without direction, in any order.
    arrow : bool
    path : str
        As SVG draws it before anything is moved.
    strength : float
        Absolute correlation of the two latents under the fitted law.
    support : float or None
        Share of resampled tables in which the two are joined, if there were any.
    direction_support : float or None
        Share of them in which the edge has the arrow's direction, if that was kept.
    """

    source: int
    target: int
    arrow: bool
    path: str
    strength: float
    support: float | None
    direction_support: float | None = None


@dataclass(frozen=True)
class GraphPanel:
    """All that the drawing needs."""

    width: float
    height: float
    nodes: tuple[PanelNode, ...]
    edges: tuple[PanelEdge, ...]

    @property
    def has_support(self) -> bool:
        """Whether edges come with their support in resampled tables."""
        return any(edge.support is not None for edge in self.edges)


def graph_panel(
    result: FitResult,
    support: Mapping[tuple[str, str], float] | None = None,
    directions: Mapping[tuple[str, str], float] | None = None,
) -> GraphPanel:
    """Return the drawing of a fit's graph.

    Parameters
    ----------
    result : FitResult
    support : mapping from pair of names to float, optional
        Share of resampled tables in which two latents are joined; either order of a pair will do.
    directions : mapping from (cause, effect) to float, optional
        Share of them in which an edge has its direction.
    """
    graph, layout = result.graph, graph_layout(result.graph)
    law = network_law(result)
    known = condition_law(law)
    # Unequal weights tell less than so many rows; files of earlier versions do not say how much.
    n_rows = result.n_samples if np.isnan(result.n_counted) else result.n_counted
    strengths = edge_strengths(result)
    a = graph.adjacency
    width = max(layout.width + 2 * _MARGIN, _LEAST_WIDTH)
    height = max(layout.height + 2 * _MARGIN, _LEAST_HEIGHT)
    left, top = (width - layout.width) / 2, (height - layout.height) / 2
    edges = []
    for (i, j), route in layout.routes.items():
        source, target, points = (i, j, route) if a[i, j] else (j, i, route[::-1])
        names = graph.names[source], graph.names[target]
        share = None if support is None else support.get(names, support.get(names[::-1], 0.0))
        edges.append(
            PanelEdge(
                source,
                target,
                not a[target, source],
                _path([(x + left, layout.height - y + top) for x, y in points]),
                strengths[(graph.names[min(i, j)], graph.names[max(i, j)])],
                share,
                (directions or {}).get(names),
            )
        )
    nodes = tuple(
        PanelNode(
            name,
            display_name(name),
            float(x) + left,
            float(layout.height - y) + top,
            *size,
            tuple(range(result.terms.levels[k])),
            _table(law, k, graph.names, known, n_rows),
            tuple(graph.names[other] for other in np.flatnonzero((a[k] == 1) & (a[:, k] == 1))),
        )
        for k, (name, (x, y), size) in enumerate(
            zip(graph.names, layout.centres, layout.sizes, strict=True)
        )
    )
    return GraphPanel(width, height, nodes, tuple(edges))


def _table(
    law: NetworkLaw, latent: int, names: tuple[str, ...], known: ConditionedLaw, n_rows: float
) -> tuple[PanelRow, ...]:
    """Return a latent's table given its parents in the law, line by line; empty if it is long."""
    table, parents = law.tables[latent], law.parents[latent]
    if table[..., 0].size > _MOST_CONFIGURATIONS:
        return ()
    shares = known.marginal(parents) if parents else np.array(1.0)
    return tuple(
        PanelRow(
            tuple((names[c], level) for c, level in zip(parents, levels, strict=True)),
            float(shares[levels]),
            bool(shares[levels] * n_rows < _FEW_ROWS),
            tuple(table[levels].tolist()),
        )
        for levels in np.ndindex(*table.shape[:-1])
    )


def _path(points: list[Point]) -> str:
    """Return a curve that leaves and enters every row straight down, as SVG writes it."""
    words = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    last = points[0]
    for start, end in zip(points[0::2], points[1::2], strict=True):
        if start != last:
            words.append(f"L{start[0]:.1f},{start[1]:.1f}")
        half = (start[1] + end[1]) / 2
        words.append(
            f"C{start[0]:.1f},{half:.1f} {end[0]:.1f},{half:.1f} {end[0]:.1f},{end[1]:.1f}"
        )
        last = end
    return " ".join(words)
