from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, evaluate, simulate
from hidag.em.design_data import WorkingData
from hidag.em.m_step import coefficient_scales, penalty_scales


def working(truth, n_rows: int) -> WorkingData:
    return WorkingData.from_values(np.array(simulate(truth, n_rows, rng=2).X), truth.families)


@pytest.mark.parametrize("model", ["Chain-5", "Model-5"])
def test_false_loadings_of_items_with_little_noise_are_dropped(model) -> None:
    truth = design(model, slope_ratio=2.0, dispersion=0.01, rng=1)
    data = simulate(truth, 600, rng=2)
    found = DCRL(5, family="gaussian", random_state=0).fit(data.X)
    assert evaluate(found, truth).shd_q == 0


def test_noise_shares_are_unexplained_shares() -> None:
    truth = design("Chain-5", dispersion=0.01, rng=1)
    found = working(truth, 2000).noise_shares
    X = simulate(truth, 2000, rng=2).X
    for j in (0, 7):
        others = np.delete(X - X.mean(axis=0), j, axis=1)
        target = X[:, j] - X[:, j].mean()
        rest = target - others @ np.linalg.lstsq(others, target, rcond=None)[0]
        assert found[j] == pytest.approx(rest @ rest / (target @ target) * 2000 / 1985, rel=0.05)
    # An item of one latent has .01 of noise beside a variance of 9 / 4.
    assert 0.0044 < found[7] < 0.01


def test_items_of_the_paper_have_much_noise() -> None:
    for version in ("text", "research-code"):
        data = working(design("Tree-5", design=version, rng=1), 1000)
        assert data.noise_shares.min() > 0.25
        np.testing.assert_array_equal(penalty_scales(data), coefficient_scales(data))


def test_noise_shares_are_one_if_they_cannot_be_determined() -> None:
    few = working(design("Chain-5", dispersion=0.01, rng=1), 60)
    np.testing.assert_array_equal(few.noise_shares, 1.0)
    binary = working(design("Chain-5", family="bernoulli", rng=1), 500)
    np.testing.assert_array_equal(binary.noise_shares, 1.0)


def test_duplicate_items_have_finite_noise_shares() -> None:
    x = np.random.default_rng(0).normal(size=(200, 1))
    data = WorkingData.from_values(np.hstack([x, x]), ("gaussian", "gaussian"))
    assert (data.noise_shares < 0.001).all()
    assert (data.noise_shares > 0).all()


LOUD = {
    "poisson": lambda rng, z: rng.poisson(np.exp(7 + 0.8 * z)),
    "zero-inflated-poisson": lambda rng, z: (
        rng.poisson(np.exp(6 + 0.8 * z)) * (rng.random(len(z)) < 0.8)
    ),
    "negative-binomial": lambda rng, z: rng.poisson(
        np.exp(7 + 0.8 * z) * rng.gamma(1000, 1 / 1000, len(z))
    ),
    "gamma": lambda rng, z: rng.gamma(400, np.exp(1 + 0.8 * z) / 400),
    "binomial(200)": lambda rng, z: rng.binomial(200, 0.3 + 0.3 * z),
    "censored-lognormal(60)": lambda rng, z: np.minimum(
        60, np.exp(2 + z + 0.05 * rng.normal(size=len(z)))
    ),
}


@pytest.mark.parametrize("family", LOUD)
def test_false_loadings_of_informative_items_are_dropped(family) -> None:
    wrong = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        z = rng.integers(0, 2, (800, 2))
        z[:, 1] = np.where(rng.random(800) < 0.5, z[:, 0], z[:, 1])
        columns = [LOUD[family](rng, z[:, j // 5].astype(float)) for j in range(10)]
        found = DCRL(2, family=family, random_state=seed).fit(np.column_stack(columns))
        wrong += int(found.q_matrix_.sum()) - 10
    assert wrong == 0


def test_noise_of_counts_follows_from_their_means() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.poisson(50, 300), rng.poisson(0.5, 300), rng.binomial(40, 0.5, 300)])
    found = WorkingData.from_values(
        X.astype(float), ("poisson", "poisson", "binomial(40)")
    ).noise_shares
    assert found[0] == pytest.approx(1 / X[:, 0].mean())
    assert found[1] == 1.0
    assert found[2] == pytest.approx(0.1, rel=0.02)


QUIET = {
    "gaussian": lambda rng, z: z + 0.01 * rng.standard_normal(len(z)),
    "gamma": lambda rng, z: rng.gamma(1e4, np.exp(z) / 1e4),
    "beta": lambda rng, z: rng.beta((0.3 + 0.4 * z) * 5e3, (0.7 - 0.4 * z) * 5e3),
    "negative-binomial": lambda rng, z: rng.poisson(
        np.exp(9 + z) * rng.gamma(5e3, 1 / 5e3, len(z))
    ),
    "censored-lognormal(60)": lambda rng, z: np.minimum(
        60, np.exp(2 + z + 0.01 * rng.standard_normal(len(z)))
    ),
}


@pytest.mark.parametrize("family", QUIET)
def test_false_loadings_of_an_almost_noiseless_item_are_dropped(family) -> None:
    # The other items are noisy and do not explain it: only an estimate shows its noise.
    rng = np.random.default_rng(0)
    for _ in range(3):
        z = rng.integers(0, 2, (1500, 3))
        noisy = np.repeat(2 * z, 3, axis=1) + rng.standard_normal((1500, 9))
        X = np.column_stack([QUIET[family](rng, z[:, 0].astype(float)), noisy])
        found = DCRL(3, family=[family] + ["gaussian"] * 9, random_state=0).fit(X)
        assert found.q_matrix_.sum() == 10


def test_an_estimate_lowers_noise_shares_only_far_below_those_of_regressions() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal((400, 2)), rng.integers(0, 2, 400)])
    data = WorkingData.from_values(X, ("gaussian", "gaussian", "bernoulli"))
    # A row of an item with a tenth, and with a thousandth, of its variance in noise.
    information = 400.0 / np.array([0.1, 0.001, 0.001])
    quieter = data.with_estimated_noise(information, np.ones(3))
    estimated = quieter.estimated_noise
    np.testing.assert_allclose(estimated, [0.6, 0.006, 1.0])
    np.testing.assert_array_equal(quieter.noise_shares, np.minimum(data.noise_shares, estimated))
    scale, before = penalty_scales(quieter), penalty_scales(data)
    np.testing.assert_array_equal(scale[[0, 2]], before[[0, 2]])
    assert scale[1] == pytest.approx(before[1] * np.sqrt(0.006 / 0.25))
