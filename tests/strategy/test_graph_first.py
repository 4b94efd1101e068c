"""Candidates of weakly informative items, whose graph is learned with coefficients fixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.information import information_ratio
from hidag.initialization.start_points import StartPoint
from hidag.latent import SaturatedLaw, StateSpace
from hidag.latent.laws import are_equivalent, factorise_counts
from hidag.simulation import chain_dag, make_truth, random_law, simulate
from hidag.strategy import exploratory
from hidag.strategy.exploratory import estimate_exploratory, graph_first

from .problems import open_problem, silent

K, N = 4, 5000
SPACE = StateSpace.binary(K)
CHAIN = ((), (0,), (1,), (2,))
EVEN = np.full(SPACE.n_states, 1.0 / SPACE.n_states)


@pytest.fixture(scope="module")
def weak():
    """Return the truth and the problem of weakly informative binary items, three per latent."""
    rng = np.random.default_rng(11)
    law = random_law(chain_dag(K), rng=rng)
    q = np.vstack([np.eye(K)] * 3)
    truth = make_truth(law, q, "bernoulli", coefficients="text", rng=rng)
    return truth, open_problem(simulate(truth, N, rng=rng).X, truth.families, K)


def first_candidate(truth, problem, learn_parents=None):
    point = StartPoint(truth.items, EVEN, "true items")
    if learn_parents is not None:
        problem = replace(problem, learn_parents=learn_parents)
    return graph_first(problem, point, silent)


def test_items_are_weakly_informative(weak):
    truth, problem = weak
    law = SaturatedLaw(SPACE, np.asarray(truth.law.probabilities))
    assert information_ratio(truth.items, law, problem.data) < CONFIG.information.low_ratio


def test_true_graph_is_found_from_true_items_and_a_uniform_law(weak):
    truth, problem = weak
    found = first_candidate(truth, problem)
    assert are_equivalent(found.parents, CHAIN)
    law = found.estimate.probabilities
    np.testing.assert_allclose(factorise_counts(law, found.parents, SPACE), law, atol=1e-12)
    assert ((found.estimate.parameters.loadings != 0) == (truth.q_matrix == 1)).mean() > 0.9


def test_graph_is_learned_from_independent_latents_and_the_items_of_the_start(weak):
    truth, problem = weak
    calls = []

    def learn(parameters, probabilities, data, n_steps):
        calls.append((parameters.loadings != 0, probabilities, data, n_steps))
        return CHAIN

    found = first_candidate(truth, problem, learn)
    assert found.parents == CHAIN
    support, law, data, n_steps = calls[0]
    np.testing.assert_array_equal(support, truth.q_matrix == 1)
    np.testing.assert_allclose(factorise_counts(law, ((),) * K, SPACE), law, atol=1e-12)
    assert n_steps == 1
    assert data is problem.data


def test_large_tables_are_sampled(weak, monkeypatch):
    truth, problem = weak
    fewer = replace(CONFIG.exploratory, rows_for_weak_items=500)
    monkeypatch.setattr(CONFIG, "exploratory", fewer)
    assert first_candidate(truth, problem, lambda *_: CHAIN).data.n_samples == 500


def run(problem, learn_parents, **settings):
    return estimate_exploratory(
        replace(problem, learn_parents=learn_parents, law="network", seed=3, **settings)
    )


def test_graph_is_learned_first_for_weakly_informative_items(weak, monkeypatch):
    _, problem = weak
    first = exploratory.graph_first
    started = []

    def counted(problem, point, observer):
        started.append(point.label)
        return first(problem, point, observer)

    monkeypatch.setattr(exploratory, "graph_first", counted)
    found = run(problem, problem.learn_parents, n_starts=2)
    assert started == [record.label for record in found.records]
    # Candidates were compared on all rows.
    assert [record.n_rows for record in found.records] == [0, 0]
    # Without an edge, or with informative items, a saturated law comes first.
    started.clear()
    saturated_first = run(problem, lambda *_: ((),) * K, n_starts=2)
    assert started == [found.records[0].label]
    assert all(record.n_rows > 0 for record in saturated_first.records)
    started.clear()
    monkeypatch.setattr(exploratory, "information_ratio", lambda *_: CONFIG.information.low_ratio)
    run(problem, problem.learn_parents, n_starts=2)
    assert started == []


def test_threads_change_no_bit(weak):
    _, problem = weak
    one, two = (run(problem, problem.learn_parents, n_starts=2, n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(
        one.network.estimate.parameters.loadings, two.network.estimate.parameters.loadings
    )
    assert one.network.parents == two.network.parents
