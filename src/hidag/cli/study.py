"""`hidag study`: run what a study lacks, and print its cells beside the published numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any

import typer

from hidag.cli.console import columns, say, show_warning
from hidag.studies import (
    Cell,
    CellSummary,
    StudyFolder,
    StudyProgress,
    plan_study,
    read_folder,
    read_published,
    run_study,
    stand,
    summarise,
)

#: Without a terminal, a line this often (seconds) says how far a long study is.
_EVERY = 60.0
_HEADINGS = (
    "cell",
    "runs",
    "ours (s.e.)",
    "graph",
    "Q",
    "published",
    "truth-started",
    "true latents",
    "CPU s",
)
_FOOTNOTE = (
    "means over runs, SHD:",
    "  ours           of graph and Q together, with its Monte-Carlo standard error; then its parts",
    "  truth-started  the same of Stage I begun at the truth",
    "  true latents   of the graph alone, searched on the latents themselves",
)


def run_study_command(
    name: str,
    out: Path,
    *,
    cells: str | None,
    n: str | None,
    families: str | None,
    q: str | None,
    workers: int,
    published: Path | None,
    **settings: Any,
) -> None:
    """Carry out `hidag study NAME`."""
    plan = plan_study(
        name,
        cells=_patterns(cells),
        n=_numbers(n),
        families=_parts(families),
        q=_parts(q),
        **settings,
    )
    known = None if published is None else read_published(published, (name,))
    with _progress() as observer:
        folder = run_study(plan, out, workers=workers, published=known, observer=observer)
    say_report(folder, wanted=plan.cells)


def run_report(path: Path, published: Path | None) -> None:
    """Carry out `hidag study report`."""
    folder = read_folder(path)
    known = folder.published
    if published is not None:
        known = {**known, **read_published(published, (str(folder.settings["study"]),))}
    say_report(folder, published=known)


def say_report(
    folder: StudyFolder,
    *,
    wanted: Sequence[Cell] | None = None,
    published: Mapping[Cell, float] | None = None,
) -> None:
    """Print one line per cell and how they stand.

    Parameters
    ----------
    folder : StudyFolder
    wanted : sequence of Cell, optional
        Only these.
    published : mapping from cell to float, optional
        In place of the folder's own.
    """
    settings, rows = folder.settings, folder.rows()
    # The published numbers were obtained with the research code's design and with no other.
    known = folder.published if published is None else published
    known = known if settings["design"] == "research-code" else {}
    summaries = summarise(rows, folder.asked, known)
    if wanted is not None:
        summaries = [summary for summary in summaries if summary.cell in wanted]
    say(f"{settings['study']}, design {settings['design']}, seed {settings['seed']}: {folder.path}")
    say()
    table = [_HEADINGS, *(_line(summary) for summary in summaries)]
    for line in columns(table, right=range(1, len(_HEADINGS))):
        say(line)
    say()
    for line in _FOOTNOTE:
        say(line)
    say()
    _say_standing(summaries)
    for summary in summaries:
        for reason in summary.reasons:
            show_warning(
                f"{summary.cell.name}: {summary.n_failed} of {summary.n_done} fits failed and are "
                f"not in the means: {reason}"
            )
    if len({row.get("source") for row in rows}) > 1:
        show_warning(
            f"the rows of {folder.path} were made by different states of the library's source; run "
            "the study into a new folder for numbers of one of them"
        )


def _say_standing(summaries: Sequence[CellSummary]) -> None:
    found = stand(summaries)
    if found.n_compared:
        say(f"cells at or below published:  {found.at_or_below} of {found.n_compared}")
        say(f"cells at or below half of it: {found.at_or_below_half} of {found.n_compared}")
        say(f"cells above:                  {_names(found.above)}")
    else:
        say("no cell was compared with a published number (--published gives them)")
    if found.failed:
        say(f"cells with failed fits, not compared: {_names(found.failed)}")
    if found.unfinished:
        say(f"cells with runs to come: {_names(found.unfinished)}")


def _line(summary: CellSummary) -> tuple[str, ...]:
    runs = str(summary.n_done)
    if summary.n_done < summary.n_asked:
        runs += f" of {summary.n_asked}"
    if summary.n_failed:
        runs += f", {summary.n_failed} failed"
    return (
        summary.cell.name,
        runs,
        f"{_shown(summary.shd)} ({_shown(summary.error)})",
        _shown(summary.shd_graph),
        _shown(summary.shd_q),
        _shown(summary.published),
        _shown(summary.truth_started),
        _shown(summary.true_latents),
        _shown(summary.cpu_seconds),
    )


def _shown(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2f}"


def _names(cells: Sequence[Cell]) -> str:
    return f"{len(cells)}: " + ", ".join(cell.name for cell in cells) if cells else "none"


def _parts(text: str | None) -> tuple[str, ...] | None:
    """Return what stands between the commas of an option; None where it was not given."""
    if text is None:
        return None
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _patterns(text: str | None) -> tuple[str, ...]:
    parts = _parts(text)
    if parts == ():
        raise typer.BadParameter(
            "expected parts of cells' names, got nothing", param_hint="--cells"
        )
    return parts or ()


def _numbers(text: str | None) -> tuple[int, ...] | None:
    parts = _parts(text)
    if parts is None:
        return None
    if not parts or not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(
            f"expected whole numbers of rows with commas between them, got {text!r}",
            param_hint="--n",
        )
    return tuple(int(part) for part in parts)


@contextmanager
def _progress() -> Iterator[Callable[[StudyProgress], None]]:
    """Give an observer: a bar on a terminal, now and then a line elsewhere."""
    if not sys.stderr.isatty():
        yield _line_now_and_then()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("runs", total=None)

        def observe(progress: StudyProgress) -> None:
            failed = f", {progress.n_failed} failed" if progress.n_failed else ""
            bar.update(
                task,
                description=f"runs{failed}",
                total=progress.n_runs,
                completed=progress.n_done,
            )

        yield observe


def _line_now_and_then() -> Callable[[StudyProgress], None]:
    begun = last = time.monotonic()

    def observe(progress: StudyProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _EVERY or not progress.n_new:
            return
        last = now
        left = (now - begun) / progress.n_new * (progress.n_runs - progress.n_done)
        failed = f", {progress.n_failed} failed" if progress.n_failed else ""
        print(
            f"hidag: {progress.n_done} of {progress.n_runs} runs{failed}, about "
            f"{left / 60:.0f} min left",
            file=sys.stderr,
        )

    return observe
