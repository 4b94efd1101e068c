"""Figures of a study: mean distances from the truth, or shares of exact results, against N."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import isfinite
from typing import TYPE_CHECKING, Any

from hidag.plotting import style
from hidag.plotting.figure import Size, style_axes
from hidag_paper.studies.cells import PAPER_ITEMS, Cell
from hidag_paper.studies.methods import CALIBRATED, FITTED_METHODS, OURS, RULES
from hidag_paper.studies.summary import Estimate, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panels = list[list["Axes"]]


@dataclass(frozen=True)
class _Look:
    """Colour, marker and dashes of a line; two of them distinguish lines without colour."""

    color: str
    marker: str
    dashes: Any = "solid"
    filled: bool = True

    def faded(self) -> _Look:
        """Return the look of the published values of the same method."""
        return replace(self, color=style.FAINT, filled=False)


_DASHED, _DOTTED, _LONG = (0, (4, 2)), (0, (1, 1.6)), (0, (7, 2, 1, 2))
_OURS = _Look(style.BLUE, "o")
_PUBLISHED = _Look(style.INK, "s", _DASHED, filled=False)
_TRUTH_STARTED = _Look(style.VERMILION, "^", _DOTTED)
_TRUE_LATENTS = _Look(style.FAINT, "x", _LONG)
#: Of other methods, in order.
_OTHERS = (
    _Look(style.VERMILION, "D", _LONG),
    _Look(style.ORANGE, "v", _DASHED),
    _Look(style.PURPLE, "P", _DOTTED),
    _Look(style.INK, "X"),
    _Look(style.FAINT, "^", _DASHED),
)
#: Label and look of each rule for f(N).
_RULES = {
    "sqrt N": (r"$f(N) = \sqrt{N}$", _Look(style.PURPLE, "v", _DOTTED)),
    "N": ("$f(N) = N$", _Look(style.INK, "s")),
    "2N": ("$f(N) = 2N$", _Look(style.ORANGE, "D", _DASHED)),
    "3N": ("$f(N) = 3N$", _Look(style.VERMILION, "^", _LONG)),
    "N log N": (r"$f(N) = N\,\log N$", _Look(style.FAINT, "D", _LONG)),
    "N^1.5": ("$f(N) = N^{1.5}$", _Look(style.ORANGE, "^", _DASHED)),
    "N^2": ("$f(N) = N^2$", _Look(style.VERMILION, "X", _DOTTED)),
    CALIBRATED: (CALIBRATED, _OURS),
}

#: Inches.
_PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT, _LEFT, _MIN_WIDTH = 2.2, 1.7, 1.25, 0.5, 5.2
_LEGEND_COLUMNS = 4
#: Factor of N between neighbouring lines, which separates lines with equal values.
_OFFSET = 1.03
#: Ratio of the largest to the smallest maximum of the panels in a row above which the axis is
#: logarithmic.
_WIDE_RANGE = 8.0


@dataclass(frozen=True)
class _Line:
    """A line: its label, its look, and its value for each summary (None if it has none)."""

    label: str
    look: _Look
    value: Callable[[Summary], Estimate | None]


def _line(
    label: str,
    look: _Look,
    name: str,
    *,
    method: str | None = None,
    rule: str | None = None,
) -> _Line:
    """Return the line of an attribute of the summaries with a method and a rule, if given."""

    def value(summary: Summary) -> Estimate | None:
        if method not in (None, summary.method) or rule not in (None, summary.rule):
            return None
        found = getattr(summary, name)
        return found if isinstance(found, Estimate) else Estimate(found)

    return _Line(label, look, value)


def _method_lines(summaries: Sequence[Summary]) -> list[_Line]:
    """Return the lines of distances by method, with the published means and the references."""
    others = [m for m in dict.fromkeys(s.method for s in summaries) if m != OURS]
    looks = dict(zip(others, cycle(_OTHERS), strict=False))
    return [
        _line("ours", _OURS, "shd", method=OURS),
        _line("published", _PUBLISHED, "published", method=OURS),
        _line("started at the truth", _TRUTH_STARTED, "truth_started", method=OURS),
        _line("graph on true latents", _TRUE_LATENTS, "true_latents", method=OURS),
        *(_line(m, looks[m], "shd", method=m) for m in others),
        *(
            _line(f"{m}, published", looks[m].faded(), "published", method=m)
            for m in others
            if m not in FITTED_METHODS
        ),
    ]


def _present_rules(summaries: Sequence[Summary]) -> list[str]:
    return [rule for rule in RULES if any(summary.rule == rule for summary in summaries)]


def _rule_lines(summaries: Sequence[Summary]) -> list[_Line]:
    """Return the lines of distances by rule for f(N), with the published means."""
    rules = _present_rules(summaries)
    published = [
        _line(f"published, {_RULES[rule][0]}", _RULES[rule][1].faded(), "published", rule=rule)
        for rule in rules
        if rule != CALIBRATED
    ]
    return [*(_line(*_RULES[rule], "shd", rule=rule) for rule in rules), *published]


@dataclass(frozen=True)
class StudyFigure:
    """A figure to be drawn.

    Attributes
    ----------
    name : str
        Stem of its files.
    draw : callable
        Draws into the empty figure that it receives.
    size : (float, float)
        Inches.
    """

    name: str
    draw: Callable[[Figure], object]
    size: Size


def study_figures(summaries: Sequence[Summary], shows: str) -> list[StudyFigure]:
    """Return the figures of a study.

    Parameters
    ----------
    summaries : sequence of Summary
    shows : {"distance", "rate"}
        Mean SHD against N, with a figure for each Q (and each method if there are several rules for
        f(N)); or the shares of tables with the exact CPDAG and the exact Q, in one figure.
    """
    if not summaries:
        return []
    if shows == "rate":
        return [_rate_figure(summaries)]
    several = len({summary.rule for summary in summaries if summary.method == OURS}) > 1
    figures = []
    for q in dict.fromkeys(summary.cell.q for summary in summaries):
        chosen = [summary for summary in summaries if summary.cell.q == q]
        if not several:
            lines = _method_lines(chosen)
            figures.append(_distance_figure(chosen, lines, f"shd-{q}", f"{q}: mean SHD"))
            continue
        for method in dict.fromkeys(summary.method for summary in chosen):
            own = [summary for summary in chosen if summary.method == method]
            title = f"{q}, {method}: mean SHD by f(N)"
            figures.append(_distance_figure(own, _rule_lines(own), f"shd-{q}-{method}", title))
    return figures


def _distance_figure(
    summaries: Sequence[Summary], lines: Sequence[_Line], name: str, title: str
) -> StudyFigure:
    """Return panels of distances: a column for each graph, a row for each item design."""
    columns = list(dict.fromkeys(summary.cell.model for summary in summaries))
    rows = list(dict.fromkeys(_item_design(summary.cell) for summary in summaries))

    def draw(figure: Figure) -> None:
        panels = _make_panels(figure, len(rows), len(columns), title)
        handles: dict[str, Any] = {}
        for axes, kind in zip(panels, rows, strict=True):
            maxima = []
            for ax, model in zip(axes, columns, strict=True):
                here = [
                    s for s in summaries if (_item_design(s.cell), s.cell.model) == (kind, model)
                ]
                maxima += _draw_lines(ax, here, lines, handles)
            highest, lowest = max(maxima, default=1.0), min(maxima, default=1.0)
            logarithmic = highest > _WIDE_RANGE * max(lowest, 0.5)
            for ax in axes:
                _scale_distances(ax, highest, logarithmic=logarithmic)
            _label_row(axes, f"{kind}\nSHD" + (", log above 1" if logarithmic else ""))
        _finish_panels(figure, panels, columns, handles)

    return StudyFigure(name, draw, _panels_size(len(rows), len(columns)))


def _rate_figure(summaries: Sequence[Summary]) -> StudyFigure:
    """Return panels of shares: a row of CPDAGs for each method, and one of Q for all methods."""
    methods = list(dict.fromkeys(summary.method for summary in summaries))
    columns = list(dict.fromkeys(_condition(summary.cell) for summary in summaries))
    rules = _present_rules(summaries)
    by_rule = [_line(*_RULES[rule], "graph_rate", rule=rule) for rule in rules]
    by_rule.append(_line("graph on true latents", _TRUE_LATENTS, "true_latents_rate"))
    looks = cycle((_PUBLISHED, _OURS, *_OTHERS))
    by_method = [
        _line(f"Q, {method}", look, "q_rate", method=method, rule=rules[0])
        for method, look in zip(methods, looks, strict=False)
    ]

    def draw(figure: Figure) -> None:
        title = "share of tables with the exact result"
        panels = _make_panels(figure, len(methods) + 1, len(columns), title)
        handles: dict[str, Any] = {}
        for k, condition in enumerate(columns):
            here = [summary for summary in summaries if _condition(summary.cell) == condition]
            for i, method in enumerate(methods):
                own = [summary for summary in here if summary.method == method]
                _draw_lines(panels[i][k], own, by_rule, handles)
            _draw_lines(panels[-1][k], here, by_method, handles)
        for axes, name in zip(panels, [*(f"{m}\nCPDAG" for m in methods), "Q"], strict=True):
            for ax in axes:
                ax.set_ylim(-0.06, 1.06)
                ax.set_yticks([0.0, 0.5, 1.0])
            _label_row(axes, name)
        _finish_panels(figure, panels, columns, handles)

    return StudyFigure("recovery", draw, _panels_size(len(methods) + 1, len(columns)))


def _item_design(cell: Cell) -> str:
    return cell.family if cell.items == PAPER_ITEMS else f"{cell.family}, {cell.items}"


def _condition(cell: Cell) -> str:
    condition = f"{cell.model}, {_item_design(cell)}"
    return condition if cell.q == "Q1" else f"{condition}, {cell.q}"


def _panels_size(n_rows: int, n_columns: int) -> Size:
    width = max(_LEFT + _PANEL_WIDTH * n_columns, _MIN_WIDTH)
    return width, _LEGEND_HEIGHT + _PANEL_HEIGHT * n_rows


def _make_panels(figure: Figure, n_rows: int, n_columns: int, title: str) -> Panels:
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.06)
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    figure.suptitle(title, fontsize=style.FONT_SIZE, color=style.INK)
    return [list(row) for row in grid]


def _label_row(axes: Sequence[Axes], label: str) -> None:
    """Label the first panel of a row; the others share its scale."""
    axes[0].set_ylabel(label, **style.text_options())
    for ax in axes[1:]:
        ax.tick_params(labelleft=False)


def _draw_lines(
    ax: Axes, summaries: Sequence[Summary], lines: Sequence[_Line], handles: dict[str, Any]
) -> list[float]:
    """Draw lines against N, add their handles, and return the maximum of each line."""
    from matplotlib.ticker import NullLocator

    maxima = []
    for place, line in enumerate(lines):
        found: dict[int, Estimate] = {}
        for summary in summaries:
            value = line.value(summary)
            if value is not None and isfinite(value.mean):
                found.setdefault(summary.cell.n, value)
        if not found:
            continue
        sizes, look = sorted(found), line.look
        shift = _OFFSET ** (place - (len(lines) - 1) / 2)
        means = [found[n].mean for n in sizes]
        errors = [found[n].error if isfinite(found[n].error) else 0.0 for n in sizes]
        handle = ax.errorbar(
            [n * shift for n in sizes],
            means,
            yerr=errors,
            color=look.color,
            marker=look.marker,
            linestyle=look.dashes,
            linewidth=1.3,
            markersize=4.5,
            markerfacecolor=look.color if look.filled else style.PAPER,
            elinewidth=0.8,
            capsize=1.5,
        )
        handles.setdefault(line.label, handle)
        maxima.append(max(mean + error for mean, error in zip(means, errors, strict=True)))
    sizes = sorted({summary.cell.n for summary in summaries})
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n / 1000:g}k" if n >= 1000 else str(n) for n in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    if sizes:
        ax.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
    style_axes(ax)
    return maxima


def _scale_distances(ax: Axes, highest: float, *, logarithmic: bool) -> None:
    """Scale an axis of distances from zero, logarithmic above 1 if they have a wide range."""
    from matplotlib.ticker import FixedLocator, NullLocator

    if not logarithmic:
        ax.set_ylim(-0.04 * max(highest, 1.0), 1.08 * max(highest, 1.0))
        return
    ax.set_yscale("symlog", linthresh=1.0, linscale=1.0)
    ax.set_ylim(-0.06, 1.3 * highest)
    ticks = [t for t in (0, 0.5, 1, 3, 10, 30, 100) if t < 1.3 * highest]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_locator(NullLocator())


def _finish_panels(
    figure: Figure, panels: Panels, columns: Sequence[str], handles: dict[str, Any]
) -> None:
    """Label the columns and the N axis, and add a common legend."""
    for ax, name in zip(panels[0], columns, strict=True):
        ax.set_title(name, fontsize=style.FONT_SIZE, color=style.INK)
    for axes in panels[:-1]:
        for ax in axes:
            ax.tick_params(labelbottom=False)
    for ax in panels[-1]:
        ax.set_xlabel("N", **style.text_options())
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(_LEGEND_COLUMNS, max(len(handles), 1), max(2, len(panels[0]) + 1)),
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
        handlelength=3.2,
    )
