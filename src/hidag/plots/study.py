"""A study as pictures: distance to the truth, or how often there is none, against N."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hidag.plots.canvas import Size
from hidag.plots.study_lines import Line, lines_of_methods, lines_of_rules, lines_of_shares
from hidag.plots.study_panels import (
    draw_lines,
    finish_panels,
    make_panels,
    name_row,
    panels_size,
    scale_distances,
)
from hidag.studies import OURS, Summary
from hidag.studies.cells import PAPER_ITEMS, Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: From this many times the smallest of a panel's largest distances, axes are stretched near zero.
_WIDE_RANGE = 8.0


@dataclass(frozen=True)
class StudyPicture:
    """A picture to be drawn.

    Attributes
    ----------
    name : str
        Of its files, without an ending.
    draw : callable
        Draws into the empty figure it is given.
    size : (float, float)
        In inches.
    """

    name: str
    draw: Callable[[Figure], object]
    size: Size


def study_pictures(summaries: Sequence[Summary], shows: str) -> list[StudyPicture]:
    """Return the pictures of a study.

    Parameters
    ----------
    summaries : sequence of Summary
    shows : {"distance", "rate"}
        Mean SHD against N, a picture for each Q (and for each method where there are several rules
        for f(N)); or the shares of tables whose CPDAG and whose Q are found, in one picture.
    """
    if not summaries:
        return []
    if shows == "rate":
        return [_rates(summaries)]
    several = len({summary.rule for summary in summaries if summary.method == OURS}) > 1
    out = []
    for q in dict.fromkeys(summary.cell.q for summary in summaries):
        chosen = [summary for summary in summaries if summary.cell.q == q]
        if not several:
            lines = lines_of_methods(chosen)
            out.append(_distances(chosen, lines, f"shd-{q}", f"{q}: mean SHD"))
            continue
        for method in dict.fromkeys(summary.method for summary in chosen):
            mine = [summary for summary in chosen if summary.method == method]
            title = f"{q}, {method}: mean SHD by f(N)"
            out.append(_distances(mine, lines_of_rules(mine), f"shd-{q}-{method}", title))
    return out


def _distances(
    summaries: Sequence[Summary], lines: Sequence[Line], name: str, title: str
) -> StudyPicture:
    """Return panels of distances: a column for each graph, a row for each kind of items."""
    columns = list(dict.fromkeys(summary.cell.model for summary in summaries))
    rows = list(dict.fromkeys(_kind(summary.cell) for summary in summaries))

    def draw(figure: Figure) -> None:
        panels = make_panels(figure, len(rows), len(columns), title)
        drawn: dict[str, Any] = {}
        for i, kind in enumerate(rows):
            tops = []
            for k, model in enumerate(columns):
                here = [s for s in summaries if (_kind(s.cell), s.cell.model) == (kind, model)]
                tops += draw_lines(panels[i][k], here, lines, drawn)
            highest, lowest = max(tops, default=1.0), min(tops, default=1.0)
            stretched = highest > _WIDE_RANGE * max(lowest, 0.5)
            for ax in panels[i]:
                scale_distances(ax, highest, stretched=stretched)
            name_row(panels[i], f"{kind}\nSHD" + (", log above 1" if stretched else ""))
        finish_panels(figure, panels, columns, drawn)

    return StudyPicture(name, draw, panels_size(len(rows), len(columns)))


def _rates(summaries: Sequence[Summary]) -> StudyPicture:
    """Return panels of shares: a row of CPDAGs for each method, and one of Q for all of them."""
    methods = list(dict.fromkeys(summary.method for summary in summaries))
    columns = list(dict.fromkeys(_place(summary.cell) for summary in summaries))
    by_rule, of_q = lines_of_shares(summaries, methods)

    def draw(figure: Figure) -> None:
        panels = make_panels(
            figure, len(methods) + 1, len(columns), "share of tables without error"
        )
        drawn: dict[str, Any] = {}
        for k, place in enumerate(columns):
            here = [summary for summary in summaries if _place(summary.cell) == place]
            for i, method in enumerate(methods):
                mine = [summary for summary in here if summary.method == method]
                draw_lines(panels[i][k], mine, by_rule, drawn)
            draw_lines(panels[-1][k], here, of_q, drawn)
        for row, name in zip(panels, [*(f"{m}\nCPDAG" for m in methods), "Q"], strict=True):
            for ax in row:
                ax.set_ylim(-0.06, 1.06)
                ax.set_yticks([0.0, 0.5, 1.0])
            name_row(row, name)
        finish_panels(figure, panels, columns, drawn)

    return StudyPicture("recovery", draw, panels_size(len(methods) + 1, len(columns)))


def _kind(cell: Cell) -> str:
    return cell.family if cell.items == PAPER_ITEMS else f"{cell.family}, {cell.items}"


def _place(cell: Cell) -> str:
    place = f"{cell.model}, {_kind(cell)}"
    return place if cell.q == "Q1" else f"{place}, {cell.q}"
