"""Execution of a plan: missing runs, in one or several processes, stored one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hidag.exceptions import Advice, HidagError, Setting
from hidag.fitting.settings import checked_count
from hidag.parallel import run_all
from hidag.results import versions_used
from hidag_paper.studies.catalogue import Plan, study_named
from hidag_paper.studies.cells import Task
from hidag_paper.studies.rows import Row, complete_rows
from hidag_paper.studies.study_folder import StudyFolder, exclusive_lock, open_folder
from hidag_paper.studies.summary import Published


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study.

    Attributes
    ----------
    n_done, n_runs : int
        Runs in the folder, including earlier ones, and their planned number.
    n_failed : int
        Runs without an estimate.
    n_new : int
        Runs that this process added.
    rows : tuple of dict
        Of the last run; empty at the start.
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
    """Run what a study folder lacks, and return the folder.

    Parameters
    ----------
    plan : Plan
    path : Path
        Folder; existing rows of the same study are not computed again.
    workers : int
        Processes; they change no row except for CPU seconds.
    published : mapping, optional
        Published means, stored in the folder for reports.
    observer : callable, optional
        Called with a `StudyProgress` at the start and after each run.
    """
    checked_count("workers", workers)
    with exclusive_lock(path):
        folder = open_folder(path, plan, published)
        wanted = {task.name for task in plan.tasks()}
        done = [row for row in folder.rows() if _run_of(row) in wanted]
        names = {_run_of(row) for row in done}
        n_failed = len({_run_of(row) for row in done if row["status"] != "ok"})
        notify = observer or (lambda progress: None)
        notify(StudyProgress(len(names), len(wanted), n_failed, 0))
        try:
            for n_new, rows in enumerate(run_plan(plan, workers=workers, done=names), start=1):
                folder.add(_run_of(rows[0]), rows)
                n_failed += any(row["status"] != "ok" for row in rows)
                notify(StudyProgress(len(names) + n_new, len(wanted), n_failed, n_new, tuple(rows)))
        except MemoryError as error:
            raise HidagError(
                "out-of-memory",
                "the study ran out of memory{reason}; the rows written so far are stored",
                advice=Advice(
                    "resume-smaller",
                    "repeat it with fewer {workers}, or without the largest {cells}",
                    {"workers": Setting("workers"), "cells": Setting("cells")},
                ),
                reason=f" ({error})" if str(error) else "",
            ) from error
        folder.merge()
    return folder


def _run_of(row: Row) -> str:
    """Return the name of the run of a row."""
    return f"{row['address']}/{row['method']}"


def run_plan(plan: Plan, *, workers: int = 1, done: Container[str] = ()) -> Iterator[list[Row]]:
    """Yield the rows of each run when it ends, except for the runs whose names are in ``done``.

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
    """Return the rows of one run: its place in the study, its results and its provenance."""
    source = source_digest()  # before the run, during which files may change
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
    return complete_rows([{**place, **row, **made_with, "source": source} for row in measured])


@cache
def source_digest() -> str:
    """Return a short digest of the source code, which changes more often than the version."""
    root = Path(__file__).resolve().parents[2]
    total = hashlib.sha256()
    for file in sorted([*root.glob("hidag/**/*.py"), *root.glob("hidag_paper/**/*.py")]):
        total.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:12]
