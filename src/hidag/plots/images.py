"""Items that are pixels: what was seen, and what each latent does to the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.plots import style
from hidag.plots.canvas import Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

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
