"""Figures: how large they have to be, and their pictures as bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from hidag.exceptions import import_extra
from hidag.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hidag.structure.graphs import CPDAG, DAG


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
    from hidag.plotting.graph import graph_layout

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


# --- The look of axes with numbers on them, which all charts share


def plain_frame(ax: Axes, *, grid: str = "y") -> None:
    """Take away what is not data: two sides of the frame, strong ticks; a light grid one way."""
    ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(style.FAINT)
    (ax.yaxis if grid == "y" else ax.xaxis).grid(True, color=style.HAIR, linewidth=0.6)
    ax.set_axisbelow(True)


def name_columns(ax: Axes, names: Sequence[str], width: float) -> None:
    """Write names below columns 0, 1, ...; tilted if they do not fit side by side.

    ``width`` is that of the axes in points.
    """
    shown = [style.name_in_lines(name) for name in names]
    longest = max((len(line) for name in shown for line in name.split("\n")), default=0)
    # Letters are about 0.6 of their size wide.
    tilted = longest * style.SMALL_FONT_SIZE * 0.62 > width / max(len(names), 1)
    ax.set_xticks(range(len(names)))
    ax.set_xticklabels(
        shown,
        fontsize=style.SMALL_FONT_SIZE,
        color=style.INK,
        rotation=50 if tilted else 0,
        ha="right" if tilted else "center",
        rotation_mode="anchor",
        parse_math=False,
    )


def name_rows(ax: Axes, names: Sequence[str], height: float, what: str) -> None:
    """Write names beside rows 0, 1, ...: all, or every so many where there is no room."""
    every = max(1, -(-int(len(names) * (style.SMALL_FONT_SIZE + 2.0)) // max(int(height), 1)))
    rows = list(range(0, len(names), every))
    ax.set_yticks(rows)
    ax.set_yticklabels(
        [style.shown_name(names[r]) for r in rows],
        fontsize=style.SMALL_FONT_SIZE - (1.0 if every > 1 else 0.0),
        color=style.INK,
        parse_math=False,
    )
    if every > 1:
        ax.set_ylabel(
            thinned_in_words(len(names), what, every),
            fontsize=style.SMALL_FONT_SIZE,
            color=style.FAINT,
        )


def thinned_in_words(number: int, what: str, every: int) -> str:
    """Return that only some of many rows are named."""
    return f"{number:,} {what}, one in {every} named"


def grays(count: int) -> list[str]:
    """Return shades from light to dark blue that differ on paper without colours too."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = colormaps["Blues"]
    steps = [0.12 + 0.8 * i / max(count - 1, 1) for i in range(count)]
    return [to_hex(scale(step)) for step in steps]
