"""`hidag fit`: fit the model to a table, print the estimate and write the results."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hidag.cli import options as opt
from hidag.cli.console import collected_warnings, progress_bar, say, show_warning
from hidag.cli.folders import FIT_FILES, FIT_SIGN, Writer, check_folder, fill_folder
from hidag.cli.messages import join_command, render
from hidag.cli.options import estimation_option, graph_option, item_option, option, output_option
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
    table: Path = typer.Argument(
        help="CSV, TSV or Parquet file with one column per item; or a folder with responses.csv "
        "and optionally types.csv and q.csv.",
        show_default=False,
    ),
    latents: str | None = option(
        None,
        "Number of latents, or auto to select it from the data; not needed with a Q-matrix or a "
        "list of --levels.",
        "--latents",
        "-k",
    ),
    levels: str = option(
        "2", "Ordered levels per latent, 2 if binary: one number, or one per latent (2,3,2)."
    ),
    effects: str = item_option(
        "main",
        "How the latents of an item combine: main or acdm (additive), auto (additive, with the "
        "interactions that the data support), all or gdina (all interactions), 2, 3, ... "
        "(interactions up to this order), dina (all latents are required), dino (one suffices).",
    ),
    id_column: opt.IdColumn = None,
    weights: opt.WeightsColumn = None,
    missing: opt.MissingCodes = None,
    drop: opt.DroppedColumns = None,
    words: opt.Words = None,
    types: opt.Types = None,
    family: list[str] | None = item_option(
        None,
        "Type of all items (bernoulli, poisson, gaussian, lognormal, ordinal, ...; `hidag info` "
        "lists all; auto), or ITEM=TYPE for an item or a pattern such as 'time_*=lognormal'; may "
        "be given several times.",
        shown="auto",
    ),
    q: Path | None = item_option(
        None, "CSV with the column item, then one column per latent: 1, 0, or -1 (estimate).", "--q"
    ),
    no_q: bool = item_option(False, "Ignore the q.csv of a folder and estimate Q.", "--no-q"),
    out: Path | None = option(None, "Folder for the results; created if needed."),
    seed: opt.Seed = 0,
    starts: int | None = estimation_option(
        None, "Number of starts, of which the best is used. [default: chosen from the problem]"
    ),
    method: str = estimation_option("auto", "auto, em (exact) or saem (sampling)."),
    law: str = estimation_option(
        "auto", "Latent distribution: auto, network (factorizes over a graph), saturated (paper)."
    ),
    penalty: str = estimation_option(
        "tlp", "Sparsity penalty on the loadings: tlp (truncated lasso), scad, mcp or none."
    ),
    penalty_strength: float | None = estimation_option(
        None, "Weight of the penalty.", shown="selected from the data"
    ),
    score: str = graph_option("auto", "Score of the graph: auto, bdeu, bic or lean."),
    search: str = graph_option("xges", "Search of the graph: xges, ges or exact."),
    resample: str = graph_option(
        "expected", "Counts for the graph search: expected, or rows to sample: N, 2N, 3N, a number."
    ),
    effective_size: str = graph_option(
        "auto", "Effective sample size of the expected counts: auto, all or a share of N."
    ),
    require: list[str] | None = graph_option(
        None,
        "Required edges: 'A->B'; several separated by commas, or several times. Without a "
        "Q-matrix the fit determines the names of the latents.",
    ),
    forbid: list[str] | None = graph_option(None, "Forbidden directions: 'B->A'."),
    tiers: str | None = graph_option(
        None, "Tiers 'A,B;C': no edge points to an earlier tier. Latents may be in no tier."
    ),
    hierarchy: list[str] | None = graph_option(
        None, "Prerequisites: with 'A->B' only rows with A can have B. Needs a Q-matrix."
    ),
    knowledge: Path | None = graph_option(
        None, "JSON file with any of the lists required, forbidden, tiers and hierarchy."
    ),
    jobs: opt.Jobs = 1,
    max_iter: int = estimation_option(300, "Maximum number of iterations per start."),
    tol: float = estimation_option(1e-4, "Gain per row below which a start has converged."),
    no_plots: opt.NoPlots = False,
    statistics: bool | None = output_option(
        None,
        "Compute fit statistics for the report.",
        "--statistics/--no-statistics",
        shown="if they take seconds",
    ),
) -> None:
    """Fit the model to a table and write the results into a folder."""
    from hidag.cli.data_source import ReadOptions, read_source, store_options, warn_of_ids
    from hidag.cli.output_files import fit_files
    from hidag.cli.result_text import say_data, say_result
    from hidag.reporting import assemble_report, list_concerns

    n_latents, level_numbers = opt.parse_latents(latents), opt.parse_levels(levels)
    settings: dict[str, Any] = {"levels": level_numbers, "effects": opt.parse_effects(effects)}
    settings |= {"random_state": seed, "n_starts": "auto" if starts is None else starts}
    settings |= {"method": method, "law": law, "n_jobs": jobs, "max_iter": max_iter, "tol": tol}
    settings |= {
        "penalty": None if penalty.lower() == "none" else penalty,
        "penalty_strength": penalty_strength,
        "graph_score": score,
        "search": search,
        "resample": int(resample) if resample.isdigit() else resample,
        "effective_size": _number_or_text(effective_size),
    }
    reading = ReadOptions(id_column, weights, missing or (), drop or (), words or ())
    source = read_source(table, types, q, family=family, use_folder_q=not no_q, reading=reading)
    if out is not None:
        _check_output(out, source.files)
    if n_latents is None and source.q is not None:
        n_latents = int(source.q.num_columns - 1)
    elif n_latents is None and isinstance(level_numbers, list):
        n_latents = len(level_numbers)
    elif n_latents is None:
        ways = "give their number (--latents 3), select it (--latents auto), or give Q with --q"
        raise typer.BadParameter(ways, param_hint="--latents")
    for note in source.notes:
        say(note)
    if source.ids is not None and id_column is not None:
        warn_of_ids(source.ids, id_column)
    names = () if source.q is None else source.q.column_names
    edges = require or (), forbid or (), tiers, hierarchy or ()
    settings["knowledge"] = read_knowledge(knowledge, *edges, names)
    result, values, issued = fit_source(source, n_latents, settings)
    result = store_options(result, reading)
    say_data(result, table)
    say()
    say_result(result, values)
    for concern in list_concerns(result, issued):
        show_warning(concern)
    if out is None:
        say("\nno results were written; add --out FOLDER to write them")
        return
    about: dict[str, Any] = {"sample_weight": source.weights, "title": source.title}
    content = assemble_report(
        result, values, statistics=statistics, warnings=issued, render=render, **about
    )
    for misfit in content.misfits:
        show_warning(misfit)
    content = replace(content, command=typed_command(), plots=not no_plots)
    _write_files(out, result, fit_files(result, values, content, ids=source.ids))


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check_output(out: Path, inputs: Sequence[Path]) -> None:
    """Check that results can be written into a folder that holds no table."""
    from hidag.data.readers import find_part

    table = find_part(out, "responses") if out.is_dir() else None
    if table is not None:
        template = (
            "the results must not be written into {out}, which holds the table {table}, because "
            "their q.csv would be read there as a given Q-matrix"
        )
        advice, params = "choose another folder with --out", {"out": out, "table": table.name}
        raise FileError("output-folder-has-table", template, params, advice=advice)
    check_folder(out, FIT_FILES, inputs, sign=FIT_SIGN)


def read_knowledge(
    file: Path | None,
    required: Sequence[str],
    forbidden: Sequence[str],
    tiers: str | None,
    hierarchy: Sequence[str],
    names: Collection[str] = (),
) -> Knowledge | None:
    """Return the prior knowledge of options and a JSON file; None if there is none.

    ``names`` are those of the latents that a Q-matrix gives; they may contain commas.
    """
    from hidag.structure.knowledge import Knowledge

    stored = Knowledge() if file is None else Knowledge.from_dict(_read_json(file))
    option_tiers = [
        tuple(name for name in opt.split_known(tier, lambda part: part in names) if name)
        for tier in (tiers or "").split(";")
        if tier.strip()
    ]
    if option_tiers and stored.tiers:
        template = "tiers are given both in {file} and in --tiers"
        raise SettingError("repeated-tiers", template, file=file)
    knowledge = Knowledge(
        (*stored.required, *opt.parse_arrows(required, "--require", names)),
        (*stored.forbidden, *opt.parse_arrows(forbidden, "--forbid", names)),
        tuple(option_tiers) or stored.tiers,
        (*stored.hierarchy, *opt.parse_arrows(hierarchy, "--hierarchy", names)),
    )
    return knowledge if knowledge.to_dict() else None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        template = "{path} is not JSON ({reason}); expected for instance {example}"
        example = '{"required": [["Z1", "Z2"]], "tiers": [["Z1"], ["Z2", "Z3"]]}'
        params = {"path": path, "reason": error, "example": example}
        raise FileError("invalid-json", template, params) from error
    except (OSError, UnicodeDecodeError) as error:
        template = "cannot read the knowledge in {path}: {reason}"
        reason = getattr(error, "strerror", None) or error
        raise FileError("cannot-read-knowledge", template, path=path, reason=reason) from error


def fit_source(
    source: Source, n_latents: int | str, settings: Mapping[str, Any]
) -> tuple[FitResult, Any, list[HidagWarning]]:
    """Return the fit of a source, its values, shape (N, J), and the warnings of the fit."""
    from hidag.cli.data_source import boolean_columns
    from hidag.data.item_types import GIVEN_FAMILY
    from hidag.data.table import read_table
    from hidag.estimator import DCRL

    with collected_warnings() as issued, progress_bar() as observer:
        given = {"family": source.family, "q_matrix": source.q, "observer": observer, **settings}
        model = DCRL(n_latents, **given).fit(source.table, sample_weight=source.weights)
    result = model.result_
    reasons, booleans = list(result.family_reasons), boolean_columns(source.table)
    for j, name in enumerate(result.item_names):
        if name in booleans and reasons[j] != GIVEN_FAMILY:
            reasons[j] += ", read from words such as yes and no"
    result = replace(result, family_reasons=tuple(reasons))
    return result, read_table(source.table).values, issued


def typed_command() -> str:
    """Return the command that was typed, without its output folder."""
    words, arguments = [], iter(sys.argv[1:])
    for word in arguments:
        if word in ("--out", "-o"):
            next(arguments, None)
        elif not word.startswith("--out="):
            words.append(word)
    return join_command(["hidag", *words])


def _write_files(out: Path, result: FitResult, files: Mapping[str, Writer]) -> None:
    """Write all files of a fit, and remove those of an earlier fit that no longer apply."""
    from hidag.cli.output_files import is_another_fit, remove_bootstrap, remove_goodness

    overwrites, another = (out / FIT_SIGN).exists(), is_another_fit(out, result)
    fill_folder(out, files, FIT_FILES)
    say(f"\nwrote {len(files)} files into {out}: {', '.join(files)}")
    if removed := remove_bootstrap(out, refits=another):
        say(f"removed the bootstrap of the previous fit: {', '.join(removed)}")
    # Without a fit in the folder, they belong to a fit that is stored elsewhere.
    if removed := remove_goodness(out) if overwrites and another else []:
        say(f"removed the fit statistics of the previous fit: {', '.join(removed)}")
