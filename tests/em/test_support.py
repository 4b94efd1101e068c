"""Support selection by the observed-data likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, simulate
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_e_step
from hidag.em.information import observed_information, score_tests
from hidag.em.m_step import Basis
from hidag.em.posterior import row_log_likelihood
from hidag.em.support import adapt_penalty, group_moves, select_subset
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Penalty, Terms
from hidag.simulation import Truth, chain_dag, random_law


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "poisson-identity", "gaussian"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_score_is_the_gradient_of_the_observed_likelihood(family, missing):
    rng = np.random.default_rng(0)
    n_items, n_latents = 5, 2
    families = (family,) * n_items
    loadings = rng.uniform(0.3, 1.0, (n_items, n_latents))
    intercept = np.full(n_items, 0.6)
    parameters = MeasurementParameters(families, intercept, loadings, np.ones(n_items))
    values = rng.poisson(1.5, (300, n_items)).astype(float)
    if family == "bernoulli":
        values = (values > 1).astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    data = WorkingData.from_values(values, families, units=(np.zeros(5), np.ones(5)))
    space = StateSpace.binary(n_latents)
    basis = Basis.of(space.states().astype(float))
    law = np.array([0.3, 0.2, 0.1, 0.4])
    sums, _ = run_e_step(parameters, law, data, np.ascontiguousarray(basis.features))
    gradient, information = observed_information(parameters, law, sums, data, basis)

    def value(j: int, a: int, step: float) -> float:
        beta = np.hstack([intercept[:, None], loadings])
        beta[j, a] += step
        moved = MeasurementParameters(families, beta[:, 0], beta[:, 1:], np.ones(n_items))
        return run_e_step(moved, law, data, np.ascontiguousarray(basis.features))[1]

    for j in range(n_items):
        for a in range(3):
            slope = (value(j, a, 1e-5) - value(j, a, -1e-5)) / 2e-5
            assert gradient[j, a] == pytest.approx(slope, abs=1e-3)
        assert (np.linalg.eigvalsh(information[j]) > -1e-9).all()


@pytest.mark.parametrize("n_latents", [3, 5])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_score_tests_are_those_of_the_rows_log_likelihoods(n_latents, missing):
    # With 5 latents the statistics of main effects are sums over terms, not over states.
    rng = np.random.default_rng(n_latents)
    q = np.vstack([np.eye(n_latents), np.eye(n_latents) + np.eye(n_latents, k=1)])
    families = ("gaussian", "bernoulli", "ordinal(3)", "poisson") * n_latents
    families = families[: len(q)]
    cutpoints = np.where([[name == "ordinal(3)"] for name in families], 1.2, np.nan)
    drawn = random_law(chain_dag(n_latents), rng=rng)
    loadings = q * rng.uniform(1.0, 1.5, q.shape)
    truth = Truth(
        q, np.full(len(q), -0.8), loadings, np.ones(len(q)), families, drawn, cutpoints=cutpoints
    )
    values = np.array(simulate(truth, 700, rng=rng).X)
    terms = Terms((2,) * n_latents, tuple(((k, 1), (k + 1, 1)) for k in range(n_latents - 1)))
    items = truth.items.with_terms(terms)
    space, law = drawn.space, SaturatedLaw(drawn.space, drawn.probabilities)
    values[rng.random(values.shape) < missing] = np.nan
    data = WorkingData.from_values(values, families, units=(np.zeros(len(q)), np.ones(len(q))))
    tested = terms.support(q.astype(np.int8)) & (np.arange(terms.n_terms) >= n_latents)
    basis = Basis.over(space, terms)
    z = score_tests(items, np.asarray(law.probabilities), data, basis, tested)
    assert not z[~tested].any()

    def slopes(j: int, a: int) -> np.ndarray:
        ends = []
        for step in (1e-4, -1e-4):
            beta = items.coefficients.copy()
            beta[j, a] += step
            moved = replace(items, intercept=beta[:, 0], loadings=beta[:, 1:])
            ends.append(row_log_likelihood(moved, law, values))
        return (ends[0] - ends[1]) / 2e-4

    for j, t in np.argwhere(tested):
        own = np.column_stack([slopes(j, a) for a in (0, *(1 + np.flatnonzero(items.loadings[j])))])
        # The part of the score that the item's own coefficients do not explain.
        left = slopes(j, 1 + t)
        left = left - own @ np.linalg.lstsq(own, left, rcond=None)[0]
        assert z[j, t] == pytest.approx(abs(left.sum()) / np.sqrt(left @ left), rel=1e-3, abs=1e-3)


def test_a_product_that_main_effects_imply_is_not_tested():
    # The second latent needs the first: their product is the second itself.
    rng = np.random.default_rng(0)
    terms = Terms((2, 2), (((0, 1), (1, 1)),))
    law, q = np.array([0.3, 0.0, 0.3, 0.4]), np.tile([[1, 1], [1, 0], [0, 1]], (2, 1))
    space = StateSpace.binary(2)
    loadings = np.hstack([1.5 * q, np.zeros((6, 1))])
    items = MeasurementParameters(("gaussian",) * 6, np.zeros(6), loadings, np.ones(6), terms)
    states = space.states()[rng.choice(4, size=500, p=law)]
    values = 1.5 * states @ q.T + rng.normal(size=(500, 6))
    data = WorkingData.from_values(values, items.families, units=(np.zeros(6), np.ones(6)))
    tested = np.zeros((6, 3), dtype=bool)
    tested[[0, 3], 2] = True
    z = score_tests(items, law, data, Basis.over(space, terms), tested)
    np.testing.assert_allclose(z, 0.0, atol=1e-6)
    # With all states possible the same products are tested.
    z = score_tests(items, np.full(4, 0.25), data, Basis.over(space, terms), tested)
    assert (z[tested] > 1e-3).all()


def test_select_subset_finds_the_optimum_of_small_problems():
    rng = np.random.default_rng(1)
    better = 0
    for _ in range(40):
        root = rng.normal(size=(6, 30))
        curvature = root @ root.T
        beta = np.array([1.0, 0.8, 0.0, 0.0, -0.5, 0.0])
        linear = curvature @ beta + 2 * rng.normal(size=6)
        found = select_subset(
            linear,
            curvature,
            np.ones(5, np.uint8),
            rng.random(5) < 0.5,
            3.0,
            group_moves(np.arange(5)),
        )

        def value(b: np.ndarray, h: np.ndarray = linear, g: np.ndarray = curvature) -> float:
            return h @ b - 0.5 * b @ g @ b - 3.0 * (b[1:] != 0).sum()

        best = -np.inf
        for code in range(32):
            active = [0, *(k + 1 for k in range(5) if code >> k & 1)]
            b = np.zeros(6)
            b[active] = np.linalg.solve(curvature[np.ix_(active, active)], linear[active])
            best = max(best, value(b))
        assert value(found) <= best + 1e-9
        better += value(found) > best - 1e-9
    # Stepwise is not exhaustive, but nearly always ends at the optimum of such small problems.
    assert better >= 36


def test_the_penalty_strength_depends_on_the_gap_between_true_and_false_loadings():
    rng = np.random.default_rng(2)
    noise = np.abs(rng.normal(size=(30, 8)))
    penalty = Penalty("tlp", 5.0, 0.1)
    included = np.zeros((30, 10), bool)
    included[:, :2] = True
    n_samples = np.exp(8.0)
    largest = 4.0 + 4.0 * np.log(10)
    clear = np.hstack([20 + rng.normal(size=(30, 2)), noise])
    close = np.hstack([np.abs(4.0 + rng.normal(size=(30, 2))), noise])
    far, near = (adapt_penalty(z, included, penalty, n_samples).strength for z in (clear, close))
    assert far == pytest.approx(largest)
    assert near < 5.0
    # Too few loadings to learn from: the penalty stays what it was.
    assert adapt_penalty(clear, np.zeros((30, 10), bool), penalty, n_samples) is penalty


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_coefficients_stay_finite_under_separation(seed):
    # Four groups, graded signs that only their own group shows: information about the others'
    # predictors vanishes, and a step on its scale would be thousands long.
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, 400)
    signs = np.where(group[:, None] == np.arange(16) % 4, rng.integers(0, 4, (400, 16)), 0)
    shared = rng.integers(0, 3, (400, 4)) + (group < 2)[:, None]
    model = DCRL(3, family="ordinal", random_state=0).fit(np.hstack([signs, shared]).astype(float))
    assert np.abs(model.loadings_).max() < 50
