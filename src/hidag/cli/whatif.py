"""`hidag whatif` and `hidag export`: questions to a saved fit, and networks for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hidag.cli.console import columns, say, show_warning
from hidag.cli.evaluate import load_result
from hidag.cli.outputs import check_file
from hidag.cli.printed import cut
from hidag.cli.tables import jsonable, number, write_csv
from hidag.errors import FileError, SettingError
from hidag.explain.answers import WhatIf
from hidag.explain.average_effects import AverageEffects, average_effects
from hidag.explain.exports import EXPORTS, items_without_table
from hidag.explain.interventions import what_if
from hidag.explain.law_draws import draws_or_reason
from hidag.identify.findings import listed
from hidag.result import FitResult

_SHOWN_ROWS = 20
#: Changes below this are not worth a line.
_NO_CHANGE = 5e-5


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
    answer = what_if(result, read_pairs(do, "--do"), read_pairs(given, "--given"))
    rows = answer.rows()
    if out is not None:
        _write(out, ["kind", "name", "what", "before", "low", "high"], rows)
    if as_json:
        asked: dict[str, Any] = {"do": answer.do, "given": answer.given}
        if answer.untold:
            asked["ruled_out"] = list(answer.ruled_out)
        say(json.dumps(jsonable({**asked, "rows": rows}), indent=1))
        return
    for sentence in _about(answer):
        say(sentence)
    for kind, heading in (("latent", "latents"), ("item", "items")):
        _say_rows([row for row in rows if row["kind"] == kind], heading, bool(answer.do))
    if out is not None:
        say(f"\nwrote {len(rows)} rows into {out}")


def read_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return what options such as Z1=1 or Z1=1,Z2=0 say, name by name."""
    out: dict[str, str] = {}
    for text in texts:
        for part in text.split(","):
            name, sign, value = part.rpartition("=")
            if not sign or not name.strip() or not value.strip():
                raise SettingError(f"{option} takes NAME=VALUE, such as Z1=1, got {part!r}")
            if name.strip() in out:
                raise SettingError(f"{option} names {name.strip()} twice")
            out[name.strip()] = value.strip()
    return out


def _about(answer: WhatIf) -> list[str]:
    """Return what was asked and how the answer is to be read."""
    out = []
    if answer.do:
        words = ", ".join(f"{name} = {level}" for name, level in answer.do.items())
        out.append(f"what follows if {words} is brought about in everybody")
    if answer.given:
        words = ", ".join(f"{name} = {value}" for name, value in answer.given.items())
        begin = "among those who then have" if answer.do else "what is to be expected given"
        out.append(f"{begin} {words}")
    if answer.do and not answer.determined:
        more = "" if answer.complete else " or more"
        out.append(
            f"the graph leaves {answer.n_choices}{more} possibilities for the causes of what is "
            "set: from - to is the least and the most over them"
        )
    if not answer.exact:
        out.append("the graph is too dense for exact numbers: they are from 200,000 draws")
    untold = answer.about_untold()
    return out if untold is None else [*out, untold]


def _say_rows(rows: list[dict[str, Any]], heading: str, done: bool) -> None:
    """Print numbers before and after, the largest changes first where something is set."""
    untold = any("reason" in row for row in rows)
    if done:
        # Items without a number after were named; latents have a line each.
        rows = [row for row in rows if heading == "latents" or "reason" not in row]
        moved = [max(abs(r["low"] - r["before"]), abs(r["high"] - r["before"])) for r in rows]
        order = np.argsort(-np.array(moved), kind="stable") if heading == "items" else ()
        chosen = [rows[i] for i in order if moved[i] > _NO_CHANGE] if len(order) else rows
    else:
        chosen = rows
    say()
    if not chosen:
        say(f"{heading}: {'no other number' if untold else 'nothing'} changes")
        return
    header = [heading, "", "before", "after"] if done else [heading, "", "expected"]
    lines = [header]
    for row in chosen[:_SHOWN_ROWS]:
        line = [f"  {cut(row['name'])}", row["what"], f"{row['before']:.3f}"]
        lines.append([*line, _between(row["low"], row["high"])] if done else line)
    for text in columns(lines, right=(2,)):
        say(text)
    left = len(chosen) - _SHOWN_ROWS
    if left > 0:
        say(f"  ... {left} more; --out FILE.csv keeps all")
    if done and heading == "items" and len(chosen) < len(rows):
        say(f"  {len(rows) - len(chosen)} others do not change")


def _between(low: float, high: float) -> str:
    if np.isnan(low):
        return "not known"
    a, b = f"{low:.3f}", f"{high:.3f}"
    return a if a == b else f"{a} to {b}"


def _run_effects(result: FitResult, draws: int, out: Path | None, as_json: bool) -> None:
    """Print all average effects, with intervals where the information can be computed."""
    by_refits = "hidag bootstrap makes them by refits"
    replicates, reason = (
        draws_or_reason(result, draws, instead=by_refits) if draws else (None, None)
    )
    found = average_effects(result, replicates=replicates, held=True)
    rows = found.rows()
    names = ["cause", "effect", "kind", "low", "high"]
    if found.lower is not None:
        names += ["lower", "upper"]
    if out is not None:
        _write(out, names, rows)
    if as_json:
        about: dict[str, Any] = {"level": found.level, "how": found.how, "rows": rows}
        if reason is not None:
            about["no_intervals"] = reason
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
    untold = found.about_untold()
    if untold is not None:
        say(untold)
    _say_effects(found, rows)
    if out is not None:
        say(f"\nwrote {len(rows)} rows into {out}")


def _say_effects(found: AverageEffects, rows: list[dict[str, Any]]) -> None:
    for kind, heading in (("latent", "on latents"), ("item", "on items")):
        chosen = [
            row
            for row in rows
            if row["kind"] == kind and max(abs(row["low"]), abs(row["high"])) > _NO_CHANGE
        ]
        chosen.sort(key=lambda row: -max(abs(row["low"]), abs(row["high"])))
        say()
        lines = [[heading, "", "", "effect", ""]]
        for row in chosen[:_SHOWN_ROWS]:
            bracket = f"[{row['lower']:.3f}, {row['upper']:.3f}]" if "lower" in row else ""
            amount = _between(row["low"], row["high"])
            names = [f"  {cut(row['cause'])}", "->", cut(row["effect"])]
            lines.append([*names, amount, bracket])
        for text in columns(lines):
            say(text)
        if not chosen:
            say("  none")
        if len(chosen) > _SHOWN_ROWS:
            say(f"  ... {len(chosen) - _SHOWN_ROWS} more; --out FILE.csv keeps all")


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


def run_export(path: Path, kind: str, out: Path | None, *, items: bool) -> None:
    """Carry out `hidag export`."""
    if kind not in EXPORTS:
        raise SettingError(f"--format must be one of {', '.join(sorted(EXPORTS))}, got {kind!r}")
    check_file(out, [path])
    result = load_result(path)
    text = EXPORTS[kind](result, items=items)
    notes = _notes_of_export(result, kind, items=items)
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
            f"short table of values: {listed(left_out)}"
        )
    return out
