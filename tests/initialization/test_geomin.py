"""The oblique rotation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, linear_sum_assignment

from hidag.initialization.rotations import _criterion, geomin, varimax


def pattern(rng: np.random.Generator) -> np.ndarray:
    out = np.kron(np.eye(4), np.ones((5, 1))) * rng.uniform(0.6, 0.9, (20, 1))
    out[4, 1] = out[9, 2] = out[14, 3] = 0.5
    return out


def test_the_gradient_is_the_criterions():
    start = np.random.default_rng(0).normal(size=(5, 3))
    error = check_grad(
        lambda b: _criterion(b.reshape(5, 3))[0],
        lambda b: _criterion(b.reshape(5, 3))[1].ravel(),
        start.ravel(),
    )
    assert error < 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_correlated_factors_are_found_where_varimax_smears_them(seed):
    rng = np.random.default_rng(seed)
    truth = pattern(rng)
    correlations = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    values, vectors = np.linalg.eigh(truth @ correlations @ truth.T)
    uncorrelated = vectors[:, -4:] * np.sqrt(values[-4:])

    def distance(found: np.ndarray) -> float:
        cost = np.abs(np.abs(found)[:, :, None] - np.abs(truth)[:, None, :]).max(axis=0)
        rows, columns = linear_sum_assignment(cost)
        return float(cost[rows, columns].max())

    rotation = varimax(uncorrelated)
    assert distance(uncorrelated @ rotation) > 0.15
    assert distance(geomin(uncorrelated, rotation)) < 0.06
