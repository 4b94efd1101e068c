"""`hidag whatif`: questions to a saved fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hidag.causal.causal_effects import average_effects
from hidag.causal.exports import EXPORTS, items_without_table
from hidag.causal.interventions import WhatIfResult, what_if
from hidag.causal.item_outcomes import (
    MEAN,
    effect_sizes,
    outcome_standard_deviations,
    standardise_change,
)
from hidag.cli.commands.inspection import load_result
from hidag.cli.console import collected_warnings, columns, say, show_warning
from hidag.cli.messages import render
from hidag.cli.options import parse_pairs
from hidag.cli.output_files import check_file, jsonable, number, write_csv
from hidag.cli.result_text import cut_apart
from hidag.data.cells import BOOLEAN_WORDS
from hidag.exceptions import Advice, FileError, SettingError
from hidag.formatting import format_number, format_range, format_row
from hidag.identifiability.findings import join_names
from hidag.inference.asymptotic_draws import try_draw_asymptotic
from hidag.measurement.families import item_type
from hidag.results import FitResult

_SHOWN_ROWS = 20
#: Changes below this are not worth a line: of levels, and of items in their standard deviations,
#: as what is small in mol is large in nanograms.
_NO_CHANGE = 5e-5
#: Standard deviations from the mean at which no table of any size has a value.
_FAR = 10.0
#: Standard deviations of items by name and what is told of them.
_Spreads = Mapping[tuple[str, str], float]


def run_whatif(
    path: Path,
    do: Sequence[str],
    given: Sequence[str],
    *,
    effects: bool,
    draws: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Carry out `hidag whatif`."""
    if not do and not given and not effects:
        raise SettingError(
            "say what is set or known: --do Z1=1, --given Z2=0, or --effects for a table of all "
            "average effects"
        )
    if effects and (do or given):
        raise SettingError("--effects asks for all average effects: leave --do and --given out")
    check_file(out, [path])
    result = load_result(path)
    if effects:
        _run_effects(result, draws, out, as_json)
        return
    names = {*result.latent_names, *result.item_names}
    typed = parse_pairs(given, "--given", names)
    known = _in_numbers(typed, result)
    answer = what_if(result, parse_pairs(do, "--do", names), known)
    rows = answer.rows()
    if out is not None:
        _write(out, ["kind", "name", "what", "before", "low", "high"], rows)
    if as_json:
        asked: dict[str, Any] = {"do": answer.do, "given": answer.given}
        if answer.unidentified:
            asked["ruled_out"] = list(answer.ruled_out)
        say(json.dumps(jsonable({**asked, "rows": rows}), indent=1))
        return
    spreads = outcome_standard_deviations(result) if do or known else {}
    for sentence in (*_about(answer, typed), *_far_outside(answer, result, spreads)):
        say(sentence)
    for kind, heading in (("latent", "latents"), ("item", "items")):
        chosen = [row for row in rows if row["kind"] == kind]
        if answer.do:
            _say_changes(chosen, heading, tuple(answer.do), spreads)
        else:
            _say_expected(chosen, heading)
    if out is not None:
        say(f"\nwrote {len(rows)} rows into {out}")


def _in_numbers(given: Mapping[str, str], result: FitResult) -> dict[str, str]:
    """Return what is known, words and yes and no of items read as a table with them is."""
    family = dict(zip(result.item_names, result.families, strict=True))
    out = {}
    for name, value in given.items():
        words = [word.casefold() for word in result.answer_words.get(name, ())]
        if value.casefold() in words:
            out[name] = f"{words.index(value.casefold())}"
            continue
        truth = BOOLEAN_WORDS.get(value.lower())
        yes_or_no = (
            name not in result.latent_names and name in family and item_type(family[name]).is_binary
        )
        out[name] = f"{truth:g}" if truth is not None and yes_or_no else value
    return out


def _about(answer: WhatIfResult, typed: Mapping[str, str]) -> list[str]:
    """Return what was asked and how the answer is to be read; what is known as it was typed."""
    out = []
    if answer.do:
        words = ", ".join(f"{name} = {level}" for name, level in answer.do.items())
        out.append(f"what follows if {words} is brought about in everybody")
    if answer.given:
        words = ", ".join(f"{name} = {typed[name]}" for name in answer.given)
        begin = "among those who then have" if answer.do else "what is to be expected given"
        out.append(f"{begin} {words}")
    if answer.do and not answer.determined:
        more = "" if answer.complete else " or more"
        out.append(
            f"the graph leaves {answer.n_parent_sets}{more} possibilities for the causes of what "
            "is set: from - to is the least and the most over them"
        )
    if not answer.exact:
        out.append("the graph is too dense for exact numbers: they are from 200,000 draws")
    note = answer.unidentified_note()
    return out if note is None else [*out, str(note)]


