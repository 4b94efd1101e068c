"""`hidag errors`, `goodness` and `classify`: a saved fit applied to a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hidag.cli.options import (
    FitFile,
    IdAgain,
    Json,
    MissingAgain,
    NumbersFile,
    Seed,
    WeightsColumn,
)
from hidag.exceptions import SettingError

if TYPE_CHECKING:
    from hidag.results import FitResult

app = typer.Typer()

DataTable = Annotated[
    Path,
    typer.Argument(
        help="The table of the fit, or another one with its columns: CSV, TSV or Parquet, or a "
        "folder with responses.csv."
    ),
]


@app.command(epilog="Example:\n\n`hidag errors fit answers.csv --out errors.csv`")
def errors(
    result: FitFile,
    table: DataTable,
    kind: Annotated[
        str | None,
        typer.Option(
            help="louis (observed information), sandwich (robust, for weights and misspecified "
            "models) or scores (fastest).",
            show_default="louis, with --weights sandwich",
        ),
    ] = None,
    weights: WeightsColumn = None,
    level: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.9,
    missing: MissingAgain = None,
    out: NumbersFile = None,
    patterns: Annotated[
        Path | None,
        typer.Option(
            help="CSV file for the expected response of each item in each pattern of its latents "
            "(with guess and slip) and its standard error.",
            show_default=False,
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Print standard errors and intervals of a fit, conditional on Q and the graph."""
    from hidag.cli.console import say
    from hidag.cli.data_source import choose_kind_of_errors, read_weights
    from hidag.cli.output_files import check_file, load_result, present_table, save_table
    from hidag.cli.read_options import read_items
    from hidag.formatting import plural
    from hidag.inference.standard_errors import standard_errors

    check_file(out, [result, table])
    check_file(patterns, [result, table])
    if out is not None and patterns is not None and out.resolve() == patterns.resolve():
        raise SettingError(
            "same-file", "--out and --patterns both name {path}; they need two files", path=out
        )
    fitted = load_result(result)
    rows, others = read_items(fitted, table, [] if weights is None else [weights], missing or ())
    counts = read_weights(others, weights, rows)
    found = standard_errors(
        fitted,
        rows,
        sample_weight=counts,
        kind=choose_kind_of_errors(counts) if kind is None else kind,
        level=level,
    )
    present_table(found.table, out, found.to_rows() if json_ else found.summary())
    if patterns is not None:
        save_table(patterns, found.patterns)
        if not json_:
            say(f"\nwrote {plural(len(found.patterns), 'row')} into {patterns}")


@app.command(epilog="Example:\n\n`hidag goodness fit answers.csv --out goodness`")
def goodness(
    result: FitFile,
    table: DataTable,
    tables: Annotated[
        int, typer.Option(help="Data sets simulated for the predictive checks.")
    ] = 100,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for pairs.csv, items.csv, checks.csv and persons.csv, as far as they can "
            "be computed.",
            show_default=False,
        ),
    ] = None,
    ids: IdAgain = None,
    weights: WeightsColumn = None,
    missing: MissingAgain = None,
    json_: Json = False,
) -> None:
    """Print fit statistics: criteria, M2, item pairs, items, predictive checks, persons."""
    from hidag.cli.console import say
    from hidag.cli.data_source import read_weights
    from hidag.cli.folders import check_folder, fill_folder
    from hidag.cli.messages import message_style
    from hidag.cli.output_files import GOODNESS_FILES, files_read, load_result, write_table
    from hidag.diagnostics.goodness_of_fit import fit_statistics
    from hidag.diagnostics.person_fit_statistics import person_fit
    from hidag.results import without_nan

    if out is not None:
        inputs = [*files_read(result), *files_read(table)]
        check_folder(out, GOODNESS_FILES, inputs, sign=list(GOODNESS_FILES)[-1])
    fitted = load_result(result)
    rows, row_ids, others = _read_rows(
        fitted, table, ids, missing or (), [] if weights is None else [weights]
    )
    found = fit_statistics(
        fitted,
        rows,
        sample_weight=read_weights(others, weights, rows),
        n_tables=tables,
        random_state=seed,
    )
    persons = person_fit(fitted, rows, ids=row_ids, random_state=seed)
    if json_:
        numbers = {**found.to_dict(style=message_style()), "persons": persons.to_rows()}
        say(json.dumps(without_nan(numbers), indent=1))
    else:
        say(found.summary(style=message_style()))
        say()
        say(persons.summary(5))
    if out is not None:
        parts = (found.pairs, found.items, found.checks, persons.table)
        # Statistics that cannot be computed for many latents have no columns.
        writers = {
            name: partial(write_table, table=part)
            for name, part in zip(GOODNESS_FILES, parts, strict=True)
            if part.columns
        }
        fill_folder(out, writers, GOODNESS_FILES)
        if not json_:
            say(f"\nwrote {', '.join(writers)} into {out}")


@app.command(epilog="Example:\n\n`hidag classify fit answers.csv --id pupil --out people.csv`")
def classify(
    result: FitFile,
    table: DataTable,
    out: Annotated[
        Path | None, typer.Option(help="CSV file with a line for each row.", show_default=False)
    ] = None,
    ids: IdAgain = None,
    missing: MissingAgain = None,
    json_: Json = False,
) -> None:
    """Classify each row, with the accuracy and consistency of the classification."""
    from hidag.cli.messages import message_style
    from hidag.cli.output_files import check_file, load_result, present_table
    from hidag.diagnostics.classification import classify as assign

    check_file(out, [result, table])
    fitted = load_result(result)
    rows, row_ids, _ = _read_rows(fitted, table, ids, missing or ())
    found = assign(fitted, rows, ids=row_ids)
    text = found.summary(style=message_style())
    present_table(found.to_table(), out, found.to_rows() if json_ else text)


def _read_rows(
    fitted: FitResult,
    table: Path,
    ids: str | None,
    missing: Sequence[str],
    others: Sequence[str] = (),
) -> tuple[Any, list[Any] | None, dict[str, list[Any]]]:
    """Return the items of a fit in a table, row identifiers if there are any, other columns."""
    from hidag.cli.read_options import find_id_column, read_items, warn_of_ids

    column = find_id_column(fitted, table, ids)
    named = [] if column is None else [column]
    rows, columns = read_items(fitted, table, [*named, *others], missing)
    if column is None:
        return rows, None, columns
    warn_of_ids(columns[column], column)
    return rows, columns[column], columns
