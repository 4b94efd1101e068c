"""Work shared out over processes: results as they are ready, and no worker left behind."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from threadpoolctl import threadpool_limits

#: Seconds between a worker's looks for the process that started it.
_LOOK_FOR_PARENT = 1.0


def run_all(
    run: Callable[..., Any], pieces: Sequence[tuple[Any, ...]], *, workers: int
) -> Iterator[Any]:
    """Give ``run(*piece)`` of each piece: in turn by one worker, as they are ready by several.

    Parameters
    ----------
    run : callable
        A function of a module, as workers have to find it.
    pieces : sequence of tuple
    workers : int
        Processes, never more than there are pieces; one is this process. Each has one thread.

    Raises
    ------
    MemoryError
        Also when a worker was ended from outside: want of memory is the common reason.
    """
    workers = min(workers, len(pieces))
    if workers <= 1:
        for piece in pieces:
            yield _on_one_thread(run, piece)
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    settings = {"inner_max_num_threads": 1, "initializer": _leave_with_parent}
    try:
        with parallel_config(backend="loky", **settings):
            pool = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
            # A worker may be gone before the next piece is handed out, which then raises here.
            results: Any = pool(delayed(_on_one_thread)(run, piece) for piece in pieces)
        yield from results
    except TerminatedWorkerError as error:
        raise MemoryError("a worker process was ended from outside") from error


def _on_one_thread(run: Callable[..., Any], piece: tuple[Any, ...]) -> Any:
    with threadpool_limits(limits=1):
        return run(*piece)


def _leave_with_parent() -> None:
    """End this worker soon after the process that started it: nobody would take its results.

    A process that is killed cannot tell its workers, and they would stay for minutes.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_FOR_PARENT)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- Progress as an observer: what a long fit tells whoever listens


@dataclass(frozen=True)
class Progress:
    """Where a fit is.

    Attributes
    ----------
    start, n_starts : int
        Which start (from 0) of how many.
    iteration, max_iter : int
    objective : float
        Penalised log-likelihood so far; NaN while a sampler runs.
    """

    start: int
    n_starts: int
    iteration: int
    max_iter: int
    objective: float


class StderrProgress:
    """Write a line to standard error about once a second."""

    def __init__(self, every: float = 1.0) -> None:
        self._every = every
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        """Write where the fit is, unless a line was written just now."""
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last = now
        value = "" if isnan(progress.objective) else f", objective {progress.objective:.2f}"
        sys.stderr.write(
            f"hidag: start {progress.start + 1} of {progress.n_starts}, "
            f"step {progress.iteration} of at most {progress.max_iter}{value}\n"
        )


def told_to(
    observer: Callable[[Progress], None] | None, *, verbose: bool
) -> Callable[[int, int, int, int, float], None] | None:
    """Return what a fit calls after every step, for an observer and, if verbose, standard error.

    None when nobody listens.
    """
    listeners: list[Callable[[Progress], None]] = []
    if observer is not None:
        listeners.append(observer)
    if verbose:
        listeners.append(StderrProgress())
    if not listeners:
        return None

    def tell(start: int, n_starts: int, iteration: int, last: int, value: float) -> None:
        for listener in listeners:
            listener(Progress(start, n_starts, iteration, last, value))

    return tell
