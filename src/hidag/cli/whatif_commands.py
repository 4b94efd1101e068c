"""The options of `hidag whatif` and `hidag export`; what they do is in modules of their names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hidag.cli.options import FitFile, Json, NumbersFile


def whatif(
    result: FitFile,
    do: Annotated[
        list[str] | None,
        typer.Option(
            "--do",
            help="Set a latent: Z1=1; may be given several times, or several with commas.",
            show_default=False,
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            help="Something known, of a latent or an item: Z2=0. With --do: known of those in "
            "whom it has been carried out.",
            show_default=False,
        ),
    ] = None,
    effects: Annotated[
        bool,
        typer.Option("--effects", help="Print the average effects of all latents instead."),
    ] = False,
    draws: Annotated[
        int,
        typer.Option(
            min=0, help="Draws behind the intervals of --effects; 0 leaves the intervals out."
        ),
    ] = 200,
    out: NumbersFile = None,
    json: Json = False,
) -> None:
    """Say what follows if a latent is set, or if something is known."""
    from hidag.cli.whatif import run_whatif

    run_whatif(result, do or (), given or (), effects=effects, draws=draws, out=out, as_json=json)


def export(
    result: FitFile,
    kind: Annotated[
        str,
        typer.Option(
            "--format",
            help="bif (pgmpy, bnlearn), dot (Graphviz) and gml with conditional tables; dowhy "
            "(the graph as its CausalModel takes it).",
        ),
    ] = "bif",
    out: Annotated[
        Path | None, typer.Option(help="File to write.", show_default="the terminal")
    ] = None,
    items: Annotated[
        bool, typer.Option("--items", help="With the items, not the latents alone.")
    ] = False,
) -> None:
    """Write the latents' network for other programs."""
    from hidag.cli.export import run_export

    run_export(result, kind, out, items=items)


def add_whatif_commands(app: typer.Typer) -> None:
    """Add the two commands to the others."""
    app.command(
        epilog="Examples:\n\n"
        "`hidag whatif fit --do Z1=1`\n\n"
        "`hidag whatif fit --do Z1=1 --given Z2=0 --out answer.csv`\n\n"
        "`hidag whatif fit --effects`"
    )(whatif)
    app.command(epilog="Example:\n\n`hidag export fit --format bif --out latents.bif`")(export)
