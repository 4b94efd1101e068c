"""Figure sizes, rendering to bytes, and the axes, legends and colour bars that figures share."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import import_extra
from hidag.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from hidag.structure.graphs import CPDAG, DAG

Size = tuple[float, float]
Format = Literal["png", "svg"]

_POINTS_PER_INCH = 72.0
#: Left, bottom, width and height of axes that fill their figure.
_WHOLE_FIGURE = (0.0, 0.0, 1.0, 1.0)
#: Width of a character relative to the font size.
CHARACTER_WIDTH = 0.62
#: Points.
_MAX_COLORBAR_LENGTH, _LINE_HEIGHT = 240.0, style.SMALL_FONT_SIZE + 2.0
#: Luminance of a background on which dark and light text have the same contrast.
_MIDDLE_LUMINANCE = 0.22
#: Characters in a line of the label of a short colour bar.
_MIN_LABEL_LENGTH = 24


def require_matplotlib() -> None:
    """Raise an error that names the extra to install if matplotlib is missing."""
    import_extra("matplotlib", "drawing figures", "plot")


def new_axes(size: Size, *, fill: bool = False) -> Axes:
    """Return axes on a new pyplot figure with a size in inches; ``fill`` leaves no margins."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    if fill:
        return plt.figure(figsize=size).add_axes(_WHOLE_FIGURE)
    return plt.figure(figsize=size, layout="constrained").add_subplot()


def axes_points(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes in points."""
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
    """Return the (width, height) in inches at which `plot_graph` uses the full font size.

    Parameters
    ----------
    graph, truth, title : as in `plot_graph`; ``truth`` implies a legend
    legend : bool, whether there is one; True if `plot_graph` is called with ``support``
    """
    from hidag.plotting.graph import graph_layout

    layout = graph_layout(graph, truth)
    below = legend or truth is not None
    width = max(layout.width + 20.0, 380.0 if below else 160.0)
    height = layout.height + 20.0 + (30.0 if below else 0.0) + (24.0 if title else 0.0)
    return width / _POINTS_PER_INCH, height / _POINTS_PER_INCH


def size_of_q(n_items: int, n_latents: int) -> Size:
    """Return (width, height) in inches for `plot_q` of ``n_items`` items, ``n_latents`` latents."""
    return 2.6 + min(max(0.62 * n_latents, 1.6), 9.0), 1.6 + min(max(0.22 * n_items, 1.6), 11.0)


def on_axes(draw: Callable[[Axes], object], *, fill: bool = False) -> Callable[[Figure], object]:
    """Return a function of a figure that calls ``draw`` with new axes.

    The axes ``fill`` the figure, or leave margins for ticks and labels.
    """
    return lambda figure: draw(figure.add_axes(_WHOLE_FIGURE) if fill else figure.add_subplot())


def render_png(
    draw: Callable[[Axes], object], size: Size, *, fill: bool = False, dots_per_inch: int = 140
) -> bytes:
    """Return a figure with one axes as PNG bytes.

    Parameters
    ----------
    draw : function of matplotlib Axes
    size : (float, float), width and height in inches
    fill : bool, whether the axes fill the figure, for figures without ticks
    dots_per_inch : int
    """
    return render_figure(on_axes(draw, fill=fill), size, dots_per_inch=dots_per_inch)


def render_figure(
    draw: Callable[[Figure], object],
    size: Size,
    *,
    file_format: Format = "png",
    dots_per_inch: int = 140,
) -> bytes:
    """Return a figure as bytes, the same for the same figure; pyplot is not involved.

    Parameters
    ----------
    draw : function of an empty matplotlib Figure
    size : (float, float), width and height in inches
    file_format : {"png", "svg"}
    dots_per_inch : int, resolution of PNG files and of raster images in SVG files
    """
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    # SVG files have text as text, for search and screen readers; a fixed salt makes their
    # identifiers reproducible.
    svg = rc_context({"svg.fonttype": "none", "svg.hashsalt": "hidag"})
    with style.ignore_missing_glyphs(), svg:
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        draw(figure)
        about = {"Date": None} if file_format == "svg" else None
        frame: dict[str, Any] = {
            "facecolor": style.PAPER,
            "bbox_inches": "tight",
            "pad_inches": 0.12,
        }
        figure.savefig(stream, format=file_format, dpi=dots_per_inch, metadata=about, **frame)
    return stream.getvalue()


def style_axes(ax: Axes, *, grid: Literal["x", "y"] | None = "y") -> None:
    """Remove the upper and right frame lines, lighten the ticks, and draw a light grid."""
    ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(style.FAINT)
    if grid is not None:
        ax.grid(True, axis=grid, color=style.HAIR, linewidth=0.6)
        ax.set_axisbelow(True)


def hide_frame(ax: Axes) -> None:
    """Remove the frame and the tick marks, as suits a heat map."""
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def draw_heat_map(ax: Axes, values: NDArray[np.float64], colors: Any, limits: Size) -> AxesImage:
    """Draw a matrix without a frame; ``limits`` are the ends of the colour scale."""
    hide_frame(ax)
    ends: dict[str, Any] = {"vmin": limits[0], "vmax": limits[1]}
    return ax.imshow(values, cmap=colors, aspect="auto", interpolation="nearest", **ends)


def label_axes(ax: Axes, x: str = "", y: str = "", title: str = "") -> None:
    """Set the labels of the axes, and a title on the left."""
    for text, set_text in ((x, ax.set_xlabel), (y, ax.set_ylabel)):
        if text:
            set_text(text, **style.text_options())
    if title:
        ax.set_title(title, loc="left", **style.text_options())


def draw_dots(
    ax: Axes, x: Any, y: Any, size: float, face: str, *, edge: str | None = None, **options: Any
) -> None:
    """Draw points without a line."""
    colors: dict[str, Any] = {"markerfacecolor": face, "markeredgecolor": edge or face}
    ax.plot(x, y, **{"linestyle": "none", "marker": "o", "markersize": size, **colors, **options})


def text_color(background: NDArray[np.float64]) -> str:
    """Return the colour, dark or light, with more contrast on an RGB background."""
    luminance = np.dot((0.2126, 0.7152, 0.0722), np.asarray(background)[:3] ** 2.2)
    return style.INK if luminance > _MIDDLE_LUMINANCE else style.PAPER


def write_centred(ax: Axes, x: float, y: float, text: str, size: float, **options: Any) -> None:
    """Write a text centred at a point."""
    ax.text(x, y, text, ha="center", va="center", **style.text_options(size, **options))


def add_legend(ax: Axes, **options: Any) -> None:
    """Add a legend without a frame in the small font."""
    font: dict[str, Any] = {"fontsize": style.SMALL_FONT_SIZE, "labelcolor": style.INK}
    ax.legend(**{"frameon": False, **font, **options})


def add_colorbar(ax: Axes, image: Any, label: str, **options: Any) -> None:
    """Add a colour bar of limited length beside axes, its label wrapped to that length."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    height = axes_points(ax)[1]
    shrink = min(1.0, _MAX_COLORBAR_LENGTH / height)
    defaults: dict[str, Any] = {"fraction": 0.05, "pad": 0.03, "aspect": 28, "anchor": (0.0, 1.0)}
    bar = figure.colorbar(image, ax=ax, shrink=shrink, **{**defaults, **options})
    width = int(shrink * height / (CHARACTER_WIDTH * style.SMALL_FONT_SIZE))
    lines = [textwrap.fill(line, max(width, _MIN_LABEL_LENGTH)) for line in label.split("\n")]
    bar.set_label("\n".join(lines), **style.text_options())
    bar.ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT)
    bar.outline.set_visible(False)  # type: ignore[operator]


