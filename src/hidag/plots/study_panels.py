"""Rows and columns of panels in which a study's lines run over N."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from hidag.plots import style
from hidag.plots.canvas import Size
from hidag.plots.study_lines import Line
from hidag.studies import Estimate, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches.
_PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT, _LEFT, _NARROWEST = 2.2, 1.7, 1.25, 0.5, 5.2
#: Lines that a legend puts side by side.
_LEGEND_COLUMNS = 4
#: Lines of a panel are moved apart by this factor of N, or those that agree would hide each other.
_APART = 1.03


def panels_size(n_rows: int, n_columns: int) -> Size:
    """Return the inches of a figure with so many panels and a legend below."""
    return (
        max(_LEFT + _PANEL_WIDTH * n_columns, _NARROWEST),
        _LEGEND_HEIGHT + _PANEL_HEIGHT * n_rows,
    )


def make_panels(figure: Figure, n_rows: int, n_columns: int, title: str) -> list[list[Axes]]:
    """Return rows of empty panels under a title."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06))
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    figure.suptitle(title, fontsize=style.FONT_SIZE, color=style.INK)
    return [list(row) for row in grid]


def name_row(row: Sequence[Axes], name: str) -> None:
    """Write what a row of panels is about at its left; the others share its scale."""
    row[0].set_ylabel(name, fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    for ax in row[1:]:
        ax.tick_params(labelleft=False)


def draw_lines(
    ax: Axes, summaries: Sequence[Summary], lines: Sequence[Line], drawn: dict[str, Any]
) -> list[float]:
    """Draw lines against N; return the largest value of each, and remember them for the legend."""
    tops = []
    for place, line in enumerate(lines):
        points = _points(summaries, line)
        shift = _APART ** (place - (len(lines) - 1) / 2)
        if not points:
            continue
        look = line.look
        handle = ax.errorbar(
            [n * shift for n, _ in points],
            [value.mean for _, value in points],
            yerr=[value.error if isfinite(value.error) else 0.0 for _, value in points],
            color=look.colour,
            marker=look.marker,
            linestyle=look.dashes,
            linewidth=1.3,
            markersize=4.5,
            markerfacecolor=look.colour if look.filled else style.PAPER,
            elinewidth=0.8,
            capsize=1.5,
        )
        drawn.setdefault(line.label, handle)
        tops.append(
            max(value.mean + (value.error if isfinite(value.error) else 0.0) for _, value in points)
        )
    _scale_rows(ax, sorted({summary.cell.n for summary in summaries}))
    return tops


def _points(summaries: Sequence[Summary], line: Line) -> list[tuple[int, Estimate]]:
    found: dict[int, Estimate] = {}
    for summary in summaries:
        value = line.value(summary)
        if value is not None and isfinite(value.mean):
            found.setdefault(summary.cell.n, value)
    return sorted(found.items(), key=lambda point: point[0])


def _scale_rows(ax: Axes, sizes: Sequence[int]) -> None:
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    ax.set_xticks(sizes, [_shown_size(n) for n in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    if sizes:
        ax.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
    ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(style.FAINT)
    ax.yaxis.grid(True, color=style.HAIR, linewidth=0.6)
    ax.set_axisbelow(True)


def scale_distances(ax: Axes, highest: float, *, stretched: bool) -> None:
    """Scale an axis of distances from zero; stretched, so that 0.1 and 20 can both be read."""
    from matplotlib.ticker import FixedLocator, NullLocator

    if not stretched:
        ax.set_ylim(-0.04 * max(highest, 1.0), 1.08 * max(highest, 1.0))
        return
    # Linear up to 1, logarithmic beyond.
    ax.set_yscale("symlog", linthresh=1.0, linscale=1.0)
    ax.set_ylim(-0.06, 1.3 * highest)
    ax.yaxis.set_major_locator(
        FixedLocator([t for t in (0, 0.5, 1, 3, 10, 30, 100) if t < 1.3 * highest])
    )
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_locator(NullLocator())


def finish_panels(
    figure: Figure,
    panels: Sequence[Sequence[Axes]],
    columns: Sequence[str],
    drawn: dict[str, Any],
) -> None:
    """Name the columns and N, and put the legend of all that was drawn below."""
    for ax, name in zip(panels[0], columns, strict=True):
        ax.set_title(name, fontsize=style.FONT_SIZE, color=style.INK)
    for row in panels[:-1]:
        for ax in row:
            ax.tick_params(labelbottom=False)
    for ax in panels[-1]:
        ax.set_xlabel("N", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    figure.legend(
        list(drawn.values()),
        list(drawn),
        loc="outside lower center",
        ncols=min(_LEGEND_COLUMNS, max(len(drawn), 1), max(2, len(panels[0]) + 1)),
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
        handlelength=3.2,
    )


def _shown_size(n: int) -> str:
    return f"{n / 1000:g}k" if n >= 1000 else str(n)
