"""Plots of criteria: those for the number of latents, and the objective by iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.plotting import figure as frame
from hidag.plotting import style
from hidag.results import as_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hidag.model_selection.selection import Selection
    from hidag.results import AnyFit

#: Inches.
SIZE, TRACE_SIZE = (9.6, 3.1), (5.6, 3.0)
#: Eigenvalues drawn beyond the largest recommendation.
_MORE_EIGENVALUES = 4
#: Factor by which the logarithmic axis extends above the criteria, to leave room for the legend.
_LEGEND_ROOM = 30.0

Rows = Sequence[dict[str, float | int | None]]


def plot_selection(
    selection: Selection, figure: Figure | None = None, *, marked: int | None = None
) -> list[Axes]:
    """Plot the criteria of a selection by the number of latents, and return the panels.

    The panels are: eigenvalues with those of permuted columns (parallel analysis); factor BIC, BIC
    and EBIC as differences from their minimum; held-out log-likelihood per row as difference from
    its maximum, with standard errors, if there was cross-validation. A vertical line marks one
    number.

    Parameters
    ----------
    selection : Selection, from `hidag.select`
    figure : empty matplotlib Figure, optional
    marked : int, optional, the number to mark; the recommended one by default
    """
    if figure is None:
        frame.require_matplotlib()
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=SIZE)
    rows = selection.rows()
    cross_validated = bool(np.isfinite(_column(rows, "held_out")).any())
    figure.set_layout_engine("constrained")
    panels = list(figure.subplots(1, 3 if cross_validated else 2, squeeze=False)[0])
    _draw_eigenvalues(panels[0], selection)
    _draw_criteria(panels[1], rows)
    if cross_validated:
        best = _best_rows(rows, "held_out_behind")
        names = ("latents", "held_out_behind", "held_out_error")
        x, behind, error = (_column(best, name) for name in names)
        panels[2].errorbar(x, -behind, yerr=error, capsize=3.0, **_line(style.BLUE))
        frame.label_axes(panels[2], title="held-out log-likelihood per row, minus maximum")
    chosen = selection.recommended if marked is None else marked
    for ax in panels:
        ax.axvline(chosen, color=style.FAINT, linewidth=5.0, alpha=0.3, zorder=0)
        frame.label_axes(ax, "number of latents")
        ax.xaxis.get_major_locator().set_params(integer=True)
        frame.style_axes(ax)
    return panels


def _column(rows: Rows, name: str) -> np.ndarray:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)


def _best_rows(rows: Rows, name: str) -> Rows:
    """Return the row with the lowest value for each number of latents that has one."""
    best: dict[float, int] = {}
    numbers, values = _column(rows, "latents"), _column(rows, name)
    for i in np.flatnonzero(np.isfinite(values)).tolist():
        if values[i] < values[best.setdefault(numbers[i], i)]:
            best[numbers[i]] = i
    return [rows[i] for i in best.values()]


def _line(color: str, **options: Any) -> dict[str, Any]:
    return {"color": color, "marker": "o", "markersize": 4.0, "linewidth": 1.4, **options}


def _draw_eigenvalues(ax: Axes, selection: Selection) -> None:
    count = selection.count
    last = max(selection.recommended, *selection.votes.values()) + _MORE_EIGENVALUES
    drawn = slice(0, min(last, count.largest))
    numbers = np.arange(1, count.largest + 1)[drawn]
    ax.plot(numbers, count.eigenvalues[drawn], label="observed", **_line(style.BLUE))
    dashed = _line(style.VERMILION, marker="", linestyle=(0, (4, 2)))
    ax.plot(numbers, count.noise[drawn], label="columns permuted", **dashed)
    frame.label_axes(ax, title="eigenvalues of the shared variance")
    frame.add_legend(ax, loc="best")


def _draw_criteria(ax: Axes, rows: Rows) -> None:
    for name, label, color, marker, dashes in (
        ("factor_bic", "BIC of factor analysis", style.FAINT, "s", (0, (1, 1.5))),
        ("ebic", "EBIC", style.VERMILION, "^", (0, (4, 2))),
        ("bic", "BIC", style.BLUE, "o", "-"),
    ):
        best = _best_rows(rows, name)
        if best:
            values = _column(best, name)
            options = _line(color, marker=marker, linestyle=dashes, label=label)
            ax.plot(_column(best, "latents"), values - values.min(), **options)
    # The minimum is zero: linear near it, logarithmic above.
    ax.set_yscale("symlog", linthresh=10.0)
    ax.set_ylim(bottom=-2.0, top=_LEGEND_ROOM * max(ax.get_ylim()[1], 10.0))
    frame.label_axes(ax, title="information criteria, minus minimum")
    if ax.get_legend_handles_labels()[0]:
        frame.add_legend(ax, loc="upper right")


def plot_trace(result: AnyFit, ax: Axes | None = None) -> Axes:
    """Plot the convergence of a fit, and return the axes.

    Exact EM evaluates its objective in every iteration. Stochastic EM does not; the largest change
    of a coefficient is drawn instead.

    Parameters
    ----------
    result : FitResult or DCRL
    ax : matplotlib Axes, optional
    """
    fitted = as_result(result)
    ax = ax or frame.new_axes(TRACE_SIZE)

    from matplotlib.ticker import MaxNLocator

    objective, change = np.asarray(fitted.trace, dtype=np.float64).reshape(-1, 2).T
    iterations = np.arange(1, len(objective) + 1)
    known = np.isfinite(objective)
    label = ""
    if known.any():
        label = "penalised log-likelihood"
        _draw_trace(ax, iterations[known], objective[known])
        # Starts on a subsample have objectives on another scale.
        ends = [(start.n_iter, start.objective) for start in fitted.starts if start.n_rows == 0]
        if ends:
            x, y = zip(*ends, strict=True)
            text = f"final value of each start ({len(ends)})"
            frame.draw_dots(ax, x, y, 4.5, style.PAPER, edge=style.VERMILION, label=text)
            # Below the axis, where it cannot cover a curve.
            anchor: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (1.0, -0.11)}
            frame.add_legend(ax, borderaxespad=0.0, handletextpad=0.1, **anchor)
    elif np.isfinite(change).any():
        label = "largest change of a coefficient"
        ax.plot(iterations, change, color=style.BLUE, linewidth=1.4)
        if np.nanmin(change) > 0:
            ax.set_yscale("log")
    frame.label_axes(ax, "iteration", label)
    frame.style_axes(ax)
    if ax.get_yscale() == "linear":
        ax.ticklabel_format(axis="y", useOffset=False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _draw_trace(ax: Axes, iterations: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """Draw a line per EM run: EM is monotone, so a decrease means that the objective changed."""
    breaks = np.flatnonzero(np.diff(values) < -1e-9 * np.abs(values[:-1])) + 1
    for x, y in zip(np.split(iterations, breaks), np.split(values, breaks), strict=True):
        ax.plot(x, y, color=style.BLUE, linewidth=1.8, marker="o", markersize=2.5)
    for first in iterations[breaks]:
        ax.axvline(first - 0.5, color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
    if len(breaks):
        frame.label_axes(ax, title="dotted line: change of penalty or latent distribution")