def label_columns(ax: Axes, names: Sequence[str], *, top: bool = False) -> None:
    """Label columns 0, 1, ... with names, rotated if they are too wide for their columns."""
    wrapped = [style.wrap_name(name) for name in names]
    longest = max((len(line) for name in wrapped for line in name.split("\n")), default=0)
    room = axes_points(ax)[0] / max(len(names), 1)
    rotated = longest * style.SMALL_FONT_SIZE * CHARACTER_WIDTH > room
    options = style.text_options(rotation=50 if rotated else 0, rotation_mode="anchor")
    side = "left" if top else "right"
    ax.set_xticks(range(len(names)))
    ax.set_xticklabels(wrapped, ha=side if rotated else "center", **options)
    if top:
        ax.xaxis.tick_top()


def label_rows(ax: Axes, names: Sequence[str], kind: str) -> None:
    """Label rows 0, 1, ...; with too many rows of a kind, every n-th, as the axis then states."""
    step = max(1, -(-int(len(names) * _LINE_HEIGHT) // max(int(axes_points(ax)[1]), 1)))
    rows = range(0, len(names), step)
    size = style.SMALL_FONT_SIZE - (1.0 if step > 1 else 0.0)
    ax.set_yticks(rows)
    ax.set_yticklabels([style.display_name(names[r]) for r in rows], **style.text_options(size))
    if step > 1:
        options = style.text_options(size, color=style.FAINT)
        ax.set_ylabel(f"{len(names):,} {kind}, one in {step} labelled", **options)


def blue_shades(count: int) -> list[str]:
    """Return colours from light to dark blue that remain distinct in grayscale."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = colormaps["Blues"]
    return [to_hex(scale(0.12 + 0.8 * i / max(count - 1, 1))) for i in range(count)]
