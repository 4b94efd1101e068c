"""TIMSS: the graph among the skills, laid out and coloured as in the paper's figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.applications.timss_data import CONTENT, SKILLS
from hidag.discover import CPDAG
from hidag.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Places of the skills; cognitive ones are staggered, so that no line runs through a label.
_PLACES = {
    "Number": (3.4, 4.3),
    "Algebra": (-1.6, 2.2),
    "Geometry": (3.2, 0.1),
    "DataProb": (1.6, 2.2),
    "Knowing": (5.2, 2.2),
    "Applying": (8.0, 3.1),
    "Reasoning": (9.4, 0.9),
}
_WORDS = {"DataProb": "Data &\nProbability"}
_WIDTH, _HEIGHT = 2.1, 0.95
#: Pale blue and a stronger orange: they differ in gray as well, and so do the outlines.
_CONTENT_FILL, _COGNITIVE_FILL = "#e8f1fb", "#f6c77d"
#: Widths of lines for edges that no refit has and that all have.
_THINNEST, _WIDEST = 0.8, 3.6
SIZE = (9.0, 4.6)


def draw_skills(
    ax: Axes, graph: CPDAG, support: NDArray[np.float64] | None, printed: CPDAG
) -> None:
    """Draw the graph; lines are as wide as their support, edges the paper lacks are dashed.

    Parameters
    ----------
    ax : Axes
    graph : CPDAG
        Over the seven skills.
    support : ndarray, shape (7, 7), or None
        Share of refits in which two skills are joined; written beside each edge.
    printed : CPDAG
        The paper's figure.
    """
    from matplotlib.patches import Ellipse, FancyArrowPatch

    ax.set_xlim(-3.0, 10.8)
    ax.set_ylim(-1.3, 5.1)
    ax.set_aspect("equal")
    ax.set_axis_off()
    patches = {}
    for name in SKILLS:
        content = name in CONTENT
        patches[name] = Ellipse(
            _PLACES[name],
            _WIDTH,
            _HEIGHT,
            facecolor=_CONTENT_FILL if content else _COGNITIVE_FILL,
            edgecolor=style.INK,
            linewidth=1.1 if content else 2.0,
            zorder=3,
        )
        ax.add_patch(patches[name])
        ax.text(
            *_PLACES[name],
            _WORDS.get(name, name),
            ha="center",
            va="center",
            fontsize=style.FONT_SIZE - 0.5,
            color=style.INK,
            linespacing=0.95,
            zorder=5,
        )
    a = graph.adjacency
    for i, j in np.argwhere(np.triu((a + a.T) > 0)).tolist():
        start, end = (i, j) if a[i, j] else (j, i)
        directed = not (a[i, j] and a[j, i])
        share = 1.0 if support is None else float(support[i, j])
        known = printed.adjacency[i, j] or printed.adjacency[j, i]
        bend = _bend(SKILLS[start], SKILLS[end])
        line = FancyArrowPatch(
            _PLACES[SKILLS[start]],
            _PLACES[SKILLS[end]],
            arrowstyle="-|>,head_length=7,head_width=4" if directed else "-",
            connectionstyle=f"arc3,rad={bend}",
            patchA=patches[SKILLS[start]],
            patchB=patches[SKILLS[end]],
            shrinkA=0,
            shrinkB=0,
            linewidth=_THINNEST + (_WIDEST - _THINNEST) * share,
            linestyle="solid" if known else (0, (4, 1.6)),
            color=style.INK if known else style.VERMILION,
            zorder=2,
        )
        ax.add_patch(line)
        if support is not None:
            x, y = _middle(_PLACES[SKILLS[start]], _PLACES[SKILLS[end]], bend)
            ax.text(
                x,
                y,
                f"{share:.0%}",
                ha="center",
                va="center",
                fontsize=style.SMALL_FONT_SIZE,
                color=style.INK,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": style.PAPER, "edgecolor": "none"},
                zorder=4,
            )
    _legend(ax)


def _middle(
    start: tuple[float, float], end: tuple[float, float], bend: float
) -> tuple[float, float]:
    """Return the middle of the arc that ``arc3`` draws between two points."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    # The control point of the quadratic curve is off the middle by the bend; half of it shows.
    return (
        (start[0] + end[0]) / 2 + 0.5 * bend * dy,
        (start[1] + end[1]) / 2 - 0.5 * bend * dx,
    )


def _bend(start: str, end: str) -> float:
    """Return the curvature that keeps a line clear of other labels, 0 where a straight one is."""
    first, last = np.array(_PLACES[start]), np.array(_PLACES[end])

    def clearance(bend: float) -> float:
        dx, dy = last - first
        control = (first + last) / 2 + bend * np.array([dy, -dx])
        t = np.linspace(0.0, 1.0, 41)[:, None]
        path = (1 - t) ** 2 * first + 2 * t * (1 - t) * control + t**2 * last
        others = [np.array(_PLACES[name]) for name in SKILLS if name not in (start, end)]
        # Labels are wider than high: distances are measured in their own shape.
        scaled = [(path - centre) / np.array([_WIDTH / 2, _HEIGHT / 2]) for centre in others]
        return float(min(np.linalg.norm(one, axis=1).min() for one in scaled))

    # The straightest line that is clear; if none is, the clearest.
    bends = (0.0, 0.12, -0.12, 0.22, -0.22, 0.32, -0.32, 0.42, -0.42)
    clear = [b for b in bends if clearance(b) > 1.35]
    return clear[0] if clear else max(bends, key=clearance)


def _legend(ax: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ax.legend(
        handles=[
            Patch(facecolor=_CONTENT_FILL, edgecolor=style.INK, label="content skill"),
            Patch(
                facecolor=_COGNITIVE_FILL, edgecolor=style.INK, linewidth=2, label="cognitive skill"
            ),
            Line2D([], [], color=style.INK, linewidth=2, label="also in the paper's figure"),
            Line2D(
                [],
                [],
                color=style.VERMILION,
                linewidth=2,
                linestyle=(0, (4, 1.6)),
                label="not in the paper's figure",
            ),
        ],
        loc="lower center",
        ncols=4,
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
    )
