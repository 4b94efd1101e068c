"""Which of two supports explains correlations better."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from hidag.strategy.moves import split_moves
from hidag.strategy.moves.split_moves import support_criterion

N = 1000.0
RIGHT = np.kron(np.eye(3), np.ones((4, 1)))
AMONG = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.4], [0.2, 0.4, 1.0]])
CORRELATIONS = (0.7 * RIGHT) @ AMONG @ (0.7 * RIGHT).T
ROWS = N * (1 - np.eye(12))


def judged(support, correlations=CORRELATIONS, rows=ROWS, factors=AMONG, price=7.0):
    return support_criterion(correlations, rows, 0.5 * support, factors, price)


def test_the_true_support_costs_its_loadings_only():
    assert judged(RIGHT) == pytest.approx(12 * 7.0, abs=0.5)
    assert judged(RIGHT, factors=np.eye(3)) == pytest.approx(12 * 7.0, abs=0.5)


def test_a_false_loading_costs_its_price_and_a_missing_one_its_correlations():
    more, less = RIGHT.copy(), RIGHT.copy()
    more[0, 1] = 1
    assert judged(more) == pytest.approx(13 * 7.0, abs=0.5)
    less[0, 0] = 0
    assert judged(less) > judged(RIGHT) + 0.5 * N * (CORRELATIONS[0, 1:4] ** 2).sum()


def test_one_latent_for_two_is_worse_than_two():
    merged = RIGHT.copy()
    merged[:, 0] += merged[:, 1]
    merged[:, 1] = 0
    assert judged(merged) > judged(RIGHT) + 50


def test_pairs_without_common_rows_are_ignored():
    spoilt, rows = CORRELATIONS.copy(), ROWS.copy()
    spoilt[0, 5] = spoilt[5, 0] = -0.9
    rows[0, 5] = rows[5, 0] = 0
    assert judged(RIGHT, spoilt, rows) == pytest.approx(judged(RIGHT), abs=0.5)
    assert judged(RIGHT, spoilt) > judged(RIGHT) + 50


def test_the_minimiser_is_given_the_gradient(monkeypatch):
    seen = {}

    def kept(function, first, **settings):
        seen.update(function=function, first=first)
        return real(function, first, **settings)

    real = split_moves.minimize
    monkeypatch.setattr(split_moves, "minimize", kept)
    judged(RIGHT, factors=0.5 * AMONG + 0.5 * np.eye(3))
    function, first = seen["function"], seen["first"]
    numeric = approx_fprime(first, lambda numbers: function(numbers)[0], 1e-6)
    assert function(first)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-2)
