"""Items whose latents matter by what they do together only."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL
from hidag.em.design_data import WorkingData
from hidag.measurement import family_named
from hidag.strategy.moves.q_row_search import _fit_means


def table(family, seed):
    """Three latents with four items each, and two items that show whether two latents differ."""
    rng = np.random.default_rng(seed)
    z = rng.random((4000, 3)) < 0.5
    columns = [(z[:, k], 2.4) for k in range(3) for _ in range(4)]
    columns += [(z[:, 0] ^ z[:, 1], 2.4), (z[:, 1] ^ z[:, 2], 2.4)]
    if family == "gaussian":
        return np.column_stack([c * 2.0 + rng.normal(size=len(z)) for c, _ in columns])
    chance = np.column_stack([1 / (1 + np.exp(1.2 - s * c)) for c, s in columns])
    return (rng.random(chance.shape) < chance).astype(float)


@pytest.mark.parametrize("family", ["bernoulli", "gaussian"])
def test_latents_without_effects_of_their_own_are_found(family):
    X = table(family, 1)
    model = DCRL(3, effects="all", family=family, random_state=0).fit(X)
    groups = [np.flatnonzero(row) for row in model.q_matrix_]
    order = [int(groups[4 * k][0]) for k in range(3)]
    assert sorted(order) == [0, 1, 2]
    assert set(groups[12]) == {order[0], order[1]}
    assert set(groups[13]) == {order[1], order[2]}
    assert all(len(group) == 1 for group in groups[:12])


def test_a_row_that_is_right_stays():
    rng = np.random.default_rng(3)
    z = rng.random((3000, 2)) < 0.5
    chance = np.where(np.repeat(z, 4, axis=1), 0.85, 0.2)
    X = (rng.random(chance.shape) < chance).astype(float)
    model = DCRL(2, effects="all", family="bernoulli", random_state=0).fit(X)
    assert (model.q_matrix_.sum(axis=1) == 1).all()


def test_means_of_known_combinations_are_those_of_the_rows():
    rng = np.random.default_rng(4)
    z = rng.random(2000) < 0.4
    x = (rng.random(2000) < np.where(z, 0.8, 0.3)).astype(float)
    data = WorkingData.from_values(np.column_stack([x, x]), ("bernoulli",) * 2)
    weights = np.column_stack([~z, z]).astype(np.float32)
    value, predictors, _ = _fit_means(weights, data, 0, family_named("bernoulli"), 2.0)
    means = np.array([x[~z].mean(), x[z].mean()])
    np.testing.assert_allclose(1 / (1 + np.exp(-predictors)), means, rtol=1e-6)
    p = np.where(z, means[1], means[0])
    expected = (x * np.log(p) + (1 - x) * np.log(1 - p)).sum()
    assert value == pytest.approx(expected - 2.0, abs=1e-6)
