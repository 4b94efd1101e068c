"""One resample: rows drawn, the model fitted again, its latents given the first fit's names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError, HidagError, HidagWarning
from hidag.estimator import DCRL
from hidag.evaluate import match_latents, relabel_law
from hidag.measurement import MeasurementParameters
from hidag.result import FitResult
from hidag.start.points import spread_law

Array = NDArray[np.float64]

#: Laws with more joint states than this are kept as the latents' margins only.
MOST_JOINT_STATES = 1 << 10
#: A latent whose loadings have less than this cosine with the first fit's is another latent.
SAME_LATENT = 0.9


@dataclass(frozen=True)
class Refit:
    """A fit in the first fit's names: what a bootstrap keeps of each resample.

    Attributes
    ----------
    adjacency : ndarray of int8, shape (K, K)
        Of the CPDAG.
    q_matrix : ndarray of int8, shape (J, K)
    intercept, dispersion : ndarray, shape (R,)
        A row for each response: one per item, several for nominal items.
    loadings : ndarray, shape (R, T)
        On the first fit's terms; 0 for an interaction that only the first fit has.
    cutpoints : ndarray, shape (R, C)
    margins : ndarray, shape (K, max levels)
    joint : ndarray, shape (S,)
        Probabilities of joint states; empty where they are too many.
    agreement : ndarray, shape (K,)
        Cosine of each latent's strengths on the items with the first fit's.
    moved : bool
        Whether any latent had to be renamed or reversed to be matched.
    log_likelihood : float
    converged : bool
    """

    adjacency: NDArray[np.int8]
    q_matrix: NDArray[np.int8]
    intercept: Array
    dispersion: Array
    loadings: Array
    cutpoints: Array
    margins: Array
    joint: Array
    agreement: Array
    moved: bool
    log_likelihood: float
    converged: bool

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything by name, as arrays."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Refit:
        """Return the refit that ``arrays`` gave."""
        plain: dict[str, Any] = {"moved": bool, "log_likelihood": float, "converged": bool}
        values: dict[str, Any] = {
            name: plain.get(name, np.asarray)(value) for name, value in arrays.items()
        }
        return cls(**values)


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


def aligned(refit: FitResult, fit: FitResult) -> Refit:
    """Return a refit with its latents named and directed as in the first fit.

    Latents are matched by their items and loadings; how well they agree is kept with the refit.
    """
    matching = match_latents(refit, fit)
    order = np.array(matching.permutation)
    flips = np.array(matching.flips)
    items = refit.parameters.reordered(latents=order).flipped(flips)
    if items.terms.levels != fit.terms.levels:
        raise DataError("latents with different numbers of levels measure the same items")
    law = relabel_law(refit.law, order, flips)
    joint = np.zeros(0)
    if law.space.n_states <= MOST_JOINT_STATES:
        joint = np.asarray(law.probabilities)
    mine, first = items.strengths, fit.parameters.strengths
    lengths = np.linalg.norm(mine, axis=0) * np.linalg.norm(first, axis=0)
    return Refit(
        adjacency=np.asarray(refit.graph.adjacency[np.ix_(order, order)], dtype=np.int8),
        q_matrix=refit.q_matrix[:, order],
        intercept=items.intercept,
        dispersion=refit.parameters.dispersion,
        loadings=_on_terms_of(items, fit),
        cutpoints=refit.parameters.cutpoints,
        margins=law.marginals(),
        joint=joint,
        agreement=(mine * first).sum(axis=0) / np.maximum(lengths, 1e-300),
        moved=bool(flips.any() or (order != np.arange(len(order))).any()),
        log_likelihood=refit.log_likelihood,
        converged=refit.converged,
    )


def _on_terms_of(items: MeasurementParameters, fit: FitResult) -> Array:
    """Return loadings (R, T) on the first fit's terms: refits may choose other interactions."""
    names = fit.latent_names
    place = {name: t for t, name in enumerate(items.terms.names(names))}
    columns = [place.get(name, -1) for name in fit.terms.names(names)]
    padded = np.hstack([items.loadings, np.zeros((items.n_items, 1))])
    return np.asarray(padded[:, columns])
