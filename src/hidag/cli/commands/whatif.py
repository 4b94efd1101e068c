"""`hidag whatif` and `hidag export`: interventions on a saved fit, and its network as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import hidag
from hidag.cli.console import collected_warnings, say, say_columns, show_warning
from hidag.cli.messages import render
from hidag.cli.options import FitFile, Json, NumbersFile, option, parse_pairs
from hidag.exceptions import Advice, SettingError, invalid_setting
from hidag.files import write_file
from hidag.formatting import format_number, format_range, format_row

if TYPE_CHECKING:
    from hidag import FitResult
    from hidag.causal import WhatIfResult

app = typer.Typer()

_MAX_ROWS = 20
#: Larger equivalence classes are not counted.
_MAX_MEMBERS = 1000
#: Smaller changes are not printed: of probabilities, and of items in standard deviations.
_NO_CHANGE = 5e-5
#: Standard deviations from the mean beyond which a given value is an extrapolation.
_EXTRAPOLATION = 10.0
#: Standard deviations of items, by name and outcome.
_Spreads = Mapping[tuple[str, str], float]
_Row = dict[str, Any]


@app.command(
    epilog="Examples:\n\n"
    "`hidag whatif fit --do Z1=1`\n\n"
    "`hidag whatif fit --do Z1=1 --given Z2=0 --out answer.csv`\n\n"
    "`hidag whatif fit --effects`"
)
def whatif(
    result: FitFile,
    do: list[str] | None = option(
        None, "Intervention on a latent: Z1=1; several separated by commas, or given again.", "--do"
    ),
    given: list[str] | None = option(
        None, "Condition on a latent or an item: Z2=0; with --do it holds after the intervention."
    ),
    effects: bool = option(
        False, "Print the average effects of every latent on the others and the items.", "--effects"
    ),
    draws: int = option(
        200, "Number of draws for the intervals of --effects; 0 omits them.", least=0
    ),
    out: NumbersFile = None,
    json_: Json = False,
) -> None:
    """Compute the distribution after an intervention, or given an observation."""
    from hidag.cli.output_files import check_file, load_result
    from hidag.results.findings import rejection_note

    if not do and not given and not effects:
        advice = "use --do Z1=1, --given Z2=0, or --effects for all average effects"
        template = "there is no intervention and no condition"
        raise SettingError("no-question", template, advice=advice)
    if effects and (do or given):
        template = "--effects computes all average effects and takes neither --do nor --given"
        raise SettingError("conflicting-options", template)
    check_file(out, [result])
    fitted = load_result(result)
    if (note := rejection_note(fitted.misfits)) is not None:
        show_warning(note)
    if effects:
        _run_effects(fitted, draws, out, as_json=json_)
    else:
        _run_question(fitted, do or (), given or (), out, as_json=json_)


def _run_question(
    fitted: FitResult,
    do: Sequence[str],
    given: Sequence[str],
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the distribution of all latents and items after an intervention or a condition."""
    from hidag.causal.probability_queries import outcome_standard_deviations
    from hidag.cli.output_files import say_json

    names = {*fitted.latent_names, *fitted.item_names}
    typed = parse_pairs(given, "--given", names)
    answer = hidag.what_if(fitted, parse_pairs(do, "--do", names), _as_numbers(typed, fitted))
    rows = answer.rows()
    _write(out, ["kind", "name", "what", "before", "low", "high"], rows)
    if as_json:
        question: dict[str, Any] = {"do": answer.do, "given": answer.given}
        if answer.unidentified:
            question["ruled_out"] = list(answer.ruled_out)
        say_json({**question, "rows": rows})
        return
    spreads = outcome_standard_deviations(fitted)
    for sentence in (*_describe_question(answer, typed), *_warn_of_far(answer, fitted, spreads)):
        say(sentence)
    for kind in ("latent", "item"):
        chosen = [row for row in rows if row["kind"] == kind]
        if answer.do:
            _say_changes(chosen, f"{kind}s", tuple(answer.do), spreads)
        elif chosen:
            named = _named(chosen, "name")
            lines = [[f"  {n}", row["what"], format_number(row["before"])] for n, row in named]
            _say_table([f"{kind}s", "", "expected"], lines, len(chosen), right=(2,))
        else:
            say(f"\n{kind}s: nothing changes")
    if out is not None:
        say(f"\nwrote {len(rows)} rows into {out}")


def _as_numbers(given: Mapping[str, str], fitted: FitResult) -> dict[str, str]:
    """Return conditions with category labels and yes or no of items as numbers."""
    from hidag.data.cells import BOOLEAN_WORDS
    from hidag.measurement.families import item_type

    family = dict(zip(fitted.item_names, fitted.families, strict=True))
    out = dict(given)
    for name, value in given.items():
        labels = [label.casefold() for label in fitted.answer_words.get(name, ())]
        boolean = BOOLEAN_WORDS.get(value.lower())
        is_item = name in family and name not in fitted.latent_names
        if value.casefold() in labels:
            out[name] = f"{labels.index(value.casefold())}"
        elif boolean is not None and is_item and item_type(family[name]).is_binary:
            out[name] = f"{boolean:g}"
    return out


