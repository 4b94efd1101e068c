"""Laws that hold for any number of levels and any terms: samplers, EM, tables of sub-states."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hidag.em.design_data import WorkingData
from hidag.em.e_step import StateScores, iterate_posteriors, run_e_step
from hidag.em.em import Problem, Schedule, run_em
from hidag.em.m_step import Basis, run_m_step
from hidag.em.saem import GibbsSampler
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import NO_SPARSITY, MeasurementParameters
from hidag.measurement.terms import Effects
from hidag.network_em.em import run_network_m_step
from hidag.network_em.gibbs import NetworkModel, NetworkSampler

LEVELS = (2, 3, 4)
SPACE = StateSpace(LEVELS)
Q = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 1]])
TERMS = Effects.of("all").terms(Q, LEVELS)
FAMILIES = ("gaussian", "bernoulli", "poisson", "gaussian", "bernoulli", "poisson", "gaussian")


def problem(n_rows=60, seed=0, missing=0.15):
    rng = np.random.default_rng(seed)
    loadings = np.where(TERMS.support(Q), 0.4 * rng.normal(size=(len(Q), TERMS.n_terms)), 0.0)
    items = MeasurementParameters(
        FAMILIES, rng.normal(size=len(Q)), loadings, np.ones(len(Q)), TERMS
    )
    law = NetworkLaw(
        SPACE,
        ((), (0,), (0, 1)),
        (
            np.array([0.4, 0.6]),
            rng.dirichlet(np.ones(3), size=2),
            rng.dirichlet(np.ones(4), size=(2, 3)),
        ),
    )
    values = items.sample(law.sample(n_rows, rng), rng)
    values[rng.random(values.shape) < missing] = np.nan
    data = WorkingData.from_values(values, FAMILIES)
    return data, data.to_working(items), law


def posteriors(data, items, law):
    tables = items.tables(TERMS.features(SPACE.states()))
    scores = StateScores.of(tables, law.probabilities, data.incomplete)
    return np.vstack([posterior for _, posterior, _ in iterate_posteriors(scores, data)])


@pytest.mark.parametrize("kind", ["listed", "network"])
def test_sweeps_leave_the_posterior_invariant(kind):
    data, items, law = problem(n_rows=1, seed=3, missing=0.0)
    many = np.repeat(_values(data), 40_000, axis=0)
    data = WorkingData.from_values(many, FAMILIES, units=(data.shift, data.scale))
    exact = posteriors(data.first_rows(1), items, law)[0]
    rng = np.random.default_rng(4)
    begin = rng.choice(SPACE.n_states, size=data.n_samples, p=exact)
    if kind == "listed":
        sampler = GibbsSampler(data, SPACE, begin, 5)
        sampler.draw(items, law.probabilities, n_sweeps=2)
        states = sampler.states
    else:
        network = NetworkSampler(data, SPACE.states()[begin].astype(np.uint8), 5)
        network.draw(NetworkModel.of(items, law), n_sweeps=2)
        states = SPACE.number(network.states)
    seen = np.bincount(states, minlength=SPACE.n_states) / data.n_samples
    error = np.sqrt(exact * (1 - exact) / data.n_samples)
    assert (np.abs(seen - exact) <= 5 * error + 1e-4).all()


def _values(data):
    """Return a complete table in the user's units."""
    return data.x * data.scale + data.shift


def test_sweeps_forget_where_they_began():
    data, items, law = problem(n_rows=30, seed=6)
    exact = posteriors(data, items, law)
    sampler = NetworkSampler(data, np.zeros((30, 3), np.uint8), 7)
    model = NetworkModel.of(items, law)
    sampler.draw(model, n_sweeps=50)
    sums = np.zeros((30, TERMS.n_main))
    n_sweeps = 4000
    sampler.draw(model, n_sweeps=n_sweeps, sums=sums)
    at_level = SPACE.states()[:, TERMS.main_latents] == TERMS.main_levels
    np.testing.assert_allclose(sums / n_sweeps, exact @ at_level, atol=0.05)


def test_em_with_interactions_and_levels_never_falls():
    data, items, law = problem(n_rows=300, seed=8)
    allowed = np.where(np.hstack([np.ones((7, 1), bool), TERMS.support(Q)]), FREE, ZERO)
    basis = Basis.over(SPACE, TERMS)
    values = []
    open_problem = Problem(
        data,
        SPACE,
        basis,
        allowed.astype(np.uint8),
        NO_SPARSITY,
        Schedule(max_iter=40, tolerance=1e-9),
        observer=lambda _, __, value: values.append(value),
    )
    run_em(open_problem, items, law.probabilities)
    assert len(values) > 10
    assert (np.diff(values) >= -1e-7).all()


def test_the_m_step_on_sub_states_is_the_m_step_on_all_states(configure):
    configure("m_step", item_mass=0.0)
    data, items, law = problem(n_rows=400, seed=9)
    sampler = NetworkSampler(data, law.sample(400, np.random.default_rng(1)), 2)
    model = NetworkModel.of(items, law)
    local = run_network_m_step(items, sampler.statistics(model), data, model.items)
    listed = GibbsSampler(data, SPACE, SPACE.number(sampler.states), 0).statistics()
    allowed = np.where(np.hstack([np.ones((7, 1), bool), TERMS.support(Q)]), FREE, ZERO)
    whole = run_m_step(
        items, listed, data, Basis.over(SPACE, TERMS), allowed.astype(np.uint8), NO_SPARSITY
    )
    np.testing.assert_allclose(local.coefficients, whole.coefficients, atol=1e-5)
    np.testing.assert_allclose(local.dispersion, whole.dispersion, atol=1e-6)


def test_the_likelihood_is_the_sum_over_all_states():
    data, items, law = problem(n_rows=20, seed=10, missing=0.0)
    _, value = run_e_step(items, law.probabilities, data, TERMS.features(SPACE.states()))
    total = 0.0
    user = data.to_user(items)
    eta = user.predictors(SPACE.states())
    for row in _values(data):
        logs = np.log(law.probabilities)
        for j, name in enumerate(FAMILIES):
            if name == "gaussian":
                logs = logs + stats.norm.logpdf(row[j], eta[j], np.sqrt(user.dispersion[j]))
            elif name == "bernoulli":
                logs = logs + stats.bernoulli.logpmf(round(row[j]), 1 / (1 + np.exp(-eta[j])))
            else:
                logs = logs + stats.poisson.logpmf(round(row[j]), np.exp(eta[j]))
        total += np.logaddexp.reduce(logs)
    np.testing.assert_allclose(value, total, rtol=1e-9)
