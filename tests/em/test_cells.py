"""Compiled EM of binary items takes the steps of EM with arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import override
from hidag.em.cells import CellModel, run_cells
from hidag.em.design_data import WorkingData
from hidag.em.em import Problem, Schedule, run_em
from hidag.em.m_step import Basis
from hidag.initialization.start_points import spread_law
from hidag.kernels.coordinate_descent import FREE, PENALISED, ZERO
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Effects

Q = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]]
)
CASES = {
    "dina": ("dina", (2, 2, 2), 0.0, False),
    "saturated": ("gdina", (2, 2, 2), 0.0, False),
    "main effects, missing cells": ("main", (2, 2, 2), 0.2, False),
    "pairs, weights": (2, (2, 2, 2), 0.0, True),
    "levels": ("gdina", (3, 2, 2), 0.1, True),
}


def case(effects, levels, missing, weighted, *, family="bernoulli"):
    """Return a problem, items and a law."""
    rng = np.random.default_rng(4)
    space = StateSpace(levels)
    answers = (rng.random((300, len(Q))) < rng.uniform(0.3, 0.8, (300, 1))).astype(float)
    answers[rng.random(answers.shape) < missing] = np.nan
    weights = rng.integers(1, 4, 300).astype(float) if weighted else None
    data = WorkingData.from_values(answers, (family,) * len(Q), weights=weights)
    asked = Effects.of(effects)
    terms = asked.terms(Q.astype(np.int8), levels)
    allowed = np.full((len(Q), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][asked.support(terms, Q.astype(np.int8))] = FREE
    basis = Basis.over(space, terms)
    schedule = Schedule(max_iter=25, tolerance=0.0)
    problem = Problem(data, space, basis, allowed, NO_SPARSITY, schedule)
    loadings = np.where(allowed[:, 1:] == FREE, 0.8 * rng.random(terms.n_terms), 0.0)
    items = MeasurementParameters(
        data.families, np.full(len(Q), -0.5), loadings, np.ones(len(Q)), terms
    )
    return problem, items, spread_law(rng.dirichlet(np.ones(space.n_states)))


@pytest.mark.parametrize("name", CASES)
def test_compiled_steps_are_those_of_em(name):
    problem, items, law = case(*CASES[name])
    model = CellModel.of(problem)
    # Both without their accelerations, which differ.
    with override({"cells.extrapolation": (1.0, 1.0, 1.0), "em.max_relaxation": 1.0}):
        found, expected = run_cells(model, problem, items, law), run_em(problem, items, law)
    # Both end an unsaturated item's M-step after two Newton steps, damped in different ways.
    close = 1e-8 if "main" not in name and "pairs" not in name else 1e-3
    np.testing.assert_allclose(found.trace[:, 0], expected.trace[:, 0], rtol=0, atol=close)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=close)
    assert found.objective == pytest.approx(found.trace[-1, 0], abs=1e-6)
    assert (np.diff(found.trace[:, 0]) >= -1e-9).all()


@pytest.mark.parametrize("name", CASES)
def test_extrapolated_steps_never_lower_the_objective_and_reach_the_maximum_sooner(name):
    problem, items, law = case(*CASES[name])
    model = CellModel.of(problem)
    long = replace(problem, schedule=Schedule(max_iter=3000, tolerance=1e-8))
    found = run_cells(model, long, items, law)
    with override({"cells.extrapolation": (1.0, 1.0, 1.0)}):
        plain = run_cells(model, long, items, law)
    assert (np.diff(found.trace[:, 0]) >= -1e-9).all()
    assert found.objective > plain.objective - 0.05
    assert found.n_iter < plain.n_iter


def test_states_that_items_do_not_distinguish_keep_their_ratio():
    problem, items, law = case(*CASES["dina"])
    blind = replace(problem, allowed=problem.allowed.copy())
    # Without the third latent, states that differ in it alone are one class.
    blind.allowed[:, 1:][:, problem.space.n_latents - 1 :] = ZERO
    own = replace(items, loadings=np.where(blind.allowed[:, 1:] == FREE, items.loadings, 0.0))
    model = CellModel.of(blind)
    assert model.cell.shape[1] < problem.space.n_states
    after = run_cells(model, blind, own, law).probabilities
    for c in range(model.cell.shape[1]):
        together = np.flatnonzero(model.classes == c)
        ratio = after[together] / law[together]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_other_items_have_no_compiled_form():
    problem, _, _ = case("main", (2, 2, 2), 0.0, False)
    model = CellModel.of(problem)
    assert model.fits(replace(problem, schedule=Schedule(max_iter=3)))
    penalised = replace(problem, allowed=problem.allowed.copy())
    assert not model.fits(penalised)
    penalised.allowed[0, 1] = PENALISED
    assert CellModel.of(penalised) is None
    assert CellModel.of(case("main", (2, 2, 2), 0.0, False, family="bernoulli-probit")[0]) is None
    assert CellModel.of(case("main", (2, 2, 2), 0.0, False, family="gaussian")[0]) is None


def test_long_products_of_small_probabilities_stay_in_range():
    rng = np.random.default_rng(0)
    n_items, space = 300, StateSpace((2,))
    answers = (rng.random((40, n_items)) < 0.5).astype(float)
    data = WorkingData.from_values(answers, ("bernoulli",) * n_items)
    terms = Effects.of("main").terms(np.ones((n_items, 1), np.int8), (2,))
    allowed = np.full((n_items, 2), FREE, dtype=np.uint8)
    schedule = Schedule(max_iter=5, tolerance=0.0)
    problem = Problem(data, space, Basis.over(space, terms), allowed, NO_SPARSITY, schedule)
    items = MeasurementParameters(
        data.families, np.full(n_items, 25.0), np.full((n_items, 1), -50.0), np.ones(n_items), terms
    )
    found = run_cells(CellModel.of(problem), problem, items, np.array([0.5, 0.5]))
    assert np.isfinite(found.trace).all()
    assert found.objective == pytest.approx(run_em(problem, items, np.array([0.5, 0.5])).objective)
