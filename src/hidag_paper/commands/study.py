"""`hidag study`: run a study, and print its results with the published numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from hidag.cli.console import columns, counting_bar, say, show_warning
from hidag.cli.folders import check_folder
from hidag.exceptions import Advice, Setting, SettingError
from hidag.files import fill_folder
from hidag_paper.studies.catalogue import plan_study
from hidag_paper.studies.execution import StudyProgress, run_study
from hidag_paper.studies.study_folder import StudyFolder, read_folder
from hidag_paper.studies.summary import PAPER_TABLES, Published, read_published
from hidag_paper.study_reports.formatted import StudyTable
from hidag_paper.study_reports.tables import StudyReport, study_report

#: Seconds between progress messages without a terminal.
_INTERVAL = 60.0


def run_study_command(
    name: str,
    out: Path,
    *,
    cells: str | None,
    n: str | None,
    families: str | None,
    q: str | None,
    methods: str | None,
    replicates: int | None,
    quick: bool,
    workers: int,
    published: Path | None,
    **settings: Any,
) -> None:
    """Run `hidag study NAME`."""
    if quick and replicates is not None:
        raise SettingError(
            "exclusive-options",
            "{first} and {second} both set the number of tables per cell",
            advice=Advice("omit-option", "omit one of them"),
            first=Setting("quick"),
            second=Setting("replicates"),
        )
    plan = plan_study(
        name,
        cells=_patterns(cells),
        n=_numbers(n),
        families=_parts(families),
        q=_parts(q),
        methods=_parts(methods),
        replicates=replicates,
        quick=quick,
        **settings,
    )
    known = None if published is None else read_published(published, (name,))
    with _progress() as observer:
        folder = run_study(plan, out, workers=workers, published=known, observer=observer)
    print_report(study_report(folder, wanted=plan.cells, published=_published(folder)), out)


def run_report(path: Path, published: Path | None, out: Path | None) -> None:
    """Run `hidag study report`."""
    from hidag_paper.study_reports.pages import study_files

    folder = read_folder(path)
    report = study_report(folder, published=_published(folder, published))
    print_report(report, path)
    target = path / "report" if out is None else out
    files = study_files(report)
    check_folder(target, files, sign="report.md")
    fill_folder(target, files)
    say()
    say(f"written to {target}: {', '.join(files)}")


def _published(folder: StudyFolder, given: Path | None = None) -> Published:
    """Return the published numbers: those given, else those of the run, else those of the paper."""
    study = (str(folder.settings["study"]),)
    last = {} if given is None else read_published(given, study)
    return {**read_published(PAPER_TABLES, study), **folder.published, **last}


def print_report(report: StudyReport, path: Path) -> None:
    """Print the tables and the comparison with the paper."""
    say(f"{report.about}: {path}")
    for table in report.tables:
        say()
        _print_table(table, titled=len(report.tables) > 1)
    if report.comparison:
        say()
    for line in report.comparison:
        say(line)
    for warning in report.warnings:
        show_warning(warning)


def _print_table(table: StudyTable, *, titled: bool) -> None:
    if titled:
        say(table.title)
    for line in columns([table.headings, *table.rows], right=range(1, len(table.headings))):
        say(line)
    say()
    width = max((len(heading) for heading, _ in table.notes), default=0)
    for heading, meaning in table.notes:
        say(f"  {heading.ljust(width)}  {meaning}")


def _parts(text: str | None) -> tuple[str, ...] | None:
    """Return the parts of an option separated by commas; None if it was not given."""
    if text is None:
        return None
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _patterns(text: str | None) -> tuple[str, ...]:
    parts = _parts(text)
    if parts == ():
        raise typer.BadParameter("expected parts of cell names, got nothing", param_hint="--cells")
    return parts or ()


def _numbers(text: str | None) -> tuple[int, ...] | None:
    parts = _parts(text)
    if parts is None:
        return None
    if not parts or not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(
            f"expected integers separated by commas, got {text!r}",
            param_hint="--n",
        )
    return tuple(int(part) for part in parts)


@contextmanager
def _progress() -> Iterator[Callable[[StudyProgress], None]]:
    """Yield an observer: a bar on a terminal, otherwise a line from time to time."""
    with counting_bar() as draw:
        if draw is None:
            yield _print_lines()
            return

        def observe(progress: StudyProgress) -> None:
            failed = f", {progress.n_failed} failed" if progress.n_failed else ""
            draw(f"runs{failed}", progress.n_done, progress.n_runs)

        yield observe


def _print_lines() -> Callable[[StudyProgress], None]:
    start = last = time.monotonic()

    def observe(progress: StudyProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _INTERVAL or not progress.n_new:
            return
        last = now
        left = (now - start) / progress.n_new * (progress.n_runs - progress.n_done)
        failed = f", {progress.n_failed} failed" if progress.n_failed else ""
        print(
            f"hidag: {progress.n_done} of {progress.n_runs} runs{failed}, about "
            f"{left / 60:.0f} min left",
            file=sys.stderr,
        )

    return observe
