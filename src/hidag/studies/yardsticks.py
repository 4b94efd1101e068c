"""Yardsticks: what could have been found by who knew more than any estimator may.

Neither is a method. The first is started at the truth and so shows what the search for the best
optimum costs; the second sees the latents and so shows what measuring them costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hidag.criteria import (
    InformationCriteria,
    criteria_of,
    item_parameters,
    law_parameters,
    log_number_of_supports,
)
from hidag.discover import CPDAG, discover
from hidag.estimate.loop import Schedule
from hidag.evaluate import Parts
from hidag.measurement import default_penalty
from hidag.pipeline import latent_graph
from hidag.simulate import Truth
from hidag.stage_one import estimate_measurement


@dataclass(frozen=True)
class TruthStartedFit:
    """What was found from the truth.

    Attributes
    ----------
    parts : Parts
    criteria : InformationCriteria
    """

    parts: Parts
    criteria: InformationCriteria


def truth_started(truth: Truth, X: NDArray[np.float64]) -> Parts:
    """Return what `truth_started_fit` finds."""
    return truth_started_fit(truth, X).parts


def truth_started_fit(truth: Truth, X: NDArray[np.float64]) -> TruthStartedFit:
    """Return what the same stages find when Stage I begins at the truth, and its criteria.

    Parameters
    ----------
    truth : Truth
    X : ndarray, shape (N, J)
        NaN where a cell is missing.
    """
    n_samples = len(X)
    # Blocks are small: more threads than one would only wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        measured = estimate_measurement(
            np.array(X),
            truth.families,
            truth.law.space.levels,
            penalty=default_penalty("tlp", n_samples, truth.n_latents),
            schedule=Schedule(),
            begin=(truth.items, np.asarray(truth.law.probabilities)),
        )
        found = latent_graph(measured, truth.latent_names)
    user = measured.parameters
    q = user.q_matrix
    free = item_parameters(truth.families) + np.count_nonzero(user.loadings)
    return TruthStartedFit(
        Parts(q, user.intercept, user.loadings, found.law, found.graph, user.terms),
        criteria_of(
            found.log_likelihood,
            int(free) + law_parameters(found.law),
            log_number_of_supports(q.size, int(q.sum())),
            float(n_samples),
        ),
    )


def search_true_latents(states: NDArray[np.uint8]) -> CPDAG:
    """Return the graph that the search finds on the latents themselves, shape (N, K)."""
    return discover(states)
