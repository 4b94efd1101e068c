"""Where an estimated Q differs from another: frames for what it lacks, crosses for what it adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.errors import DataError
from hidag.plots import style
from hidag.plots.canvas import axes_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patheffects import AbstractPathEffect

#: Points of a cell's height from which on frames and crosses have their full size.
_ROOMY = 9.0


@dataclass(frozen=True)
class Comparison:
    """What the other Q is called, and what marks mean then."""

    name: str
    lacking: str
    added: str


TRUTH = Comparison("true Q", "missed", "not in the truth")
PROVISIONAL = Comparison("provisional Q", "provisional only", "estimated only")


def checked_q(given: ArrayLike, shape: tuple[int, ...], kind: Comparison) -> NDArray[np.int8]:
    """Return the other Q with 1, 0, and -1 where it says nothing."""
    values = np.asarray(given, dtype=np.float64)
    if values.shape != shape:
        raise DataError(
            f"the {kind.name} must have the shape of the estimated one, {shape}, got "
            f"{values.shape}; match the latents first"
        )
    unknown = np.isnan(values) | (values < 0)
    return np.where(unknown, -1, np.where(unknown, 0.0, values) != 0).astype(np.int8)


def mark_differences(
    ax: Axes, q: NDArray[np.int8], other: NDArray[np.int8], kind: Comparison
) -> None:
    """Frame entries that the estimate lacks, cross out entries it adds, and say so below."""
    from matplotlib.collections import PatchCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    lacking, added = np.argwhere((other == 1) & (q == 0)), np.argwhere((other == 0) & (q == 1))
    room = min(axes_points(ax)[1] / max(len(q), 1) / _ROOMY, 1.0)
    line, size = max(1.4 * room, 0.5), max(5.0 * room, 2.2)
    frames = [Rectangle((k - 0.44, j - 0.4), 0.88, 0.8) for j, k in lacking.tolist()]
    if frames:
        ax.add_collection(
            PatchCollection(frames, facecolor="none", edgecolor=style.BLUE, linewidth=line)
        )
    if len(added):
        ax.plot(
            added[:, 1] + 0.36,
            added[:, 0],
            linestyle="none",
            marker="x",
            markersize=size,
            markeredgewidth=line,
            color=style.INK,
            path_effects=_edged(line),
        )
    missing = Patch(
        fill=False, edgecolor=style.BLUE, linewidth=1.4, label=f"{kind.lacking} ({len(lacking)})"
    )
    too_many = Line2D(
        [],
        [],
        linestyle="none",
        marker="x",
        markersize=5,
        markeredgewidth=1.4,
        color=style.INK,
        path_effects=_edged(1.4),
        label=f"{kind.added} ({len(added)})",
    )
    ax.legend(
        handles=[missing, too_many],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=2,
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
    )


def _edged(line: float) -> list[AbstractPathEffect]:
    """Return a pale edge around a mark, which is then seen on cells of any colour."""
    from matplotlib.patheffects import Normal, Stroke

    return [Stroke(linewidth=line + 1.8, foreground=style.PAPER), Normal()]
