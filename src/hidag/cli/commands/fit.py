"""`hidag fit`: fit the model to a table, print the estimate and write the results."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hidag.cli.options import (
    ESTIMATION,
    GRAPH,
    ITEMS,
    OUTPUT,
    DroppedColumns,
    IdColumn,
    Jobs,
    MissingCodes,
    NoPlots,
    Seed,
    Types,
    WeightsColumn,
    Words,
    parse_arrows,
    parse_effects,
    parse_latents,
    parse_levels,
    split_known,
)
from hidag.exceptions import FileError, HidagWarning, SettingError

if TYPE_CHECKING:
    from hidag.cli.data_source import Source
    from hidag.results import FitResult
    from hidag.structure.knowledge import Knowledge

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "`hidag fit answers.csv --latents 3 --out fit`\n\n"
    "`hidag fit study/ --out fit` (a folder with responses.csv, types.csv and q.csv)\n\n"
    "`hidag fit log.csv -k 4 --family 'time_*=lognormal' --family clicks=poisson --seed 1`\n\n"
    "`hidag fit grades.csv --levels 3,3,2 --family ordinal --out fit` (three latents)\n\n"
    "`hidag fit study/ --effects all --out fit` (a G-DINA model with its Q-matrix)\n\n"
    "`hidag fit study/ --hierarchy 'Lexical->Cohesive' --out fit` (a prerequisite)"
)
def fit(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet file with one column per item; or a folder with "
            "responses.csv and optionally types.csv and q.csv.",
            show_default=False,
        ),
    ],
    latents: Annotated[
        str | None,
        typer.Option(
            "--latents",
            "-k",
            help="Number of latents, or auto to select it from the data; not needed with a "
            "Q-matrix or a list of --levels.",
            show_default=False,
        ),
    ] = None,
    levels: Annotated[
        str,
        typer.Option(
            help="Ordered levels per latent, 2 for binary latents: one number for all, or one per "
            "latent (2,3,2)."
        ),
    ] = "2",
    effects: Annotated[
        str,
        typer.Option(
            help="How the latents of an item combine: main or acdm (additive), all or gdina (all "
            "interactions), 2, 3, ... (interactions up to this order), dina (all latents are "
            "required), dino (one latent suffices).",
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
            "info` lists all; auto), or ITEM=TYPE for an item or a pattern such as "
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
        typer.Option(help="Folder for the results; created if needed.", show_default=False),
    ] = None,
    seed: Seed = 0,
    starts: Annotated[
        int | None,
        typer.Option(
            help="Number of starts, of which the best is used. [default: chosen from the problem]",
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
            help="Latent distribution: auto, network (factorizes over a graph) or saturated (as in "
            "the paper).",
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
            show_default="selected from the data",
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
            help="Counts for the graph search: expected, or sampled: N, 2N, 3N or a number of "
            "rows.",
            rich_help_panel=GRAPH,
        ),
    ] = "expected",
    effective_size: Annotated[
        str,
        typer.Option(
            help="Effective sample size of the expected counts: auto, all or a share of N.",
            rich_help_panel=GRAPH,
        ),
    ] = "auto",
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Required edges: 'A->B'; several separated by commas, or several times. Without a "
            "Q-matrix the fit determines the names of the latents.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            help="Forbidden directions: 'B->A'.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    tiers: Annotated[
        str | None,
        typer.Option(
            help="Tiers 'A,B;C': no edge points to an earlier tier. Latents may be in no tier.",
            show_default=False,
            rich_help_panel=GRAPH,
        ),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            help="Prerequisites: with 'A->B' only rows with A can have B. Needs a Q-matrix.",
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
        int,
        typer.Option(help="Maximum number of iterations per start.", rich_help_panel=ESTIMATION),
    ] = 300,
    tol: Annotated[
        float,
        typer.Option(
            help="Gain per row below which a start has converged.", rich_help_panel=ESTIMATION
        ),
    ] = 1e-4,
    no_plots: NoPlots = False,
    statistics: Annotated[
        bool | None,
        typer.Option(
            "--statistics/--no-statistics",
            help="Compute fit statistics for the report.",
            show_default="if they take seconds",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Fit the model to a table and write the results into a folder."""
    from hidag.cli.console import say, show_warning
    from hidag.cli.data_source import families_for_all, read_source
    from hidag.cli.read_options import ReadOptions, store_options, warn_of_ids
    from hidag.cli.result_text import say_data, say_result
    from hidag.reporting import list_concerns

    n_latents, level_numbers, families = parse_latents(latents), parse_levels(levels), family or []
    settings: dict[str, Any] = {
        "levels": level_numbers,
        "effects": parse_effects(effects),
        "random_state": seed,
        "n_starts": "auto" if starts is None else starts,
        "method": method,
        "law": law,
        "penalty": None if penalty.lower() == "none" else penalty,
        "penalty_strength": penalty_strength,
        "graph_score": score,
        "search": search,
        "resample": int(resample) if resample.isdigit() else resample,
        "effective_size": _number_or_text(effective_size),
        "n_jobs": jobs,
        "max_iter": max_iter,
        "tol": tol,
    }
    options = ReadOptions(
        id_column, weights, tuple(missing or ()), tuple(drop or ()), tuple(words or ())
    )
    source = read_source(
        table,
        types,
        q,
        use_folder_types=not families_for_all(families),
        use_folder_q=not no_q,
        reading=options,
    )
    if out is not None:
        _check_output(out, source.files)
    if n_latents is None:
        n_latents = _default_number_of_latents(level_numbers, source)
    for note in source.notes:
        say(note)
    if source.ids is not None and id_column is not None:
        warn_of_ids(source.ids, id_column)
    settings["knowledge"] = read_knowledge(
        knowledge,
        require or (),
        forbid or (),
        tiers,
        hierarchy or (),
        () if source.q is None else source.q.column_names,
    )
    result, values, issued = fit_source(source, n_latents, families, settings)
    result = store_options(result, options)
    say_data(result, table)
    say()
    say_result(result, values)
    for concern in list_concerns(result, issued):
        show_warning(concern)
    if out is None:
        say("\nno results were written; add --out FOLDER to write them")
        return
    _write_results(out, result, values, source, issued, plots=not no_plots, statistics=statistics)


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check_output(out: Path, inputs: Sequence[Path]) -> None:
    """Check that results can be written into a folder that holds no table.

    A q.csv among the results would be read as the given Q-matrix of that table.
    """
    from hidag.cli.folders import FIT_SIGN, check_folder
    from hidag.cli.output_files import FIT_FILES
    from hidag.data.readers import find_part

    table = find_part(out, "responses") if out.is_dir() else None
    if table is not None:
        raise FileError(
            "output-folder-has-table",
            "the results must not be written into {out}, which holds the table {table}, because "
            "their q.csv would be read there as a given Q-matrix",
            advice="choose another folder with --out",
            out=out,
            table=table.name,
        )
    check_folder(out, FIT_FILES, inputs, sign=FIT_SIGN)


