"""The procedure of the paper with the settings of its research code, on the stages of hidag.

It has a saturated latent distribution, one spectral start, Gibbs SAEM with at most 20 iterations, a
fixed penalty, N rows drawn from the fitted distribution, and GES with a prior on the number of
parents. The corrected initial values and the step sizes are those of hidag.

The slope of the penalty, N^(1/4), is below the noise of a gradient, so that hardly any loading is
exactly zero. Entries of Q are therefore the loadings above the threshold of the penalty.
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

#: Largest number of iterations of Stage I.
MAX_ITER = 20


class WithPrior:
    """A score with the prior of the research code: each edge has probability 1 / (K - 1)."""

    def __init__(self, score: LocalScore, n_variables: int) -> None:
        self.score = score
        # log((1 - p) / p) with p = 1 / (K - 1); zero for two or three variables.
        self.penalty = float(np.log(max(n_variables - 2, 1)))

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the local score of a node with these parents."""
        return self.score.local(node, parents) - self.penalty * len(parents)


def ges_with_prior(score: LocalScore, names: tuple[str, ...], knowledge: Knowledge | None) -> CPDAG:
    """Run GES with the score and the prior."""
    # The score contains the data; the row only gives the number of variables.
    row: NDArray[np.int64] = np.zeros((1, len(names)), dtype=np.int64)
    return search_graph(
        row, score=WithPrior(score, len(names)), search="ges", names=names, knowledge=knowledge
    ).graph


def stage_one(n_rows: int) -> dict[str, Any]:
    """Return the settings of Stage I in the research code."""
    slope, threshold = n_rows**0.25, 2.0 * n_rows**-0.275
    return {
        "law": "saturated",
        "method": "saem",
        "n_sweeps": 1,
        "n_starts": 1,
        "max_iter": MAX_ITER,
        # The strength is the value of the penalty lambda * min(|b|, tau) beyond tau.
        "penalty_strength": slope * threshold,
        "penalty_threshold": threshold,
    }


#: Settings of Stage III in the research code.
STAGE_THREE: dict[str, Any] = {
    "graph_score": "bdeu",
    "equivalent_sample_size": 1.0,
    "search": ges_with_prior,
}


def threshold_loadings(loadings: Floats, n_rows: int) -> NDArray[np.int8]:
    """Return Q, shape (J, K): the loadings at or above the threshold of the penalty."""
    threshold: float = stage_one(n_rows)["penalty_threshold"]
    return (np.abs(loadings) >= threshold).astype(np.int8)


def research_code(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Fit with the settings of the research code."""
    model = DCRL(
        n_latents,
        family=list(families),
        **stage_one(len(values)),
        resample="N",
        **STAGE_THREE,
        random_state=seed,
    )
    with warnings.catch_warnings():
        # With so few iterations a fit rarely converges.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(values)
    notes = {"n_iter": model.n_iter_, "log_likelihood": float(model.log_likelihood_)}
    return BaselineResult(threshold_loadings(model.loadings_, len(values)), model.graph_, notes)


RESEARCH_CODE = Baseline(
    "research-code",
    "the procedure of the paper with the settings of its research code",
    research_code,
)
