"""The options of the commands that hold a fit against a table; what they do is in `cli.explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hidag.cli.options import (
    ITEMS,
    DroppedColumns,
    FitFile,
    IdAgain,
    IdColumn,
    Json,
    MissingAgain,
    MissingCodes,
    NumbersFile,
    Seed,
    Types,
    WeightsColumn,
    Words,
    parse_effects,
    parse_levels,
)

Rows = Annotated[
    Path,
    typer.Argument(
        help="The table that was fitted, or another one with its columns: CSV, TSV or Parquet, or "
        "a folder with responses.csv."
    ),
]


def errors(
    result: FitFile,
    table: Rows,
    kind: Annotated[
        str | None,
        typer.Option(
            help="louis (observed information), sandwich (right for weights and wrong models), or "
            "scores (the cheapest).",
            show_default="louis, with --weights sandwich",
        ),
    ] = None,
    weights: WeightsColumn = None,
    level: Annotated[float, typer.Option(help="Chance that an interval holds the truth.")] = 0.9,
    missing: MissingAgain = None,
    out: NumbersFile = None,
    patterns: Annotated[
        Path | None,
        typer.Option(
            help="CSV file for what is expected of each item in each pattern of its latents (with "
            "guess and slip), and how surely.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print standard errors and intervals of a fit, Q taken as known."""
    from hidag.cli.commands.diagnostics import run_errors

    run_errors(result, table, kind, weights, level, out, patterns, missing or (), as_json=json)


def goodness(
    result: FitFile,
    table: Rows,
    tables: Annotated[int, typer.Option(help="Tables drawn for the predictive checks.")] = 100,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for pairs.csv, items.csv, checks.csv and persons.csv, those of them that "
            "can be computed.",
            show_default=False,
        ),
    ] = None,
    ids: IdAgain = None,
    weights: WeightsColumn = None,
    missing: MissingAgain = None,
    json: Json = False,
) -> None:
    """Say how well a fit describes a table: criteria, M2, pairs, items, checks, persons."""
    from hidag.cli.commands.diagnostics import run_goodness

    run_goodness(result, table, tables, seed, out, ids, weights, missing or (), as_json=json)


def classify(
    result: FitFile,
    table: Rows,
    out: Annotated[
        Path | None, typer.Option(help="CSV file with a line for each row.", show_default=False)
    ] = None,
    ids: IdAgain = None,
    missing: MissingAgain = None,
    json: Json = False,
) -> None:
    """Place each row on the latents, and say how far such placements can be trusted."""
    from hidag.cli.commands.diagnostics import run_classify

    run_classify(result, table, out, ids, missing or (), as_json=json)


def validate_q(
    table: Annotated[
        Path,
        typer.Argument(help="CSV, TSV or Parquet file, or a folder with responses.csv and q.csv."),
    ],
    q: Annotated[
        Path | None,
        typer.Option("--q", help="CSV with the column item, then one of 1 and 0 per latent."),
    ] = None,
    id_column: IdColumn = None,
    weights: WeightsColumn = None,
    missing: MissingCodes = None,
    drop: DroppedColumns = None,
    words: Words = None,
    types: Types = None,
    family: Annotated[
        list[str] | None,
        typer.Option(help="As in `hidag fit`.", show_default="auto", rich_help_panel=ITEMS),
    ] = None,
    levels: Annotated[str, typer.Option(help="Levels per latent, as in `hidag fit`.")] = "2",
    effects: Annotated[
        str, typer.Option(help="What an item's causes do together, as in `hidag fit`.")
    ] = "main",
    resamples: Annotated[
        int,
        typer.Option(min=0, help="Tables of resampled rows on which doubtful entries are judged."),
    ] = 0,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Also estimate Q without this one, and show both.")
    ] = False,
    changes: Annotated[int, typer.Option(min=0, help="Most changes that are suggested.")] = 20,
    seed: Seed = 0,
    out: NumbersFile = None,
    json: Json = False,
) -> None:
    """Say which entries of a provisional Q-matrix the data would add or drop."""
    from hidag.cli.commands.diagnostics import ValidationOrder, run_validate_q
    from hidag.cli.read_options import ReadOptions

    run_validate_q(
        ValidationOrder(
            table, q, types, ReadOptions(
                id_column, weights, tuple(missing or ()), tuple(drop or ()), tuple(words or ())
            ),
            tuple(family or ()), parse_levels(levels), parse_effects(effects), resamples,
            changes, estimate, seed, out, json,
        )
    )  # fmt: skip


def bootstrap(
    result: FitFile,
    table: Rows,
    resamples: Annotated[int, typer.Option("--resamples", "-r", help="Tables to refit.")] = 100,
    kind: Annotated[
        str,
        typer.Option(
            help="nonparametric (rows drawn again: doubts the model) or parametric (rows drawn "
            "from the fit: takes it for granted)."
        ),
    ] = "nonparametric",
    start: Annotated[
        str,
        typer.Option(
            help="full (look for starts as the fit did) or fitted (begin at the fit: quick, but "
            "other optima stay hidden)."
        ),
    ] = "full",
    weights: Annotated[
        str | None,
        typer.Option(
            help="Column with the rows' weights, as in `hidag fit`; they go with their rows.",
            show_default="all rows alike",
        ),
    ] = None,
    missing: MissingAgain = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 takes all processors.")] = -1,
    seed: Seed = 0,
) -> None:
    """Refit resampled tables: how sure each edge, entry of Q and number is."""
    from hidag.cli.commands.bootstrap import BootstrapOrder, run_bootstrap

    codes = tuple(missing or ())
    run_bootstrap(BootstrapOrder(result, table, resamples, kind, start, jobs, seed, weights, codes))


def add_explain_commands(app: typer.Typer) -> None:
    """Add the commands to the others."""
    app.command(epilog="Example:\n\n`hidag errors fit answers.csv --out errors.csv`")(errors)
    app.command(epilog="Example:\n\n`hidag goodness fit answers.csv --out goodness`")(goodness)
    app.command(epilog="Example:\n\n`hidag classify fit answers.csv --id pupil --out people.csv`")(
        classify
    )
    app.command(
        "validate-q",
        epilog="Examples:\n\n"
        "`hidag validate-q answers.csv --q q.csv`\n\n"
        "`hidag validate-q study/ --effects all --resamples 50 --estimate --out entries.csv`",
    )(validate_q)
    app.command(epilog="Example:\n\n`hidag bootstrap fit answers.csv --resamples 200`")(bootstrap)


# --- The options of `hidag whatif` and `hidag export`; what they do is in modules of their


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
    from hidag.cli.commands.whatif import run_whatif

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
    from hidag.cli.commands.whatif import run_export

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