def _default_number_of_latents(levels: int | list[int], source: Source) -> int:
    """Return the number of latents of a Q-matrix or a list of levels."""
    if source.q is not None:
        return int(source.q.num_columns - 1)
    if isinstance(levels, list):
        return len(levels)
    raise typer.BadParameter(
        "give the number of latents, for instance --latents 3, select it with --latents auto, or "
        "give a Q-matrix with --q",
        param_hint="--latents",
    )


def read_knowledge(
    file: Path | None,
    required: Sequence[str],
    forbidden: Sequence[str],
    tiers: str | None,
    hierarchy: Sequence[str],
    names: Collection[str] = (),
) -> Knowledge | None:
    """Return the prior knowledge of options and a file; None if there is none.

    Parameters
    ----------
    file : Path or None
        JSON with the lists required, forbidden, tiers and hierarchy, as `Knowledge.to_dict` writes.
    required, forbidden, hierarchy : sequence of str
        Such as "A->B", several separated by commas.
    tiers : str or None
        Such as "A,B;C": A and B before C.
    names : collection of str
        Names of the latents that a Q-matrix gives; they may contain commas.
    """
    from hidag.structure.knowledge import Knowledge

    stored = Knowledge() if file is None else Knowledge.from_dict(_read_json(file))
    option_tiers = [
        tuple(name for name in split_known(tier, lambda part: part in names) if name)
        for tier in (tiers or "").split(";")
        if tier.strip()
    ]
    if option_tiers and stored.tiers:
        raise SettingError(
            "repeated-tiers", "tiers are given both in {file} and in --tiers", file=file
        )
    knowledge = Knowledge(
        (*stored.required, *parse_arrows(required, "--require", names)),
        (*stored.forbidden, *parse_arrows(forbidden, "--forbid", names)),
        tuple(option_tiers) or stored.tiers,
        (*stored.hierarchy, *parse_arrows(hierarchy, "--hierarchy", names)),
    )
    return knowledge if knowledge.to_dict() else None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            "cannot-read-knowledge",
            "cannot read the knowledge in {path}: {reason}",
            path=path,
            reason=getattr(error, "strerror", None) or error,
        ) from error
    except json.JSONDecodeError as error:
        raise FileError(
            "invalid-json",
            "{path} is not JSON ({reason}); expected for instance {example}",
            path=path,
            reason=error,
            example='{"required": [["Z1", "Z2"]], "tiers": [["Z1"], ["Z2", "Z3"]]}',
        ) from error


