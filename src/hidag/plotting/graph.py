"""Plot of the causal graph among the latents: arrows for directed, lines for undirected edges."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Advice, DataError, GraphError, Setting
from hidag.plotting import figure as frame
from hidag.plotting import style
from hidag.plotting.layered_layout import Layout, Point, curve, lay_out
from hidag.results import AnyFit, as_result
from hidag.results.claims import CLAIM_LEVEL, claim_level_of, claimed_graph, show_probability
from hidag.structure.graphs import CPDAG, DAG

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.inference.bootstrap_result import BootstrapResult

Edge = tuple[int, int]
Pairs = Mapping[Any, float]


@dataclass(frozen=True)
class _Look:
    """How an edge is drawn; an empty label leaves it out of the legend."""

    color: str
    dashes: Any
    width: float
    label: str


_PLAIN = _Look(style.INK, "solid", 1.4, "")
_FOUND = _Look(style.INK, "solid", 1.6, "found")
_TURNED = _Look(style.PURPLE, "solid", 2.0, "found, direction differs")
_ADDITIONAL = _Look(style.VERMILION, (0, (5, 2)), 1.8, "not in the truth")
_MISSED = _Look(style.BLUE, (0, (1.2, 2)), 1.8, "missed")
#: Points: line widths of the weakest and the strongest edge.
_MIN_WIDTH, _MAX_WIDTH = 0.9, 4.6
#: Support is written on the edges of graphs with at most this many edges.
_MAX_EDGES_WITH_NUMBERS = 24
#: Points; the gap is between neighbouring arrow heads at a box.
_PAD_X, _PAD_Y, _MARGIN, _LEGEND_HEIGHT, _TITLE_HEIGHT = 9.0, 6.0, 10.0, 26.0, 24.0
_HEAD_LENGTH, _HEAD_HALF_WIDTH, _HEAD_GAP = 9.0, 3.6, 9.0


def _support_looks(level: float) -> tuple[tuple[float, _Look], ...]:
    """Return how edges are drawn by their smallest probability, solid from the claim level on."""
    shown = f"{level:g}".removeprefix("0")
    return (
        (level, _Look(style.INK, "solid", 1.4, f"probability at least {shown}")),
        (0.5, _Look("#5d6a80", (0, (6, 2)), 1.4, f".5 to {shown}")),
        (0.0, _Look(style.FAINT, (0, (1.2, 1.8)), 1.4, "below .5")),
    )


def support_of(fit: AnyFit | BootstrapResult) -> dict[tuple[str, str], float]:
    """Return the probability that each pair of latents is adjacent, by ``fit`` or a bootstrap."""
    source: Any = fit if hasattr(fit, "edge_probabilities") else as_result(fit)
    p, names = source.edge_probabilities, source.latent_names
    pairs = itertools.combinations(range(len(names)), 2)
    return {(names[i], names[j]): float(p[i, j] + p[j, i]) for i, j in pairs}


def plot_claims(result: AnyFit, ax: Axes | None = None) -> Axes:
    """Draw the edges that ``result`` states, dashed by probability, and return the axes ``ax``."""
    fitted = as_result(result)
    claims = fitted.claims()
    graph = claimed_graph(claims, fitted.latent_names)
    numbers = {(c.one, c.other): c.arrow if c.directed else c.adjacency for c in claims}
    known = bool(numbers) and not np.isnan(list(numbers.values())).any()
    level = claim_level_of(fitted.settings)
    return plot_graph(graph, ax, support=numbers if known else None, claim_level=level)


def graph_layout(graph: CPDAG | DAG, truth: CPDAG | DAG | None = None) -> Layout:
    """Return the positions of labels and edges in `plot_graph`, in points at full size."""
    joined = np.zeros((graph.n_variables, graph.n_variables), dtype=np.int8)
    for i, j in _drawn_edges(graph, truth):
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
    claim_level: float = CLAIM_LEVEL,
) -> Axes:
    """Draw a graph with causes above their effects, and return the axes.

    Parameters
    ----------
    graph : CPDAG or DAG
        A fitted ``graph_``.
    ax : matplotlib Axes, optional
    truth : CPDAG or DAG, optional
        With the same names, or as many variables in the same order. Missed edges, additional edges
        and edges of another direction are distinguished by colour and dashes.
    strength : mapping from pairs of names to numbers >= 0, optional
        Line widths, the largest number being the widest line; for instance
        ``hidag.causal.edge_strengths(result)``.
    support : mapping from pairs of names to probabilities, optional
        Dashes and, if space permits, numbers on the edges; for instance
        ``hidag.plotting.support_of(hidag.bootstrap(result, table))``. Not together with ``truth``.
    title : str, optional
    claim_level : float
        Edges with at least this probability are solid.
    """
    if support is not None and truth is not None:
        template = "{first} and {second} cannot be drawn in the same graph, both use dashes"
        params = {"first": Setting("truth"), "second": Setting("support")}
        advice = Advice("omit-option", "omit one of them")
        raise GraphError("exclusive-options", template, params, advice=advice)
    edges = _drawn_edges(graph, truth)
    widths = {} if strength is None else _edge_values(strength, edges, graph.names, "strength")
    largest = max(widths.values(), default=0.0) or 1.0
    shares = {} if support is None else _edge_values(support, edges, graph.names, "support")
    layout = graph_layout(graph, truth)
    has_legend = truth is not None or bool(shares)
    if ax is None:
        size = frame.size_of_graph(graph, truth=truth, legend=has_legend, title=title)
        ax = frame.new_axes(size, fill=True)
    scale = _set_limits(ax, layout, bool(title), has_legend)
    of_support, looks = _support_looks(claim_level), []
    for edge, (look, directed) in edges.items():
        points = layout.routes.get(edge) or layout.routes[edge[::-1]][::-1]
        width = look.width
        if edge in widths:
            width = _MIN_WIDTH + (_MAX_WIDTH - _MIN_WIDTH) * widths[edge] / largest
        if edge in shares:
            look = next(look for least, look in of_support if shares[edge] >= least)
            if len(shares) <= _MAX_EDGES_WITH_NUMBERS:
                _write_support(ax, points, shares[edge], scale)
        name = f" {'->' if directed else '-'} ".join(graph.names[k] for k in edge)
        if directed:
            points = _draw_head(ax, points, look.color, max(_HEAD_HALF_WIDTH, 1.1 * width))
        _draw_line(ax, points, look, width * max(scale, 0.5), name)
        looks.append(look)
    _draw_boxes(ax, graph.names, layout, scale)
    if title:
        options = style.text_options(style.FONT_SIZE + 1, ha="center", va="bottom")
        ax.text(layout.width / 2, layout.height + _MARGIN, title, **options)
    if has_legend:
        known = (_FOUND, _TURNED, _ADDITIONAL, _MISSED, *(one for _, one in of_support))
        _add_look_legend(ax, [one for one in known if one in looks])
    return ax


def _edge_values(
    pairs: Pairs, edges: Mapping[Edge, object], names: Sequence[str], what: str
) -> dict[Edge, float]:
    """Return the number of each edge; pairs are unordered, of names or indices."""
    values = {}
    for i, j in edges:
        a, b = names[i], names[j]
        keys: tuple[Any, ...] = ((a, b), (b, a), (i, j), (j, i), frozenset((a, b)))
        value = next((pairs[key] for key in keys if key in pairs), None)
        if value is None or not (np.isfinite(value) and value >= 0):
            rule = "{what} must have a number >= 0 for each edge"
            shown = "none" if value is None else f"{value:g}"
            params = {"what": Setting(what), "first": a, "second": b, "value": shown}
            raise DataError("edge-value", rule + ", but {first} - {second} has {value}", params)
        values[(i, j)] = float(value)
    return values


def _set_limits(ax: Axes, layout: Layout, has_title: bool, has_legend: bool) -> float:
    """Centre the layout in the axes, and return the scale at which it fits, at most 1."""
    above = _MARGIN + (_TITLE_HEIGHT if has_title else 0.0)
    below = _MARGIN + (_LEGEND_HEIGHT if has_legend else 0.0)
    width, height = layout.width + 2 * _MARGIN, layout.height + above + below
    room = frame.axes_points(ax)
    scale = min(1.0, room[0] / width, room[1] / height)
    x, y = (room[0] / scale - width) / 2, (room[1] / scale - height) / 2
    ax.set_axis_off()
    ax.set_xlim(-_MARGIN - x, layout.width + _MARGIN + x)
    ax.set_ylim(-below - y, layout.height + above + y)
    return scale


def _write_support(ax: Axes, points: Sequence[Point], support: float, scale: float) -> None:
    """Write the support at the middle of the first part of an edge."""
    x, y = np.mean(points[:2], axis=0)
    text, size = show_probability(support), (style.SMALL_FONT_SIZE - 1.0) * scale
    background = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8}
    frame.write_centred(ax, x, y, text, size, zorder=2.5, bbox=background)


def _draw_head(ax: Axes, points: list[Point], color: str, half_width: float) -> list[Point]:
    """Draw an arrow head, and return the route up to its base."""
    from matplotlib.patches import Polygon

    # Edges meet boxes vertically, and so do their heads.
    tip, down = points[-1], points[-2][1] > points[-1][1]
    base = (tip[0], tip[1] + (_HEAD_LENGTH if down else -_HEAD_LENGTH))
    corners = [tip, (base[0] - half_width, base[1]), (base[0] + half_width, base[1])]
    ax.add_patch(Polygon(corners, facecolor=color, edgecolor="none", zorder=2))
    return [*points[:-1], base]


def _draw_line(ax: Axes, points: list[Point], look: _Look, width: float, name: str) -> None:
    """Draw an edge: curved between the rows, vertical through a row, clear of its boxes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    kinds = {"M": Path.MOVETO, "L": Path.LINETO, "C": Path.CURVE4}
    steps = list(curve(points))
    line: dict[str, Any] = {"edgecolor": look.color, "linestyle": look.dashes, "linewidth": width}
    vertices = [vertex for _, part in steps for vertex in part]
    path = Path(vertices, [kinds[kind] for kind, part in steps for _ in part])
    ax.add_patch(PathPatch(path, fill=False, capstyle="butt", zorder=2, label=name, **line))


