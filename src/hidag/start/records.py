"""What Stage I tells while it runs and leaves when it ends: start by start, and the best."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hidag.estimate.law_rounds import GraphEstimate
from hidag.estimate.loop import Estimate, Observer
from hidag.measurement import Penalty

#: Told (start, n_starts, iteration, max_iter, objective) after every step.
StartProgress = Callable[[int, int, int, int, float], None]


@dataclass(frozen=True)
class StartRecord:
    """How one start fared; one that was given up after a rough look has not converged.

    ``n_rows`` says on how many rows starts were compared, 0 on all of them.
    """

    label: str
    objective: float
    log_likelihood: float
    n_iter: int
    converged: bool
    n_rows: int = 0


@dataclass(frozen=True)
class StageOne:
    """The best estimate and what became of every start.

    ``network`` is the same estimate taken further under a law over a graph, when that was asked
    for. ``hierarchy_loss`` is what the log-likelihood lost when states were ruled out; NaN if none
    were.
    """

    best: Estimate
    records: tuple[StartRecord, ...]
    n_reached: int
    method: str
    penalty: Penalty
    network: GraphEstimate | None = None
    hierarchy_loss: float = math.nan


def observer_of(progress: StartProgress | None, index: int, count: int) -> Observer:
    """Return what tells of the steps of one start of so many, if anybody listens."""

    def observer(iteration: int, last: int, value: float) -> None:
        if progress is not None:
            progress(index, count, iteration, last, value)

    return observer
