"""One resample: rows drawn, the model fitted again, its latents given the first fit's names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import HidagError, HidagWarning
from hidag.estimator import DCRL
from hidag.explain.refit import Refit, aligned
from hidag.measurement import MeasurementParameters
from hidag.result import FitResult
from hidag.start.points import spread_law

Array = NDArray[np.float64]


class _BegunAtFit(DCRL):  # type: ignore[misc]
    """The estimator, begun where an earlier fit ended instead of at any start."""

    place: tuple[MeasurementParameters, Array]

    def _begin(self) -> tuple[MeasurementParameters, Array]:
        return self.place


def begun_at(place: FitResult, settings: Mapping[str, Any]) -> DCRL:
    """Return an estimator with these settings that begins where another fit ended."""
    model = _BegunAtFit(**settings)
    # A state without mass would stay without: every state gets some.
    model.place = (place.parameters, spread_law(np.asarray(place.law.probabilities)))
    return model


@dataclass(frozen=True)
class Task:
    """What all resamples of a bootstrap share.

    Attributes
    ----------
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), or None
        They go with their rows.
    fit : FitResult
    settings : mapping
        Of the estimator, without ``random_state``.
    kind : {"nonparametric", "parametric"}
    start : {"full", "fitted"}
    seed : int
    """

    values: Array
    weights: Array | None
    fit: FitResult
    settings: Mapping[str, Any]
    kind: str
    start: str
    seed: int


def run_resample(task: Task, index: int) -> tuple[int, Refit | str]:
    """Return the resample's number and its refit, or the reason why there is none.

    It depends on the seed and the number alone, whoever runs it.
    """
    rng = np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(index,)))
    values, weights = _drawn(task, rng)
    model = DCRL(**task.settings) if task.start == "full" else begun_at(task.fit, task.settings)
    model.set_params(random_state=int(rng.integers(1 << 62)))
    with warnings.catch_warnings():
        # Each refit would repeat what the first fit said; what has not settled is counted.
        warnings.simplefilter("ignore", HidagWarning)
        try:
            model.fit(values, sample_weight=weights)
            return index, aligned(model.result_, task.fit)
        except HidagError as error:
            return index, str(error)


def _drawn(task: Task, rng: np.random.Generator) -> tuple[Array, Array | None]:
    n_rows = len(task.values)
    if task.kind == "nonparametric":
        rows = rng.integers(n_rows, size=n_rows)
        return task.values[rows], None if task.weights is None else task.weights[rows]
    states = task.fit.law.sample(n_rows, rng)
    drawn = task.fit.sample_items(states, rng)
    # Cells that were missing are missing again: how much was seen is part of how sure one can be.
    return np.where(np.isnan(task.values), np.nan, drawn), task.weights
