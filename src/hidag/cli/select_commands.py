"""`hidag select` and its options; what it does is in `hidag.cli.select`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hidag.cli.numbers import range_of, strengths_of
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
)

_SELECT_EXAMPLES = (
    "Examples:\n\n"
    "`hidag select answers.csv --latents 2..8 --out numbers`\n\n"
    "`hidag select answers.csv --fits none` (in a second, from the correlations alone)"
)


def select(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet file with one column per item; or a folder with "
            "responses.csv and perhaps types.csv.",
            show_default=False,
        ),
    ],
    latents: Annotated[
        str | None,
        typer.Option(
            "--latents",
            "-k",
            help="Numbers to choose from: a range (2..8), or a list with commas between.",
            show_default="1 to as many as the items can identify, at most 40",
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
        typer.Option(help="Which numbers are fitted: near (what the correlations say), all, none."),
    ] = "near",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation; 0 leaves it out.")] = 3,
    penalty_strengths: Annotated[
        str | None,
        typer.Option(
            help="Strengths of the penalty to compare, with commas between; auto is learned.",
            show_default="auto",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the table and the picture.", show_default=False),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    no_plots: NoPlots = False,
    json: Json = False,
) -> None:
    """Say how many hidden causes a table speaks for, by several criteria side by side."""
    from hidag.cli.reading import Reading
    from hidag.cli.select import SelectOrder, run_select

    run_select(
        SelectOrder(
            table=table,
            latents=range_of(latents),
            reading=Reading(
                id_column, weights, tuple(missing or ()), tuple(drop or ()), tuple(words or ())
            ),
            types=types,
            family=tuple(family or ()),
            out=out,
            plots=not no_plots,
            as_json=json,
            settings={
                "fits": fits,
                "folds": folds,
                "penalty_strengths": strengths_of(penalty_strengths),
                "random_state": seed,
                "n_jobs": jobs,
            },
        )
    )


def add_select_command(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command(epilog=_SELECT_EXAMPLES)(select)
