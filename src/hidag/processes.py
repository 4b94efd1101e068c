"""Work shared out over processes: results as they are ready, and no worker left behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
