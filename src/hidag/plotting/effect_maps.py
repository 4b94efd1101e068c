"""Average effects among latents as a heat map, with intervals that leave out zero marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.plotting import style
from hidag.plotting.figure import Size, axes_points, name_columns, name_rows, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from hidag.causal.average_effects import AverageEffects


Array = NDArray[np.float64]

#: Narrower ranges are written as one number.
_OPEN = 5e-3
#: Up to so many latents the numbers are written.
_WRITTEN = 9


def size_of_effects(n_causes: int, n_latents: int) -> Size:
    """Return a size in inches for `plot_effects`."""
    return 2.2 + min(max(0.8 * n_latents, 2.4), 9.0), 1.2 + min(max(0.5 * n_causes, 1.6), 8.0)


def plot_effects(effects: AverageEffects, ax: Axes | None = None) -> Axes:
    """Draw the average effects of latents (rows) on latents (columns), and return the axes.

    Colour is the effect; where the graph leaves a range, its middle, hatched, with the range
    written where there is room. A dot says that the effect, or the interval if there is one, is on
    one side of zero.

    Parameters
    ----------
    effects : AverageEffects
    ax : matplotlib Axes, optional
        A new figure of fitting size unless given.
    """
    k = effects.n_latents
    low, high = effects.low[:, :k], effects.high[:, :k]
    if ax is None:
        ax = new_axes(size_of_effects(len(low), k))

    from matplotlib import colormaps

    middle = (low + high) / 2
    largest = float(np.nanmax(np.abs(middle), initial=0.0)) or 1.0
    image = ax.imshow(
        middle,
        cmap=colormaps["PuOr_r"].with_extremes(bad=style.HAIR),
        vmin=-largest,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
    )
    lower, upper = low, high
    if effects.lower is not None and effects.upper is not None:
        lower, upper = effects.lower[:, :k], effects.upper[:, :k]
    written = k <= _WRITTEN
    for c, e in np.argwhere(~np.isnan(middle)).tolist():
        if written and max(abs(low[c, e]), abs(high[c, e])) > 5e-3:
            a, b = f"{low[c, e]:.2f}", f"{high[c, e]:.2f}"
            ax.text(
                e,
                c,
                a if a == b else f"{a} to\n{b}",
                ha="center",
                va="center",
                fontsize=style.SMALL_FONT_SIZE - 1.0,
                color=style.PAPER if abs(middle[c, e]) > 0.6 * largest else style.INK,
                # Hatching must not run through the numbers.
                bbox={"facecolor": image.to_rgba(middle[c, e]), "edgecolor": "none", "pad": 1.5},
                zorder=4,
            )
    wide = _mark_ranges(ax, low, high)
    sure = (lower > 1e-9) | (upper < -1e-9)
    y, x = np.nonzero(sure)
    ax.plot(
        x + (0.4 if written else 0.0),
        y - (0.36 if written else 0.0),
        linestyle="none",
        marker="o",
        markersize=3.6,
        color=style.INK,
        markeredgecolor=style.PAPER,
        markeredgewidth=0.6,
    )
    width, height = axes_points(ax)
    name_columns(ax, effects.effects[:k], width)
    name_rows(ax, effects.causes, height, "causes")
    ax.set_ylabel("set from lowest to highest", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    ax.set_xlabel("effect on the level of", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, fraction=0.05, pad=0.03, aspect=26)
    more = "\nhatched: middle of what directions allow" if wide else ""
    bar.set_label(f"average effect{more}", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    bar.ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT)
    bar.outline.set_visible(False)  # type: ignore[operator]
    return ax


def _mark_ranges(ax: Axes, low: Array, high: Array) -> bool:
    """Hatch the effects that directions leave open, and return whether there are any."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    wide = np.argwhere(high - low > _OPEN).tolist()
    cells = [Rectangle((e - 0.5, c - 0.5), 1.0, 1.0) for c, e in wide]
    if cells:
        ax.add_collection(
            PatchCollection(
                cells, facecolor="none", edgecolor=style.FAINT, linewidth=0.0, hatch="////"
            )
        )
    return bool(cells)


# --- Items that are pixels: what was seen, and what each latent does to the image

#: Inches along the side of one image.
_SIDE = 1.55


def size_of_images(n_rows: int, n_columns: int) -> Size:
    """Return a size in inches for `plot_images`."""
    return 0.5 + _SIDE * n_columns, 0.35 + _SIDE * n_rows


def plot_images(
    figure: Figure,
    rows: Sequence[Sequence[NDArray[np.generic]]],
    *,
    row_names: Sequence[str],
    column_names: Sequence[str],
) -> list[Axes]:
    """Draw images in rows and columns, pixel by pixel, and return their axes.

    Parameters
    ----------
    figure : matplotlib Figure
        Empty.
    rows : sequence of sequences of ndarray
        Colours, shape (h, w, 3), of 0 to 255, or shares of white, shape (h, w), of 0 to 1.
    row_names, column_names : sequence of str
        Written left of each row and above each column.
    """
    figure.set_layout_engine("constrained", w_pad=0.04, h_pad=0.04, wspace=0.02, hspace=0.02)
    panels = figure.subplots(len(rows), len(column_names), squeeze=False)
    for i, images in enumerate(rows):
        for j, image in enumerate(images):
            _show(panels[i, j], image)
        _write(panels[i, 0].set_ylabel, row_names[i])
    for j, name in enumerate(column_names):
        _write(panels[0, j].set_title, name)
    return [ax for line in panels for ax in line]


def plot_effect_maps(
    figure: Figure, maps: NDArray[np.float64], *, names: Sequence[str]
) -> list[Axes]:
    """Draw each latent's effect on binary pixels alone: logistic(loading), and return the axes.

    Mid-gray is no effect; white, the pixel is more likely to be 1; black, less likely.

    Parameters
    ----------
    figure : matplotlib Figure
        Empty.
    maps : ndarray, shape (K, h, w)
        Probabilities.
    names : sequence of str, length K
        Above the maps; may be of several lines.
    """
    if maps.ndim != 3 or len(maps) != len(names):
        raise DataError(f"maps must have shape (K, h, w) with K={len(names)}, got {maps.shape}")
    figure.set_layout_engine("constrained", w_pad=0.05)
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    for ax, image, name in zip(panels, maps, names, strict=True):
        shown = _show(ax, image)
        _write(ax.set_title, name)
    bar = figure.colorbar(shown, ax=list(panels), shrink=0.86, aspect=18, pad=0.02)
    bar.set_ticks([0.0, 0.5, 1.0], labels=["0  ball", "0.5  no effect", "1  background"])
    bar.ax.tick_params(labelsize=style.SMALL_FONT_SIZE, length=2, labelcolor=style.INK)
    bar.outline.set_edgecolor(style.FAINT)
    return list(panels)


def _show(ax: Axes, image: NDArray[np.generic]) -> AxesImage:
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color(style.FAINT)
        spine.set_linewidth(0.8)
    return ax.imshow(image, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")


def _write(put: object, text: str) -> None:
    assert callable(put)
    put(text, fontsize=style.SMALL_FONT_SIZE + 0.5, color=style.INK, parse_math=False)
