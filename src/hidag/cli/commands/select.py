"""`hidag select`: compare numbers of latents by several criteria."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hidag.cli.options import (
    ITEMS,
    DroppedColumns,
    IdColumn,
    Jobs,
    Json,
    MissingCodes,
    NoPlots,
    Seed,
    Types,
    WeightsColumn,
    Words,
    parse_range,
    parse_strengths,
)

if TYPE_CHECKING:
    from hidag.cli.folders import Writer
    from hidag.model_selection.selection import Selection

app = typer.Typer()

#: selection.json is written last and marks a complete folder.
SELECT_FILES = ("selection.csv", "selection.png", "selection.svg", "selection.json")
#: Printed columns with their headings and decimals.
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


@app.command(
    epilog="Examples:\n\n"
    "`hidag select answers.csv --latents 2..8 --out numbers`\n\n"
    "`hidag select answers.csv --fits none` (from the correlations alone, in a second)"
)
def select(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet file with one column per item; or a folder with "
            "responses.csv and optionally types.csv.",
            show_default=False,
        ),
    ],
    latents: Annotated[
        str | None,
        typer.Option(
            "--latents",
            "-k",
            help="Candidates: a range (2..8), or numbers separated by commas.",
            show_default="1 to the largest number that the items can identify, at most 40",
        ),
    ] = None,
    id_column: IdColumn = None,
    weights: WeightsColumn = None,
    missing: MissingCodes = None,
    drop: DroppedColumns = None,
    words: Words = None,
    types: Types = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            help="Type of all items, or ITEM=TYPE, as in `hidag fit`; may be given several times.",
            show_default="auto",
            rich_help_panel=ITEMS,
        ),
    ] = None,
    fits: Annotated[
        str,
        typer.Option(
            help="Candidates that are fitted: near (the estimate from the correlations), all, none."
        ),
    ] = "near",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation; 0 omits it.")] = 3,
    penalty_strengths: Annotated[
        str | None,
        typer.Option(
            help="Penalty strengths to compare, separated by commas; auto selects one by itself.",
            show_default="auto",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the table and the figure.", show_default=False),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    no_plots: NoPlots = False,
    json_: Json = False,
) -> None:
    """Compare numbers of latents by several criteria and recommend one."""
    from hidag.cli.console import collected_warnings, say
    from hidag.cli.data_source import choose_families, families_for_all, read_source
    from hidag.cli.folders import check_folder, fill_folder
    from hidag.cli.read_options import ReadOptions
    from hidag.model_selection.number_search import select as select_latents

    candidates, strengths = parse_range(latents), parse_strengths(penalty_strengths)
    source = read_source(
        table,
        types,
        None,
        use_folder_types=not families_for_all(family or []),
        use_folder_q=False,
        reading=ReadOptions(
            id_column, weights, tuple(missing or ()), tuple(drop or ()), tuple(words or ())
        ),
    )
    if out is not None:
        check_folder(out, SELECT_FILES, source.files, sign=SELECT_FILES[-1])
    if not json_:
        for note in source.notes:
            say(note)
    with collected_warnings():
        selection = select_latents(
            source.table,
            candidates,
            family=choose_families(family or [], source.types, tuple(source.table.column_names)),
            sample_weight=source.weights,
            progress=None if json_ else lambda sentence: say(f"  {sentence}"),
            fits=fits,
            folds=folds,
            penalty_strengths=strengths,
            random_state=seed,
            n_jobs=jobs,
        )
    if json_:
        say(json.dumps(selection.to_dict(), indent=1))
    else:
        _say_selection(selection)
    if out is not None:
        fill_folder(out, _selection_files(selection, plots=not no_plots), SELECT_FILES)
        if not json_:
            say(f"\nwrote the table and the figure into {out}")


def _selection_files(selection: Selection, *, plots: bool) -> dict[str, Writer]:
    """Return a writer for each file of a selection, in the order of `SELECT_FILES`."""
    from hidag.cli.output_files import write_csv
    from hidag.model_selection.selection import COLUMNS
    from hidag.plotting.figure import render_figure
    from hidag.plotting.selection import SIZE, plot_selection

    rows = [["" if v is None else v for v in row.values()] for row in selection.rows()]
    text = json.dumps(selection.to_dict(), indent=1) + "\n"
    draw = partial(plot_selection, selection)
    writers: dict[str, Writer] = {
        "selection.csv": lambda path: write_csv(path, COLUMNS, rows),
        "selection.json": lambda path: path.write_text(text, "utf-8"),
    }
    if plots:
        writers["selection.png"] = lambda path: path.write_bytes(render_figure(draw, SIZE))
        writers["selection.svg"] = lambda path: path.write_bytes(
            render_figure(draw, SIZE, file_format="svg")
        )
    return {name: writers[name] for name in SELECT_FILES if name in writers}


def _say_selection(selection: Selection) -> None:
    from hidag.cli.console import columns, say
    from hidag.cli.messages import render
    from hidag.formatting import plural

    rows = selection.rows()
    shown = [name for name in _PRINTED if any(_format(row[name], 0) for row in rows)]
    lines = [[_PRINTED[name][0] for name in shown]]
    lines += [[_format(row[name], _PRINTED[name][1]) for name in shown] for row in rows]
    say()
    for line in columns(lines, right=range(len(shown))):
        say(line)
    say()
    votes = [[f"  {name}", str(k)] for name, k in selection.votes.items()]
    for line in columns(votes, right=(1,)):
        say(line)
    for one in selection.candidates:
        if one.reason is not None:
            say(f"  {plural(one.n_latents, 'latent')} could not be fitted: {render(one.reason)}")
    say(f"\nrecommended: {selection.verdict()}")


def _format(value: float | int | None, decimals: int) -> str:
    """Return a number with thousands separators; empty if there is none."""
    return "" if value is None or value != value else f"{value:,.{decimals}f}"
