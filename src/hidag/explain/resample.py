"""One resample: rows drawn and the model fitted again, told what is known in its own names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import Knowledge
from hidag.errors import HidagError, HidagWarning
from hidag.estimator import DCRL
from hidag.evaluate import Matching, Parts
from hidag.explain.refit import Refit, aligned, matched
from hidag.measurement import MeasurementParameters
from hidag.result import FitResult
from hidag.stage_one import Measurement
from hidag.start.points import spread_law

Array = NDArray[np.float64]


def begun_at(place: FitResult, settings: Mapping[str, Any]) -> DCRL:
    """Return an estimator with these settings that begins where another fit ended."""
    return DCRL(**settings)._begun_at(_place_of(place))


def _place_of(fit: FitResult) -> tuple[MeasurementParameters, Array]:
    # A state without mass would stay without: every state gets some.
    return fit.parameters, spread_law(np.asarray(fit.law.probabilities))


class KnownInFit:
    """What is known about the latents of a fit, for a refit that finds them in another order.

    Without a Q latents have no names before the end of Stage I, and those of a refit come in an
    order of their own, the strongest first. So its latents are matched to the fit's at that point,
    and what is known follows them. The matching is kept for the end: the law may be another one by
    then, and what was obeyed has to stay obeyed.

    Attributes
    ----------
    fit : FitResult
    known : Knowledge
    matching : Matching or None
        Of the refit's latents; None before Stage I has ended.
    """

    def __init__(self, fit: FitResult, known: Knowledge) -> None:
        self.fit = fit
        self.known = known
        self.matching: Matching | None = None

    def __call__(self, measured: Measurement) -> Knowledge:
        """Return what is known by the numbers of the latents that Stage I found."""
        fit, items = self.fit, measured.parameters
        self.matching = matched(
            Parts(
                np.asarray(fit.responses.any_response(items.support), dtype=np.int8),
                items.intercept,
                items.loadings,
                measured.law,
                terms=items.terms,
                questions=fit.responses.questions,
            ),
            fit,
        )
        standing_for = np.argsort(self.matching.permutation)
        return self.known.among(fit.latent_names, standing_for.tolist())


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
    model = DCRL(**task.settings)._begun_at(None if task.start == "full" else _place_of(task.fit))
    model.set_params(random_state=int(rng.integers(1 << 62)))
    known = task.settings.get("knowledge")
    told = None if known is None or task.fit.q_given is not None else KnownInFit(task.fit, known)
    model._known_of = told
    with warnings.catch_warnings():
        # Each refit would repeat what the first fit said; what has not settled is counted.
        warnings.simplefilter("ignore", HidagWarning)
        try:
            model.fit(values, sample_weight=weights)
            return index, aligned(model.result_, task.fit, None if told is None else told.matching)
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
