"""The graph among the latents: arrows where the direction is known, plain lines where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError, GraphError
from hidag.plotting import style
from hidag.plotting.figure import axes_points, new_axes, require_matplotlib, size_of_graph
from hidag.plotting.layered_layout import Layout, Point, lay_out
from hidag.structure.graphs import CPDAG, DAG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from hidag.inference.bootstrap_result import BootstrapResult


# --- How strong an edge is and how sure: line widths, dashes and numbers on the graph's edges

#: Points: the weakest and the strongest edge.
THINNEST, THICKEST = 0.9, 4.6
#: Support from which on an edge is drawn so: least share, colour, dashes, words for the legend.
BANDS: tuple[tuple[float, str, Any, str], ...] = (
    (0.8, style.INK, "solid", "in at least 80 % of refits"),
    (0.5, "#5d6a80", (0, (6, 2)), "50 to 80 %"),
    (0.0, style.FAINT, (0, (1.2, 1.8)), "less than 50 %"),
)
#: With more edges than this, numbers would stand in each other's way.
MOST_NUMBERS = 24

Pairs = Mapping[Any, float]


def support_of(refits: BootstrapResult) -> dict[tuple[str, str], float]:
    """Return the share of a bootstrap's refits in which two latents are joined, by pairs."""
    names, joined = refits.latent_names, refits.adjacent
    return {
        (names[i], names[j]): float(joined[i, j])
        for i in range(len(names))
        for j in range(i + 1, len(names))
    }


def values_of(
    pairs: Pairs, edges: Sequence[tuple[int, int]], names: Sequence[str], what: str
) -> dict[tuple[int, int], float]:
    """Return the number of each edge; a pair may be given either way round, by name or number.

    Raises
    ------
    DataError
        If an edge has no number, or one that is not finite and >= 0.
    """
    out = {}
    for i, j in edges:
        keys = [(names[i], names[j]), (names[j], names[i]), (i, j), (j, i)]
        keys.append(frozenset((names[i], names[j])))  # type: ignore[arg-type]
        found = next((pairs[key] for key in keys if key in pairs), None)
        if found is None or not (np.isfinite(found) and found >= 0):
            raise DataError(
                f"{what} must have a number >= 0 for each edge, but {names[i]} - {names[j]} has "
                f"{'none' if found is None else format(found, 'g')}"
            )
        out[(i, j)] = float(found)
    return out


def widths_of(values: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Return line widths in points, the widest for the strongest edge."""
    largest = max(values.values(), default=0.0) or 1.0
    return {
        edge: THINNEST + (THICKEST - THINNEST) * value / largest for edge, value in values.items()
    }


def band_of(support: float) -> tuple[str, Any]:
    """Return colour and dashes of an edge with so much support."""
    return next((colour, dashes) for least, colour, dashes, _ in BANDS if support >= least)


def write_support(
    ax: Axes, points: Sequence[Point], support: float, scale: float, zorder: float
) -> None:
    """Write the share on the edge, near the end where it has left its label."""
    (x0, y0), (x1, y1) = points[0], points[1]
    ax.text(
        (x0 + x1) / 2,
        (y0 + y1) / 2,
        f"{support:.2f}".replace("0.", ".", 1),
        ha="center",
        va="center",
        fontsize=(style.SMALL_FONT_SIZE - 1.0) * scale,
        color=style.INK,
        zorder=zorder,
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8},
    )


def add_support_legend(ax: Axes, support: Sequence[float]) -> None:
    """Say what dashes stand for, as far as they occur."""
    from matplotlib.lines import Line2D

    bounds = [1.01, *(band[0] for band in BANDS)]
    handles = [
        Line2D([], [], color=colour, linestyle=dashes, linewidth=1.8, label=words)
        for top, (least, colour, dashes, words) in zip(bounds, BANDS, strict=False)
        if any(least <= value < top for value in support)
    ]
    add_legend_below(ax, handles)


def add_legend_below(ax: Axes, handles: Sequence[Line2D]) -> None:
    """Put a legend of lines into one row at the foot of a graph; none where there is nothing."""
    if handles:
        ax.legend(
            handles=list(handles),
            loc="lower center",
            ncols=len(handles),
            frameon=False,
            fontsize=style.SMALL_FONT_SIZE,
            handlelength=2.8,
            labelcolor=style.INK,
        )


# ---

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
        ``hidag.causal.probability_queries(result)``.
    support : mapping from pairs of names to shares, optional
        Drawn as dashes and, where there is room, written on the edges; for instance
        ``hidag.plotting.graph.support_of(hidag.bootstrap(result, table))``. Not with a truth.
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
