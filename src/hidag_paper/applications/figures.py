"""Figures of the applications: images, effects on pixels, item responses and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

#: Inches along the side of one image.
_IMAGE_SIDE = 1.55
#: Panels in a row.
_MAX_COLUMNS = 3


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


@dataclass(frozen=True)
class ItemResponse:
    """Mean response of one ``item`` in the states of its parents."""

    item: str
    states: tuple[str, ...]  # labels
    means: tuple[float, ...]  # between 0 and 1
    common: tuple[bool, ...]  # whether the state is frequent enough for a reliable mean


def size_of_item_responses(n_items: int) -> Size:
    """Return (width, height) in inches for `plot_item_responses` of ``n_items`` items."""
    return 9.2, 0.6 + 1.75 * -(-n_items // _MAX_COLUMNS)


def plot_item_responses(figure: Figure, items: Sequence[ItemResponse]) -> list[Axes]:
    """Draw each item's mean response in the states of its parents, and return the axes.

    Bars of rare states are hatched, because few observations support their means.

    Parameters
    ----------
    figure : empty matplotlib Figure
    items : sequence of ItemResponse
    """
    n_columns = min(len(items), _MAX_COLUMNS)
    n_rows = -(-len(items) // n_columns)
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    for ax in panels[len(items) :]:
        ax.set_axis_off()
    for ax, item in zip(panels, items, strict=False):
        y = np.arange(len(item.states))[::-1]
        for place, mean, common in zip(y, item.means, item.common, strict=True):
            color, hatch = (style.INK, None) if common else (style.FAINT, "////")
            face: dict[str, Any] = {"color": style.BLUE if common else style.PAPER, "hatch": hatch}
            ax.barh(place, mean, height=0.66, edgecolor=color, linewidth=0.7, **face)
            options = style.text_options(va="center", color=color)
            ax.text(mean + 0.02, place, f"{mean:.2f}", **options)
        ax.set_yticks(y, labels=item.states)
        ax.set_xlim(0.0, 1.16)
        ax.set_xticks([0.0, 0.5, 1.0])
        ax.set_title(style.display_name(item.item), **style.text_options(style.SMALL_FONT_SIZE + 1))
        frame.style_axes(ax, grid=None)
        ax.tick_params(axis="y", length=0)
    figure.supxlabel("mean response", **style.text_options())
    return list(panels[: len(items)])


def size_of_profiles(n_profiles: int) -> Size:
    """Return (width, height) in inches for `plot_profiles` with ``n_profiles`` bars."""
    return 6.2, 0.8 + 0.34 * n_profiles


def plot_profiles(
    ax: Axes,
    names: Sequence[str],
    shares: NDArray[np.float64],
    *,
    marked: Sequence[bool],
    mark: str,
) -> Axes:
    """Draw the probability of each profile as a bar, and return the axes.

    Parameters
    ----------
    ax : matplotlib Axes
    names : sequence of str, length S, labels of the profiles, top to bottom
    shares : ndarray, shape (S,), probabilities
    marked : sequence of bool, length S, bars drawn in the dark colour
    mark : str, legend of the dark bars
    """
    from matplotlib.patches import Patch

    y = np.arange(len(names))[::-1]
    outline: dict[str, Any] = {"edgecolor": style.INK, "linewidth": 0.7}
    colors = [style.BLUE if dark else style.HAIR for dark in marked]
    ax.barh(y, shares, height=0.62, color=colors, **outline)
    for place, share in zip(y, shares, strict=True):
        ax.text(share + 0.006, place, f"{share:.3f}", **style.text_options(va="center"))
    ax.set_yticks(y, labels=[style.display_name(name, 40) for name in names])
    ax.set_xlim(0.0, max(float(shares.max()) * 1.18, 0.05))
    frame.label_axes(ax, "probability")
    frame.style_axes(ax, grid=None)
    ax.tick_params(axis="y", length=0)
    entries = ((style.BLUE, mark), (style.HAIR, "other"))
    handles = [Patch(facecolor=color, label=label, **outline) for color, label in entries]
    frame.add_legend(ax, handles=handles, loc="lower right")
    return ax
