"""Figures: how large they have to be, and their pictures as bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from hidag.extras import import_extra
from hidag.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hidag.discover import CPDAG, DAG

Size = tuple[float, float]
Format = Literal["png", "svg"]

_POINTS_PER_INCH = 72.0
_TITLE_POINTS = 24.0


#: Left, bottom, width and height of axes that fill their figure.
WHOLE = (0.0, 0.0, 1.0, 1.0)


def require_matplotlib() -> None:
    """Say how to install matplotlib if it is not there.

    Called wherever a picture may begin; what comes after that imports as usual.
    """
    import_extra("matplotlib", "drawing pictures", "plot")


def new_axes(size: Size, *, fill: bool = False) -> Axes:
    """Return axes on a new pyplot figure of this size in inches, filling it if asked."""
    require_matplotlib()
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
    graph: CPDAG | DAG,
    *,
    truth: CPDAG | DAG | None = None,
    legend: bool = False,
    title: str | None = None,
) -> Size:
    """Return the size in inches at which `plot_graph` needs not shrink its letters.

    A truth brings a legend, and so does support (``legend``).
    """
    from hidag.plots.graph import graph_layout

    layout = graph_layout(graph, truth)
    below = legend or truth is not None
    width = max(layout.width + 20.0, 380.0 if below else 160.0)
    height = layout.height + 20.0 + (30.0 if below else 0.0)
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
    return render_figure(on_axes(draw, fill=fill), size, dots_per_inch=dots_per_inch)


def on_axes(draw: Callable[[Axes], object], *, fill: bool = False) -> Callable[[Figure], object]:
    """Return what draws into the only axes of a figure, which fill it if asked."""
    return lambda figure: draw(figure.add_axes(WHOLE) if fill else figure.add_subplot())


def render_figure(
    draw: Callable[[Figure], object],
    size: Size,
    *,
    file_format: Format = "png",
    dots_per_inch: int = 140,
) -> bytes:
    """Return a picture as bytes; the same drawing gives the same bytes.

    Parameters
    ----------
    draw : callable
        Draws into the empty figure it is given, on as many axes as it likes.
    size : (float, float)
        In inches.
    file_format : {"png", "svg"}
    dots_per_inch : int
        Of PNG pictures, and of what an SVG picture holds as dots.
    """
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    # Letters stay letters in SVG, so that they can be searched and read aloud; names of its parts
    # come from a fixed word instead of a random one.
    with style.any_script(), rc_context({"svg.fonttype": "none", "svg.hashsalt": "hidag"}):
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        draw(figure)
        figure.savefig(
            stream,
            format=file_format,
            dpi=dots_per_inch,
            facecolor=style.PAPER,
            bbox_inches="tight",
            pad_inches=0.12,
            metadata={"Date": None} if file_format == "svg" else None,
        )
    return stream.getvalue()
