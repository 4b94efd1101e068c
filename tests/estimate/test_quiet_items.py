from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, evaluate, simulate
from hidag.estimate.maximise import coefficient_scales, penalty_scales
from hidag.estimate.working import WorkingData


def working(truth, n_rows: int) -> WorkingData:
    return WorkingData.from_values(np.array(simulate(truth, n_rows, rng=2).X), truth.families)


@pytest.mark.parametrize("model", ["Chain-5", "Model-5"])
def test_false_loadings_of_items_with_little_noise_do_not_stay(model) -> None:
    truth = design(model, slope_ratio=2.0, dispersion=0.01, rng=1)
    data = simulate(truth, 600, rng=2)
    found = DCRL(5, family="gaussian", random_state=0).fit(data.X)
    assert evaluate(found, truth).shd_q == 0


def test_noise_is_what_the_other_items_do_not_explain() -> None:
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


def test_the_papers_items_are_not_quiet() -> None:
    for version in ("text", "research-code"):
        data = working(design("Tree-5", design=version, rng=1), 1000)
        assert data.noise_shares.min() > 0.25
        np.testing.assert_array_equal(penalty_scales(data), coefficient_scales(data))


def test_where_nothing_tells_noise_there_may_be_nothing_else() -> None:
    few = working(design("Chain-5", dispersion=0.01, rng=1), 60)
    np.testing.assert_array_equal(few.noise_shares, 1.0)
    binary = working(design("Chain-5", family="bernoulli", rng=1), 500)
    np.testing.assert_array_equal(binary.noise_shares, 1.0)


def test_an_item_and_its_copy_are_no_division_by_zero() -> None:
    x = np.random.default_rng(0).normal(size=(200, 1))
    data = WorkingData.from_values(np.hstack([x, x]), ("gaussian", "gaussian"))
    assert (data.noise_shares < 0.001).all()
    assert (data.noise_shares > 0).all()