def _describe_question(answer: WhatIfResult, typed: Mapping[str, str]) -> list[str]:
    """Return a description of the question, and notes on how to read the answer."""
    out = []
    if answer.do:
        setting = ", ".join(f"{name} = {level}" for name, level in answer.do.items())
        out.append(f"intervention in the whole population: {setting}")
    if answer.given:
        condition = ", ".join(f"{name} = {typed[name]}" for name in answer.given)
        out.append(f"given{' after the intervention' if answer.do else ''}: {condition}")
    if answer.do and not answer.determined:
        sets = f"{answer.n_parent_sets}{'' if answer.complete else ' or more'} possible sets"
        ranges = "ranges are the least and the most over them"
        out.append(f"the graph leaves {sets} of causes of the intervened latents; {ranges}")
    if not answer.exact:
        out.append("the graph is too dense for exact results: they are based on 200,000 draws")
    note = answer.unidentified_note()
    return out if note is None else [*out, str(note)]


def _warn_of_far(answer: WhatIfResult, fitted: FitResult, spreads: _Spreads) -> list[str]:
    """Return warnings about conditions on items far outside of their distribution."""
    import numpy as np

    from hidag.causal.probability_queries import MEAN, standardise_change
    from hidag.measurement.families import item_type

    family = dict(zip(fitted.item_names, fitted.families, strict=True))
    given = {name: float(value) for name, value in answer.given.items() if name in family}
    if not given:
        return []
    expected = {
        row["name"]: row["before"] for row in hidag.what_if(fitted).rows() if row["what"] == MEAN
    }
    out = []
    for name, value in given.items():
        spread = spreads.get((name, MEAN), 0.0)
        if not spread or name in fitted.latent_names:
            continue
        # Times beyond the limit of a censored item count as the limit.
        observed = float(item_type(family[name]).as_observed(np.array([value]))[0])
        distance = standardise_change(abs(observed - expected.get(name, 0.0)), spread)
        if distance > _EXTRAPOLATION:
            far = f"is {distance:.3g} standard deviations from the mean"
            out.append(f"{name} = {answer.given[name]} {far}: the result is an extrapolation")
    return out


def _say_changes(rows: list[_Row], heading: str, do: Sequence[str], spreads: _Spreads) -> None:
    """Print values before and after: the intervened latents, then the largest changes."""
    from hidag.causal.probability_queries import standardise_change

    def size(row: _Row) -> float:
        change = max(abs(row["low"] - row["before"]), abs(row["high"] - row["before"]))
        return standardise_change(change, spreads.get((row["name"], row["what"]), 0.0))

    unidentified = [row for row in rows if "reason" in row]
    identified = [row for row in rows if "reason" not in row]
    changed = [row for row in identified if size(row) > _NO_CHANGE and row["name"] not in do]
    changed.sort(key=size, reverse=True)
    own = [row for row in identified if row["kind"] == "latent" and row["name"] in do]
    # Unidentified items are named in a note; latents have a line each.
    chosen = [*own, *(unidentified if heading == "latents" else ()), *changed]
    if not chosen:
        say(f"\n{heading}: {'no other value' if unidentified else 'nothing'} changes")
        return
    lines = []
    for name, row in _named(chosen, "name"):
        after = "not identified" if isnan(row["low"]) else format_range(row["low"], row["high"])
        lines.append([f"  {name}", row["what"], format_number(row["before"]), after])
    _say_table([heading, "", "before", "after"], lines, len(chosen), right=(2,))
    unchanged = len({row["name"] for row in rows} - {row["name"] for row in chosen})
    if heading == "items":
        unchanged = len(identified) - len(changed)
    if unchanged:
        say(f"  {unchanged} {'other does' if unchanged == 1 else 'others do'} not change")


def _named(rows: Sequence[_Row], key: str) -> list[tuple[str, _Row]]:
    """Return the rows that are printed, with shortened names."""
    from hidag.cli.result_text import shorten_names

    shown = rows[:_MAX_ROWS]
    return list(zip(shorten_names([row[key] for row in shown]), shown, strict=True))


def _say_table(
    header: list[str], lines: list[list[str]], n_rows: int, right: Sequence[int] = ()
) -> None:
    """Print a table and the number of rows that it omits."""
    say()
    say_columns([header, *lines], right=right)
    if n_rows > _MAX_ROWS:
        say(f"  ... {n_rows - _MAX_ROWS} more; --out FILE.csv writes all")