def _far_outside(answer: WhatIfResult, result: FitResult, spreads: _Spreads) -> list[str]:
    """Return which given values of items no row of a table like this one would have."""
    expected = {row["name"]: row["before"] for row in what_if(result).rows() if row["what"] == MEAN}
    out = []
    family = dict(zip(result.item_names, result.families, strict=True))
    for name, value in answer.given.items():
        spread = spreads.get((name, MEAN), 0.0)
        taken = float(value)
        if name in family:
            # Any time beyond the limit of a censored item is as good as the limit.
            taken = float(item_type(family[name]).as_observed(np.array([taken]))[0])
        away = standardise_change(abs(taken - expected.get(name, 0.0)), spread) if spread else 0.0
        if away > _FAR and name not in result.latent_names:
            out.append(
                f"{name} = {value} is far outside of what the fit expects, {away:.3g} standard "
                "deviations from the mean: what follows rests on nothing that was seen"
            )
    return out


def _say_changes(
    rows: list[dict[str, Any]], heading: str, do: Sequence[str], spreads: _Spreads
) -> None:
    """Print numbers before and after: what is set, then the largest changes."""
    untold = [row for row in rows if "reason" in row]
    # Items without a number after were named; latents have a line each.
    told = [row for row in rows if "reason" not in row]
    moved = {id(row): _moved(row, spreads) for row in told}
    changed = [row for row in told if moved[id(row)] > _NO_CHANGE and row["name"] not in do]
    changed.sort(key=lambda row: -moved[id(row)])
    own = [row for row in told if row["kind"] == "latent" and row["name"] in do]
    chosen = [*own, *(untold if heading == "latents" else ()), *changed]
    say()
    if not chosen:
        say(f"{heading}: {'no other number' if untold else 'nothing'} changes")
        return
    shown = chosen[:_SHOWN_ROWS]
    lines = [[heading, "", "before", "after"]]
    for name, row in zip(cut_apart([row["name"] for row in shown]), shown, strict=True):
        after = "not known" if np.isnan(row["low"]) else format_range(row["low"], row["high"])
        lines.append([f"  {name}", row["what"], format_number(row["before"]), after])
    for text in columns(lines, right=(2,)):
        say(text)
    if len(chosen) > len(shown):
        say(f"  ... {len(chosen) - len(shown)} more; --out FILE.csv keeps all")
    left = len({row["name"] for row in rows} - {row["name"] for row in chosen})
    if heading == "items":
        left = len(told) - len(changed)
    if left:
        say(f"  {left} {'other does' if left == 1 else 'others do'} not change")


def _say_expected(rows: list[dict[str, Any]], heading: str) -> None:
    """Print what is to be expected, in the order of the table."""
    say()
    if not rows:
        say(f"{heading}: nothing changes")
        return
    shown = rows[:_SHOWN_ROWS]
    lines = [[heading, "", "expected"]]
    for name, row in zip(cut_apart([row["name"] for row in shown]), shown, strict=True):
        lines.append([f"  {name}", row["what"], format_number(row["before"])])
    for text in columns(lines, right=(2,)):
        say(text)
    if len(rows) > len(shown):
        say(f"  ... {len(rows) - len(shown)} more; --out FILE.csv keeps all")


def _moved(row: Mapping[str, Any], spreads: _Spreads) -> float:
    """Return how far setting moves a number, at the most; an item in standard deviations."""
    change = max(abs(row["low"] - row["before"]), abs(row["high"] - row["before"]))
    return standardise_change(change, spreads.get((row["name"], row["what"]), 0.0))


def _run_effects(result: FitResult, draws: int, out: Path | None, as_json: bool) -> None:
    """Print all average effects, with intervals where the information can be computed."""
    by_refits = Advice("bootstrap-intervals", "hidag bootstrap computes them by refits")
    replicates, obstacle = (
        try_draw_asymptotic(result, draws, advice=by_refits) if draws else (None, None)
    )
    reason = None if obstacle is None else str(obstacle)
    found = average_effects(result, replicates=replicates, fix_graph=True)
    rows = found.rows()
    names = ["cause", "effect", "kind", "low", "high"]
    if found.lower is not None:
        names += ["lower", "upper"]
    if out is not None:
        _write(out, names, rows)
    if as_json:
        about: dict[str, Any] = {"level": found.level, "how": found.interval_source, "rows": rows}
        if reason is not None:
            about["no_intervals"] = reason
        elif found.missing_interval_reason is not None:
            about["some_without_interval"] = str(found.interval_note())
        if found.truncated:
            about["not_all_choices"] = str(found.truncation_note())
        say(json.dumps(jsonable(about), indent=1))
        return
    say("average effects: what setting a latent from its lowest to its highest level adds")
    if found.lower is not None:
        say(
            f"in brackets {found.level:.0%} intervals, graph and Q held (a bootstrap shows how "
            "unsure these are)"
        )
    elif reason is not None:
        say(f"no intervals: {reason}")
    if found.missing_interval_reason is not None:
        say(str(found.interval_note()))
    for note in (found.unidentified_note(), found.truncation_note()):
        if note is not None:
            say(str(note))
    _say_effects(rows, effect_sizes(rows, result))
    if out is not None:
        say(f"\nwrote {len(rows)} rows into {out}")


