"""Heat map of average causal effects among latents; images and effect maps for pixel items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.plotting import figure as frame
from hidag.plotting import style
from hidag.plotting.figure import Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from hidag.causal.causal_effects import AverageEffects

#: Ranges and effects below this are not drawn as a range or a number.
_NEGLIGIBLE = 5e-3
#: Numbers are written for at most this many latents.
_MAX_LATENTS_WITH_NUMBERS = 9
#: Inches along the side of one image.
_IMAGE_SIDE = 1.55


def size_of_effects(n_causes: int, n_latents: int) -> Size:
    """Return (width, height) in inches for `plot_effects`: ``n_causes`` x ``n_latents`` cells."""
    return 2.2 + min(max(0.8 * n_latents, 2.4), 9.0), 1.2 + min(max(0.5 * n_causes, 1.6), 8.0)


def plot_effects(effects: AverageEffects, ax: Axes | None = None) -> Axes:
    """Draw the average effects of latents (rows) on latents (columns), and return the axes.

    The colour is the effect. Where undirected edges leave a range of effects, the colour is its
    midpoint, the cell is hatched, and the range is written if space permits. A dot marks effects
    whose range, or confidence interval if there is one, excludes zero.

    Parameters
    ----------
    effects : AverageEffects, from `hidag.average_effects`
    ax : matplotlib Axes, optional; by default in a new figure
    """
    k = effects.n_latents
    low, high = effects.low[:, :k], effects.high[:, :k]
    ax = ax or frame.new_axes(size_of_effects(len(low), k))

    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    middle = (low + high) / 2
    largest = float(np.nanmax(np.abs(middle), initial=0.0)) or 1.0
    colors = colormaps["PuOr_r"].with_extremes(bad=style.HAIR)
    image = frame.draw_heat_map(ax, middle, colors, (-largest, largest))
    written = k <= _MAX_LATENTS_WITH_NUMBERS
    for c, e in np.argwhere(~np.isnan(middle)).tolist():
        if written and max(abs(low[c, e]), abs(high[c, e])) > _NEGLIGIBLE:
            a, b = f"{low[c, e]:.2f}", f"{high[c, e]:.2f}"
            # The background of the text interrupts the hatching.
            shade = image.to_rgba(middle[c, e])
            background = {"facecolor": shade, "edgecolor": "none", "pad": 1.5}
            color = frame.text_color(shade)
            text, size = a if a == b else f"{a} to\n{b}", style.SMALL_FONT_SIZE - 1.0
            frame.write_centred(ax, e, c, text, size, color=color, bbox=background, zorder=4)
    ranges = np.argwhere(high - low > _NEGLIGIBLE).tolist()
    if ranges:
        cells = [Rectangle((e - 0.5, c - 0.5), 1.0, 1.0) for c, e in ranges]
        hatching: dict[str, Any] = {"facecolor": "none", "edgecolor": style.FAINT, "linewidth": 0.0}
        ax.add_collection(PatchCollection(cells, hatch="////", **hatching))
    lower, upper = low, high
    if effects.lower is not None and effects.upper is not None:
        lower, upper = effects.lower[:, :k], effects.upper[:, :k]
    y, x = np.nonzero((lower > 1e-9) | (upper < -1e-9))
    right, up = (0.4, 0.36) if written else (0.0, 0.0)
    rim: dict[str, Any] = {"edge": style.PAPER, "markeredgewidth": 0.6}
    frame.draw_dots(ax, x + right, y - up, 3.6, style.INK, **rim)
    frame.label_columns(ax, effects.effects[:k])
    frame.label_rows(ax, effects.causes, "causes")
    frame.label_axes(ax, "change in the mean level of", "intervention: lowest to highest level of")
    more = "\nhatched: midpoint of range" if ranges else ""
    frame.add_colorbar(ax, image, f"average effect{more}", aspect=26)
    return ax


def size_of_images(n_rows: int, n_columns: int) -> Size:
    """Return (width, height) in inches for ``n_rows`` x ``n_columns`` images of `plot_images`."""
    return 0.5 + _IMAGE_SIDE * n_columns, 0.35 + _IMAGE_SIDE * n_rows


def plot_images(
    figure: Figure,
    rows: Sequence[Sequence[NDArray[np.generic]]],
    *,
    row_names: Sequence[str],
    column_names: Sequence[str],
) -> list[Axes]:
    """Draw images in rows and columns, and return their axes, row by row.

    Parameters
    ----------
    figure : empty matplotlib Figure
    rows : sequence of sequences of ndarray
        Colours from 0 to 255, shape (h, w, 3), or gray values from 0 to 1, shape (h, w).
    row_names, column_names : sequence of str, left of each row and above each column
    """
    figure.set_layout_engine("constrained", w_pad=0.04, h_pad=0.04, wspace=0.02, hspace=0.02)
    panels = figure.subplots(len(rows), len(column_names), squeeze=False)
    options = style.text_options(style.SMALL_FONT_SIZE + 0.5)
    for axes, images, name in zip(panels, rows, row_names, strict=True):
        for ax, image in zip(axes, images, strict=True):
            _draw_image(ax, image)
        axes[0].set_ylabel(name, **options)
    for ax, name in zip(panels[0], column_names, strict=True):
        ax.set_title(name, **options)
    return list(panels.ravel())


def plot_effect_maps(
    figure: Figure, maps: NDArray[np.float64], *, names: Sequence[str]
) -> list[Axes]:
    """Draw each latent's main effect on binary pixels, logistic(loading), and return the axes.

    Mid-gray means no effect; white raises the probability of a 1, black lowers it.

    Parameters
    ----------
    figure : empty matplotlib Figure
    maps : ndarray, shape (K, h, w), probabilities, one map for each latent
    names : sequence of str, length K, titles; may have several lines
    """
    if maps.ndim != 3 or len(maps) != len(names):
        template = "maps must have shape (K, h, w) with K={k}, got {shape}"
        raise DataError("array-shape", template, k=len(names), shape=maps.shape)
    figure.set_layout_engine("constrained", w_pad=0.05)
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    for ax, image, name in zip(panels, maps, names, strict=True):
        drawn = _draw_image(ax, image)
        ax.set_title(name, **style.text_options(style.SMALL_FONT_SIZE + 0.5))
    bar = figure.colorbar(drawn, ax=list(panels), shrink=0.86, aspect=18, pad=0.02)
    bar.set_ticks([0.0, 0.5, 1.0], labels=["0  ball", "0.5  no effect", "1  background"])
    bar.ax.tick_params(labelsize=style.SMALL_FONT_SIZE, length=2, labelcolor=style.INK)
    bar.outline.set_edgecolor(style.FAINT)
    return list(panels)


def _draw_image(ax: Axes, image: NDArray[np.generic]) -> AxesImage:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(color=style.FAINT, linewidth=0.8)
    return ax.imshow(image, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
