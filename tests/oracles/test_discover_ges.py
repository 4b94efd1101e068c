"""Our GES against the ``ges`` package, which gets our score: the same graph, edge for edge."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.latent import LatentCounts
from hidag.structure import CountScore, search_graph

ges = pytest.importorskip("ges")


def network_rows(rng: np.random.Generator, levels: tuple[int, ...], n: int) -> np.ndarray:
    rows = np.zeros((n, len(levels)), dtype=np.int64)
    for k, m in enumerate(levels):
        parents = rng.permutation(k)[: rng.integers(0, 4)]
        code = np.zeros(n, dtype=np.int64)
        for a in parents:
            code = code * levels[a] + rows[:, a]
        tables = rng.dirichlet(np.full(m, 0.5), size=int(code.max()) + 1)
        rows[:, k] = (rng.random(n)[:, None] > np.cumsum(tables[code], axis=1)[:, :-1]).sum(axis=1)
    return rows


class OurScore(ges.scores.DecomposableScore):
    def __init__(self, score: CountScore, n_variables: int) -> None:
        super().__init__(np.zeros((1, n_variables)), cache=True)
        self.p = n_variables
        self.score = score

    def full_score(self, adjacency) -> float:
        return sum(
            self._compute_local_score(k, np.flatnonzero(adjacency[:, k])) for k in range(self.p)
        )

    def _compute_local_score(self, x, pa) -> float:
        return self.score.local(int(x), tuple(sorted(int(k) for k in pa)))


@pytest.mark.parametrize("kind", ["bdeu", "bic"])
@pytest.mark.parametrize("n_variables", [3, 5, 6, 7, 8])
def test_same_graph(kind, n_variables) -> None:
    rng = np.random.default_rng(n_variables)
    for problem in range(4):
        levels = tuple(rng.integers(2, 4, n_variables).tolist())
        rows = network_rows(rng, levels, int(rng.choice([60, 400, 3000])))
        score = CountScore(LatentCounts.from_rows(rows, levels=levels), kind)
        theirs, total = ges.fit(
            OurScore(score, n_variables), phases=["forward", "backward"], iterate=False
        )
        ours = search_graph(score.counts, score=kind, search="ges")
        assert ours.score == pytest.approx(total, rel=1e-9)
        np.testing.assert_array_equal(ours.graph.adjacency, theirs.astype(int), str(problem))
