"""Figures: how large they have to be, and their pictures as bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from hidag.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.discover import CPDAG, DAG

Size = tuple[float, float]

_POINTS_PER_INCH = 72.0
_TITLE_POINTS = 24.0


#: Left, bottom, width and height of axes that fill their figure.
WHOLE = (0.0, 0.0, 1.0, 1.0)


def new_axes(size: Size, *, fill: bool = False) -> Axes:
    """Return axes on a new pyplot figure of this size in inches, filling it if asked."""
    import matplotlib.pyplot as plt

    if fill:
        return plt.figure(figsize=size).add_axes(WHOLE)
    return plt.figure(figsize=size, layout="constrained").add_subplot()


def axes_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes in points."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    box = ax.get_position()
    width, height = figure.get_size_inches()
    return box.width * width * _POINTS_PER_INCH, box.height * height * _POINTS_PER_INCH


def size_of_graph(
    graph: CPDAG | DAG, *, truth: CPDAG | DAG | None = None, title: str | None = None
) -> Size:
    """Return the size in inches at which `plot_graph` needs not shrink its letters."""
    from hidag.plots.graph import graph_layout

    layout = graph_layout(graph, truth)
    width = max(layout.width + 20.0, 380.0 if truth is not None else 160.0)
    height = layout.height + 20.0 + (30.0 if truth is not None else 0.0)
    height += _TITLE_POINTS if title else 0.0
    return width / _POINTS_PER_INCH, height / _POINTS_PER_INCH


def size_of_q(n_items: int, n_latents: int) -> Size:
    """Return a size in inches for `plot_q`: roomy rows for few items, a page for many."""
    height = 1.6 + min(max(0.22 * n_items, 1.6), 11.0)
    width = 2.6 + min(max(0.62 * n_latents, 1.6), 9.0)
    return width, height


def render_png(
    draw: Callable[[Axes], object],
    size: Size,
    *,
    fill: bool = False,
    dots_per_inch: int = 140,
) -> bytes:
    """Return a picture as PNG bytes, without touching pyplot's figures or the screen.

    Parameters
    ----------
    draw : callable
        Draws into the axes it is given.
    size : (float, float)
        In inches.
    fill : bool
        Whether the axes fill the figure, as suits a figure without ticks.
    dots_per_inch : int
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    ax = figure.add_axes(WHOLE) if fill else figure.add_subplot()
    stream = io.BytesIO()
    with style.any_script():
        draw(ax)
        figure.savefig(
            stream,
            format="png",
            dpi=dots_per_inch,
            facecolor=style.PAPER,
            bbox_inches="tight",
            pad_inches=0.12,
        )
    return stream.getvalue()
