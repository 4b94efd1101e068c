"""Starts for a given Q that keep what went right: some latents begun again, the law begun again."""

from __future__ import annotations

import numpy as np
import pytest
from hidag.strategy.multistart import (
    best_with_law_begun_again,
    fresh_starts,
    law_without,
    starts_renewed,
)

from hidag.em.design_data import WorkingData
from hidag.em.em import run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.em.problem import Problem, Schedule
from hidag.initialization.initializers import generators_of
from hidag.initialization.start_points import confirmatory_start
from hidag.latent import StateSpace
from hidag.measurement import NO_SPARSITY, Terms

SPACE = StateSpace((2,) * 4)
TERMS = Terms.main(SPACE.levels)
BASIS = Basis.over(SPACE, TERMS)
#: Every item has a latent of the first two and one of the last two, as contents and kinds of work.
Q = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]] * 3, dtype=np.int8)
ROUGH = Schedule(max_iter=30, tolerance=3e-3)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    states = (rng.random((250, 4)) < [0.5, 0.6, 0.85, 0.8]).astype(float)
    X = states @ (Q * rng.uniform(0.6, 1.6, Q.shape)).T + rng.standard_normal((250, len(Q)))
    return WorkingData.from_values(X, ("gaussian",) * len(Q))


@pytest.fixture(scope="module")
def run(data):
    allowed = allowed_coefficients(Q, TERMS)

    def em(index, begin, plan):
        return run_em(Problem(data, SPACE, BASIS, allowed, NO_SPARSITY, plan), *begin)

    return em


@pytest.fixture(scope="module")
def ends(data, run):
    generators = generators_of(3, 6)
    points = [confirmatory_start(data, SPACE, Q, rng=rng) for rng in generators]
    return [run(i, (p.parameters, p.probabilities), ROUGH) for i, p in enumerate(points)]


def test_begun_again_latents_depend_on_nothing_and_the_others_keep_their_law():
    law = np.random.default_rng(0).dirichlet(np.ones(16))
    cube = law_without(law, np.array([1, 3]), SPACE).reshape(SPACE.levels)
    assert cube.sum() == pytest.approx(1.0)
    even = cube.mean(axis=(1, 3), keepdims=True)
    np.testing.assert_allclose(cube, np.broadcast_to(even, cube.shape))
    kept = 0.9 * law.reshape(SPACE.levels).sum(axis=(1, 3)) + 0.1 / 4
    np.testing.assert_allclose(cube.sum(axis=(1, 3)), kept)


def test_renewed_starts_lead_from_the_worst_end_to_the_best(data, run, ends):
    worst = min(ends, key=lambda end: end.objective)
    best = max(end.objective for end in ends)
    assert worst.objective < best - 5.0
    generators = generators_of(3, 16)
    renewed = starts_renewed([worst], data, SPACE, BASIS, Q, generators, run, ROUGH)
    assert len(renewed) == 15
    assert {label for label, _ in renewed} == {
        "given Q, 1 of 4 latents begun again",
        "given Q, 2 of 4 latents begun again",
    }
    assert max(end.objective for _, end in renewed) > best - 1.0


def test_the_law_begun_again_is_never_worse_and_brings_lost_states_back(run, ends):
    end = max(ends, key=lambda e: e.objective)
    starved = np.where(np.arange(16) % 3 == 0, 1.0, 0.0)
    poor = run(0, (end.parameters, starved / starved.sum()), ROUGH)
    index, found = best_with_law_begun_again({5: poor}, SPACE, run, Schedule(tolerance=1e-5))
    assert index == 5
    assert found.objective > poor.objective + 10.0
    assert (found.probabilities > 1e-3).sum() > (poor.probabilities > 1e-3).sum()


def test_a_quarter_of_the_starts_is_new():
    assert [fresh_starts(n) for n in (9, 20, 90)] == [2, 5, 22]
