"""Convergence plot: the objective by iteration, and the final objective of every start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.plotting import style
from hidag.plotting.figure import add_legend, new_axes, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import FitResult


SIZE = (5.6, 3.0)


def plot_trace(result: FitResult, ax: Axes | None = None) -> Axes:
    """Plot the convergence of a fit, and return the axes.

    Exact EM evaluates its objective in every iteration. Stochastic EM does not; the largest change
    of a coefficient is drawn instead.

    Parameters
    ----------
    result : FitResult
    ax : matplotlib Axes, optional
        Default: a new figure.
    """
    if ax is None:
        ax = new_axes(SIZE)

    from matplotlib.ticker import MaxNLocator

    objective, change = np.asarray(result.trace, dtype=np.float64).reshape(-1, 2).T
    iterations = np.arange(1, len(objective) + 1)
    known = np.isfinite(objective)
    label = ""
    if known.any():
        label = "penalised log-likelihood"
        _draw_objective(ax, iterations[known], objective[known])
        # Starts on a subsample have objectives on another scale.
        ends = [(start.n_iter, start.objective) for start in result.starts if start.n_rows == 0]
        if ends:
            ax.plot(
                *zip(*ends, strict=True),
                linestyle="none",
                marker="o",
                markersize=4.5,
                markerfacecolor=style.PAPER,
                markeredgecolor=style.VERMILION,
                label=f"final value of each start ({len(ends)})",
            )
            # Below the axis, where it cannot cover a curve.
            anchor: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (1.0, -0.11)}
            add_legend(ax, borderaxespad=0.0, handletextpad=0.1, **anchor)
    elif np.isfinite(change).any():
        label = "largest change of a coefficient"
        ax.plot(iterations, change, color=style.BLUE, linewidth=1.4)
        if np.nanmin(change) > 0:
            ax.set_yscale("log")
    ax.set_ylabel(label, **style.text_options())
    ax.set_xlabel("iteration", **style.text_options())
    style_axes(ax)
    if ax.get_yscale() == "linear":
        ax.ticklabel_format(axis="y", useOffset=False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _draw_objective(ax: Axes, iterations: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """Draw a line per EM run: EM is monotone, so a decrease means that the objective changed."""
    breaks = np.flatnonzero(np.diff(values) < -1e-9 * np.abs(values[:-1])) + 1
    for x, y in zip(np.split(iterations, breaks), np.split(values, breaks), strict=True):
        ax.plot(x, y, color=style.BLUE, linewidth=1.8, marker="o", markersize=2.5)
    for first in iterations[breaks]:
        ax.axvline(first - 0.5, color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
    if len(breaks):
        title = "dotted line: change of penalty or latent distribution"
        ax.set_title(title, loc="left", **style.text_options())