def fit_source(
    source: Source, n_latents: int | str, family: Sequence[str], settings: Mapping[str, Any]
) -> tuple[FitResult, Any, list[HidagWarning]]:
    """Return the fit of a source, its values, shape (N, J), and the warnings of the fit."""
    from hidag.cli.console import collected_warnings, progress_bar
    from hidag.cli.data_source import boolean_columns, choose_families
    from hidag.data.item_types import GIVEN_FAMILY
    from hidag.data.table import read_table
    from hidag.estimator import DCRL

    families = choose_families(family, source.types, tuple(source.table.column_names))
    with collected_warnings() as issued, progress_bar() as observer:
        model = DCRL(
            n_latents, family=families, q_matrix=source.q, observer=observer, **settings
        ).fit(source.table, sample_weight=source.weights)
    result = model.result_
    booleans = boolean_columns(source.table)
    reasons = (
        f"{reason}, read from words such as yes and no"
        if name in booleans and reason != GIVEN_FAMILY
        else reason
        for name, reason in zip(result.item_names, result.family_reasons, strict=True)
    )
    result = replace(result, family_reasons=tuple(reasons))
    return result, read_table(source.table).values, issued


def typed_command() -> str:
    """Return the command that was typed, without its output folder."""
    from hidag.cli.messages import join_command

    words, arguments = [], iter(sys.argv[1:])
    for word in arguments:
        if word in ("--out", "-o"):
            next(arguments, None)
        elif not word.startswith("--out="):
            words.append(word)
    return join_command(["hidag", *words])


def _write_results(
    out: Path,
    result: FitResult,
    values: Any,
    source: Source,
    issued: Sequence[HidagWarning],
    *,
    plots: bool,
    statistics: bool | None,
) -> None:
    """Write all files of a fit, and remove those of an earlier fit that no longer apply."""
    from hidag.cli.console import say, show_warning
    from hidag.cli.folders import FIT_SIGN, fill_folder
    from hidag.cli.messages import render
    from hidag.cli.output_files import (
        FIT_FILES,
        fit_files,
        is_another_fit,
        remove_bootstrap,
        remove_goodness,
    )
    from hidag.reporting import assemble_report

    content = assemble_report(
        result,
        values,
        sample_weight=source.weights,
        statistics=statistics,
        title=source.title,
        warnings=issued,
        render=render,
    )
    for misfit in content.misfits:
        show_warning(misfit)
    content = replace(content, command=typed_command(), plots=plots)
    files = fit_files(result, values, content, ids=source.ids)
    overwrites = (out / FIT_SIGN).exists()
    another = is_another_fit(out, result)
    fill_folder(out, files, FIT_FILES)
    say(f"\nwrote {len(files)} files into {out}: {', '.join(files)}")
    if removed := remove_bootstrap(out, refits=another):
        say(f"removed the bootstrap of the previous fit: {', '.join(removed)}")
    # Without a fit in the folder, they belong to a fit that is stored elsewhere.
    if removed := remove_goodness(out) if overwrites and another else []:
        say(f"removed the fit statistics of the previous fit: {', '.join(removed)}")
