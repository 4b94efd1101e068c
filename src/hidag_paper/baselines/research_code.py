"""The paper's procedure as its research code ran it, through this library's own stages.

A saturated law, one spectral start, Gibbs-SAEM for 20 steps at the most, a penalty of fixed
strength, N rows drawn from the fitted law, and GES whose score charges for parents. The corrected
start and the step sizes are this library's.

The slope of that penalty, N^(1/4), is below the noise of a gradient: hardly a loading becomes zero,
and "not zero" would make nearly every entry of Q a one. So Q has the entries that reach the
threshold from which the penalty calls a loading whole.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.estimator import DCRL
from hidag.exceptions import ConvergenceWarning
from hidag.structure.graph_search import search_graph
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge
from hidag.structure.scores import LocalScore
from hidag_paper.baselines.baseline import Baseline, BaselineResult, Floats

#: Steps of Stage I, at the most.
MAX_ITER = 20


class WithPrior:
    """A score with the research code's prior: each edge has probability 1 / (K - 1)."""

    def __init__(self, score: LocalScore, n_variables: int) -> None:
        self.score = score
        # log((1 - p) / p) with p = 1 / (K - 1); of two or three variables no edge costs anything.
        self.price = float(np.log(max(n_variables - 2, 1)))

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the local score of a node with these parents."""
        return self.score.local(node, parents) - self.price * len(parents)


def ges_with_prior(score: LocalScore, names: tuple[str, ...], knowledge: Knowledge | None) -> CPDAG:
    """Return the graph that GES finds under the score with the prior."""
    # The score brings the data; the row only says how many variables there are.
    row: NDArray[np.int64] = np.zeros((1, len(names)), dtype=np.int64)
    return search_graph(
        row, score=WithPrior(score, len(names)), search="ges", names=names, knowledge=knowledge
    ).graph


def first_stage(n_rows: int) -> dict[str, Any]:
    """Return the settings of our Stage I that make it the research code's."""
    slope, threshold = n_rows**0.25, 2.0 * n_rows**-0.275
    return {
        "law": "saturated",
        "method": "saem",
        "n_sweeps": 1,
        "n_starts": 1,
        "max_iter": MAX_ITER,
        # lambda min(|b|, tau) is what lambda tau at and beyond tau is.
        "penalty_strength": slope * threshold,
        "penalty_threshold": threshold,
    }


#: The settings of our Stage III that make it the research code's.
THIRD_STAGE: dict[str, Any] = {
    "score": "bdeu",
    "equivalent_sample_size": 1.0,
    "search": ges_with_prior,
}


def whole_loadings(loadings: Floats, n_rows: int) -> NDArray[np.int8]:
    """Return the Q of loadings (J, K): those that the penalty calls whole."""
    threshold: float = first_stage(n_rows)["penalty_threshold"]
    return (np.abs(loadings) >= threshold).astype(np.int8)


def research_code(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Return what the research code's settings find."""
    model = DCRL(
        n_latents,
        family=list(families),
        **first_stage(len(values)),
        resample="N",
        **THIRD_STAGE,
        random_state=seed,
    )
    with warnings.catch_warnings():
        # So few steps hardly ever settle: that is the setting, not an accident.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(values)
    notes = {"n_iter": model.n_iter_, "log_likelihood": float(model.log_likelihood_)}
    return BaselineResult(whole_loadings(model.loadings_, len(values)), model.graph_, notes)


RESEARCH_CODE = Baseline(
    "research-code", "the paper's procedure with its research code's settings", research_code
)
