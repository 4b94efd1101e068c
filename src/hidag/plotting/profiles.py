"""Joint states of a few binary latents: how common they are, and how items answer in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.plotting import style
from hidag.plotting.figure import Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_IN_A_ROW = 3


@dataclass(frozen=True)
class ItemResponse:
    """Mean response of one item in the states of its own latents.

    Attributes
    ----------
    item : str
    states : tuple of str
        In words.
    means : tuple of float
        Between 0 and 1.
    common : tuple of bool
        Whether the state occurs often enough for its mean to be believed.
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
    """Draw the share of each profile as a bar, and return the axes.

    Parameters
    ----------
    ax : matplotlib Axes
    names : sequence of str, length S
        Top to bottom.
    shares : ndarray, shape (S,)
    marked : sequence of bool, length S
        Drawn dark.
    mark : str
        What the dark bars are.
    """
    from matplotlib.patches import Patch

    places = np.arange(len(names))[::-1]
    ax.barh(
        places,
        shares,
        height=0.62,
        color=[style.BLUE if dark else style.HAIR for dark in marked],
        edgecolor=style.INK,
        linewidth=0.7,
    )
    for place, share in zip(places, shares, strict=True):
        ax.text(
            share + 0.006,
            place,
            f"{share:.3f}",
            va="center",
            fontsize=style.SMALL_FONT_SIZE,
            color=style.INK,
        )
    ax.set_yticks(places, labels=[style.shown_name(name, 40) for name in names])
    ax.set_xlim(0.0, max(float(shares.max()) * 1.18, 0.05))
    ax.set_xlabel("share", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    _plain(ax)
    ax.legend(
        handles=[
            Patch(facecolor=style.BLUE, edgecolor=style.INK, label=mark),
            Patch(facecolor=style.HAIR, edgecolor=style.INK, label="others"),
        ],
        loc="lower right",
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
    )
    return ax


def size_of_item_responses(n_items: int) -> Size:
    """Return a size in inches for `plot_item_responses`."""
    n_rows = -(-n_items // _MOST_IN_A_ROW)
    return 9.2, 0.6 + 1.75 * n_rows


def plot_item_responses(figure: Figure, items: Sequence[ItemResponse]) -> list[Axes]:
    """Draw each item's mean response in the states of its latents, and return the axes.

    States that hardly anybody is in have hatched bars: their means rest on next to nothing.

    Parameters
    ----------
    figure : matplotlib Figure
        Empty.
    items : sequence of ItemResponse
    """
    n_columns = min(len(items), _MOST_IN_A_ROW)
    n_rows = -(-len(items) // n_columns)
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    for ax in panels[len(items) :]:
        ax.set_axis_off()
    for ax, item in zip(panels, items, strict=False):
        places = np.arange(len(item.states))[::-1]
        for place, mean, common in zip(places, item.means, item.common, strict=True):
            ax.barh(
                place,
                mean,
                height=0.66,
                color=style.BLUE if common else style.PAPER,
                hatch=None if common else "////",
                edgecolor=style.INK if common else style.FAINT,
                linewidth=0.7,
            )
            ax.text(
                mean + 0.02,
                place,
                f"{mean:.2f}",
                va="center",
                fontsize=style.SMALL_FONT_SIZE,
                color=style.INK if common else style.FAINT,
            )
        ax.set_yticks(places, labels=item.states)
        ax.set_xlim(0.0, 1.16)
        ax.set_xticks([0.0, 0.5, 1.0])
        ax.set_title(
            style.shown_name(item.item),
            fontsize=style.SMALL_FONT_SIZE + 1,
            color=style.INK,
            parse_math=False,
        )
        _plain(ax)
    return list(panels[: len(items)])


def _plain(ax: Axes) -> None:
    ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(style.FAINT)
