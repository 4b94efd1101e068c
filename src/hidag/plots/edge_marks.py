"""How strong an edge is and how sure: line widths, dashes and numbers on the graph's edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.errors import DataError
from hidag.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from hidag.explain import BootstrapResult
    from hidag.plots.layout import Point

#: Points: the weakest and the strongest edge.
THINNEST, THICKEST = 0.9, 4.6
#: Support from which on an edge is drawn so: least share, colour, dashes, words for the legend.
BANDS: tuple[tuple[float, str, Any, str], ...] = (
    (0.8, style.INK, "solid", "in at least 80 % of refits"),
    (0.5, "#5d6a80", (0, (6, 2)), "50 to 80 %"),
    (0.0, style.FAINT, (0, (1.2, 1.8)), "less than 50 %"),
)
#: With more edges than this, numbers would stand in each other's way.
MOST_NUMBERS = 24

Pairs = Mapping[Any, float]


def support_of(refits: BootstrapResult) -> dict[tuple[str, str], float]:
    """Return the share of a bootstrap's refits in which two latents are joined, by pairs."""
    names, joined = refits.latent_names, refits.adjacent
    return {
        (names[i], names[j]): float(joined[i, j])
        for i in range(len(names))
        for j in range(i + 1, len(names))
    }


def values_of(
    pairs: Pairs, edges: Sequence[tuple[int, int]], names: Sequence[str], what: str
) -> dict[tuple[int, int], float]:
    """Return the number of each edge; a pair may be given either way round, by name or number.

    Raises
    ------
    DataError
        If an edge has no number, or one that is not finite and >= 0.
    """
    out = {}
    for i, j in edges:
        keys = [(names[i], names[j]), (names[j], names[i]), (i, j), (j, i)]
        keys.append(frozenset((names[i], names[j])))  # type: ignore[arg-type]
        found = next((pairs[key] for key in keys if key in pairs), None)
        if found is None or not (np.isfinite(found) and found >= 0):
            raise DataError(
                f"{what} must have a number >= 0 for each edge, but {names[i]} - {names[j]} has "
                f"{'none' if found is None else format(found, 'g')}"
            )
        out[(i, j)] = float(found)
    return out


def widths_of(values: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Return line widths in points, the widest for the strongest edge."""
    largest = max(values.values(), default=0.0) or 1.0
    return {
        edge: THINNEST + (THICKEST - THINNEST) * value / largest for edge, value in values.items()
    }


def band_of(support: float) -> tuple[str, Any]:
    """Return colour and dashes of an edge with so much support."""
    return next((colour, dashes) for least, colour, dashes, _ in BANDS if support >= least)


def write_support(
    ax: Axes, points: Sequence[Point], support: float, scale: float, zorder: float
) -> None:
    """Write the share on the edge, near the end where it has left its label."""
    (x0, y0), (x1, y1) = points[0], points[1]
    ax.text(
        (x0 + x1) / 2,
        (y0 + y1) / 2,
        f"{support:.2f}".replace("0.", ".", 1),
        ha="center",
        va="center",
        fontsize=(style.SMALL_FONT_SIZE - 1.0) * scale,
        color=style.INK,
        zorder=zorder,
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8},
    )


def add_support_legend(ax: Axes, support: Sequence[float]) -> None:
    """Say what dashes stand for, as far as they occur."""
    from matplotlib.lines import Line2D

    bounds = [1.01, *(band[0] for band in BANDS)]
    handles = [
        Line2D([], [], color=colour, linestyle=dashes, linewidth=1.8, label=words)
        for top, (least, colour, dashes, words) in zip(bounds, BANDS, strict=False)
        if any(least <= value < top for value in support)
    ]
    add_legend_below(ax, handles)


def add_legend_below(ax: Axes, handles: Sequence[Line2D]) -> None:
    """Put a legend of lines into one row at the foot of a graph; none where there is nothing."""
    if handles:
        ax.legend(
            handles=list(handles),
            loc="lower center",
            ncols=len(handles),
            frameon=False,
            fontsize=style.SMALL_FONT_SIZE,
            handlelength=2.8,
            labelcolor=style.INK,
        )
