"""Loadings latent by latent: how many items each drives, how strongly, which way."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hidag.plots import style
from hidag.plots.canvas import Size, axes_points, new_axes
from hidag.plots.frame import name_columns, plain_frame
from hidag.plots.q_matrix import strengths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.result import FitResult

#: Letters in a line of the label beside the axis.
_LONGEST_LINE = 44
#: With so few loadings in all, items are named beside their points.
_NAMED = 40
#: With more loadings in all, stems would run into each other.
_STEMS = 150


def size_of_loadings(n_latents: int) -> Size:
    """Return a size in inches for `plot_loadings`."""
    return 1.4 + min(max(1.3 * n_latents, 3.4), 11.0), 3.6


def plot_loadings(
    result: FitResult | ArrayLike,
    ax: Axes | None = None,
    *,
    latent_names: tuple[str, ...] | None = None,
    item_names: tuple[str, ...] | None = None,
) -> Axes:
    """Draw the loadings of each latent side by side, the largest first, and return the axes.

    On the scale of `plot_q`: loadings of gaussian, lognormal and censored items are divided by
    the item's standard deviation.

    Parameters
    ----------
    result : FitResult or array, shape (J, K)
    ax : matplotlib Axes, optional
        A new figure unless given.
    latent_names, item_names : tuple of str, optional
        Those of the result, or Z1, Z2, ... and X1, X2, ...

    Returns
    -------
    matplotlib Axes
    """
    values, q, label = strengths(result)
    n_items, n_latents = values.shape
    latents = latent_names or getattr(result, "latent_names", None)
    latents = latents or tuple(f"Z{k + 1}" for k in range(n_latents))
    items = item_names or getattr(result, "item_names", None)
    items = items or tuple(f"X{j + 1}" for j in range(n_items))
    if ax is None:
        ax = new_axes(size_of_loadings(n_latents))
    named = int((q == 1).sum()) <= _NAMED
    few = int((q == 1).sum()) <= _STEMS
    for k in range(n_latents):
        own = np.flatnonzero(q[:, k] == 1)
        own = own[np.argsort(-values[own, k], kind="stable")]
        x = k + (np.linspace(-0.34, 0.34, len(own)) if len(own) > 1 else np.zeros(len(own)))
        above = values[own, k] >= 0
        for part, colour, marker in ((above, style.BLUE, "o"), (~above, style.VERMILION, "v")):
            if few:
                ax.vlines(
                    x[part], 0.0, values[own[part], k], color=colour, linewidth=0.7, alpha=0.5
                )
            ax.plot(
                x[part],
                values[own[part], k],
                linestyle="none",
                marker=marker,
                markersize=4.0 if named else 2.6,
                color=colour,
            )
        for place, j in zip(x, own.tolist(), strict=True) if named else ():
            up = values[j, k] >= 0
            ax.annotate(
                style.shown_name(items[j], 12),
                (place, values[j, k]),
                xytext=(0, 4 if up else -4),
                textcoords="offset points",
                ha="center",
                va="bottom" if up else "top",
                rotation=90,
                fontsize=style.SMALL_FONT_SIZE - 2.0,
                color=style.INK,
                parse_math=False,
            )
    ax.axhline(0.0, color=style.FAINT, linewidth=0.8)
    plain_frame(ax)
    if q.any():
        low, high = min(values[q == 1].min(), 0.0), max(values[q == 1].max(), 0.0)
        spare = (0.16 if named else 0.05) * (high - low)
        ax.set_ylim(low - (spare if low < 0 else 0.0), high + (spare if high > 0 else 0.0))
    ax.set_xlim(-0.6, n_latents - 0.4)
    name_columns(ax, latents, axes_points(ax)[0])
    words = textwrap.fill(label, _LONGEST_LINE)
    ax.set_ylabel(words, fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    return ax
