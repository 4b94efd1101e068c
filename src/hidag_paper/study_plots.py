"""Rows and columns of panels in which a study's lines run over N."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import isfinite
from typing import TYPE_CHECKING, Any

from hidag.plotting import style
from hidag.plotting.figure import Size
from hidag_paper.studies.cells import PAPER_ITEMS, Cell
from hidag_paper.studies.methods import FITTED_METHODS, OURS, RULES
from hidag_paper.studies.summary import Estimate, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- What a study's lines show and how they look, so that a method looks alike in every


@dataclass(frozen=True)
class Look:
    """Colour, marker and dashes of a line; any two of the three tell lines apart without colour."""

    colour: str
    marker: str
    dashes: Any = "solid"
    filled: bool = True


_DASHED, _DOTTED, _LONG = (0, (4, 2)), (0, (1, 1.6)), (0, (7, 2, 1, 2))
_OURS = Look(style.BLUE, "o")
_PUBLISHED = Look(style.INK, "s", _DASHED, filled=False)
_TRUTH_STARTED = Look(style.VERMILION, "^", _DOTTED)
_TRUE_LATENTS = Look(style.FAINT, "x", _LONG)
#: For other methods, and for rules, in the order in which they come.
_OTHERS = (
    Look(style.VERMILION, "D", _LONG),
    Look(style.ORANGE, "v", _DASHED),
    Look(style.PURPLE, "P", _DOTTED),
    Look(style.INK, "X"),
    Look(style.FAINT, "^", _DASHED),
)
_RULES = {
    "sqrt N": Look(style.PURPLE, "v", _DOTTED),
    "N": Look(style.INK, "s"),
    "2N": Look(style.ORANGE, "D", _DASHED),
    "3N": Look(style.VERMILION, "^", _LONG),
    "N log N": Look(style.FAINT, "D", _LONG),
    "N^1.5": Look(style.ORANGE, "^", _DASHED),
    "N^2": Look(style.VERMILION, "X", _DOTTED),
    "calibrated": _OURS,
}
#: Rules as formulas.
_FORMULAS = {
    "sqrt N": r"$f(N) = \sqrt{N}$",
    "N": "$f(N) = N$",
    "2N": "$f(N) = 2N$",
    "3N": "$f(N) = 3N$",
    "N log N": r"$f(N) = N\,\log N$",
    "N^1.5": "$f(N) = N^{1.5}$",
    "N^2": "$f(N) = N^2$",
}


@dataclass(frozen=True)
class Line:
    """A line of a legend: how it looks, and what of each summary it shows."""

    label: str
    look: Look
    #: What a summary gives the line, None where the line does not pass.
    value: Callable[[Summary], Estimate | None]


def lines_of_methods(summaries: Sequence[Summary]) -> list[Line]:
    """Return the lines of distances: ours, what bounds it, other methods, published means."""

    def of(method: str) -> Callable[[Summary], Estimate | None]:
        return lambda summary: summary.shd if summary.method == method else None

    def ours(name: str) -> Callable[[Summary], Estimate | None]:
        return lambda summary: getattr(summary, name) if summary.method == OURS else None

    others = [m for m in dict.fromkeys(s.method for s in summaries) if m != OURS]
    return [
        Line("ours", _OURS, of(OURS)),
        Line("published", _PUBLISHED, _published_of(OURS)),
        Line("started at the truth", _TRUTH_STARTED, ours("truth_started")),
        Line("graph on true latents", _TRUE_LATENTS, ours("true_latents")),
        *(Line(m, _OTHERS[i % len(_OTHERS)], of(m)) for i, m in enumerate(others)),
        *(
            Line(f"{m}, published", _faded(i), _published_of(m))
            for i, m in enumerate(others)
            if m not in FITTED_METHODS
        ),
    ]


def lines_of_rules(summaries: Sequence[Summary]) -> list[Line]:
    """Return the lines of distances by the rule for f(N), ours and the published ones."""

    def of(rule: str | None) -> Callable[[Summary], Estimate | None]:
        return lambda summary: summary.shd if summary.rule == rule else None

    def published(rule: str | None) -> Callable[[Summary], Estimate | None]:
        return lambda s: Estimate(s.published) if s.rule == rule else None

    rules = _rules_of(summaries)
    return [
        *(Line(_FORMULAS.get(rule, rule), _RULES[rule], of(rule)) for rule in rules),
        *(
            Line(
                f"published, {_FORMULAS[rule]}",
                Look(style.FAINT, _RULES[rule].marker, _RULES[rule].dashes, filled=False),
                published(rule),
            )
            for rule in rules
            if rule != "calibrated"
        ),
    ]


def _published_of(method: str) -> Callable[[Summary], Estimate | None]:
    return lambda s: Estimate(s.published) if s.method == method else None


def _faded(place: int) -> Look:
    look = _OTHERS[place % len(_OTHERS)]
    return Look(style.FAINT, look.marker, look.dashes, filled=False)


def lines_of_shares(
    summaries: Sequence[Summary], methods: Sequence[str]
) -> tuple[list[Line], list[Line]]:
    """Return the lines of CPDAGs found, by rule, and those of Q found, by method."""
    rules = _rules_of(summaries)

    def rate_of(rule: str) -> Callable[[Summary], Estimate | None]:
        return lambda summary: summary.graph_rate if summary.rule == rule else None

    def q_of(method: str) -> Callable[[Summary], Estimate | None]:
        return lambda s: s.q_rate if (s.method, s.rule) == (method, rules[0]) else None

    by_rule = [
        *(Line(_FORMULAS.get(r, r), _RULES[r], rate_of(r)) for r in rules),
        Line("graph on true latents", _TRUE_LATENTS, lambda s: s.true_latents_rate),
    ]
    of_q = [
        Line(f"Q, {method}", look, q_of(method))
        for method, look in zip(methods, cycle((_PUBLISHED, _OURS, *_OTHERS)), strict=False)
    ]
    return by_rule, of_q


def _rules_of(summaries: Sequence[Summary]) -> list[str]:
    return [rule for rule in RULES if any(summary.rule == rule for summary in summaries)]


# ---

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


# --- A study as pictures: distance to the truth, or how often there is none, against N

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
