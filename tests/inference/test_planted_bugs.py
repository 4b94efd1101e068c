"""Bugs that were planted in estimation and inference, and that no test noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL
from hidag.diagnostics.classification import Assignment, _quality_rows
from hidag.exceptions import DataError
from hidag.inference import refit
from hidag.inference.bootstrap import _make_task
from hidag.inference.standard_errors import _logit_ends


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 5)) + 3 * (rng.random((80, 1)) < 0.5)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 0] = np.arange(80)
    weights = 1.0 + X[:, 0] / 40
    settings = {"family": "gaussian", "n_starts": 1, "uncertainty": "none", "random_state": 0}
    model = DCRL(1, **settings).fit(X, sample_weight=weights)
    return _make_task(model, X, weights, "nonparametric", "full", 5)


def drawn(monkeypatch, task):
    """Return the rows and the weights that a resample is fitted to."""
    seen = []

    def fit(self, values, sample_weight=None):
        seen.append((values, sample_weight))
        raise DataError("stopped", "stopped")

    monkeypatch.setattr(refit.DCRL, "fit", fit)
    refit.run_resample(task, 1)
    return seen[0]


def test_weights_follow_the_drawn_rows(monkeypatch, task):
    values, weights = drawn(monkeypatch, task)
    assert np.array_equal(weights, 1.0 + values[:, 0] / 40)
    assert len(np.unique(values[:, 0])) < 80


def test_missing_cells_are_restored_in_rows_drawn_from_the_fit(monkeypatch, task):
    values, weights = drawn(monkeypatch, replace(task, kind="parametric"))
    assert np.array_equal(np.isnan(values), np.isnan(task.values))
    assert not np.array_equal(values, task.values, equal_nan=True)
    assert np.array_equal(weights, task.weights)


def test_ends_of_intervals_of_probabilities_use_both_factors():
    # The delta method: the log odds have the standard error 0.03 / (0.9 * 0.1).
    ends = np.log(9) + np.array([-1, 1]) * 1.645 * 0.03 / (0.9 * 0.1)
    expected = tuple(1 / (1 + np.exp(-ends)))
    assert _logit_ends(0.9, 0.03, 1.645) == pytest.approx(expected)


@pytest.mark.parametrize("n_levels", [2, 3, 5])
def test_entropy_is_zero_for_uniform_levels_and_one_for_certain_ones(n_levels):
    uniform, certain = np.full((4, n_levels), 1 / n_levels), np.eye(n_levels)[[0, 1, 1, 0]]
    for table, entropy in ((uniform, 0.0), (certain, 1.0)):
        found = Assignment(
            (table,), np.zeros((4, 1), dtype=int), np.ones(4), [(1.0, 1.0)], (1.0,) * 4, 4
        )
        assert _quality_rows(["Z1"], found)[0][-2] == pytest.approx(entropy)
