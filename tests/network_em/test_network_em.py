"""Network EM: expectations are those over all joint states, and fits reach the maximum."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, simulate, standard_errors
from hidag.em.design_data import WorkingData
from hidag.em.em import remaining_gain
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.network_em.em import run_network_e_step, run_network_em
from hidag.network_em.gibbs import NetworkModel
from hidag.network_em.junction_tree import TreePosterior

LEVELS = (2, 3, 2)


@pytest.fixture
def problem():
    """Return a law, items and a table with gaps and weights, on the working scale."""
    rng = np.random.default_rng(5)
    tables = [rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(3), 2), rng.dirichlet([1, 1], 3)]
    law = NetworkLaw(StateSpace(LEVELS), ((), (0,), (1,)), tuple(tables))
    terms = Terms(LEVELS)
    q = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0]])
    names = ("bernoulli", "poisson", "gaussian", "ordinal(3)", "zero-inflated-poisson", "bernoulli")
    support = terms.support(q)
    cutpoints = np.full((len(q), 1), np.nan)
    cutpoints[3] = 1.0
    items = MeasurementParameters(
        names,
        rng.normal(0, 0.3, len(q)),
        np.where(support, rng.uniform(0.4, 1.2, support.shape), 0.0),
        np.full(len(q), 0.4),
        terms=terms,
        cutpoints=cutpoints,
    )
    values = items.sample(law.sample(120, rng), rng)
    values[rng.random(values.shape) < 0.2] = np.nan
    data = WorkingData.from_values(values, names, weights=rng.uniform(0.5, 2.0, len(values)))
    return law, data.to_working(items), data


def test_expected_sums_and_likelihood_are_those_over_all_states(problem) -> None:
    law, items, data = problem
    model = NetworkModel.of(items, law)
    layout, network = model.items, model.network
    found, value = run_network_e_step(TreePosterior.of(items, law), data, model)
    states = law.space.states()
    theta, partition = items.tables(items.terms.features(states))
    logs = data.x @ theta - data.observed @ partition + np.log(law.probabilities)
    density = np.logaddexp.reduce(logs, axis=1)
    posterior = np.exp(logs - density[:, None]) * data.weights[:, None]
    assert value == pytest.approx(data.weights @ density + data.base(items.dispersion))
    for d, j in enumerate(data.columns.item):
        own = layout.item_parents[layout.item_ptr[d] : layout.item_ptr[d + 1]]
        strides = layout.item_strides[layout.item_ptr[d] : layout.item_ptr[d + 1]]
        cell = layout.table_ptr[d] + states[:, own] @ strides
        here = slice(layout.table_ptr[d], layout.table_ptr[d + 1])
        by_state = data.x[:, d] @ posterior
        expected = np.bincount(cell, by_state, minlength=layout.size)[here]
        np.testing.assert_allclose(found.sum_x[here], expected, atol=1e-10)
        if d == data.columns.starts[j]:
            rows = data.observed[:, j] @ posterior
            expected = np.bincount(cell, rows, minlength=layout.size)[here]
            np.testing.assert_allclose(found.count[here], expected, atol=1e-10)
    cube = posterior.sum(axis=0).reshape(LEVELS)
    for k, axes in enumerate([(1, 2), (2,), (0,)]):
        here = slice(network.table_ptr[k], network.table_ptr[k + 1])
        np.testing.assert_allclose(found.families[here], cube.sum(axis=axes).ravel())


def test_the_likelihood_rises_and_fixed_items_stay(problem, configure) -> None:
    law, items, data = problem

    def likelihood(parameters, law) -> float:
        tree = TreePosterior.of(parameters, law)
        return run_network_e_step(tree, data, NetworkModel.of(parameters, law))[1]

    configure("network_em", max_iter=3)
    few = run_network_em(items, law, data)
    held = run_network_em(items, law, data, fix_items=True)
    configure("network_em", max_iter=60)
    many = run_network_em(items, law, data)
    start = likelihood(items, law)
    assert start < likelihood(few.parameters, few.law) < likelihood(many.parameters, many.law)
    assert start < likelihood(held.parameters, held.law)
    assert held.parameters is items
    assert len(few.changes) == 3


def test_expensive_tables_are_left_to_sampling(problem, configure) -> None:
    law, items, data = problem
    configure("network_em", cells_per_loading=1)
    assert run_network_em(items, law, data) is None


def test_the_remaining_gain_is_extrapolated_from_the_last_two_gains() -> None:
    assert remaining_gain([0.0, 1.0]) == np.inf
    # Gains of 1, 1/2, 1/4, ...: the rest of the series is as large as the last gain.
    assert remaining_gain([0.0, 1.0, 1.5]) == pytest.approx(0.5)
    assert remaining_gain([0.0, 0.1, 0.15]) == pytest.approx(0.05)
    # Small but steady gains sum to much.
    assert remaining_gain([0.0, 0.050, 0.099]) > 1.0
    assert remaining_gain([0.0, 1.0, 1.0]) == -np.inf
    # After a first iteration that lost nothing can be extrapolated.
    assert remaining_gain([0.0, -0.1, 0.3]) == np.inf


@pytest.mark.parametrize("family", ["bernoulli", "poisson-identity"])
def test_sampled_fits_end_near_the_maximum(family: str) -> None:
    truth = design("Chain-5", "Q1", family, design="research-code", rng=3)
    values = simulate(truth, 1500, rng=4).X
    sampled = DCRL(
        5, q_matrix=truth.q_matrix, family=family, method="saem", law="network", random_state=0
    ).fit(values)
    assert sampled.result_.method == "saem"
    assert standard_errors(sampled, values, kind="scores").distance < 1.0
