"""Closed-form M-steps of items whose terms are saturated, held against many Newton steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_e_step
from hidag.em.m_step import Basis, SaturatedCells, _Regressions, run_m_step
from hidag.initialization.start_points import null_parameters
from hidag.kernels.coordinate_descent import FREE, PENALISED, ZERO
from hidag.latent import StateSpace
from hidag.measurement import NO_SPARSITY, family_named
from hidag.measurement.terms import Effects

SPACE = StateSpace((2, 3, 2))
Q = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=np.int8)


def constraints(effects):
    terms = effects.terms(Q, SPACE.levels)
    allowed = np.full((len(Q), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][effects.support(terms, Q)] = FREE
    return terms, allowed


def expected(family, terms, seed=0):
    """Return parameters, expected statistics and data of a table of one family."""
    rng = np.random.default_rng(seed)
    states = SPACE.states()[rng.integers(SPACE.n_states, size=600)]
    eta = 0.4 + 0.5 * (states @ Q.T) / Q.sum(axis=1)
    aux = np.full(len(Q), 1.3)
    X = family_named(family).sample(eta, aux, rng)
    data = WorkingData.from_values(X, (family,) * len(Q))
    items = null_parameters(data, terms)
    slopes = np.zeros_like(items.loadings)
    slopes[:, : terms.n_main] = 0.1 * Q[:, terms.main_latents]
    items = replace(items, loadings=slopes)
    law = rng.dirichlet(np.full(SPACE.n_states, 5.0))
    statistics, _ = run_e_step(items, law, data, terms.features(SPACE.states()))
    return items, statistics, data


FAMILIES = (
    "bernoulli",
    "bernoulli-probit",
    "bernoulli-cloglog",
    "poisson",
    "poisson-identity",
    "negative-binomial",
    "gaussian",
    "lognormal",
    "gamma",
)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("effects", ["gdina", "dina"])
def test_closed_form_is_where_newton_steps_converge(family, effects, monkeypatch):
    terms, allowed = constraints(Effects.of(effects))
    items, statistics, data = expected(family, terms)
    basis = Basis.over(SPACE, terms)
    assert len(basis.saturated_cells(allowed).items) == len(Q)
    found = run_m_step(items, statistics, data, basis, allowed, NO_SPARSITY, n_newton=100)
    monkeypatch.setattr(_Regressions, "update", _Regressions.newton_step)
    monkeypatch.setattr(_Regressions, "in_closed_form", False)
    slow = run_m_step(items, statistics, data, basis, allowed, NO_SPARSITY, n_newton=100)
    states = SPACE.states()
    np.testing.assert_allclose(found.predictors(states), slow.predictors(states), atol=2e-5)
    np.testing.assert_allclose(found.dispersion, slow.dispersion, rtol=1e-4)
    assert ((found.loadings != 0) == (allowed[:, 1:] == FREE)).all()


def test_main_effects_of_several_latents_and_penalised_items_are_not_saturated():
    terms, allowed = constraints(Effects.of("main"))
    basis = Basis.over(SPACE, terms)
    np.testing.assert_array_equal(SaturatedCells.of(basis, allowed).items, [0, 1])
    allowed[0, 1] = PENALISED
    np.testing.assert_array_equal(SaturatedCells.of(basis, allowed).items, [1])


def test_cells_without_rows_stay_and_means_on_the_boundary_are_finite():
    basis = Basis.of(np.array([[0.0], [1.0], [1.0]]))
    allowed = np.full((2, 2), FREE, dtype=np.uint8)
    cells = SaturatedCells.of(basis, allowed)
    beta = np.array([[0.3, -1.0], [0.3, -1.0]])
    counts = np.array([[0.0, 2.0, 3.0], [4.0, 2.0, 2.0]])
    sums = np.array([[0.0, 2.0, 3.0], [1.0, 0.0, 0.0]])
    found = cells.maximise(family_named("bernoulli"), beta, sums, counts)
    assert found[0, 0] == pytest.approx(0.3)
    largest = -np.log(CONFIG.m_step.boundary_mean)
    assert found[0].sum() == pytest.approx(largest, rel=1e-3)
    assert found[1, 0] == pytest.approx(-np.log(3.0))
    assert found[1].sum() == pytest.approx(-largest, rel=1e-3)
