"""Yardsticks: what could have been found by who knew more than any estimator may.

Neither is a method. The first is started at the truth and so shows what the search for the best
optimum costs; the second sees the latents and so shows what measuring them costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, discover
from hidag.estimate.loop import Schedule, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.posterior import information_ratio
from hidag.estimate.working import WorkingData
from hidag.evaluate import Parts
from hidag.latent import SaturatedLaw, StateSpace, expected_counts
from hidag.measurement import MeasurementParameters, default_penalty
from hidag.simulate import Truth


def truth_started(truth: Truth, X: NDArray[np.float64]) -> Parts:
    """Return what the same penalised EM finds when it begins at the truth.

    Parameters
    ----------
    truth : Truth
    X : ndarray, shape (N, J)
        NaN where a cell is missing.
    """
    families = truth.families
    data = WorkingData.from_values(np.array(X), families)
    space = StateSpace.binary(truth.n_latents)
    dispersion = np.where(np.isnan(truth.dispersion), 1.0, truth.dispersion)
    start = MeasurementParameters(families, truth.intercept, truth.loadings, dispersion)
    found = run_em(
        data.to_working(start),
        truth.law.probabilities,
        data,
        Basis.of(space.states().astype(float)),
        np.ones((truth.n_items, truth.n_latents + 1), dtype=np.uint8),
        default_penalty("tlp", len(X), truth.n_latents),
        Schedule(),
    )
    user = data.to_user(found.parameters)
    law = SaturatedLaw(space, found.probabilities)
    rows = information_ratio(found.parameters, law, data) * len(X)
    graph = discover(expected_counts(law, rows, truth.latent_names))
    return Parts(user.q_matrix, user.intercept, user.loadings, law, graph)


def search_true_latents(states: NDArray[np.uint8]) -> CPDAG:
    """Return the graph that the search finds on the latents themselves, shape (N, K)."""
    return discover(states)