def _run_effects(fitted: FitResult, draws: int, out: Path | None, *, as_json: bool) -> None:
    """Print all average effects, with intervals if the information matrix can be computed."""
    from hidag.causal.probability_queries import effect_sizes
    from hidag.cli.output_files import say_json
    from hidag.inference.asymptotic_draws import try_draw_asymptotic

    advice = Advice("bootstrap-intervals", "hidag bootstrap computes bootstrap intervals")
    drawn = try_draw_asymptotic(fitted, draws, advice=advice) if draws else (None, None)
    replicates, obstacle = drawn
    found = hidag.average_effects(fitted, replicates=replicates, fix_graph=True)
    rows, has_intervals = found.rows(), found.lower is not None
    names = ["cause", "effect", "kind", "low", "high"]
    _write(out, [*names, *(["lower", "upper"] if has_intervals else [])], rows)
    some_missing = found.missing_interval_reason is not None
    if as_json:
        about: dict[str, Any] = {"level": found.level, "how": found.interval_source, "rows": rows}
        if obstacle is not None:
            about["no_intervals"] = str(obstacle)
        elif some_missing:
            about["some_without_interval"] = str(found.interval_note())
        if found.truncated:
            about["not_all_choices"] = str(found.truncation_note())
        say_json(about)
        return
    say("average causal effects of raising a latent from its lowest to its highest level")
    if has_intervals:
        scope = "conditional on the graph and Q (hidag bootstrap includes their uncertainty)"
        say(f"in brackets {found.level:.0%} intervals, {scope}")
    elif obstacle is not None:
        say(f"no intervals: {obstacle}")
    note = found.interval_note() if some_missing else None
    for one in (note, found.unidentified_note(), found.truncation_note()):
        if one is not None:
            say(str(one))
    _say_effects(rows, effect_sizes(rows, fitted))
    if out is not None:
        say(f"\nwrote {len(rows)} rows into {out}")


def _say_effects(rows: list[_Row], sizes: Sequence[float]) -> None:
    """Print effects on latents and on items, the largest first."""
    order = sorted(range(len(rows)), key=lambda r: -sizes[r])
    for kind in ("latent", "item"):
        chosen = [rows[r] for r in order if rows[r]["kind"] == kind and sizes[r] > _NO_CHANGE]
        ends = zip(_named(chosen, "cause"), _named(chosen, "effect"), strict=True)
        lines = [[f"  {a}", "->", b, *_format_effect(row)] for (a, row), (b, _) in ends]
        _say_table([f"on {kind}s", "", "", "effect", ""], lines, len(chosen))
        if not chosen:
            say("  none")


def _format_effect(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return an effect or its range, and its interval in brackets if there is one."""
    names = ["low", "high", *(name for name in ("lower", "upper") if name in row)]
    # The number of digits follows from the interval, not from the range.
    headings = ["least", "most", "lower", "upper"][: len(names)]
    texts = format_row(headings, [row[name] for name in names])
    effect = texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"
    if len(texts) == 2:
        return effect, ""
    return effect, "no interval" if isnan(row["lower"]) else f"[{texts[2]}, {texts[3]}]"


def _write(path: Path | None, names: list[str], rows: list[_Row]) -> None:
    from hidag.cli.output_files import dict_content

    if path is not None:
        reason = ["reason"] if any("reason" in row for row in rows) else []
        write_file(path, dict_content(rows, names + reason))


@app.command(epilog="Example:\n\n`hidag export fit --format bif --out latents.bif`")
def export(
    result: FitFile,
    kind: str = option(
        "bif",
        "Format: bif (for pgmpy and bnlearn), dot (Graphviz) or gml, all three with probability "
        "tables; or dowhy (the graph alone).",
        "--format",
    ),
    out: Path | None = option(None, "File to write, such as latents.bif.", shown="the terminal"),
    items: bool = option(False, "Include the items, not the latents alone.", "--items"),
) -> None:
    """Export the network of the latents for other programs."""
    from hidag.causal.exports import EXPORTS
    from hidag.cli.output_files import check_file, load_result

    if kind not in EXPORTS:
        raise invalid_setting("format", f"one of {', '.join(sorted(EXPORTS))}", kind)
    check_file(out, [result])
    fitted = load_result(result)
    with collected_warnings() as issued:
        text = EXPORTS[kind](fitted, items=items)
    if out is None:
        say(text.rstrip("\n"))
    else:
        write_file(out, text)
        say(f"wrote {out}")
    for note in (*map(render, issued), *_describe_losses(fitted, kind, items=items)):
        # On standard error: the network may be piped into another program.
        (show_warning if out is None else say)(note)


def _describe_losses(fitted: FitResult, kind: str, *, items: bool) -> list[str]:
    """Return what the export does not show, as sentences."""
    from hidag.causal.exports import items_without_table
    from hidag.formatting import join_names

    out = []
    n_open = len(fitted.graph.undirected_edges)
    if n_open:
        n_members = len(fitted.graph.members(_MAX_MEMBERS + 1))
        counted = f"more than {_MAX_MEMBERS:,}" if n_members > _MAX_MEMBERS else f"{n_members:,}"
        member = f"one of {counted} equivalent graphs"
        edges = "1 edge has" if n_open == 1 else f"{n_open} edges have"
        what = "a direction in this file that the data do not identify: it is"
        if kind == "dot":
            what = "no direction because the data do not identify it; the tables refer to"
        out.append(f"{edges} {what} {member}")
    omitted = items_without_table(fitted) if items and kind != "dowhy" else ()
    if omitted:
        number = f"{len(omitted)} of {len(fitted.item_names)} items are omitted"
        reason = "because they have no finite table of probabilities"
        out.append(f"{number} {reason}: {join_names(omitted)}")
    return out
