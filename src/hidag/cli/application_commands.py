"""`hidag app` and its options; what an application does is in `hidag.applications`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same outcome.")]

application_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Take real data from file to finding: pictures, tables and a page in plain words.",
)


@application_app.command()
def seesaw(
    out: Annotated[Path, typer.Option(help="Folder for pictures, tables and the page.")] = Path(
        "app-seesaw"
    ),
    seed: Seed = 1,
    images: Annotated[int, typer.Option(min=2, help="How many images to draw.")] = 10_000,
    jitter: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.05,
            help="Largest random shift of pivot, plank and balls, in image sides.",
            show_default="0.001, the paper's",
        ),
    ] = None,
) -> None:
    """Draw images of a seesaw; find the hidden causes in their pixels, and their graph."""
    from hidag.cli.application import run_seesaw_application

    run_seesaw_application(out, seed=seed, n_images=images, jitter=jitter)
