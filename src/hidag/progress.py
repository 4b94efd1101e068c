"""Progress as an observer: what a long fit tells whoever listens."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isnan


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
