"""PC and the search over permutations: their tests, population graphs, order of the columns."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import design
from hidag.latent import LatentCounts
from hidag.latent.counts import expected_counts
from hidag.structure import Knowledge, discover
from hidag.structure.other_searches import OTHER_SEARCHES, Candidates
from hidag.structure.scores import ScoreCache, make_score


def test_the_test_of_pc_with_bic_is_that_by_g_squared() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        rows = rng.integers(0, 2, (300, 4))
        rows[:, 2] = np.where(rng.random(300) < rng.uniform(0.5, 0.7), rows[:, 0], rows[:, 2])
        counts = LatentCounts.from_rows(rows, levels=(2,) * 4)
        cache = ScoreCache(make_score("bic", counts, 1.0), 4)
        candidates = Candidates(cache, 4, None, None, None)
        statistic = 0.0
        for stratum in (0, 1):
            seen = np.zeros((2, 2))
            np.add.at(seen, tuple(rows[rows[:, 3] == stratum][:, [0, 2]].T), 1)
            expected = seen.sum(1, keepdims=True) * seen.sum(0) / seen.sum()
            statistic += 2 * (seen * np.log(np.maximum(seen, 1e-300) / expected)).sum()
        gain = candidates.gain(0, 2, 1 << 3)
        assert gain == pytest.approx((statistic - 2 * np.log(300)) / 2, abs=1e-8)


@pytest.mark.parametrize("search", OTHER_SEARCHES)
@pytest.mark.parametrize("model", ["Chain-5", "Tree-10", "Model-7", "Model-8"])
def test_a_law_without_noise_gives_its_graph(search, model) -> None:
    truth = design(model, design="research-code", rng=4)
    counts = expected_counts(truth.law, 1e6, truth.latent_names)
    assert discover(counts, search=search) == truth.cpdag


@pytest.mark.parametrize("search", OTHER_SEARCHES)
def test_the_order_of_the_columns_only_permutes_the_answer(search) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        truth = design("Model-7", design="research-code", rng=rng)
        counts = expected_counts(truth.law, 400.0, truth.latent_names)
        rows = np.repeat(counts.states, rng.poisson(counts.weights), axis=0)
        names = np.array(truth.latent_names)
        order = rng.permutation(7)
        plain = discover(rows, search=search, names=names.tolist())
        moved = discover(rows[:, order], search=search, names=names[order].tolist())
        assert (plain.adjacency[np.ix_(order, order)] == moved.adjacency).all()


@pytest.mark.parametrize("search", OTHER_SEARCHES)
def test_knowledge_is_obeyed(search) -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 2, (500, 5))
    rows[:, 1] = np.where(rng.random(500) < 0.8, rows[:, 0], rows[:, 1])
    knowledge = Knowledge(required=((3, 4),), forbidden=((0, 1),))
    found = discover(rows, search=search, knowledge=knowledge).adjacency
    assert (found[3, 4], found[4, 3]) == (1, 0)
    assert (found[0, 1], found[1, 0]) == (0, 1)
