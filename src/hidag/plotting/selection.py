"""How many latents: the criteria side by side over the number of latents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from hidag.plotting import style
from hidag.plotting.figure import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hidag.model_selection.selection import Selection


#: Inches; panels lie beside each other.
SIZE = (9.6, 3.1)
#: Numbers of latents beyond the recommended one that are drawn though nothing was fitted there.
BEYOND = 4
#: By how much the logarithmic scale of the criteria reaches beyond the largest.
LEGEND_ROOM = 30.0


def plot_selection(
    selection: Selection, figure: Figure | None = None, *, marked: int | None = None
) -> list[Axes]:
    """Draw the criteria of a selection, and return the panels.

    Eigenvalues against those of shuffled tables; factor BIC, BIC and EBIC less their best;
    held-out log-likelihood per row less its best, with standard errors. A line marks the number
    that is recommended.

    Parameters
    ----------
    selection : Selection
    figure : matplotlib Figure, optional
        Empty; a new pyplot figure unless given.
    marked : int, optional
        Another number to mark than the recommended one.

    Returns
    -------
    list of matplotlib Axes
        Two, or three with a cross-validation.
    """
    if figure is None:
        require_matplotlib()
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=SIZE)
    rows = selection.rows()
    crossed = any(np.isfinite(_numbers(rows, "held_out")))
    figure.set_layout_engine("constrained")
    panels = list(figure.subplots(1, 3 if crossed else 2, squeeze=False)[0])
    _draw_eigenvalues(panels[0], selection)
    _draw_criteria(panels[1], rows)
    if crossed:
        _draw_held_out(panels[2], rows)
    chosen = selection.recommended if marked is None else marked
    for ax in panels:
        ax.axvline(chosen, color=style.FAINT, linewidth=5.0, alpha=0.3, zorder=0)
        ax.set_xlabel("number of latents", fontsize=style.SMALL_FONT_SIZE)
        ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(style.FAINT)
        ax.yaxis.grid(True, color=style.HAIR, linewidth=0.6)
        ax.set_axisbelow(True)
    return panels


def _numbers(rows: Sequence[dict[str, float | int | None]], name: str) -> np.ndarray:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)


def _best_rows(
    rows: Sequence[dict[str, float | int | None]], name: str
) -> list[dict[str, float | int | None]]:
    """Return the row with the lowest value for each number of latents that has any."""
    best: dict[float, int] = {}
    numbers, values = _numbers(rows, "latents"), _numbers(rows, name)
    for place in range(len(rows)):
        now = best.get(numbers[place])
        if np.isfinite(values[place]) and (now is None or values[place] < values[now]):
            best[numbers[place]] = place
    return [rows[place] for place in best.values()]


def _draw_eigenvalues(ax: Axes, selection: Selection) -> None:
    count = selection.count
    last = max(selection.recommended, *selection.votes.values()) + BEYOND
    shown = slice(0, min(last, count.largest))
    numbers = np.arange(1, count.largest + 1)[shown]
    ax.plot(
        numbers,
        count.eigenvalues[shown],
        color=style.BLUE,
        marker="o",
        markersize=4.0,
        linewidth=1.4,
        label="this table",
    )
    ax.plot(
        numbers,
        count.noise[shown],
        color=style.VERMILION,
        linestyle=(0, (4, 2)),
        linewidth=1.4,
        label="shuffled columns",
    )
    ax.set_title("eigenvalues of shared variance", fontsize=style.SMALL_FONT_SIZE, loc="left")
    _legend(ax)


def _draw_criteria(ax: Axes, rows: Sequence[dict[str, float | int | None]]) -> None:
    for name, label, colour, marker, line in (
        ("factor_bic", "factor BIC, no fit", style.FAINT, "s", (0, (1, 1.5))),
        ("ebic", "EBIC of fits", style.VERMILION, "^", (0, (4, 2))),
        ("bic", "BIC of fits", style.BLUE, "o", "-"),
    ):
        best = _best_rows(rows, name)
        if best:
            values = _numbers(best, name)
            ax.plot(
                _numbers(best, "latents"),
                values - values.min(),
                color=colour,
                marker=marker,
                markersize=4.0,
                linewidth=1.4,
                linestyle=line,
                label=label,
            )
    # The best is zero: a scale that is linear near it and logarithmic beyond shows both ends.
    ax.set_yscale("symlog", linthresh=10.0)
    # Three lines of legend find no free corner: they get room above.
    ax.set_ylim(bottom=-2.0, top=LEGEND_ROOM * max(ax.get_ylim()[1], 10.0))
    ax.set_title("information criteria less their best", fontsize=style.SMALL_FONT_SIZE, loc="left")
    _legend(ax, "upper right")


def _draw_held_out(ax: Axes, rows: Sequence[dict[str, float | int | None]]) -> None:
    best = _best_rows(rows, "held_out_behind")
    ax.errorbar(
        _numbers(best, "latents"),
        -_numbers(best, "held_out_behind"),
        yerr=_numbers(best, "held_out_error"),
        color=style.BLUE,
        marker="o",
        markersize=4.0,
        linewidth=1.4,
        capsize=3.0,
    )
    ax.set_title(
        "held-out log-likelihood per row, less its best", fontsize=style.SMALL_FONT_SIZE, loc="left"
    )


def _legend(ax: Axes, place: Literal["best", "upper right"] = "best") -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(
            loc=place,
            facecolor=style.PAPER,
            edgecolor=style.PAPER,
            framealpha=0.9,
            fontsize=style.SMALL_FONT_SIZE,
            labelcolor=style.INK,
        )
