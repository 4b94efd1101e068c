"""EM on small tables: expectations are those over all joint states, and fits end at the maximum."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, simulate, standard_errors
from hidag.em.design_data import WorkingData
from hidag.em.layout import FamilyLayout, ItemLayout
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.network_em import em
from hidag.network_em.em import expect_tables, nearly_there, run_exact_steps
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
    layout, families = ItemLayout.of(items), FamilyLayout.of_law(law)
    found, value = expect_tables(TreePosterior.of(items, law), data, items, layout, families)
    states = law.space.states()
    theta, partition = items.tables(items.terms.features(states))
    logs = data.x @ theta - data.observed @ partition + np.log(law.probabilities)
    density = np.logaddexp.reduce(logs, axis=1)
    posterior = np.exp(logs - density[:, None]) * data.weights[:, None]
    assert value == pytest.approx(data.weights @ density + data.base(items.dispersion))
    for d, j in enumerate(data.column_item):
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
        here = slice(families.table_ptr[k], families.table_ptr[k + 1])
        np.testing.assert_allclose(found.families[here], cube.sum(axis=axes).ravel())


def test_steps_climb_and_held_items_stay(problem, monkeypatch) -> None:
    law, items, data = problem
    layout, families = ItemLayout.of(items), FamilyLayout.of_law(law)

    def likelihood(parameters, law) -> float:
        tree = TreePosterior.of(parameters, law)
        return expect_tables(tree, data, parameters, layout, families)[1]

    monkeypatch.setattr(em, "MOST_STEPS", 3)
    few = run_exact_steps(items, law, data)
    held = run_exact_steps(items, law, data, hold_items=True)
    monkeypatch.setattr(em, "MOST_STEPS", 60)
    many = run_exact_steps(items, law, data)
    start = likelihood(items, law)
    assert start < likelihood(few.parameters, few.law) < likelihood(many.parameters, many.law)
    assert start < likelihood(held.parameters, held.law)
    assert held.parameters is items
    assert len(few.moves) == 3


def test_tables_that_cost_too_much_are_left_to_sampling(problem, monkeypatch) -> None:
    law, items, data = problem
    monkeypatch.setattr(em, "CELLS_FOR_A_LOADING", 1)
    assert run_exact_steps(items, law, data) is None


def test_what_is_to_come_is_told_by_how_gains_fall() -> None:
    assert not nearly_there([0.0, 1.0])
    # Gains of 1, 1/2, 1/4, ...: as much is to come as the last one.
    assert not nearly_there([0.0, 1.0, 1.5])
    assert nearly_there([0.0, 0.1, 0.15])
    # Small but steady gains go on for long.
    assert not nearly_there([0.0, 0.050, 0.099])
    assert nearly_there([0.0, 1.0, 1.0])
    # A first step that lost tells nothing of what is to come.
    assert not nearly_there([0.0, -0.1, 0.3])


@pytest.mark.parametrize("family", ["bernoulli", "poisson-identity"])
def test_sampled_fits_end_near_the_maximum(family: str) -> None:
    truth = design("Chain-5", "Q1", family, design="research-code", rng=3)
    values = simulate(truth, 1500, rng=4).X
    sampled = DCRL(
        5, q_matrix=truth.q_matrix, family=family, method="saem", law="network", random_state=0
    ).fit(values)
    assert sampled.result_.method == "saem"
    assert standard_errors(sampled, values, kind="scores").distance < 1.0
