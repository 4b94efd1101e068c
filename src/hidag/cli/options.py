"""Options and arguments that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: Under which `--help` lists options beyond the first few that most people need.
ITEMS, GRAPH, ESTIMATION, OUTPUT = "Items and Q", "Latents and graph", "Estimation", "Output"

FitFile = Annotated[Path, typer.Argument(help="result.npz, or the folder that holds it.")]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column that names the rows: no item; files with a line per row have it.",
        show_default="no such column",
        rich_help_panel=ITEMS,
    ),
]
WeightsColumn = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="Column with the rows' weights, such as those of a survey: no item. They are scaled "
        "to add up to the number of equal rows that would tell as much.",
        show_default="all rows alike",
        rich_help_panel=ITEMS,
    ),
]
MissingCodes = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Codes for missing answers, with commas between (99,-9), or COLUMN=CODES for one "
        "column or a pattern; may be given several times.",
        show_default="empty cells and NA",
        rich_help_panel=ITEMS,
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Option(
        "--words",
        help="Answers that stand in words, COLUMN=WORDS for a column or a pattern: with < between "
        "where they have an order ('q*=never<often<always'), with commas where not "
        "(region=north,south). May be given several times.",
        show_default=False,
        rich_help_panel=ITEMS,
    ),
]
MissingAgain = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Codes for missing answers, as in `hidag fit`.",
        show_default="those of the fit",
    ),
]
DroppedColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        help="Columns to leave out, with commas between, or patterns such as 'note_*'; the second "
        "of two columns named alike is 'score#2'. May be given several times.",
        show_default=False,
        rich_help_panel=ITEMS,
    ),
]
IdAgain = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column with the names of the rows.",
        show_default="that of the fit, or row numbers",
    ),
]
Types = Annotated[
    Path | None,
    typer.Option(
        help="CSV with the columns item and type.", show_default=False, rich_help_panel=ITEMS
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Jobs = Annotated[
    int, typer.Option(help="Threads; never changes a result. -1: all.", rich_help_panel=ESTIMATION)
]
NoPlots = Annotated[
    bool, typer.Option("--no-plots", help="Draw no pictures.", rich_help_panel=OUTPUT)
]
NumbersFile = Annotated[
    Path | None, typer.Option(help="CSV file for all numbers.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
