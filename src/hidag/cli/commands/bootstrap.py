"""`hidag bootstrap`: refits of resampled data, written beside a fit and into its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hidag.cli.commands.diagnostics import DataTable
from hidag.cli.options import FitFile, MissingAgain, Seed

if TYPE_CHECKING:
    from hidag.cli.folders import Writer
    from hidag.inference.bootstrap_result import BootstrapResult
    from hidag.results import FitResult

app = typer.Typer()


@app.command(epilog="Example:\n\n`hidag bootstrap fit answers.csv --resamples 200`")
def bootstrap(
    result: FitFile,
    table: DataTable,
    resamples: Annotated[
        int, typer.Option("--resamples", "-r", help="Number of bootstrap samples.")
    ] = 100,
    kind: Annotated[
        str,
        typer.Option(
            help="nonparametric (rows drawn with replacement) or parametric (rows simulated from "
            "the fit, assuming that the model is correct)."
        ),
    ] = "nonparametric",
    start: Annotated[
        str,
        typer.Option(
            help="full (starts as in the fit) or fitted (start from the estimate: faster, but "
            "misses other optima)."
        ),
    ] = "full",
    weights: Annotated[
        str | None,
        typer.Option(
            help="Column of row weights, as in `hidag fit`; they are resampled with their rows.",
            show_default="equal weights",
        ),
    ] = None,
    missing: MissingAgain = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1: all processors.")] = -1,
    seed: Seed = 0,
) -> None:
    """Refit bootstrap samples: support of edges and of Q, and intervals of all parameters."""
    from hidag.cli.console import collected_warnings, counting_bar, say
    from hidag.cli.data_source import read_weights
    from hidag.cli.folders import check_folder, fill_folder
    from hidag.cli.messages import render
    from hidag.cli.output_files import BOOTSTRAP_FILES, RESAMPLES, files_read, load_result
    from hidag.cli.read_options import read_items
    from hidag.inference.bootstrap import bootstrap as resample
    from hidag.reporting.assembly import add_bootstrap
    from hidag.reporting.content import load_content, save_content
    from hidag.reporting.html_page import write_page
    from hidag.reporting.report import render_report

    fitted = load_result(result)
    folder = result if result.is_dir() else result.parent
    rows, others = read_items(fitted, table, [] if weights is None else [weights], missing or ())
    check_folder(folder, BOOTSTRAP_FILES, files_read(table), sign=BOOTSTRAP_FILES[-1])
    with collected_warnings(), counting_bar() as draw:
        found = resample(
            fitted,
            rows,
            n_resamples=resamples,
            kind=kind,
            start=start,
            sample_weight=read_weights(others, weights, rows),
            n_jobs=jobs,
            random_state=seed,
            observer=_observer(draw),
            folder=folder / RESAMPLES,
        )
    files = _bootstrap_files(fitted, found)
    previous = _count_refits(folder)
    removed = [name for name in BOOTSTRAP_FILES if name not in files and (folder / name).exists()]
    fill_folder(folder, files, BOOTSTRAP_FILES)
    say(found.summary())
    content = add_bootstrap(load_content(folder / "report.json"), fitted, found)
    save_content(content, folder / "report.json")
    page = write_page(render_report(fitted, content, render=render), folder / "report.html")
    say(f"\nwrote {', '.join(files)} into {folder}, and the intervals into the report {page}")
    if previous is not None:
        also = f"; removed {', '.join(removed)}" if removed else ""
        refits = "1 refit" if previous == 1 else f"{previous} refits"
        say(f"replaced the results of an earlier bootstrap of {refits}{also}")


def _bootstrap_files(fitted: FitResult, found: BootstrapResult) -> dict[str, Writer]:
    """Return a writer for each file of a bootstrap, without intervals if there are few refits."""
    from hidag.cli.output_files import BOOTSTRAP_FILES, write_dicts
    from hidag.inference.intervals import MIN_REPLICATES
    from hidag.reporting.assembly import bootstrap_effects

    enough = found.n_refits >= MIN_REPLICATES
    effects = bootstrap_effects(fitted, found)
    tables = (
        found.edge_table(),
        found.q_table(),
        found.coefficient_table() if enough else [],
        found.law_table() if enough else [],
        [] if effects is None else effects.rows(),
    )
    names = zip(BOOTSTRAP_FILES, tables, strict=False)
    writers = {name: write_dicts(rows) for name, rows in names if rows}
    return {**writers, BOOTSTRAP_FILES[-1]: found.save}


def _count_refits(folder: Path) -> int | None:
    """Return the number of refits of an earlier bootstrap in a folder; None if there is none."""
    from hidag.cli.output_files import BOOTSTRAP_FILES
    from hidag.exceptions import HidagError
    from hidag.inference.bootstrap_result import BootstrapResult

    try:
        return BootstrapResult.load(folder / BOOTSTRAP_FILES[-1]).n_refits
    except (HidagError, OSError):
        return None


def _observer(draw: Callable[[str, int, int], None] | None) -> Callable[[Any], None] | None:
    if draw is None:
        return None
    return lambda progress: draw("refits", progress.n_done, progress.n_resamples)
