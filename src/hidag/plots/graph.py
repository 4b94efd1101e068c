"""The graph among the latents: arrows where the direction is known, plain lines where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, DAG
from hidag.errors import GraphError
from hidag.plots import style
from hidag.plots.canvas import axes_points, new_axes, require_matplotlib, size_of_graph
from hidag.plots.edge_marks import (
    MOST_NUMBERS,
    Pairs,
    add_legend_below,
    add_support_legend,
    band_of,
    values_of,
    widths_of,
    write_support,
)
from hidag.plots.layout import Layout, Point, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAD_X, _PAD_Y = 9.0, 6.0
_MARGIN = 10.0
_LEGEND_ROOM, _TITLE_ROOM = 26.0, 24.0
_HEAD_LENGTH, _HEAD_HALF = 9.0, 3.6
#: Room that an arrow head needs beside another.
_PORT = 9.0

#: How an edge is drawn, by what became of it: colour, dashes, width, words for the legend.
KINDS: dict[str, tuple[str, Any, float, str]] = {
    "plain": (style.INK, "solid", 1.4, ""),
    "right": (style.INK, "solid", 1.6, "found"),
    "turned": (style.PURPLE, "solid", 2.0, "found, direction differs"),
    "extra": (style.VERMILION, (0, (5, 2)), 1.8, "not in the truth"),
    "missed": (style.BLUE, (0, (1.2, 2)), 1.8, "missed"),
}


def graph_layout(graph: CPDAG | DAG, truth: CPDAG | DAG | None = None) -> Layout:
    """Return where `plot_graph` puts labels and edges, in points at full size."""
    kinds = _edge_kinds(graph, truth)
    joined = np.zeros((graph.n_variables, graph.n_variables), dtype=np.int8)
    for i, j in kinds:
        joined[i, j] = joined[j, i] = 1
    a = graph.adjacency
    directed = np.asarray((a == 1) & (a.T == 0), np.int8)
    return lay_out(joined, directed, _box_sizes(graph.names, joined.sum(axis=0)))


def plot_graph(
    graph: CPDAG | DAG,
    ax: Axes | None = None,
    *,
    truth: CPDAG | DAG | None = None,
    strength: Pairs | None = None,
    support: Pairs | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a graph with causes above their effects, and return the axes.

    Parameters
    ----------
    graph : CPDAG or DAG
        A fitted ``graph_``.
    ax : matplotlib Axes, optional
        A new figure of fitting size unless given.
    truth : CPDAG or DAG, optional
        With the same names, or as many variables in the same order. Edges that were missed, are
        extra or point another way are then told apart by colour and dashes.
    strength : mapping from pairs of names to numbers >= 0, optional
        Drawn as the width of lines, the largest as the widest; for instance
        ``hidag.explain.edge_strengths(result)``.
    support : mapping from pairs of names to shares, optional
        Drawn as dashes and, where there is room, written on the edges; for instance
        ``hidag.plots.support_of(hidag.bootstrap(result, table))``. Not with a truth.
    title : str, optional

    Returns
    -------
    matplotlib Axes
    """
    if support is not None and truth is not None:
        raise GraphError("dashes show either the truth or the support; give one of them")
    kinds = _edge_kinds(graph, truth)
    edges = list(kinds)
    names = graph.names
    widths = {} if strength is None else widths_of(values_of(strength, edges, names, "strength"))
    shares = {} if support is None else values_of(support, edges, names, "support")
    layout = graph_layout(graph, truth)
    legend = truth is not None or bool(shares)
    if ax is None:
        ax = new_axes(size_of_graph(graph, truth=truth, legend=legend, title=title), fill=True)

    from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
    from matplotlib.path import Path

    above = _TITLE_ROOM if title else 0.0
    below = _LEGEND_ROOM if legend else 0.0
    width = layout.width + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + above + below
    room = axes_points(ax)
    scale = min(1.0, room[0] / width, room[1] / height)
    ax.set_axis_off()
    spare = (room[0] / scale - width) / 2, (room[1] / scale - height) / 2
    ax.set_xlim(-_MARGIN - spare[0], layout.width + _MARGIN + spare[0])
    ax.set_ylim(-_MARGIN - below - spare[1], layout.height + _MARGIN + above + spare[1])
    for (i, j), (kind, arrow) in kinds.items():
        points = layout.routes.get((i, j)) or layout.routes[(j, i)][::-1]
        colour, dashes, line_width, _ = KINDS[kind]
        line_width = widths.get((i, j), line_width)
        if (i, j) in shares:
            colour, dashes = band_of(shares[(i, j)])
            if len(shares) <= MOST_NUMBERS:
                write_support(ax, points, shares[(i, j)], scale, zorder=2.5)
        if arrow:
            # Every edge meets its label straight up or down, so its head does too.
            tip, down = points[-1], points[-2][1] > points[-1][1]
            half = max(_HEAD_HALF, 1.1 * line_width)
            neck = (tip[0], tip[1] + (_HEAD_LENGTH if down else -_HEAD_LENGTH))
            points = [*points[:-1], neck]
            corners = [tip, (neck[0] - half, neck[1]), (neck[0] + half, neck[1])]
            ax.add_patch(Polygon(corners, facecolor=colour, edgecolor="none", zorder=2))
        ax.add_patch(
            PathPatch(
                Path(*_curve(points, Path)),
                fill=False,
                edgecolor=colour,
                linestyle=dashes,
                linewidth=line_width * max(scale, 0.5),
                capstyle="butt",
                zorder=2,
                label=f"{graph.names[i]} {'->' if arrow else '-'} {graph.names[j]}",
            )
        )
    for name, centre, (box_width, box_height) in zip(
        graph.names, layout.centres, layout.sizes, strict=True
    ):
        ax.add_patch(
            FancyBboxPatch(
                (centre[0] - box_width / 2, centre[1] - box_height / 2),
                box_width,
                box_height,
                boxstyle="round,pad=0,rounding_size=6",
                facecolor=style.NODE_FILL,
                edgecolor=style.INK,
                linewidth=0.9,
                zorder=3,
            )
        )
        ax.text(
            centre[0],
            centre[1],
            style.shown_name(name),
            ha="center",
            va="center_baseline",
            fontsize=style.FONT_SIZE * scale,
            color=style.INK,
            parse_math=False,
            zorder=4,
        )
    if title:
        ax.text(
            layout.width / 2,
            layout.height + _MARGIN,
            title,
            ha="center",
            va="bottom",
            fontsize=style.FONT_SIZE + 1,
            color=style.INK,
            parse_math=False,
        )
    if truth is not None:
        _add_legend(ax, {kind for kind, _ in kinds.values()})
    elif shares:
        add_support_legend(ax, list(shares.values()))
    return ax


