"""Commands that use a saved fit, from `hidag report` to `bootstrap`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import hidag
from hidag.cli import options as opt
from hidag.cli.console import collected_warnings, counting_bar, say, say_columns, show_warning
from hidag.cli.folders import BOOTSTRAP_FILES, RESAMPLES, check_folder
from hidag.cli.messages import message_style, render
from hidag.cli.options import option
from hidag.exceptions import HidagError, SettingError
from hidag.files import Content, fill_folder, write_file
from hidag.formatting import plural

app = typer.Typer()

#: Optional packages that `hidag info` lists.
_EXTRAS = ("pyarrow", "matplotlib", "jinja2", "typer", "rich")
_TABLE = (
    "The table of the fit, or another one with its columns: CSV, TSV or Parquet, or a folder with "
    "responses.csv."
)
DataTable = Annotated[Path, typer.Argument(help=_TABLE)]


@app.command(epilog="Example: `hidag report fit --out report.html`")
def report(
    result: Path = typer.Argument(
        help="Folder that `hidag fit --out` wrote, or result.npz in it.", show_default=False
    ),
    out: Path | None = option(None, "HTML file to write.", shown="report.html beside the result"),
    title: str | None = option(None, "Title of the page.", shown="that of the fit"),
) -> None:
    """Write the report of a fit, one self-contained HTML page."""
    from hidag.cli.output_files import check_file, load_result
    from hidag.reporting import load_content, render_report

    fitted = load_result(result)
    folder = result if result.is_dir() else result.parent
    content = load_content(folder / "report.json", fitted)
    if title is not None and title.strip():
        content = replace(content, title=title)
    target = folder / "report.html" if out is None else out
    if target.is_dir():
        target = target / "report.html"
    check_file(target, [result], own=folder / "report.html")
    say(f"wrote {write_file(target, render_report(fitted, content, render=render))}")


@app.command(epilog="Example: `hidag plot fit --kind items --out items.pdf`")
def plot(
    result: Path = typer.Argument(
        help="Folder that `hidag fit --out` wrote, or result.npz in it.", show_default=False
    ),
    kind: str = option(
        "graph", "graph, items, q, law, profiles, loadings, trace or item.", "--kind"
    ),
    out: Path = option(Path("figure.pdf"), "File to write: .pdf, .svg or .png."),
    item: str | None = option(None, "Item of --kind item."),
    names: str | None = option(None, "Names of latents, such as Z1=depression,Z2=pain.", "--names"),
) -> None:
    """Draw a figure of a fit for a paper."""
    from hidag.cli.output_files import check_file, load_result
    from hidag.plotting import save_plot

    fitted = load_result(result)
    if names is not None:
        pairs = (part.partition("=") for part in names.split(","))
        fitted = fitted.rename({old.strip(): new.strip() for old, _, new in pairs})
    check_file(out, [result])
    options = {} if item is None else {"item": item}
    say(f"wrote {save_plot(fitted, out, kind, **options)}")


@app.command()
def info(
    result: Path | None = typer.Argument(
        None, help="result.npz, or the folder that holds it.", show_default=False
    ),
) -> None:
    """Print versions and item types, or describe a saved fit."""
    from hidag.cli.output_files import load_result
    from hidag.cli.result_text import say_result
    from hidag.reporting.fit_description import describe_fit, list_concerns

    if result is None:
        _say_versions()
        return
    fitted = load_result(result)
    for sentence in describe_fit(fitted):
        say(sentence)
    say()
    say_result(fitted)
    say(f"\nseed {fitted.seed}, hidag {fitted.versions.get('hidag')}")
    for concern in list_concerns(fitted):
        show_warning(concern)


def _say_versions() -> None:
    from importlib.metadata import PackageNotFoundError, version

    from hidag.measurement.families import family_names
    from hidag.results import versions_used

    known = versions_used()
    rows = [[name, known[name]] for name in ("hidag", *sorted(set(known) - {"hidag"}))]
    for name in _EXTRAS:
        try:
            rows.append([name, version(name)])
        except PackageNotFoundError:
            rows.append([name, "not installed"])
    rows.append(["families", ", ".join(family_names())])
    say_columns(rows)


@app.command(
    "standard-errors",
    epilog="Example:\n\n`hidag standard-errors fit answers.csv --out errors.csv`",
)
def show_standard_errors(
    result: opt.FitFile,
    table: DataTable,
    kind: str | None = option(
        None,
        "Estimator: louis (observed information), sandwich (robust to misspecification, for survey "
        "weights), scores (fastest).",
        shown="louis, with --weights sandwich",
    ),
    weights: opt.WeightsColumn = None,
    level: float = option(0.9, "Coverage of the intervals, between 0 and 1."),
    missing: opt.MissingAgain = None,
    out: opt.NumbersFile = None,
    patterns: Path | None = option(
        None, "CSV file for expected responses by latent pattern (guess, slip) and their errors."
    ),
    json_: opt.Json = False,
) -> None:
    """Print standard errors and intervals of a fit, conditional on Q and the graph."""
    from hidag.cli.data_source import read_items, read_weights
    from hidag.cli.output_files import check_file, load_result, present_table, save_table

    check_file(out, [result, table])
    check_file(patterns, [result, table])
    if out is not None and patterns is not None and out.resolve() == patterns.resolve():
        template = "--out and --patterns both name {path}; they need two files"
        raise SettingError("same-file", template, path=out)
    fitted = load_result(result)
    rows, others = read_items(fitted, table, [weights], missing)
    counts = read_weights(others, weights, rows)
    # Survey weights are no counts of rows: their standard errors are robust ones.
    kind = kind or ("louis" if counts is None else "sandwich")
    found = hidag.standard_errors(fitted, rows, sample_weight=counts, kind=kind, level=level)
    if patterns is not None:
        save_table(patterns, found.patterns)
    present_table(found.table, out, found.to_rows() if json_ else found.summary())
    if patterns is not None and not json_:
        say(f"\nwrote {plural(len(found.patterns), 'row')} into {patterns}")


@app.command(epilog="Example:\n\n`hidag goodness fit answers.csv --out goodness`")
def goodness(
    result: opt.FitFile,
    table: DataTable,
    tables: int = option(100, "Number of data sets simulated for the predictive checks."),
    seed: opt.Seed = 0,
    out: Path | None = option(
        None, "Folder for pairs.csv, items.csv, checks.csv and persons.csv, if computable."
    ),
    ids: opt.IdAgain = None,
    weights: opt.WeightsColumn = None,
    missing: opt.MissingAgain = None,
    json_: opt.Json = False,
) -> None:
    """Print fit statistics: criteria, M2, item pairs, items, predictive checks, persons."""
    from hidag.cli.data_source import files_read, read_weights
    from hidag.cli.output_files import GOODNESS_FILES, csv_content, load_result, say_json

    if out is not None:
        inputs = [*files_read(result), *files_read(table)]
        check_folder(out, GOODNESS_FILES, inputs, sign=list(GOODNESS_FILES)[-1])
    fitted = load_result(result)
    rows, row_ids, others = _read_rows(fitted, table, ids, missing, weights)
    counts = read_weights(others, weights, rows)
    found = hidag.fit_statistics(
        fitted, rows, sample_weight=counts, n_tables=tables, random_state=seed
    )
    persons = hidag.person_fit(fitted, rows, ids=row_ids, random_state=seed)
    contents: dict[str, Content] = {}
    if out is not None:
        parts = (found.pairs, found.items, found.checks, persons.table)
        # Statistics that cannot be computed for many latents have no columns.
        pairs = zip(GOODNESS_FILES, parts, strict=True)
        contents = {name: csv_content(one.columns, one.rows) for name, one in pairs if one.columns}
        fill_folder(out, contents, GOODNESS_FILES)
    if json_:
        say_json({**found.to_dict(style=message_style()), "persons": persons.to_rows()})
        return
    say(found.summary(style=message_style()))
    say()
    say(persons.summary(5))
    if out is not None:
        say(f"\nwrote {', '.join(contents)} into {out}")


@app.command(epilog="Example:\n\n`hidag classify fit answers.csv --id pupil --out people.csv`")
def classify(
    result: opt.FitFile,
    table: DataTable,
    out: Path | None = option(None, "CSV file with a line for each row."),
    ids: opt.IdAgain = None,
    missing: opt.MissingAgain = None,
    json_: opt.Json = False,
) -> None:
    """Classify each row, with the accuracy and consistency of the classification."""
    from hidag.cli.output_files import check_file, load_result, present_table

    check_file(out, [result, table])
    fitted = load_result(result)
    rows, row_ids, _ = _read_rows(fitted, table, ids, missing, None)
    found = hidag.classify(fitted, rows, ids=row_ids)
    text = found.summary(style=message_style())
    present_table(found.to_table(), out, found.to_rows() if json_ else text)


def _read_rows(
    fitted: hidag.FitResult, table: Path, ids: opt.Name, missing: opt.Texts, weights: opt.Name
) -> tuple[Any, list[Any] | None, dict[str, list[Any]]]:
    """Return the items of a fit in a table, row identifiers if there are any, other columns."""
    from hidag.cli.data_source import find_id_column, read_items, warn_of_ids

    column = find_id_column(fitted, table, ids)
    rows, columns = read_items(fitted, table, [column, weights], missing)
    if column is not None:
        warn_of_ids(columns[column], column)
    return rows, None if column is None else columns[column], columns


@app.command(epilog="Example:\n\n`hidag bootstrap fit answers.csv --resamples 200`")
def bootstrap(
    result: opt.FitFile,
    table: DataTable,
    resamples: int = option(100, "Number of bootstrap samples.", "--resamples", "-r"),
    kind: str = option(
        "nonparametric",
        "How samples are drawn: nonparametric (rows with replacement) or parametric (from the fit, "
        "which assumes that the model is correct).",
    ),
    start: str = option(
        "full",
        "Where refits start: full (as the fit did) or fitted (at the estimate, which is faster but "
        "misses other optima).",
    ),
    weights: str | None = option(
        None,
        "Column of row weights, as in `hidag fit`; they are resampled with their rows.",
        shown="equal weights",
    ),
    missing: opt.MissingAgain = None,
    jobs: int = option(-1, "Number of processes, -1 for all processors."),
    seed: opt.Seed = 0,
) -> None:
    """Refit bootstrap samples: support of edges and of Q, and intervals of all parameters."""
    from hidag.cli.data_source import files_read, read_items, read_weights
    from hidag.cli.output_files import load_result
    from hidag.reporting import add_bootstrap, load_content, render_report

    fitted = load_result(result)
    folder = result if result.is_dir() else result.parent
    rows, others = read_items(fitted, table, [weights], missing)
    check_folder(folder, BOOTSTRAP_FILES, files_read(table), sign=BOOTSTRAP_FILES[-1])
    with collected_warnings(), counting_bar() as draw:
        found = hidag.bootstrap(
            fitted,
            rows,
            n_resamples=resamples,
            kind=kind,
            start=start,
            n_jobs=jobs,
            random_state=seed,
            sample_weight=read_weights(others, weights, rows),
            observer=draw and (lambda step: draw("refits", step.n_done, step.n_resamples)),
            folder=folder / RESAMPLES,
        )
    files = _bootstrap_files(fitted, found)
    previous = _count_refits(folder)
    content = add_bootstrap(load_content(folder / "report.json", fitted), fitted, found)
    page = render_report(fitted, content, render=render)
    report_files = {"report.json": content.to_json(), "report.html": page}
    removed = fill_folder(folder, {**report_files, **files}, BOOTSTRAP_FILES)
    say(found.summary())
    into = f"into {folder}, and the intervals into the report {folder / 'report.html'}"
    say(f"\nwrote {', '.join(files)} {into}")
    if previous is not None:
        also = f"; removed {', '.join(removed)}" if removed else ""
        say(f"replaced the results of an earlier bootstrap of {plural(previous, 'refit')}{also}")


def _bootstrap_files(fitted: hidag.FitResult, found: hidag.BootstrapResult) -> dict[str, Content]:
    """Return the content of each file of a bootstrap, without intervals if there are few refits."""
    from hidag.cli.output_files import dict_content
    from hidag.inference.intervals import MIN_REPLICATES
    from hidag.reporting.assembly import bootstrap_effects

    enough, effects = found.n_refits >= MIN_REPLICATES, bootstrap_effects(fitted, found)
    intervals = (found.coefficient_table(), found.law_table()) if enough else ([], [])
    effect_rows = [] if effects is None else effects.rows()
    tables = (found.edge_table(), found.q_table(), *intervals, effect_rows)
    names = zip(BOOTSTRAP_FILES, tables, strict=False)
    contents = {name: dict_content(rows) for name, rows in names if rows}
    return {**contents, BOOTSTRAP_FILES[-1]: found.save}


def _count_refits(folder: Path) -> int | None:
    """Return the number of refits of an earlier bootstrap in a folder; None if there is none."""
    try:
        return hidag.BootstrapResult.load(folder / BOOTSTRAP_FILES[-1]).n_refits
    except (HidagError, OSError):
        return None
