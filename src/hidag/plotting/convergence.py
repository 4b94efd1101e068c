"""How the estimate settled: the objective step by step, and where the other starts ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.plotting import style
from hidag.plotting.figure import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import FitResult


SIZE = (5.6, 3.0)


def plot_trace(result: FitResult, ax: Axes | None = None) -> Axes:
    """Draw the trace of a fit, and return the axes.

    Exact EM knows its objective at every step; a sampler does not, and then the largest move of a
    coefficient is drawn instead.

    Parameters
    ----------
    result : FitResult
    ax : matplotlib Axes, optional
        A new figure unless given.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        ax = new_axes(SIZE)

    from matplotlib.ticker import MaxNLocator

    trace = np.asarray(result.trace, dtype=np.float64).reshape(-1, 2)
    steps = np.arange(1, len(trace) + 1)
    known = np.isfinite(trace[:, 0])
    if known.any():
        _draw_runs(ax, steps[known], trace[known, 0])
        ax.set_ylabel("penalised log-likelihood", fontsize=style.SMALL_FONT_SIZE)
        # Objectives on some of the rows are on another scale.
        ends = [(one.n_iter, one.objective) for one in result.starts if one.n_rows == 0]
        if ends:
            _draw_ends(ax, ends)
    elif np.isfinite(trace[:, 1]).any():
        ax.plot(steps, trace[:, 1], color=style.BLUE, linewidth=1.4)
        if np.nanmin(trace[:, 1]) > 0:
            ax.set_yscale("log")
        ax.set_ylabel("largest move of a coefficient", fontsize=style.SMALL_FONT_SIZE)
    ax.set_xlabel("step", fontsize=style.SMALL_FONT_SIZE)
    ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
    ax.ticklabel_format(axis="y", useOffset=False) if ax.get_yscale() == "linear" else None
    # There is no half of a step.
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(style.FAINT)
    ax.yaxis.grid(True, color=style.HAIR, linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def _draw_runs(ax: Axes, steps: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """Draw a line for each run of EM: where the objective falls, it is another objective."""
    breaks = np.flatnonzero(np.diff(values) < -1e-9 * np.abs(values[:-1])) + 1
    runs = zip(np.split(steps, breaks), np.split(values, breaks), strict=True)
    for run, (where, heights) in enumerate(runs):
        ax.plot(where, heights, color=style.BLUE, linewidth=1.8, marker="o", markersize=2.5)
        if run:
            ax.axvline(where[0] - 0.5, color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
    if len(breaks):
        ax.set_title(
            "dotted: another penalty or latent law from there on",
            fontsize=style.SMALL_FONT_SIZE,
            color=style.INK,
            loc="left",
        )


def _draw_ends(ax: Axes, ends: list[tuple[int, float]]) -> None:
    ax.plot(
        [end[0] for end in ends],
        [end[1] for end in ends],
        linestyle="none",
        marker="o",
        markersize=4.5,
        markerfacecolor=style.PAPER,
        markeredgecolor=style.VERMILION,
        label=f"end of each start ({len(ends)})",
    )
    # Below the axis: inside, some run would sooner or later pass under it.
    ax.legend(
        loc="upper right",
        bbox_to_anchor=(1.0, -0.11),
        borderaxespad=0.0,
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
        handletextpad=0.1,
    )
