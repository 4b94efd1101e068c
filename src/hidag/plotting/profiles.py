"""Bar charts of the joint states of a few binary latents and of the item responses in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.plotting import style
from hidag.plotting.figure import Size, add_legend, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MAX_COLUMNS = 3


@dataclass(frozen=True)
class ItemResponse:
    """Mean response of one item in the states of its parents.

    Attributes
    ----------
    item : str
    states : tuple of str
        Labels of the states.
    means : tuple of float
        Between 0 and 1.
    common : tuple of bool
        Whether the state is frequent enough for its mean to be reliable.
    """

    item: str
    states: tuple[str, ...]
    means: tuple[float, ...]
    common: tuple[bool, ...]


def size_of_profiles(n_profiles: int) -> Size:
    """Return a size in inches for `plot_profiles`."""
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
    names : sequence of str, length S
        Top to bottom.
    shares : ndarray, shape (S,)
    marked : sequence of bool, length S
        Bars drawn in the dark colour.
    mark : str
        Legend of the dark bars.
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
    ax.set_xlabel("probability", **style.text_options())
    style_axes(ax, grid=None)
    ax.tick_params(axis="y", length=0)
    entries = ((style.BLUE, mark), (style.HAIR, "other"))
    handles = [Patch(facecolor=color, label=label, **outline) for color, label in entries]
    add_legend(ax, handles=handles, loc="lower right")
    return ax


def size_of_item_responses(n_items: int) -> Size:
    """Return a size in inches for `plot_item_responses`."""
    return 9.2, 0.6 + 1.75 * -(-n_items // _MAX_COLUMNS)


def plot_item_responses(figure: Figure, items: Sequence[ItemResponse]) -> list[Axes]:
    """Draw each item's mean response in the states of its parents, and return the axes.

    Bars of rare states are hatched, because few observations support their means.

    Parameters
    ----------
    figure : matplotlib Figure
        Empty.
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
            ax.barh(
                place,
                mean,
                height=0.66,
                color=style.BLUE if common else style.PAPER,
                hatch=None if common else "////",
                edgecolor=style.INK if common else style.FAINT,
                linewidth=0.7,
            )
            color = style.INK if common else style.FAINT
            options = style.text_options(va="center", color=color)
            ax.text(mean + 0.02, place, f"{mean:.2f}", **options)
        ax.set_yticks(y, labels=item.states)
        ax.set_xlim(0.0, 1.16)
        ax.set_xticks([0.0, 0.5, 1.0])
        ax.set_title(style.display_name(item.item), **style.text_options(style.SMALL_FONT_SIZE + 1))
        style_axes(ax, grid=None)
        ax.tick_params(axis="y", length=0)
    figure.supxlabel("mean response", **style.text_options())
    return list(panels[: len(items)])
