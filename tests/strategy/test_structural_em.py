"""Stage I under a law over a graph: what it returns, what it never does, and when it is kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.initialization.initializers import predictors, spectral_start
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.latent.laws import are_equivalent, factorise_counts
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Terms, default_penalty
from hidag.strategy.estimation import StageOneSettings, estimate_measurement
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import (
    initial_structure_step,
    parents_by_search,
    structural_em,
    without_needless_edges,
)

K = 4
SPACE = StateSpace.binary(K)
BASIS = Basis.of(SPACE.states().astype(np.float64))
Q = np.vstack([np.eye(K)] * 3)
PENALTY = default_penalty("tlp", 1500, K)


def responses(law, n_samples, seed, noise=0.7):
    rng = np.random.default_rng(seed)
    states = law.sample(n_samples, rng)
    loadings = Q * rng.uniform(1.5, 2.5, Q.shape)
    return states @ loadings.T + noise * rng.standard_normal((n_samples, len(Q)))


@pytest.fixture(scope="module")
def chain():
    flip = np.array([[0.8, 0.2], [0.25, 0.75]])
    law = NetworkLaw(SPACE, ((), (0,), (1,), (2,)), (np.array([0.5, 0.5]), flip, flip, flip))
    values = responses(law, 1500, 5)
    return WorkingData.from_values(values, ("gaussian",) * len(Q))


@pytest.fixture(scope="module")
def start(chain):
    entries = np.full(Q.shape, -1, dtype=np.int8)
    point = spectral_start(chain, SPACE, BASIS, entries, predictors(chain, K))
    terms = Terms.main((2,) * K)
    problem = SearchProblem(
        chain,
        SPACE,
        BASIS,
        allowed_coefficients(entries, terms),
        PENALTY,
        Schedule(),
        terms=terms,
        q_entries=entries,
        learn_parents=parents_by_search(SPACE),
    )
    return problem, run_em(problem, point.parameters, point.probabilities)


def test_probabilities_factorise_over_the_parents(start):
    problem, saturated = start
    first = initial_structure_step(problem, saturated, n_steps=20)
    found = structural_em(problem, first)
    for estimate, parents in ((first.estimate, first.parents), (found.estimate, found.parents)):
        law = estimate.probabilities
        np.testing.assert_allclose(law, factorise_counts(law, parents, SPACE), atol=1e-12)
    assert sum(len(causes) for causes in found.parents) == K - 1
    assert found.preferred
    assert found.unconstrained.sum() == pytest.approx(1.0)
    assert len(found.estimate.trace) == found.estimate.n_iter


@pytest.mark.parametrize(
    "parents", [((), (0,), (1,), (2,)), ((), (), (), ()), ((), (), (0, 1), ())]
)
def test_objective_under_a_network_law_never_falls(start, parents):
    problem, saturated = start
    law_step = partial(factorise_counts, parents=parents, space=SPACE)
    schedule = Schedule(max_iter=40, tolerance=1e-12)
    found = run_em(
        replace(problem, schedule=schedule),
        saturated.parameters,
        law_step(saturated.probabilities),
        law_step=law_step,
    )
    assert found.n_iter > 3
    assert np.diff(found.trace[:, 0]).min() >= -1e-7


def test_graph_is_learned_again_until_it_stays_the_same(start):
    problem, saturated = start
    laws = []

    def learn(parameters, law, data, n_steps):
        laws.append(law.copy())
        if len(laws) == 1:
            return ((),) * K
        return problem.learn_parents(parameters, law, data, n_steps)

    observed = replace(problem, learn_parents=learn)
    first = initial_structure_step(observed, saturated, n_steps=20)
    assert first.parents == ((),) * K
    found = structural_em(observed, first)
    assert sum(len(causes) for causes in found.parents) == K - 1
    assert 3 <= len(laws) <= 4
    # The graph is learned from the law after unconstrained updates.
    states = SPACE.states() - laws[1] @ SPACE.states()
    covariance = (states * laws[1][:, None]).T @ states
    assert (np.abs(np.triu(covariance, 1)) > 0.04).sum() >= K - 1
    assert found.estimate.objective > first.estimate.objective + 50.0


def test_trace_has_no_objectives_on_other_rows(start):
    problem, saturated = start
    sample = replace(problem, data=problem.data.first_rows(500))
    first = initial_structure_step(sample, saturated, n_steps=20)
    found = structural_em(problem, first)
    trace = found.estimate.trace
    n_before = first.estimate.n_iter
    assert np.isnan(trace[:n_before, 0]).all()
    assert np.isfinite(trace[:n_before, 1]).all()
    assert np.isfinite(trace[n_before:, 0]).all()
    assert len(trace) > n_before


@pytest.fixture(scope="module")
def dense():
    """Return responses under a law that no graph saves on: an even number of ones, always."""
    p = np.where(SPACE.states().sum(axis=1) % 2 == 0, 1.0, 0.0)
    p = p * np.random.default_rng(6).uniform(0.3, 1.7, len(p))
    return responses(SaturatedLaw(SPACE, p / p.sum()), 6000, 7, noise=0.4)


@pytest.mark.parametrize(
    ("law", "kind"), [("auto", SaturatedLaw), ("network", NetworkLaw), ("saturated", SaturatedLaw)]
)
def test_the_network_law_is_reported_if_given_or_preferred(dense, law, kind):
    found = estimate_measurement(
        dense,
        ("gaussian",) * len(Q),
        StageOneSettings(
            (2,) * K, default_penalty("tlp", len(dense), K), Schedule(), n_starts=1, law=law
        ),
    )
    assert isinstance(found.law, kind)
    assert isinstance(found.parameters, MeasurementParameters)


@pytest.mark.parametrize(
    "triangle", [((), (0, 2), (0,)), ((), (0,), (0, 1)), ((1, 2), (), (1,)), ((2,), (0, 2), ())]
)
def test_a_needless_edge_goes_whatever_the_orientation_of_the_others(triangle):
    # Without 0 - 2 the first triangle is a collider at 1; only others of its class have the chain.
    space, terms, chain = StateSpace((3, 3, 3)), Terms.main((3, 3, 3)), ((), (0,), (1,))
    step = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    law = NetworkLaw(space, chain, (np.full(3, 1 / 3), step, step))
    q = np.repeat(np.eye(3), 2, axis=0)
    rng = np.random.default_rng(8)
    values = law.sample(1500, rng) @ (2.0 * q.T) + 0.7 * rng.standard_normal((1500, 6))
    data = WorkingData.from_values(values, ("gaussian",) * 6)
    items = MeasurementParameters(
        ("gaussian",) * 6, np.zeros(6), 2.0 * np.repeat(q, 2, axis=1), np.full(6, 0.5), terms
    )
    entries = q.astype(np.int8)
    problem = SearchProblem(
        data,
        space,
        Basis.over(space, terms),
        allowed_coefficients(entries, terms),
        NO_SPARSITY,
        Schedule(max_iter=30),
        terms=terms,
        q_entries=entries,
        learn_parents=parents_by_search(space),
    )
    law_step = partial(factorise_counts, parents=triangle, space=space)
    fitted = run_em(problem, items, space.uniform(), law_step=law_step)
    assert are_equivalent(without_needless_edges(problem, fitted, triangle), chain)
