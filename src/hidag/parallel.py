"""Parallel execution over processes, and observers of the progress of a fit."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import inf, isnan
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

_PARENT_CHECK_SECONDS = 1.0  # Seconds between a worker's checks that its parent process is alive.
_SECONDS_BETWEEN_LINES = 1.0  # Of the progress on standard error.


def total_memory() -> float:
    """Return the bytes of memory of this machine; infinity where they are unknown."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return inf


@cache
def _loaded_libraries() -> ThreadpoolController:
    """Return the libraries with threads; searching for them takes as long as a small E-step."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one BLAS thread, as a context or a decorator: more change the last digits of products."""
    with _loaded_libraries().limit(limits=1, user_api="blas"):
        yield


def run_all(
    run: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *, workers: int
) -> Iterator[Any]:
    """Yield ``run(*task)`` for each task: in order with one worker, else as they finish.

    Workers are processes with one thread that import ``run``; a killed one is a MemoryError.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        for task in tasks:
            yield _run_on_one_thread(run, task)
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    settings = {"inner_max_num_threads": 1, "initializer": _exit_with_parent}
    try:
        with parallel_config(backend="loky", **settings):
            pool = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
            # Raises here if a worker is killed before the next task is dispatched.
            results: Any = pool(delayed(_run_on_one_thread)(run, task) for task in tasks)
        yield from results
    except TerminatedWorkerError as error:
        raise MemoryError("a worker process was killed") from error


def _run_on_one_thread(run: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    with threadpool_limits(limits=1):
        return run(*task)


def _exit_with_parent() -> None:
    """End this worker soon after its parent: a killed parent leaves workers running for minutes."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class Progress:
    """The progress of a fit: start (from 0), iteration, and objective (NaN in a sampler)."""

    start: int
    n_starts: int
    iteration: int
    max_iter: int
    objective: float


def make_observer(
    observer: Callable[[Progress], None] | None, *, verbose: bool
) -> Callable[[int, int, int, int, float], None] | None:
    """Return the function that a fit calls after every iteration, None without listeners.

    If ``verbose`` it also writes a line to standard error, at most once a second.
    """
    if observer is None and not verbose:
        return None
    written = 0.0

    def notify(start: int, n_starts: int, iteration: int, max_iter: int, objective: float) -> None:
        nonlocal written
        if observer is not None:
            observer(Progress(start, n_starts, iteration, max_iter, objective))
        if verbose and time.monotonic() - written >= _SECONDS_BETWEEN_LINES:
            written = time.monotonic()
            value = "" if isnan(objective) else f", objective {objective:.2f}"
            steps = f"step {iteration} of at most {max_iter}"
            sys.stderr.write(f"hidag: start {start + 1} of {n_starts}, {steps}{value}\n")

    return notify
