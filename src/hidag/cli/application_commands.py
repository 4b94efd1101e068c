"""`hidag app` and its options; what an application does is in `hidag.applications`."""

from __future__ import annotations

import typer

application_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Take real data from file to finding: pictures, tables and a page in plain words.",
)