def _add_legend(ax: Axes, present: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linestyle=dashes, linewidth=width, label=words)
        for kind, (colour, dashes, width, words) in KINDS.items()
        if kind in present and words
    ]
    add_legend_below(ax, handles)


def _curve(points: list[Point], path: Any) -> tuple[list[Point], list[int]]:
    """Return a path that leaves and enters every row straight down.

    Between the rows it bends; through a row it is straight, so that it keeps clear of labels.
    """
    vertices: list[Point] = [points[0]]
    codes: list[int] = [path.MOVETO]
    for start, end in zip(points[0::2], points[1::2], strict=True):
        if vertices[-1] != start:
            vertices.append(start)
            codes.append(path.LINETO)
        half = (start[1] + end[1]) / 2
        vertices += [(start[0], half), (end[0], half), end]
        codes += [path.CURVE4] * 3
    return vertices, codes


def _box_sizes(names: tuple[str, ...], degrees: NDArray[np.int_]) -> list[tuple[float, float]]:
    """Return width and height of each label's box in points: room for its name and its edges."""
    require_matplotlib()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(size=style.FONT_SIZE)
    measure = TextToPath()
    out = []
    with style.any_script():
        for name, degree in zip(names, degrees.tolist(), strict=True):
            width, _, _ = measure.get_text_width_height_descent(
                style.shown_name(name), font, ismath=False
            )
            room = max(width, 14.0, 0.75 * degree * _PORT)
            out.append((room + 2 * _PAD_X, style.FONT_SIZE * 1.25 + 2 * _PAD_Y))
    return out


def _edge_kinds(
    graph: CPDAG | DAG, truth: CPDAG | DAG | None
) -> dict[tuple[int, int], tuple[str, bool]]:
    """Return (kind, directed) of each edge to be drawn; (i, j) points from i to j if directed."""
    ours = graph.adjacency
    if truth is None:
        return {edge: ("plain", arrow) for edge, arrow in _edges(ours).items()}
    theirs = _same_order(graph, truth)
    out = {}
    for (i, j), arrow in _edges(ours).items():
        if not (theirs[i, j] or theirs[j, i]):
            kind = "extra"
        elif ours[i, j] == theirs[i, j] and ours[j, i] == theirs[j, i]:
            kind = "right"
        else:
            kind = "turned"
        out[(i, j)] = (kind, arrow)
    for (i, j), arrow in _edges(theirs).items():
        if not (ours[i, j] or ours[j, i]):
            out[(i, j)] = ("missed", arrow)
    return out


def _edges(a: NDArray[np.int8]) -> dict[tuple[int, int], bool]:
    """Return each edge once, with whether it is directed."""
    return {(i, j): not a[j, i] for i, j in np.argwhere(a == 1).tolist() if not a[j, i] or i < j}


def _same_order(graph: CPDAG | DAG, truth: CPDAG | DAG) -> NDArray[np.int8]:
    """Return the truth's adjacency in the order of the graph's names, as the same kind of graph."""
    same = truth.to_cpdag() if isinstance(truth, DAG) and isinstance(graph, CPDAG) else truth
    if set(same.names) == set(graph.names):
        order = [same.names.index(name) for name in graph.names]
        return np.asarray(same.adjacency[np.ix_(order, order)])
    if same.n_variables != graph.n_variables:
        raise GraphError(
            f"the truth must have the same variables as the graph, but it has {same.n_variables} "
            f"and the graph has {graph.n_variables}; match the latents first"
        )
    return np.asarray(same.adjacency)