def _draw_boxes(ax: Axes, names: Sequence[str], layout: Layout, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    options = style.text_options(style.FONT_SIZE * scale, ha="center", va="center_baseline")
    colors: dict[str, Any] = {"edgecolor": style.INK, "facecolor": style.NODE_FILL}
    shape: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=6", "linewidth": 0.9}
    for name, (x, y), (width, height) in zip(names, layout.centres, layout.sizes, strict=True):
        corner = (x - width / 2, y - height / 2)
        ax.add_patch(FancyBboxPatch(corner, width, height, zorder=3, **shape, **colors))
        ax.text(x, y, style.display_name(name), zorder=4, **options)


def _add_look_legend(ax: Axes, looks: Sequence[_Look]) -> None:
    """Add a legend of the edges in one row below the graph."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=one.color, linestyle=one.dashes, linewidth=1.8, label=one.label)
        for one in looks
    ]
    if handles:
        shape: dict[str, Any] = {"ncols": len(handles), "handlelength": 2.8}
        frame.add_legend(ax, handles=handles, loc="lower center", **shape)


def _box_sizes(names: tuple[str, ...], degrees: NDArray[np.int_]) -> NDArray[np.float64]:
    """Return width and height of each box in points, with room for its name and its edges."""
    frame.require_matplotlib()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font, measure = FontProperties(size=style.FONT_SIZE), TextToPath()
    height = style.FONT_SIZE * 1.25 + 2 * _PAD_Y
    sizes = []
    with style.ignore_missing_glyphs():
        for name, degree in zip(names, degrees.tolist(), strict=True):
            text = style.display_name(name)
            width, _, _ = measure.get_text_width_height_descent(text, font, ismath=False)
            sizes.append((max(width, 14.0, 0.75 * degree * _HEAD_GAP) + 2 * _PAD_X, height))
    return np.array(sizes).reshape(-1, 2)


def _drawn_edges(graph: CPDAG | DAG, truth: CPDAG | DAG | None) -> dict[Edge, tuple[_Look, bool]]:
    """Return the look of each edge and whether it is directed; (i, j) then points from i to j."""
    estimated = graph.adjacency
    if truth is None:
        return {edge: (_PLAIN, directed) for edge, directed in _edges(estimated).items()}
    true = _aligned_adjacency(graph, truth)
    drawn = {}
    for (i, j), directed in _edges(estimated).items():
        same = estimated[i, j] == true[i, j] and estimated[j, i] == true[j, i]
        known = _FOUND if same else _TURNED
        drawn[(i, j)] = (known if true[i, j] or true[j, i] else _ADDITIONAL, directed)
    for (i, j), directed in _edges(true).items():
        if not (estimated[i, j] or estimated[j, i]):
            drawn[(i, j)] = (_MISSED, directed)
    return drawn


def _edges(a: NDArray[np.int8]) -> dict[Edge, bool]:
    """Return each edge once, with whether it is directed."""
    return {(i, j): not a[j, i] for i, j in np.argwhere(a == 1).tolist() if not a[j, i] or i < j}


def _aligned_adjacency(graph: CPDAG | DAG, truth: CPDAG | DAG) -> NDArray[np.int8]:
    """Return the adjacency of the truth as the same kind of graph, in the order of the names."""
    same = truth.to_cpdag() if isinstance(truth, DAG) and isinstance(graph, CPDAG) else truth
    if set(same.names) == set(graph.names):
        order = [same.names.index(name) for name in graph.names]
        return np.asarray(same.adjacency[np.ix_(order, order)])
    if same.n_variables != graph.n_variables:
        rule = "the truth must have the same variables as the graph"
        template = rule + ", but it has {n_true} and the graph has {n}"
        params = {"n_true": same.n_variables, "n": graph.n_variables}
        advice = Advice("match-latents", "match the latents first")
        raise GraphError("graph-size", template, params, advice=advice)
    return np.asarray(same.adjacency)
