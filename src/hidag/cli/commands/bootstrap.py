"""`hidag bootstrap`: how sure a saved fit is, and its report anew with that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hidag.cli.commands.inspection import load_result
from hidag.cli.console import collected_warnings, counting_bar, say
from hidag.cli.data_source import read_weights
from hidag.cli.folders import check_folder, fill_folder
from hidag.cli.messages import render
from hidag.cli.output_files import BOOTSTRAP_FILES, RESAMPLES, files_read, number, write_csv
from hidag.cli.read_options import read_items
from hidag.exceptions import HidagError
from hidag.inference.bootstrap import BootstrapProgress, bootstrap
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.intervals import MIN_REPLICATES
from hidag.reporting.assembly import add_bootstrap, bootstrap_effects
from hidag.reporting.content import load_content, save_content
from hidag.reporting.html_page import write_page
from hidag.reporting.report import render_report


@dataclass(frozen=True)
class BootstrapOrder:
    """What the user asked for; attributes as the options of the command."""

    fit: Path
    table: Path
    resamples: int
    kind: str
    start: str
    jobs: int
    seed: int
    weights: str | None = None
    missing: tuple[str, ...] = ()


def run_bootstrap(order: BootstrapOrder) -> None:
    """Carry out `hidag bootstrap`."""
    result = load_result(order.fit)
    folder = order.fit if order.fit.is_dir() else order.fit.parent
    beside = () if order.weights is None else (order.weights,)
    rows, labels = read_items(result, order.table, beside, order.missing)
    weights = read_weights(labels, order.weights, rows)
    check_folder(folder, BOOTSTRAP_FILES, files_read(order.table), sign=BOOTSTRAP_FILES[-1])
    with collected_warnings(), counting_bar() as draw:
        found = bootstrap(
            result,
            rows,
            n_resamples=order.resamples,
            kind=order.kind,
            start=order.start,
            sample_weight=weights,
            n_jobs=order.jobs,
            random_state=order.seed,
            observer=_observer(draw),
            folder=folder / RESAMPLES,
        )
    effects = bootstrap_effects(result, found)
    enough = found.n_refits >= MIN_REPLICATES
    tables = (
        found.edge_table(),
        found.q_table(),
        found.coefficient_table() if enough else [],
        found.law_table() if enough else [],
        [] if effects is None else effects.rows(),
    )
    writers = {
        name: partial(
            write_csv,
            header=tuple(table[0]),
            rows=[
                [number(c) if isinstance(c, float) else c for c in row.values()] for row in table
            ],
        )
        for name, table in zip(BOOTSTRAP_FILES, tables, strict=False)
        if table
    }
    files: dict[str, Callable[[Path], object]] = {**writers, BOOTSTRAP_FILES[-1]: found.save}
    before = refits_before(folder)
    gone = [name for name in BOOTSTRAP_FILES if name not in files and (folder / name).exists()]
    fill_folder(folder, files, BOOTSTRAP_FILES)
    say(found.summary())
    page = folder / "report.html"
    stored = folder / "report.json"
    content = add_bootstrap(load_content(stored), result, found)
    save_content(content, stored)
    text = render_report(result, content, render=render)
    write_page(text, page)
    say(f"\nwrote {', '.join(files)} into {folder}; the report {page} says how sure it is")
    if before is not None:
        also = f", and {', '.join(gone)} removed" if gone else ""
        refits = "1 refit" if before == 1 else f"{before} refits"
        say(f"what an earlier bootstrap of {refits} had said is replaced there{also}")


def refits_before(folder: Path) -> int | None:
    """Return how many refits an earlier bootstrap in a folder has; None where there is none."""
    try:
        return BootstrapResult.load(folder / BOOTSTRAP_FILES[-1]).n_refits
    except (HidagError, OSError):
        return None


def _observer(
    draw: Callable[[str, int, int], None] | None,
) -> Callable[[BootstrapProgress], None] | None:
    if draw is None:
        return None
    return lambda progress: draw("refits", progress.n_done, progress.n_resamples)
