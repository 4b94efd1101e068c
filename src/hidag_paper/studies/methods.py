"""Methods that a study can hold against the truth: ours, ours in other settings, and baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hidag.em.problem import Schedule
from hidag.fitting.graph_stage import latent_graph
from hidag.fitting.information_criteria import (
    InformationCriteria,
    criteria_of,
    item_parameters,
    law_parameters,
    log_number_of_supports,
)
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import default_penalty
from hidag.metrics.model_parts import Parts
from hidag.simulation.truth import Truth
from hidag.strategy.estimation import estimate_measurement
from hidag.structure.graph_search import discover
from hidag.structure.graphs import CPDAG
from hidag_paper.baselines import BASELINES
from hidag_paper.baselines.baseline import Baseline
from hidag_paper.baselines.research_code import THIRD_STAGE, first_stage, whole_loadings

# --- Rules for f(N), the number of rows that Stage II draws from the fitted law of the latents

#: Our default: expected counts, standing for as many rows as the items let through.
CALIBRATED = "calibrated"


@dataclass(frozen=True)
class Rule:
    """How many rows the graph search gets to see.

    Attributes
    ----------
    name : str
    rows : callable or None
        f(N); None for expected counts of a calibrated size.
    guaranteed : bool
        Whether the paper's theorem covers it: f(N) = o(N log N).
    """

    name: str
    rows: Callable[[int], float] | None
    guaranteed: bool

    @property
    def stage_two(self) -> dict[str, Any]:
        """Arguments of `hidag.fitting.graph_stage.latent_graph`."""
        return {"rule": "expected"} if self.rows is None else {"rule": self.rows}


#: Every rule by name. The calibrated one counts at most 4 N rows, so the theorem's rate covers it.
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


# ---

OURS = "ours"
#: Our Stage I with the paper's law, one free probability per joint state, as its theorem has it.
SATURATED = "saturated"
#: Our code in the settings of the research code that made the published tables.
RESEARCH = "research-code"
#: Methods that are our estimator in some settings; what they set depends on N.
FITTED_METHODS = (OURS, SATURATED, RESEARCH)


def first_stage_of(method: str, n_samples: int) -> dict[str, Any]:
    """Return the settings of our Stage I that make it one of ``FITTED_METHODS``."""
    if method == RESEARCH:
        return first_stage(n_samples)
    return {"law": "saturated"} if method == SATURATED else {}


def q_of(method: str, items: MeasurementParameters, n_samples: int) -> NDArray[np.int8]:
    """Return the Q that one of ``FITTED_METHODS`` reads off its items, shape (J, K)."""
    if method == RESEARCH:
        return whole_loadings(items.loadings, n_samples)
    return items.q_matrix


def third_stage_of(method: str) -> dict[str, Any]:
    """Return the settings of our Stage III that make it one of ``FITTED_METHODS``."""
    return THIRD_STAGE if method == RESEARCH else {}


def baselines() -> Mapping[str, Baseline]:
    """Return the baselines by name."""
    return BASELINES


# --- Yardsticks: what could have been found by who knew more than any estimator may


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
