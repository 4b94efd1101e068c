"""Carrying out a plan: what is not done yet, on one process or several, row by row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hidag.exceptions import HidagError
from hidag.fitting.settings import checked_count
from hidag.parallel import run_all
from hidag.results import versions_used
from hidag_paper.studies.catalogue import Plan, study_named
from hidag_paper.studies.cells import Task
from hidag_paper.studies.rows import Row, complete
from hidag_paper.studies.study_folder import StudyFolder, only_writer, open_folder
from hidag_paper.studies.summary import Published


@dataclass(frozen=True)
class StudyProgress:
    """Where a study is.

    Attributes
    ----------
    n_done, n_runs : int
        Runs that are in the folder, those of earlier processes included, of how many.
    n_failed : int
        Of those done, how many gave nothing.
    n_new : int
        Runs that this process has added.
    rows : tuple of dict
        Of the run that has just ended; none at the beginning.
    """

    n_done: int
    n_runs: int
    n_failed: int
    n_new: int
    rows: tuple[Row, ...] = ()


def run_study(
    plan: Plan,
    path: Path,
    *,
    workers: int = 1,
    published: Published | None = None,
    observer: Callable[[StudyProgress], None] | None = None,
) -> StudyFolder:
    """Return the folder of a study after running what it lacks.

    Parameters
    ----------
    plan : Plan
    path : Path
        Folder; if it holds rows of the same study, only the others are run.
    workers : int
        Processes; never changes what a row says, except CPU seconds.
    published : mapping, optional
        Published means, kept in the folder for reports.
    observer : callable, optional
        Called with a `StudyProgress` at the beginning and after each run.
    """
    checked_count("workers", workers)
    with only_writer(path):
        folder = open_folder(path, plan, published)
        wanted = {task.name for task in plan.tasks()}
        done = [row for row in folder.rows() if _run_of(row) in wanted]
        names = {_run_of(row) for row in done}
        n_failed = len({_run_of(row) for row in done if row["status"] != "ok"})
        tell = observer or (lambda progress: None)
        tell(StudyProgress(len(names), len(wanted), n_failed, 0))
        try:
            for n_new, rows in enumerate(run_plan(plan, workers=workers, done=names), start=1):
                folder.add(_run_of(rows[0]), rows)
                n_failed += any(row["status"] != "ok" for row in rows)
                tell(StudyProgress(len(names) + n_new, len(wanted), n_failed, n_new, tuple(rows)))
        except MemoryError as error:
            raise HidagError(
                f"the study stopped for want of memory{f' ({error})' if str(error) else ''}; the "
                "rows written so far are kept: run the same command again with fewer --workers, "
                "or leave out the largest cells with --cells"
            ) from error
        folder.tidy()
    return folder


def _run_of(row: Row) -> str:
    """Return the name of the run that a row is of."""
    return f"{row['address']}/{row['method']}"


def run_plan(plan: Plan, *, workers: int = 1, done: Container[str] = ()) -> Iterator[list[Row]]:
    """Give the rows of runs as they end; runs whose names are in ``done`` are not made.

    Parameters
    ----------
    plan : Plan
    workers : int
    done : container of str
        Names of tasks.
    """
    missing = [task for task in plan.tasks() if task.name not in done]
    return run_all(run_task, [(plan, task) for task in missing], workers=workers)


def run_task(plan: Plan, task: Task) -> list[Row]:
    """Return the rows of one run: where they stand, how they were made, and their numbers."""
    source = source_digest()  # before the run: files may change while it lasts
    address, cell = task.address, task.address.cell
    measured = study_named(plan.study).run(
        cell, plan.design, plan.estimator, address.seeds(plan.seed), task.method
    )
    place = {
        "address": address.name,
        "method": task.method,
        "study": address.study,
        "cell": cell.name,
        "replicate": address.replicate,
        "model": cell.model,
        "q": cell.q,
        "family": cell.family,
        "n": cell.n,
        "items": cell.items,
        "design": plan.design,
        "seed": plan.seed,
    }
    made_with = {f"version_{name}": number for name, number in versions_used().items()}
    return complete([{**place, **row, **made_with, "source": source} for row in measured])


@cache
def source_digest() -> str:
    """Return a short digest of the library's source, to tell rows of different code apart.

    A version number stays the same while code is being worked on.
    """
    root = Path(__file__).resolve().parents[2]
    total = hashlib.sha256()
    for file in sorted([*root.glob("hidag/**/*.py"), *root.glob("hidag_paper/**/*.py")]):
        total.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:12]
