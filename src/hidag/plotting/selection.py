"""Plot of the criteria for the number of latents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.plotting import style
from hidag.plotting.figure import add_legend, require_matplotlib, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hidag.model_selection.selection import Selection


#: Inches.
SIZE = (9.6, 3.1)
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
    its maximum, with standard errors. A vertical line marks the recommended number.

    Parameters
    ----------
    selection : Selection
    figure : matplotlib Figure, optional
        Empty. Default: a new pyplot figure.
    marked : int, optional
        The number to mark. Default: the recommended one.

    Returns
    -------
    list of matplotlib Axes
        Two, or three with cross-validation.
    """
    if figure is None:
        require_matplotlib()
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
        panels[2].errorbar(
            _column(best, "latents"),
            -_column(best, "held_out_behind"),
            yerr=_column(best, "held_out_error"),
            capsize=3.0,
            **_line(style.BLUE),
        )
        _set_title(panels[2], "held-out log-likelihood per row, minus maximum")
    chosen = selection.recommended if marked is None else marked
    for ax in panels:
        ax.axvline(chosen, color=style.FAINT, linewidth=5.0, alpha=0.3, zorder=0)
        ax.set_xlabel("number of latents", **style.text_options())
        ax.xaxis.get_major_locator().set_params(integer=True)
        style_axes(ax)
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


def _set_title(ax: Axes, title: str) -> None:
    ax.set_title(title, loc="left", **style.text_options())


def _draw_eigenvalues(ax: Axes, selection: Selection) -> None:
    count = selection.count
    last = max(selection.recommended, *selection.votes.values()) + _MORE_EIGENVALUES
    drawn = slice(0, min(last, count.largest))
    numbers = np.arange(1, count.largest + 1)[drawn]
    ax.plot(numbers, count.eigenvalues[drawn], label="observed", **_line(style.BLUE))
    ax.plot(
        numbers,
        count.noise[drawn],
        label="columns permuted",
        **_line(style.VERMILION, marker="", linestyle=(0, (4, 2))),
    )
    _set_title(ax, "eigenvalues of the shared variance")
    add_legend(ax, loc="best")


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
    _set_title(ax, "information criteria, minus minimum")
    if ax.get_legend_handles_labels()[0]:
        add_legend(ax, loc="upper right")
