"""Every family, held to one contract. A new family is one more line in CASES."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.measurement import FAMILIES

#: name -> predictors at which the family is tested, and its dispersion.
CASES = {
    "bernoulli": (np.array([-2.0, 0.3, 1.5]), 1.0),
    "poisson": (np.array([-1.0, 0.5, 2.0]), 1.0),
    "poisson-identity": (np.array([0.4, 1.0, 6.0]), 1.0),
    "gaussian": (np.array([-3.0, 0.0, 2.0]), 0.7),
    "lognormal": (np.array([-1.0, 0.0, 1.0]), 0.2),
}


def test_every_family_is_tested():
    assert set(CASES) == set(FAMILIES)


@pytest.fixture(params=sorted(CASES))
def case(request):
    eta, dispersion = CASES[request.param]
    return FAMILIES[request.param], eta, np.full(3, dispersion)


def test_slopes_are_the_derivatives_of_natural(case):
    family, eta, dispersion = case
    step = 1e-6
    up, down = family.natural(eta + step, dispersion), family.natural(eta - step, dispersion)
    dtheta, dpartition, _ = family.slopes(eta, dispersion)
    np.testing.assert_allclose((up[0] - down[0]) / (2 * step), dtheta, rtol=1e-6)
    np.testing.assert_allclose((up[1] - down[1]) / (2 * step), dpartition, rtol=1e-6, atol=1e-8)


def test_score_has_mean_zero_and_variance_information(case):
    family, eta, dispersion = case
    rng = np.random.default_rng(0)
    n = 200_000
    x = family.to_working(family.sample(np.tile(eta, (n, 1)), dispersion, rng))
    dtheta, dpartition, information = family.slopes(eta, dispersion)
    score = x * dtheta - dpartition
    np.testing.assert_allclose(score.mean(axis=0), 0, atol=6 * np.sqrt(information.max() / n))
    np.testing.assert_allclose(score.var(axis=0), information, rtol=0.03)


def test_moments(case):
    family, eta, dispersion = case
    rng = np.random.default_rng(1)
    n = 200_000
    x = family.to_working(family.sample(np.tile(eta, (n, 1)), dispersion, rng))
    np.testing.assert_allclose(x.mean(axis=0), family.mean(eta), atol=0.03)


def test_density_integrates_to_one(case):
    family, eta, dispersion = case
    theta, partition = family.natural(eta, dispersion)
    if family.has_dispersion:
        grid = np.linspace(-12, 12, 200_001)
        x = family.from_working(grid)
        for t, a, d in zip(theta, partition, dispersion, strict=True):
            log_density = grid * t - a + family.base(x, np.array(d))
            assert np.trapezoid(np.exp(log_density), x) == pytest.approx(1.0, abs=1e-4)
    else:
        x = np.arange(2.0 if family.name == "bernoulli" else 120.0)
        for t, a, d in zip(theta, partition, dispersion, strict=True):
            assert np.exp(x * t - a + family.base(x, np.array(d))).sum() == pytest.approx(1.0)


def test_predictor_inverts_mean_and_working_inverts_itself(case):
    family, eta, dispersion = case
    np.testing.assert_allclose(family.predictor(family.mean(eta)), eta, atol=1e-10)
    x = family.sample(np.tile(eta, (50, 1)), dispersion, np.random.default_rng(2))
    np.testing.assert_allclose(family.from_working(family.to_working(x)), x, rtol=1e-12)


def test_clipped_means_have_finite_predictors(case):
    family, _, _ = case
    clipped = family.clip_mean(np.array([-5.0, 0.0, 0.5, 1.0, 7.0]), 1e-4)
    assert np.isfinite(family.predictor(clipped)).all()


def test_a_first_look_grows_with_the_response(case):
    family, _, _ = case
    x = np.array([0.0, 1.0, 2.0, 5.0])
    assert (np.diff(family.first_look(x)) > 0).all()
