"""Methods of the studies: the estimator, variants of it, rules for f(N), and reference results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from hidag.em.em import Schedule
from hidag.fitting.information_criteria import (
    InformationCriteria,
    criteria_of,
    item_parameters,
    law_parameters,
    log_number_of_supports,
)
from hidag.fitting.stages import learn_graph
from hidag.measurement.penalties import default_penalty
from hidag.metrics.matching import Parts
from hidag.parallel import one_blas_thread
from hidag.simulation.truth import Truth
from hidag.strategy.estimation import StageOneSettings, estimate_measurement
from hidag.structure.graph_search import discover
from hidag.structure.graphs import CPDAG
from hidag_paper.baselines.research_code import RESEARCH, TEXT

#: The default: expected counts with an effective sample size.
CALIBRATED = "calibrated"


@dataclass(frozen=True)
class Rule:
    """Sample size of the graph search.

    Attributes
    ----------
    name : str
    rows : callable or None
        f(N); None for expected counts with an effective sample size.
    guaranteed : bool
        Whether it satisfies the paper's theorem, f(N) = o(N log N).
    """

    name: str
    rows: Callable[[int], float] | None
    guaranteed: bool

    @property
    def resample(self) -> str | Callable[[int], float]:
        """The setting ``resample`` of `hidag.fitting.settings.GraphSettings`."""
        return "expected" if self.rows is None else self.rows


#: All rules by name. The calibrated size is at most 4 N, which satisfies the theorem.
RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("sqrt N", lambda n: sqrt(n), True),
        Rule("N", lambda n: n, True),
        Rule("2N", lambda n: 2 * n, True),
        Rule("3N", lambda n: 3 * n, True),
        Rule("N log N", lambda n: n * log(n), False),
        Rule("N^1.5", lambda n: n**1.5, False),
        Rule("N^2", lambda n: n**2, False),
        Rule(CALIBRATED, None, True),
    )
}


#: The estimator of this library with its default settings.
OURS = "ours"
#: Stage I with a saturated latent distribution, as in the theorem of the paper.
SATURATED = "saturated"
#: Variants of the estimator.
FITTED_METHODS = (OURS, SATURATED)
#: The paper's own procedure, from its text and as its research code ran it.
PAPER_METHODS = (TEXT, RESEARCH)


@dataclass(frozen=True)
class TruthStartedFit:
    """A fit started at the truth.

    Attributes
    ----------
    parts : Parts
    criteria : InformationCriteria
    """

    parts: Parts
    criteria: InformationCriteria


def truth_started(truth: Truth, X: NDArray[np.float64]) -> Parts:
    """Return the estimates of `truth_started_fit`."""
    return truth_started_fit(truth, X).parts


def truth_started_fit(truth: Truth, X: NDArray[np.float64]) -> TruthStartedFit:
    """Run all stages with Stage I started at the truth.

    Parameters
    ----------
    truth : Truth
    X : ndarray, shape (N, J)
        NaN in missing cells.
    """
    n_samples = len(X)
    # Blocks are too small for several threads.
    with one_blas_thread():
        measured = estimate_measurement(
            np.array(X),
            truth.families,
            StageOneSettings(
                truth.law.space.levels,
                default_penalty("tlp", n_samples, truth.n_latents),
                Schedule(),
            ),
            start=(truth.items, np.asarray(truth.law.probabilities)),
        )
        found = learn_graph(measured, truth.latent_names)
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
    """Return the graph estimated from the true latent states, shape (N, K)."""
    return discover(states)
