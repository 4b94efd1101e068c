"""`hidag fit` and its options; what it does is in `hidag.cli.commands.fit`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hidag.cli.options import (
    ESTIMATION,
    GRAPH,
    ITEMS,
    OUTPUT,
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
    parse_effects,
    parse_latents,
    parse_levels,
    parse_range,
    parse_strengths,
)

_FIT_EXAMPLES = (
    "Examples:\n\n"
    "`hidag fit answers.csv --latents 3 --out fit`\n\n"
    "`hidag fit study/ --out fit` (a folder with responses.csv, types.csv and q.csv)\n\n"
    "`hidag fit log.csv -k 4 --family 'time_*=lognormal' --family clicks=poisson --seed 1`\n\n"
    "`hidag fit grades.csv --levels 3,3,2 --family ordinal --out fit` (three causes)\n\n"
    "`hidag fit study/ --effects all --out fit` (a G-DINA model with its Q-matrix)\n\n"
    "`hidag fit study/ --hierarchy 'Lexical->Cohesive' --out fit` (nobody has the second alone)"
)


def fit(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet file with one column per item; or a folder with "
            "responses.csv and perhaps types.csv and q.csv.",
            show_default=False,
        ),
    ],
    latents: Annotated[
        str | None,
        typer.Option(
            "--latents",
            "-k",
            help="Number of hidden causes, or auto to choose it from the table; not needed with a "
            "Q-matrix or a list of --levels.",
            show_default=False,
        ),
    ] = None,
    levels: Annotated[
        str,
        typer.Option(
            help="Levels per hidden cause, 2 for yes and no: one number for all, or one per cause "
            "(2,3,2). They are ordered."
        ),
    ] = "2",
    effects: Annotated[
        str,
        typer.Option(
            help="What an item's causes do together: main or acdm (their effects add up), all or "
            "gdina (every interaction), 2, 3, ... (interactions of up to so many), dina (only all "
            "of them together count), dino (any of them is enough).",
            rich_help_panel=ITEMS,
        ),
    ] = "main",
    id_column: IdColumn = None,
    weights: WeightsColumn = None,
    missing: MissingCodes = None,
    drop: DroppedColumns = None,
    words: Words = None,
    types: Types = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            help="Type of all items (bernoulli, poisson, gaussian, lognormal, ordinal, ...; `hidag "
            "info` lists all; auto), or ITEM=TYPE for one item or a pattern such as "
            "'time_*=lognormal'; may be given several times.",
            show_default="auto",
            rich_help_panel=ITEMS,
        ),
    ] = None,
    q: Annotated[
        Path | None,
        typer.Option(
            "--q",
            help="CSV with the column item, then one column per latent: 1, 0, or -1 (estimate).",
            show_default=False,
            rich_help_panel=ITEMS,
        ),
    ] = None,
    no_q: Annotated[
        bool,
        typer.Option(
            "--no-q", help="Ignore the q.csv of a folder and estimate Q.", rich_help_panel=ITEMS
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results; made if need be.", show_default=False),
    ] = None,
    seed: Seed = 0,
    starts: Annotated[
        int | None,
        typer.Option(
            help="Number of starts; the best is kept. [default: as many as are worth their cost]",
            show_default=False,
            rich_help_panel=ESTIMATION,
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, em (exact) or saem (sampling).", rich_help_panel=ESTIMATION)
    ] = "auto",
    law: Annotated[
        str,
        typer.Option(
            help="Latent law: auto, network (over a graph) or saturated (the paper's).",
            rich_help_panel=ESTIMATION,
        ),
    ] = "auto",
    penalty: Annotated[
        str,
        typer.Option(
            help="Sparsity penalty on the loadings: tlp (truncated lasso), scad, mcp or none.",
            rich_help_panel=ESTIMATION,
        ),
    ] = "tlp",
    penalty_strength: Annotated[
        float | None,
        typer.Option(
            help="Weight of the penalty.",
            show_default="chosen from the table",
            rich_help_panel=ESTIMATION,
        ),
    ] = None,
    score: Annotated[
        str,
        typer.Option(help="Score of the graph: auto, bdeu, bic or lean.", rich_help_panel=GRAPH),
    ] = "auto",
    search: Annotated[
        str, typer.Option(help="Search of the graph: xges, ges or exact.", rich_help_panel=GRAPH)
    ] = "xges",
    resample: Annotated[
        str,
        typer.Option(
            help="Rows the graph is searched on: expected, N, 2N, 3N or a number.",
            rich_help_panel=GRAPH,
        ),
    ] = "expected",
    effective_size: Annotated[
        str,
        typer.Option(
            help="Rows that expected counts stand for: auto, all or a share of N.",
            rich_help_panel=GRAPH,
        ),
    ] = "auto",
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="An edge that must be there: 'A->B'; several with commas, or several times. "
            "Without a Q-matrix the fit decides which latent is which.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            help="A direction that must not occur: 'B->A'.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    tiers: Annotated[
        str | None,
        typer.Option(
            help="Order against which no edge goes: 'A,B;C'. Latents left out are free.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            help="A prerequisite: with 'A->B' nobody has B without A. Needs a Q-matrix.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with any of the lists required, forbidden, tiers and hierarchy.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    jobs: Jobs = 1,
    max_iter: Annotated[
        int, typer.Option(help="Most steps per start.", rich_help_panel=ESTIMATION)
    ] = 300,
    tol: Annotated[
        float,
        typer.Option(help="Gain per row below which a start ends.", rich_help_panel=ESTIMATION),
    ] = 1e-4,
    no_plots: NoPlots = False,
    statistics: Annotated[
        bool | None,
        typer.Option(
            "--statistics/--no-statistics",
            help="Say in the report how well the model fits.",
            show_default="where it is quick",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Fit the model to a table and write the results into a folder."""
    from hidag.cli.commands.fit import FitOrder, read_knowledge, run_fit
    from hidag.cli.read_options import ReadOptions

    run_fit(
        FitOrder(
            table=table,
            latents=parse_latents(latents),
            levels=parse_levels(levels),
            types=types,
            family=tuple(family or ()),
            q=q,
            use_folder_q=not no_q,
            out=out,
            plots=not no_plots,
            statistics=statistics,
            reading=ReadOptions(
                id_column, weights, tuple(missing or ()), tuple(drop or ()), tuple(words or ())
            ),
            knowledge=partial(
                read_knowledge, knowledge, require or (), forbid or (), tiers, hierarchy or ()
            ),
            settings={
                "effects": parse_effects(effects),
                "random_state": seed,
                "n_starts": "auto" if starts is None else starts,
                "method": method,
                "law": law,
                "penalty": None if penalty.lower() == "none" else penalty,
                "penalty_strength": penalty_strength,
                "score": score,
                "search": search,
                "resample": int(resample) if resample.isdigit() else resample,
                "effective_size": _number_or_word(effective_size),
                "n_jobs": jobs,
                "max_iter": max_iter,
                "tol": tol,
            },
        )
    )


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def add_fit_command(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command(epilog=_FIT_EXAMPLES)(fit)


# --- `hidag select` and its options; what it does is in `hidag.cli.commands.select`

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
    from hidag.cli.commands.select import SelectOrder, run_select
    from hidag.cli.read_options import ReadOptions

    run_select(
        SelectOrder(
            table=table,
            latents=parse_range(latents),
            reading=ReadOptions(
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
                "penalty_strengths": parse_strengths(penalty_strengths),
                "random_state": seed,
                "n_jobs": jobs,
            },
        )
    )


def add_select_command(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command(epilog=_SELECT_EXAMPLES)(select)
