"""Overdispersion test of Poisson items: level, power and sums."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.fitting.fit_warnings import count_dispersion
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms

LAW = NetworkLaw(
    StateSpace((2, 2)), ((), (0,)), (np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]]))
)
LOADINGS = np.array([[0.9, 0.0], [1.2, 0.0], [0.6, 0.5], [0.0, 1.0], [0.0, 0.8], [1.5, 0.0]])


def truth(family: str = "poisson", intercept: float = 0.5, size: float = 1.0):
    families = (family,) * 5 + ("bernoulli",)
    return MeasurementParameters(
        families,
        np.array([intercept] * 5 + [-0.7]),
        LOADINGS,
        np.full(6, size),
        Terms.main((2, 2)),
        np.zeros((6, 0)),
    )


def drawn(parameters: MeasurementParameters, n_rows: int, rng: np.random.Generator):
    return parameters.sample(LAW.sample(n_rows, rng), rng)


@pytest.mark.parametrize("sampled", [False, True])
def test_the_level_of_the_overdispersion_test_is_kept(sampled):
    rng = np.random.default_rng(1)
    parameters = truth()
    low = [
        count_dispersion(parameters, LAW, drawn(parameters, 300, rng), sampled=sampled).p_value
        for _ in range(60)
    ]
    # 300 numbers: twelve below .01 have a chance of 1 in 10,000 if the test keeps its level.
    assert (np.array(low) < 0.01).sum() < 12
    assert np.min(low) > 1e-5


def test_the_level_is_kept_for_rare_counts():
    # Two or three large counts among thousands of zeros: a normal tail would call them impossible.
    rng = np.random.default_rng(2)
    parameters = truth(intercept=-4.0)
    low = [
        count_dispersion(parameters, LAW, drawn(parameters, 500, rng)).p_value for _ in range(200)
    ]
    assert (np.array(low) < 0.001).sum() < 7


@pytest.mark.parametrize("sampled", [False, True])
def test_overdispersed_counts_are_found(sampled):
    rng = np.random.default_rng(3)
    values = drawn(truth("negative-binomial"), 1000, rng)
    found = count_dispersion(truth(), LAW, values, sampled=sampled)
    assert found.items.tolist() == [0, 1, 2, 3, 4]
    assert (found.p_value < 1e-8).all()
    assert (found.ratio > 1.5).all()


def test_missing_cells_and_weights_enter_the_test():
    rng = np.random.default_rng(4)
    parameters = truth()
    values = drawn(parameters, 200, rng)
    values[rng.random(values.shape) < 0.2] = np.nan
    weights = rng.integers(1, 4, 200)
    once = count_dispersion(parameters, LAW, np.repeat(values, weights, axis=0))
    weighed = count_dispersion(parameters, LAW, values, weights.astype(float))
    np.testing.assert_allclose(weighed.ratio, once.ratio)
    np.testing.assert_allclose(weighed.p_value, once.p_value)
    values[:, 2] = np.nan
    unseen = count_dispersion(parameters, LAW, values)
    assert np.isnan(unseen.ratio[2])
    assert np.isnan(unseen.p_value[2])
    assert np.isfinite(unseen.p_value[[0, 1, 3, 4]]).all()


def test_tables_without_counts_have_no_results():
    parameters = truth().reordered(items=np.array([5]))
    found = count_dispersion(parameters, LAW, np.ones((3, 1)))
    assert len(found.items) == len(found.ratio) == len(found.p_value) == 0
