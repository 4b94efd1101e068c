"""The paper's procedure from end to end: as its text says, and as its research code ran it.

Both run Algorithms S.1 and S.2 of :mod:`hidag_paper.baselines.algorithms`, draw N rows from the
estimated law, and search them by GES with BDeu. They differ in the settings of `Procedure` alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.latent.counts import LatentCounts
from hidag.latent.state_space import StateSpace
from hidag.metrics.matching import Parts
from hidag.structure.graph_search import discover, search_graph
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge
from hidag.structure.scores import LocalScore
from hidag_paper.baselines.algorithms import FAMILIES, Estimate, Procedure, estimate
from hidag_paper.baselines.baseline import Baseline, BaselineResult, Floats, check_families

#: Largest number of iterations of Stage I in the research code.
MAX_ITER = 20
#: Names of the two baselines.
RESEARCH, TEXT = "research-code", "printed"


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


def procedure_of(method: str, families: Sequence[str]) -> Procedure:
    """Return the settings of ``"printed"`` or ``"research-code"`` for a table's families.

    Two settings of the research code are not known from the paper or the notes about the code: C_g,
    and whether scores use the thresholded axes. They are what came closest on other tables.
    """
    if method == TEXT:
        return Procedure()
    binary, counts = (any(f.startswith(kind) for f in families) for kind in ("bern", "poisson"))
    return Procedure(
        step=0.1 if binary else 0.5,
        delay=10,
        max_iter=MAX_ITER,
        tolerance=0.5 if binary else 0.05,
        clip=1e-50 if counts else 1e-5,
        start_scale=0.5 if binary else 1.0,
        sparse_scores=False,
        slope_by_threshold=False,
        law_floor=1e-200,
        q_by_threshold=True,
        edge_prior=True,
    )


def search_drawn_rows(
    law: Floats, n_latents: int, n_rows: int, procedure: Procedure, rng: np.random.Generator
) -> CPDAG:
    """Return the graph of Stages II and III: GES on rows drawn from a law (2^K,)."""
    names = tuple(f"Z{k + 1}" for k in range(n_latents))
    if n_latents == 1:
        return CPDAG(np.zeros((1, 1), dtype=np.int8), names)
    space = StateSpace.binary(n_latents)
    drawn = rng.multinomial(n_rows, law / law.sum())
    seen = drawn > 0
    rows, weights = space.states()[seen].astype(np.uint8), drawn[seen].astype(np.float64)
    counts = LatentCounts(rows, weights, space.levels, names)
    return discover(counts, search=ges_with_prior if procedure.edge_prior else "ges")


def as_parts(found: Estimate, q: NDArray[np.int8], graph: CPDAG) -> Parts:
    """Return an estimate in the form that is compared with a truth."""
    return Parts(q, found.coefficients[:, 0], found.coefficients[:, 1:], graph=graph)


def _run(
    method: str, values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    check_families(families, FAMILIES, method)
    procedure, rng = procedure_of(method, families), np.random.default_rng(seed)
    found, q = estimate(values, families, n_latents, procedure, rng)
    graph = search_drawn_rows(found.law, n_latents, len(values), procedure, rng)
    return BaselineResult(q, graph, {"n_iter": found.n_iter})


def research_code(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Run the procedure as the research code does."""
    return _run(RESEARCH, values, families, n_latents, seed)


def printed(values: Floats, families: tuple[str, ...], n_latents: int, seed: int) -> BaselineResult:
    """Run Algorithms S.1 and S.2 as the paper prints them."""
    return _run(TEXT, values, families, n_latents, seed)


RESEARCH_CODE = Baseline(
    RESEARCH, "the procedure of the paper as its research code ran it", research_code
)
PRINTED = Baseline(TEXT, "the procedure of the paper as it prints Algorithms S.1 and S.2", printed)
