"""What a study's lines show and how they look, so that a method looks alike in every picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from hidag.plots import style
from hidag.studies import FITTED_METHODS, OURS, RULES, Estimate, Summary


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
