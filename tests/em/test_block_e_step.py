"""The block E-step has the results of the E-step over listed states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em import e_step
from hidag.em.block_e_step import factorise_states
from hidag.em.e_step import run_e_step, run_law_e_step
from hidag.em.m_step import Basis, allowed_coefficients, run_m_step
from hidag.kernels.sufficient_statistics import multiply_out
from hidag.latent import StateSpace
from hidag.measurement import Penalty, Terms

from .helpers import CASES, J, case


def listed(monkeypatch, arguments):
    with monkeypatch.context() as patch:
        patch.setattr(e_step, "factorise_states", lambda *a: None)
        return run_e_step(*arguments), run_law_e_step(*arguments)


def is_factorised(parameters, law, data, features):
    tables = parameters.tables(features)
    has_missing = len(data.incomplete) > 0
    model = factorise_states(
        parameters, np.log(law), features, tables, data, has_missing=has_missing
    )
    return model is not None


@pytest.mark.parametrize("name", CASES)
def test_blocks_have_the_results_of_listed_states(monkeypatch, name):
    arguments = CASES[name]
    parameters, _, data, features = arguments
    assert is_factorised(*arguments)
    (theirs, value), (their_counts, _) = listed(monkeypatch, arguments)
    ours, found = run_e_step(*arguments)
    counts, _ = run_law_e_step(*arguments)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(ours.count, theirs.count, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(counts, their_counts, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.incomplete_count, theirs.incomplete_count, rtol=1e-9, atol=1e-9)
    design = Basis.of(features).design
    np.testing.assert_allclose(ours.sum_x @ design, theirs.sum_x @ design, rtol=1e-9, atol=1e-8)
    by_state = np.array(parameters.families) == "poisson-identity"
    np.testing.assert_allclose(ours.sum_x[by_state], theirs.sum_x[by_state], rtol=1e-9, atol=1e-9)
    q = np.full((J, parameters.terms.n_latents), -1, dtype=np.int8)
    allowed = allowed_coefficients(q, parameters.terms)
    steps = [
        run_m_step(parameters, s, data, Basis.of(features), allowed, Penalty("tlp", 3.0, 0.1))
        for s in (ours, theirs)
    ]
    np.testing.assert_allclose(steps[0].loadings, steps[1].loadings, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(steps[0].dispersion, steps[1].dispersion, rtol=1e-7)


def test_cases_are_on_both_sides_of_the_number_of_complete_rows():
    few, many = (CASES[name][2].complete.sum() for name in ("missing", "little missing"))
    assert few < CONFIG.e_step.min_complete_rows <= many < len(CASES["little missing"][2].complete)


@pytest.mark.parametrize("name", ["gaussian", "missing", "little missing", "not additive"])
def test_threads_do_not_change_bits(name):
    arguments = CASES[name]
    one, two = (run_e_step(*arguments, n_threads=n) for n in (1, 3))
    assert one[1] == two[1]
    np.testing.assert_array_equal(one[0].sum_x, two[0].sum_x)
    np.testing.assert_array_equal(one[0].incomplete_count, two[0].incomplete_count)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_rows_that_underflow_are_listed(monkeypatch, missing):
    """Responses far in the tails: block densities alone would underflow to zero."""
    parameters, _, data, features = case(
        ("gaussian",), (2,) * 6, size=40.0, seed=3, missing=missing, together=2
    )
    law = np.full(64, 1e-300)
    law[[0, 63]] = 0.5
    arguments = (parameters, law, data, features)
    assert is_factorised(*arguments)
    (theirs, value), _ = listed(monkeypatch, arguments)
    ours, found = run_e_step(*arguments)
    assert found == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(ours.count, theirs.count, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.incomplete_count, theirs.incomplete_count, rtol=1e-6, atol=1e-9)


def test_items_with_interactions_need_their_own_latents_only(monkeypatch):
    parameters, law, data, _ = case(("gaussian", "bernoulli"), (2,) * 6, together=2)
    terms = Terms(parameters.terms.levels, (((0, 1), (1, 1)), ((3, 1), (4, 1))))
    parameters = parameters.with_terms(terms)
    loadings = parameters.loadings.copy()
    loadings[[0, 6], 6], loadings[3, 7] = 0.7, -0.4
    parameters = replace(parameters, loadings=loadings)
    arguments = (parameters, law, data, terms.features(StateSpace(terms.levels).states()))
    assert is_factorised(*arguments)
    (theirs, value), _ = listed(monkeypatch, arguments)
    ours, found = run_e_step(*arguments)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(ours.count, theirs.count, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.sum_x, theirs.sum_x, rtol=1e-9, atol=1e-9)


def test_items_of_too_many_latents_are_listed():
    assert not is_factorised(*case(("poisson-identity",), (2,) * 6))
    assert not is_factorised(*case(("bernoulli", "poisson-identity"), (2,) * 6))
    assert not is_factorised(*case(("bernoulli",), (2,) * 6, missing=0.1))
    assert not is_factorised(*case(("gaussian",), (2,) * 3))
    assert not is_factorised(*case(("poisson",), (2,) * 6, size=60.0))


def test_joint_densities_are_those_of_the_plain_loop():
    rng = np.random.default_rng(0)
    left, right, between = rng.random((3, 4, 2)), rng.random((3, 6)), rng.random((3, 4, 3))
    compiled, plain = np.empty((2, 3, 4, 2, 6))
    multiply_out(left, right, between, compiled)
    multiply_out.py_func(left, right, between, plain)
    np.testing.assert_array_equal(compiled, plain)
    expected = left[:, :, :, None] * right[:, None, None] * np.tile(between, 2)[:, :, None]
    np.testing.assert_allclose(compiled, expected, rtol=1e-14)
