"""What every kind of Stage I leaves for the stages after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG
from hidag.evidence import ObservedFit
from hidag.latent import LatentCounts, LatentLaw
from hidag.measurement import MeasurementParameters, Penalty
from hidag.start.records import StartRecord

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StageOneRecord:
    """How Stage I went.

    Attributes
    ----------
    method : {"em", "saem"}
    n_iter : int
    converged : bool
    log_likelihood, objective : float
        Of the observed data, and less the penalty; NaN when joint states were not listed.
    trace : ndarray, shape (n_iter, 2)
    starts : tuple of StartRecord
    n_reached : int
        Starts that reached the best solution.
    penalty : Penalty
        With the strength that was used.
    hierarchy_loss : float
        Log-likelihood lost when a hierarchy ruled states out; NaN if none did.
    """

    method: str
    n_iter: int
    converged: bool
    log_likelihood: float
    objective: float
    trace: Array
    starts: tuple[StartRecord, ...]
    n_reached: int
    penalty: Penalty
    hierarchy_loss: float = math.nan


class Measurement(Protocol):
    """Items and latents after Stage I, in the user's order."""

    @property
    def parameters(self) -> MeasurementParameters:
        """Coefficients in the user's order and units."""
        ...

    @property
    def law(self) -> LatentLaw:
        """The latents' law."""
        ...

    @property
    def record(self) -> StageOneRecord:
        """How Stage I went."""
        ...

    @property
    def n_samples(self) -> float:
        """Number of rows, N."""
        ...

    @property
    def observed(self) -> ObservedFit | None:
        """What laws are compared by on the observed data, when their likelihood is at hand."""
        ...

    def information_ratio(self) -> float:
        """Return which share of the latents' pairwise information the items carry."""
        ...

    def rows_worth(self, ratio: float) -> float:
        """Return how many rows a row of the table is worth to the graph search."""
        ...

    def counts(self, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
        """Return the counts of latent states that the graph search looks at."""
        ...

    def log_likelihood_of(self, law: LatentLaw) -> float:
        """Return the observed data's log-likelihood under a law; NaN if states are not listed."""
        ...

    def idle(self) -> NDArray[np.intp]:
        """Return the latents that drive no item."""
        ...

    def restricted(self, latents: NDArray[np.intp]) -> Measurement:
        """Return the measurement of some of the latents."""
        ...

    def law_over(self, graph: CPDAG, known: Array | None, *, obey: bool = False) -> LatentLaw:
        """Return the law over the graph that was found, or the law as it is.

        ``obey`` says that a law over no graph is to give way too.
        """
        ...
