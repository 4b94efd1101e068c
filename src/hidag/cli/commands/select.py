"""`hidag select`: how many hidden causes a table speaks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hidag.cli.console import collected_warnings, columns, say
from hidag.cli.data_source import choose_families, families_for_all, read_source
from hidag.cli.folders import Writer, check_folder, fill_folder
from hidag.cli.output_files import number, write_csv
from hidag.cli.read_options import ReadOptions
from hidag.formatting import plural
from hidag.model_selection.selection import COLUMNS, Selection
from hidag.model_selection.selection import select as select_latents
from hidag.plotting.figure import render_figure
from hidag.plotting.selection import SIZE, plot_selection

#: selection.json comes last and tells that the others are there.
SELECT_FILES = ("selection.csv", "selection.png", "selection.svg", "selection.json")
#: Columns that are printed, and under which headings.
_PRINTED = {
    "latents": ("latents", 0),
    "eigenvalue": ("eigenvalue", 2),
    "noise": ("noise", 2),
    "gap": ("gap", 2),
    "factor_bic": ("factor BIC", 1),
    "penalty_strength": ("penalty", 2),
    "log_likelihood": ("log-lik.", 1),
    "parameters": ("param.", 0),
    "bic": ("BIC", 1),
    "ebic": ("EBIC", 1),
    "held_out": ("held-out", 4),
    "held_out_error": ("s.e. of diff.", 4),
}


@dataclass(frozen=True)
class SelectOrder:
    """What the user asked for.

    Attributes
    ----------
    table, types, out : Path or None
    latents : sequence of int or None
        Numbers to choose from.
    reading : ReadOptions
        What is said about the columns.
    family : tuple of str
        As `choose_families` takes them.
    plots, as_json : bool
    settings : mapping
        Of `hidag.select`.
    """

    table: Path
    latents: tuple[int, ...] | None
    reading: ReadOptions
    types: Path | None
    family: tuple[str, ...]
    out: Path | None
    plots: bool
    as_json: bool
    settings: Mapping[str, Any]


def run_select(order: SelectOrder) -> None:
    """Carry out `hidag select`."""
    source = read_source(
        order.table,
        order.types,
        None,
        use_folder_types=not families_for_all(order.family),
        use_folder_q=False,
        reading=order.reading,
    )
    if order.out is not None:
        check_folder(order.out, SELECT_FILES, source.files, sign=SELECT_FILES[-1])
    families = choose_families(order.family, source.types, tuple(source.table.column_names))
    if not order.as_json:
        for note in source.notes:
            say(note)
    with collected_warnings():
        found = select_latents(
            source.table,
            order.latents,
            family=families,
            sample_weight=source.weights,
            tell=None if order.as_json else lambda sentence: say(f"  {sentence}"),
            **order.settings,
        )
    if order.as_json:
        say(json.dumps(found.to_dict(), indent=1))
    else:
        _say_selection(found)
    if order.out is not None:
        fill_folder(order.out, selection_files(found, plots=order.plots), SELECT_FILES)
        if not order.as_json:
            say(f"\nwrote the table and the picture into {order.out}")


def selection_files(found: Selection, *, plots: bool = True) -> dict[str, Writer]:
    """Return a writer for each file of a selection, in the order of `SELECT_FILES`."""
    writers: dict[str, Writer] = {
        "selection.csv": partial(
            write_csv,
            header=COLUMNS,
            rows=(["" if v is None else number(v) for v in row.values()] for row in found.rows()),
        ),
        "selection.json": lambda path: path.write_text(
            json.dumps(found.to_dict(), indent=1) + "\n", "utf-8"
        ),
    }
    if plots:
        writers["selection.png"] = lambda path: path.write_bytes(
            render_figure(partial(plot_selection, found), SIZE)
        )
        writers["selection.svg"] = lambda path: path.write_bytes(
            render_figure(partial(plot_selection, found), SIZE, file_format="svg")
        )
    return {name: writers[name] for name in SELECT_FILES if name in writers}


def _say_selection(found: Selection) -> None:
    say()
    rows = found.rows()
    shown = [name for name in _PRINTED if any(_text(row[name], 0) for row in rows)]
    lines = [[_PRINTED[name][0] for name in shown]]
    lines += [[_text(row[name], _PRINTED[name][1]) for name in shown] for row in rows]
    for line in columns(lines, right=range(len(shown))):
        say(line)
    say()
    for line in columns([[f"  {name}", str(k)] for name, k in found.votes.items()], right=(1,)):
        say(line)
    for one in found.candidates:
        if one.reason is not None:
            say(f"  {plural(one.n_latents, 'latent')} could not be fitted: {one.reason}")
    say(f"\nrecommended: {found.verdict()}")


def _text(value: float | int | None, digits: int) -> str:
    """Return a number as the table shows it; empty where there is none."""
    return "" if value is None or value != value else f"{value:,.{digits}f}"
