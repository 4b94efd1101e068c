"""`hidag fit`: fit the model to a table, print the estimate and write the results."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import hidag
from hidag.cli import options as opt
from hidag.cli.console import collected_warnings, progress_bar, say, show_warning
from hidag.cli.folders import BOOTSTRAP_FILES, FIT_FILES, FIT_SIGN, RESAMPLES, check_folder
from hidag.cli.messages import join_command, render
from hidag.cli.options import estimation_option, graph_option, item_option, option, output_option
from hidag.exceptions import FileError, HidagWarning, SettingError
from hidag.files import Content, fill_folder, read_json

if TYPE_CHECKING:
    from hidag.cli.data_source import Source

app = typer.Typer()
_UNREADABLE = "cannot read the knowledge in {path}: {reason}"


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
        "Number of latents, such as 3, or auto to select it from the data; not needed with a "
        "Q-matrix or a list of --levels.",
        "--latents",
        "-k",
    ),
    levels: str = option(
        "2",
        "Number of ordered levels of the latents, 2 if they are binary: one number for all, or one "
        "per latent (2,3,2), with -linear for equal steps (4-linear); auto selects 2 to 5 levels.",
    ),
    effects: str = item_option(
        "main",
        "How the latents of an item combine: main or acdm (additive), auto (additive, with the "
        "interactions that the data support), all or gdina (all interactions), 2, 3, ... "
        "(interactions up to this order), dina (all latents are required), dino (one suffices).",
    ),
    nuisance: str | None = item_option(
        None,
        "Person-level factor that is summed out: style (all items), or items separated by commas.",
    ),
    doublets: str | None = item_option(
        None, "Pairs of items that depend on each other beyond the latents: a+b,c+d."
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
        None,
        "CSV file with the Q-matrix: the column item, then one column per latent with 1 (the item "
        "measures the latent), 0 (it does not) or -1 (to be estimated). Without it, and without "
        "q.csv in the folder, all of Q is estimated.",
        "--q",
    ),
    no_q: bool = item_option(False, "Ignore the q.csv of a folder and estimate Q.", "--no-q"),
    out: Path | None = option(
        None, "Folder for the results, created if needed. Without it no file is written."
    ),
    seed: opt.Seed = 0,
    starts: int | None = estimation_option(
        None, "Number of starts, of which the best is used. [default: chosen from the problem]"
    ),
    method: str = estimation_option(
        "auto",
        "Algorithm: em (exact sums over all joint states of the latents), saem (samples the "
        "latents, for many of them), or auto (em where its cost allows it).",
    ),
    law: str = estimation_option(
        "auto",
        "Joint distribution of the latents: network (factorises over the graph), saturated (no "
        "restriction, as in the paper), or auto (selected by an information criterion).",
    ),
    penalty: str = estimation_option(
        "tlp", "Sparsity penalty on the loadings: tlp (truncated lasso), scad, mcp or none."
    ),
    penalty_strength: float | None = estimation_option(
        None, "Log-likelihood that a loading must gain, such as 4.", shown="selected from the data"
    ),
    score: str = graph_option(
        "auto",
        "Score of the graph search: bdeu, bic, lean (a BIC with parsimonious tables), or auto "
        "(bdeu if all latents are binary, otherwise lean).",
    ),
    search: str = graph_option(
        "xges", "Graph search: xges, ges (as in the paper), or exact (at most 12 latents)."
    ),
    resample: str = graph_option(
        "expected",
        "Counts of the latents for the graph search: expected ones, or those of sampled rows, as "
        "many as N, 2N, 3N (multiples of the rows of the table) or a number.",
    ),
    effective_size: str = graph_option(
        "auto",
        "Effective sample size of the expected counts: auto (from the information about the "
        "latents), all (the number of rows), or a share of the rows such as 0.5.",
    ),
    uncertainty: str = graph_option(
        "quick",
        "Probabilities of edges: quick, full (from the likelihood of more graphs), or none.",
    ),
    checks: str = graph_option(
        "quick", "Tests of the model after the fit, with warnings and remedies: quick or none."
    ),
    claim_level: float = graph_option(
        0.8, "Probability from which arrows and edges are stated as such."
    ),
    require: list[str] | None = graph_option(
        None,
        "Edges that the graph must have, such as 'Z1->Z2'; several are separated by commas, or the "
        "option is given several times. Latents have the names in the Q-matrix, else Z1, Z2, ...",
    ),
    forbid: list[str] | None = graph_option(
        None, "Directions that the graph must not have, such as 'B->A'."
    ),
    tiers: str | None = graph_option(
        None,
        "Order of groups of latents, such as 'A,B;C': no edge points to an earlier group. Latents "
        "may be in none.",
    ),
    hierarchy: list[str] | None = graph_option(
        None,
        "Prerequisites, such as 'A->B': only rows with A can have B. This needs a Q-matrix.",
    ),
    knowledge: Path | None = graph_option(
        None,
        "JSON file with any of the lists required, forbidden, tiers and hierarchy, such as "
        '{"required": [["Z1", "Z2"]]}.',
    ),
    jobs: opt.Jobs = 1,
    max_iter: int = estimation_option(300, "Maximum number of iterations per start."),
    tol: float = estimation_option(
        1e-4, "Gain in the objective per row below which a start has converged."
    ),
    no_plots: opt.NoPlots = False,
    statistics: bool | None = output_option(
        None,
        "Whether to compute the fit statistics of the report.",
        "--statistics/--no-statistics",
        shown="if they take seconds",
    ),
) -> None:
    """Fit the model to a table and write the results into a folder."""
    from hidag.cli.data_source import ReadOptions, read_source, store_options, warn_of_ids
    from hidag.cli.output_files import fit_files
    from hidag.cli.result_text import say_data, say_result
    from hidag.reporting import assemble_report
    from hidag.reporting.fit_description import list_concerns
    from hidag.results import resumable

    n_latents, level_numbers = opt.parse_latents(latents), opt.parse_fit_levels(levels)
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
    # The settings are text until the estimator checks them.
    estimator: Any = hidag.DCRL
    model = estimator(
        n_latents,
        levels=level_numbers,
        effects=opt.parse_effects(effects),
        nuisance=opt.parse_nuisance(nuisance),
        doublets=opt.parse_doublets(doublets),
        family=source.family,
        q_matrix=source.q,
        penalty=None if penalty.lower() == "none" else penalty,
        penalty_strength=penalty_strength,
        method=method,
        law=law,
        resample=int(resample) if resample.isdigit() else resample,
        effective_size=_number_or_text(effective_size),
        graph_score=score,
        search=search,
        uncertainty=uncertainty,
        checks=checks,
        claim_level=claim_level,
        knowledge=read_knowledge(knowledge, *edges, names),
        n_starts="auto" if starts is None else starts,
        max_iter=max_iter,
        tol=tol,
        n_jobs=jobs,
        random_state=seed,
    )
    with resumable(out):
        result, values, issued = fit_source(source, model)
        result = store_options(result, reading)
        written = ["\nno results were written; add --out FOLDER to write them"]
        misfits: tuple[str, ...] = ()
        if out is not None:
            content = assemble_report(
                result,
                values,
                sample_weight=source.weights,
                statistics=statistics,
                title=source.title,
                warnings=issued,
                render=render,
            )
            misfits = content.misfits
            content = replace(content, command=typed_command(), plots=not no_plots)
            files = fit_files(result, values, content, ids=source.ids)
            written = _write_files(out, result, files)
    say_data(result, table)
    say()
    say_result(result, values)
    for concern in (*list_concerns(result, issued), *misfits):
        show_warning(concern)
    for line in written:
        say(line)


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
) -> hidag.Knowledge | None:
    """Return the prior knowledge of options and a JSON file; None if there is none.

    ``names`` are those of the latents that a Q-matrix gives; they may contain commas.
    """
    stored = hidag.Knowledge() if file is None else hidag.Knowledge.from_dict(_read_json(file))
    option_tiers = [
        tuple(name for name in opt.split_known(tier, lambda part: part in names) if name)
        for tier in (tiers or "").split(";")
        if tier.strip()
    ]
    if option_tiers and stored.tiers:
        template = "tiers are given both in {file} and in --tiers"
        raise SettingError("repeated-tiers", template, file=file)
    knowledge = hidag.Knowledge(
        (*stored.required, *opt.parse_arrows(required, "--require", names)),
        (*stored.forbidden, *opt.parse_arrows(forbidden, "--forbid", names)),
        tuple(option_tiers) or stored.tiers,
        (*stored.hierarchy, *opt.parse_arrows(hierarchy, "--hierarchy", names)),
    )
    return knowledge if knowledge.to_dict() else None


def _read_json(path: Path) -> Any:
    try:
        return read_json(path)
    except UnicodeDecodeError as error:
        raise FileError("cannot-read-knowledge", _UNREADABLE, path=path, reason=error) from error
    except ValueError as error:
        template = "{path} is not JSON ({reason}); expected for instance {example}"
        example = '{"required": [["Z1", "Z2"]], "tiers": [["Z1"], ["Z2", "Z3"]]}'
        params = {"path": path, "reason": error, "example": example}
        raise FileError("invalid-json", template, params) from error
    except OSError as error:
        reason = error.strerror or error
        raise FileError("cannot-read-knowledge", _UNREADABLE, path=path, reason=reason) from error


def fit_source(
    source: Source, model: hidag.DCRL
) -> tuple[hidag.FitResult, Any, list[HidagWarning]]:
    """Return the fit of a source, its values, shape (N, J), and the warnings of the fit."""
    from hidag.cli.data_source import boolean_columns
    from hidag.data.item_types import GIVEN_FAMILY
    from hidag.data.table import read_table

    with collected_warnings() as issued, progress_bar() as observer:
        model.set_params(observer=observer).fit(source.table, sample_weight=source.weights)
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


def _write_files(out: Path, result: hidag.FitResult, files: Mapping[str, Content]) -> list[str]:
    """Write all files of a fit in place of those of an earlier one; return what was done."""
    from hidag.cli import output_files
    from hidag.inference.bootstrap import remove_refits

    overwrites, another = (out / FIT_SIGN).exists(), output_files.is_another_fit(out, result)
    # Without the last one, files with these names are not ours.
    bootstrap = BOOTSTRAP_FILES if (out / BOOTSTRAP_FILES[-1]).is_file() else ()
    # Without a fit in the folder, they belong to a fit that is stored elsewhere.
    statistics = output_files.goodness_files(out) if overwrites and another else []
    removed = fill_folder(out, files, [*FIT_FILES, *bootstrap, *statistics])
    refits = [RESAMPLES] if another and remove_refits(out / RESAMPLES) else []
    lines = [f"\nwrote {len(files)} files into {out}: {', '.join(files)}"]
    parts = {"bootstrap": [*bootstrap, *refits], "fit statistics": statistics}
    for what, names in parts.items():
        if gone := [name for name in names if name in (*removed, *refits)]:
            lines.append(f"removed the {what} of the previous fit: {', '.join(gone)}")
    return lines
