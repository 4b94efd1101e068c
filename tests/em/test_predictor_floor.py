"""M-steps of items whose linear predictor has a lower bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from hidag import DCRL, bootstrap
from hidag.em.design_data import WorkingData
from hidag.em.layout import ItemLayout
from hidag.em.m_step import maximise_above_floor
from hidag.measurement import MeasurementParameters
from hidag.network_em.em import run_network_m_step
from hidag.network_em.gibbs import NetworkStatistics

FLOOR = 1e-3
STATES = np.array(list(itertools.product([0, 1], repeat=3)))
SINGLES = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
Q = np.array([*SINGLES, *SINGLES, [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 0], [0, 1, 1]])


@pytest.mark.parametrize("seed", range(8))
def test_quadratic_models_are_maximised_above_the_floor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = np.hstack([np.ones((8, 1)), STATES])
    n_items = 6
    root = rng.normal(size=(n_items, 4, 6))
    curvature = root @ root.transpose(0, 2, 1)
    gradient = 3.0 * rng.normal(size=(n_items, 4))
    beta = np.abs(rng.normal(size=(n_items, 4)))
    beta[:2, 0] = FLOOR

    def propose(items, start, slope, bent):  # type: ignore[no-untyped-def]
        out = start.copy()
        for place in range(len(items)):
            out[place] += np.linalg.lstsq(bent[place], slope[place], rcond=1e-15)[0]
        return out

    found = maximise_above_floor(
        FLOOR, design, beta, gradient, curvature, propose, np.zeros((n_items, 4), dtype=bool)
    )
    assert (found @ design.T).min() >= FLOOR
    for j in range(n_items):

        def loss(b: np.ndarray, j: int = j) -> float:
            step = b - beta[j]
            return float(0.5 * step @ curvature[j] @ step - gradient[j] @ step)

        best = minimize(
            loss,
            beta[j],
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": lambda b: design @ b - FLOOR}],
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert loss(found[j]) == pytest.approx(best.fun, abs=1e-4)


def counts_of(on: np.ndarray, mean: float, seed: int = 11) -> np.ndarray:
    """Return counts, (N, J), with that mean where an item is on, and none where it is off."""
    return np.random.default_rng(seed).poisson(mean * on).astype(float)


def highest_log_likelihood(x: np.ndarray, on: np.ndarray) -> float:
    """Return the maximum by EM with closed steps; ``on`` are the states that items are on in."""
    means, law = np.array([[0.1, 5.0]] * x.shape[1]), np.full(len(on), 1.0 / len(on))
    for _ in range(200):
        rate = np.where(on.T, means[:, 1:], means[:, :1])
        logs = x @ np.log(rate) - rate.sum(axis=0) - gammaln(x + 1).sum(axis=1)[:, None]
        logs = logs + np.log(np.maximum(law, 1e-300))
        total = logsumexp(logs, axis=1)
        posterior = np.exp(logs - total[:, None])
        law, share = posterior.mean(axis=0), posterior @ on
        groups = [((1 - share) * x).sum(axis=0) / (1 - share).sum(axis=0)]
        groups.append((share * x).sum(axis=0) / share.sum(axis=0))
        means = np.maximum(np.array(groups).T, FLOOR)
    return float(total.sum())


@pytest.mark.parametrize("effects", ["dina", "dino"])
def test_items_off_without_their_latents_reach_the_maximum(effects: str) -> None:
    latents = (np.random.default_rng(3).random((600, 3)) < 0.5).astype(int)
    need = Q.sum(axis=1) if effects == "dina" else 1
    on = (STATES @ Q.T - need >= 0).astype(float)
    x = counts_of(latents @ Q.T >= need, 5.0)
    model = DCRL(
        3,
        family="poisson-identity",
        q_matrix=Q,
        effects=effects,
        law="saturated",
        random_state=0,
    ).fit(x)
    assert model.log_likelihood_ == pytest.approx(highest_log_likelihood(x, on), abs=0.1)


def test_bootstrap_refits_from_a_fit_on_the_floor_vary() -> None:
    rng = np.random.default_rng(5)
    latents = (rng.random((300, 2)) < 0.5).astype(int)
    q = np.array([[1, 0], [0, 1]] * 3)
    x = rng.poisson(5.0 * latents @ q.T).astype(float)
    settings = {"family": "poisson-identity", "q_matrix": q, "law": "saturated"}
    model = DCRL(2, random_state=0, **settings).fit(x)
    np.testing.assert_allclose(model.intercept_, FLOOR, atol=1e-6)
    found = {
        start: bootstrap(model, x, n_resamples=4, start=start, random_state=1)
        for start in ("fitted", "full")
    }
    spread = np.std(found["fitted"].loadings, axis=0)
    assert (spread[q == 1] > 0.01).all()
    np.testing.assert_allclose(found["fitted"].loadings, found["full"].loadings, atol=0.01)


def test_loadings_held_at_zero_by_the_floor_are_zero() -> None:
    rng = np.random.default_rng(1)
    latents = (rng.random((400, 2)) < 0.5).astype(int)
    q = np.array([[1, 0], [0, 1]] * 4)
    x = rng.poisson(latents @ (q * rng.uniform(2, 6, q.shape)).T).astype(float)
    found = DCRL(2, family="poisson-identity", random_state=0).fit(x).q_matrix_
    assert found.sum() == q.sum()


def test_the_network_m_step_moves_items_on_the_floor() -> None:
    rng = np.random.default_rng(2)
    latents = (rng.random((20_000, 2)) < 0.5).astype(int)
    q = np.array([[1, 0], [0, 1], [1, 1]])
    x = rng.poisson(4.0 * latents @ q.T).astype(float)
    families = ("poisson-identity",) * 3
    data = WorkingData.from_values(x, families)
    start = MeasurementParameters(families, np.full(3, FLOOR), 1.0 * q, np.ones(3))
    layout = ItemLayout.of(start)
    sub_states = [latents[:, 0], latents[:, 1], latents @ np.array([1, 2])]
    cells = [(np.bincount(s), np.bincount(s, x[:, j])) for j, s in enumerate(sub_states)]
    count, sums = (np.concatenate(part).astype(float) for part in zip(*cells, strict=True))
    statistics = NetworkStatistics(count, sums, np.zeros(0))
    found = run_network_m_step(start, statistics, data, layout, n_newton=20)
    np.testing.assert_allclose(found.intercept, FLOOR, atol=1e-5)
    np.testing.assert_allclose(found.loadings, 4.0 * q, atol=0.1)
