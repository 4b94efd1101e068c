"""`hidag export`: the network of a saved fit for other programs."""

from __future__ import annotations

from pathlib import Path

from hidag.cli.console import collected_warnings, say, show_warning
from hidag.cli.evaluate import load_result
from hidag.cli.outputs import check_file
from hidag.cli.wording import options_for_settings
from hidag.errors import FileError, SettingError
from hidag.explain.exports import EXPORTS, items_without_table
from hidag.identify.findings import listed
from hidag.result import FitResult


def run_export(path: Path, kind: str, out: Path | None, *, items: bool) -> None:
    """Carry out `hidag export`."""
    if kind not in EXPORTS:
        raise SettingError(f"--format must be one of {', '.join(sorted(EXPORTS))}, got {kind!r}")
    check_file(out, [path])
    result = load_result(path)
    with collected_warnings() as warned:
        text = EXPORTS[kind](result, items=items)
    notes = [options_for_settings(one) for one in warned]
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
            f"short table of values: {listed(left_out)}"
        )
    return out
