"""Run an application and write its folder: figures, tables, the fit and a page."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hidag.cli.console import collected_warnings, one_line, progress_bar, say, show_warning
from hidag.cli.folders import FIT_SIGN, check_folder
from hidag.cli.messages import join_command
from hidag.cli.output_files import csv_content
from hidag.files import Content, fill_folder, read_json
from hidag.plotting.figure import Format, render_figure
from hidag.reporting.fit_description import format_edges
from hidag_paper.applications.report import ApplicationReport

#: Written last; its presence identifies a complete folder.
SIGN = "summary.json"
_PAGE = "page.html"
_FORMATS: tuple[Format, ...] = ("png", "svg")


def run_application(
    compute: Callable[[], ApplicationReport], out: Path, inputs: Iterable[Path] = ()
) -> ApplicationReport:
    """Run an application, print its findings and write its folder.

    Parameters
    ----------
    compute : callable
        Returns the report.
    out : Path
        Folder to write, checked before the computation. Files of other origin are not changed.
    inputs : iterable of Path
        Input files, which may not be overwritten.
    """
    start = time.monotonic()
    check_folder(out, (_PAGE, FIT_SIGN, SIGN), inputs, sign=SIGN)
    with collected_warnings() as warnings:
        report = compute()
    files = report_files(report, command=join_command(["hidag", *sys.argv[1:]]))
    check_folder(out, files, inputs, sign=SIGN)
    fill_folder(out, files, _written_before(out))
    say(report.title)
    for sentence in report.findings:
        say(f"  {sentence}")
    say("\ncausal graph among the latents")
    for edge in format_edges(report.result.graph) or ["no edge"]:
        say(f"  {edge}")
    for warning in warnings:
        show_warning(warning)
    for sentence in report.cautions:
        show_warning(sentence)
    say(f"\n{time.monotonic() - start:.0f} seconds; open {out / _PAGE}")
    return report


@contextmanager
def _status_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a status on a terminal, each over the last."""
    width = 0

    def show(text: str) -> None:
        nonlocal width
        if sys.stderr.isatty():
            print(f"\r{one_line(text).ljust(width)}", end="", file=sys.stderr, flush=True)
            width = max(width, len(text))

    try:
        yield show
    finally:
        if width:
            print(f"\r{' ' * width}\r", end="", file=sys.stderr, flush=True)


def run_on_folder(
    run: Callable[..., ApplicationReport],
    folder: Path | None,
    out: Path,
    inputs: Iterable[Path],
    **settings: Any,
) -> None:
    """Run an application on a folder of data, and print its steps."""
    with _status_line() as observer:
        run_application(lambda: run(folder, observer=observer, **settings), out, inputs)


def run_seesaw_application(
    out: Path, *, seed: int, n_images: int | None = None, jitter: float | None = None
) -> None:
    """Run `hidag app seesaw`."""
    from hidag_paper.applications.seesaw import run_seesaw
    from hidag_paper.seesaw import N_IMAGES

    def compute() -> ApplicationReport:
        with progress_bar() as observer:
            return run_seesaw(
                seed=seed,
                n_images=N_IMAGES if n_images is None else n_images,
                jitter=jitter,
                observer=observer,
            )

    run_application(compute, out)


def run_ecpe_application(folder: Path, out: Path, *, seed: int) -> None:
    """Run `hidag app ecpe`."""
    from hidag.cli.data_source import read_source
    from hidag_paper.applications.ecpe import run_ecpe

    # Read here too, because its errors about missing or invalid files are more specific.
    source = read_source(folder, None, None)

    def compute() -> ApplicationReport:
        with progress_bar() as observer:
            return run_ecpe(folder, seed=seed, observer=observer)

    run_application(compute, out, source.files)


def report_files(report: ApplicationReport, *, command: str | None = None) -> dict[str, Content]:
    """Return the content of each file of a report, summary.json last."""
    files: dict[str, Content] = {}
    for figure in report.figures:
        for ending in _FORMATS:
            files[f"{figure.name}.{ending}"] = render_figure(
                figure.draw, figure.size, file_format=ending
            )
    for table in report.tables:
        files[f"{table.name}.csv"] = csv_content(table.header, table.rows)
    files[FIT_SIGN] = report.result.save
    files[_PAGE] = report.render(command=command)
    content = {**report.summary(), "files": [*files, SIGN]}
    files[SIGN] = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return files


def _written_before(folder: Path) -> list[str]:
    """Return the files of an earlier run, which are replaced."""
    try:
        names = read_json(folder / SIGN)["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    # An edited summary must not remove files in other folders.
    return [name for name in names if isinstance(name, str) and Path(name).name == name]