def _say_effects(rows: list[dict[str, Any]], sizes: Sequence[float]) -> None:
    """Print effects, the largest first, by their sizes."""
    for kind, heading in (("latent", "on latents"), ("item", "on items")):
        order = sorted(range(len(rows)), key=lambda r: -sizes[r])
        chosen = [rows[r] for r in order if rows[r]["kind"] == kind and sizes[r] > _NO_CHANGE]
        shown = chosen[:_SHOWN_ROWS]
        causes = cut_apart([row["cause"] for row in shown])
        effects = cut_apart([row["effect"] for row in shown])
        say()
        lines = [[heading, "", "", "effect", ""]]
        for cause, effect, row in zip(causes, effects, shown, strict=True):
            amount, bracket = _amount_and_interval(row)
            lines.append([f"  {cause}", "->", effect, amount, bracket])
        for text in columns(lines):
            say(text)
        if not chosen:
            say("  none")
        if len(chosen) > _SHOWN_ROWS:
            say(f"  ... {len(chosen) - _SHOWN_ROWS} more; --out FILE.csv keeps all")


def _amount_and_interval(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return an effect or its range, and its interval in brackets if there is one."""
    names = ["low", "high", *(name for name in ("lower", "upper") if name in row)]
    # Ranges are no intervals: only lower and upper tell how many digits are known.
    heads = ["least", "most", "lower", "upper"][: len(names)]
    texts = format_row(heads, [row[name] for name in names])
    amount = texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"
    if len(texts) == 2:
        return amount, ""
    return amount, "no interval" if np.isnan(row["lower"]) else f"[{texts[2]}, {texts[3]}]"


def _write(path: Path, names: list[str], rows: list[dict[str, Any]]) -> None:
    if any("reason" in row for row in rows):
        names = [*names, "reason"]
    cells = ([row.get(n, "") for n in names] for row in rows)
    try:
        write_csv(
            path, names, ([number(c) if isinstance(c, float) else c for c in row] for row in cells)
        )
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error


# --- `hidag export`: the network of a saved fit for other programs


def run_export(path: Path, kind: str, out: Path | None, *, items: bool) -> None:
    """Carry out `hidag export`."""
    if kind not in EXPORTS:
        raise SettingError(f"--format must be one of {', '.join(sorted(EXPORTS))}, got {kind!r}")
    check_file(out, [path])
    result = load_result(path)
    with collected_warnings() as warned:
        text = EXPORTS[kind](result, items=items)
    notes = [render(one) for one in warned]
    notes += _notes_of_export(result, kind, items=items)
    if out is None:
        say(text.rstrip("\n"))
        for note in notes:
            # Beside the network, which may be on its way into a file or another program.
            show_warning(note)
        return
    try:
        out.write_text(text, "utf-8")
    except OSError as error:
        raise FileError(f"cannot write {out}: {error.strerror or error}") from error
    say(f"wrote {out}")
    for note in notes:
        say(note)


def _notes_of_export(result: FitResult, kind: str, *, items: bool) -> list[str]:
    """Return what a network for other programs does not show, as sentences; empty if nothing."""
    out = []
    n_open = len(result.graph.undirected_edges)
    if n_open:
        member = f"one of {result.graph.n_members():,} graphs that explain the data alike"
        edges = "1 edge has" if n_open == 1 else f"{n_open} edges have"
        out.append(
            f"{edges} no arrow head, as the data leave the direction open; the tables are those "
            f"of {member}"
            if kind == "dot"
            else f"{edges} a direction there that the data leave open: {member}"
        )
    left_out = items_without_table(result) if items and kind != "dowhy" else ()
    if left_out:
        out.append(
            f"{len(left_out)} of {len(result.item_names)} items are left out, as they have no "
            f"short table of values: {join_names(left_out)}"
        )
    return out
