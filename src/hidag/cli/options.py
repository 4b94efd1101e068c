"""Options and arguments that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FitFile = Annotated[Path, typer.Argument(help="result.npz, or the folder that holds it.")]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column that names the rows: no item; files with a line per row have it.",
        show_default="no such column",
    ),
]
WeightsColumn = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="Column with the rows' weights, such as those of a survey: no item. They are scaled "
        "to add up to the number of equal rows that would tell as much.",
        show_default="all rows alike",
    ),
]
Types = Annotated[
    Path | None, typer.Option(help="CSV with the columns item and type.", show_default=False)
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Jobs = Annotated[int, typer.Option(help="Threads; never changes a result. -1: all.")]
NoPlots = Annotated[bool, typer.Option("--no-plots", help="Draw no pictures.")]
NumbersFile = Annotated[
    Path | None, typer.Option(help="CSV file for all numbers.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
