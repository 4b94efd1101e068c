"""The shape conditions of the paper on penalties, and the solver that uses them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from hidag import DCRL
from hidag.exceptions import SettingError
from hidag.kernels.coordinate_descent import (
    END,
    FREE,
    NONNEGATIVE,
    descend,
    proximal_step,
    value_on_piece,
)
from hidag.measurement import NO_SPARSITY, Penalty, default_penalty
from hidag.measurement.penalties import SHAPES
from hidag.metrics import evaluate
from hidag.simulation import design, simulate

NAMES = tuple(SHAPES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("strength", "threshold"), [(7.0, 0.05), (1.0, 2.0), (30.0, 0.4)])
def test_shape_conditions(name, strength, threshold):
    penalty = Penalty(name, strength, threshold)
    b = np.linspace(0, 2 * threshold, 4001)
    value = penalty.value(b)
    assert value[0] == 0.0
    np.testing.assert_array_equal(value, penalty.value(-b))
    assert (np.diff(value) >= -1e-12).all()
    np.testing.assert_allclose(value[b >= threshold], strength, rtol=1e-12)
    slopes = np.diff(value) / np.diff(b)
    assert slopes.max() <= 2.0 * strength / threshold * (1 + 1e-9)
    # Not differentiable at zero: the slope from the right does not vanish.
    assert slopes[0] >= 0.9 * strength / threshold
    # Differentiable inside: slopes change by no more than the grid allows.
    inside = slopes[: int(4000 * 0.49)]
    assert np.abs(np.diff(inside)).max() < 0.01 * strength / threshold


@pytest.mark.parametrize("n_samples", [10**3, 10**5, 10**7, 10**9])
def test_rates_of_the_theorem(n_samples):
    penalty = default_penalty("tlp", n_samples, 10)
    root = np.sqrt(n_samples)
    assert 1 / root < penalty.threshold < penalty.strength / root < 1


def test_rates_drift_apart_as_the_theorem_asks():
    ratios = []
    for n in (10**3, 10**6, 10**9):
        p = default_penalty("scad", n, 10)
        ratios.append((1 / np.sqrt(n) / p.threshold, p.threshold * np.sqrt(n) / p.strength))
    assert np.all(np.diff(np.array(ratios), axis=0) < 0)


@pytest.mark.parametrize("name", NAMES)
def test_one_coordinate_is_solved_globally(name):
    rng = np.random.default_rng(0)
    for _ in range(300):
        strength, threshold = rng.uniform(0.5, 20), rng.uniform(0.02, 1.0)
        centre, curvature = rng.normal(scale=0.7), np.exp(rng.uniform(0, 9))
        penalty = Penalty(name, strength, threshold)
        grid = np.linspace(-3, 3, 60001)
        values = 0.5 * curvature * (grid - centre) ** 2 + penalty.value(grid)
        found = proximal_step(penalty.pieces(np.ones(1))[0], strength, centre, curvature)
        value = 0.5 * curvature * (found - centre) ** 2 + float(penalty.value(np.array(found)))
        assert value <= values.min() + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_pieces_integrate_to_the_penalty(name):
    penalty = Penalty(name, 3.0, 0.3)
    for scale, pieces in zip((1.0, 0.4), penalty.pieces(np.array([1.0, 0.4])), strict=True):
        for start, end in pieces[:, :2]:
            b = np.linspace(start, end, 101)
            piece = pieces[pieces[:, END] == end][0]
            found = [value_on_piece(piece, x) for x in b]
            np.testing.assert_allclose(found, penalty.value(b, scale), atol=1e-12)
        assert pieces[0, 0] == 0.0
        np.testing.assert_array_equal(pieces[1:, 0], pieces[:-1, 1])
        np.testing.assert_allclose(pieces[-1, END], 0.3 * scale)


@pytest.mark.parametrize("name", NAMES)
def test_derivative_is_the_slope_of_the_value(name):
    penalty, step = Penalty(name, 3.0, 0.3), 1e-6
    # Away from 0 and from the threshold, where the truncated lasso has kinks.
    b = np.array([-0.5, -0.25, -0.08, -0.01, 0.01, 0.08, 0.2, 0.29, 0.31, 1.0])
    slope = (penalty.value(b + step, 1.0) - penalty.value(b - step, 1.0)) / (2 * step)
    np.testing.assert_allclose(penalty.derivative(b), slope, atol=1e-4)


def test_mcp_is_zhangs_penalty():
    # Zhang (2010): p'(b) = (a - b / g)_+ with a = 2 lambda / tau and g = tau^2 / (2 lambda).
    penalty = Penalty("mcp", 3.0, 0.3)
    b = np.linspace(0.0, 0.5, 101)
    expected = np.maximum(2 * 3.0 / 0.3 - b / (0.3**2 / (2 * 3.0)), 0.0)
    np.testing.assert_allclose(penalty.derivative(b), expected, atol=1e-9)


def test_without_penalty_descent_is_newtons_step():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 4, 4))
    curvature = root @ root.transpose(0, 2, 1) + 0.5 * np.eye(4)
    gradient = rng.normal(size=(5, 4))
    beta = rng.normal(size=(5, 4))
    allowed = np.ones((5, 4), dtype=np.uint8)
    none = NO_SPARSITY.pieces(np.ones(5))
    found = descend(beta, gradient, curvature, allowed, none, 0.0, 5000, 1e-13)
    exact = beta + np.linalg.solve(curvature, gradient[..., None])[..., 0]
    np.testing.assert_allclose(found, exact, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_descent_is_its_plain_python_body(name):
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 4, 4))
    arguments = (
        rng.normal(size=(3, 4)),
        3 * rng.normal(size=(3, 4)),
        root @ root.transpose(0, 2, 1) + np.eye(4),
        np.ones((3, 4), dtype=np.uint8),
        Penalty(name, 0.5, 0.4).pieces(np.ones(3)),
        0.5,
        50,
        1e-9,
    )
    np.testing.assert_allclose(descend(*arguments), descend.py_func(*arguments), rtol=1e-12)


def test_an_unknown_penalty_is_refused():
    with pytest.raises(SettingError) as caught:
        default_penalty("lasso", 100, 2)
    names = ", ".join(map(repr, SHAPES))
    assert str(caught.value) == f"penalty must be {names} or None, got 'lasso'"


def test_nonnegative_coefficients_are_those_of_nonnegative_least_squares():
    rng = np.random.default_rng(3)
    design = rng.normal(size=(4, 30, 5))
    answers = rng.normal(size=(4, 30))
    curvature = design.transpose(0, 2, 1) @ design
    gradient = (design.transpose(0, 2, 1) @ answers[..., None])[..., 0]
    allowed = np.full((4, 5), NONNEGATIVE, dtype=np.uint8)
    allowed[:, 0] = FREE
    none = NO_SPARSITY.pieces(np.ones(4))
    arguments = (np.zeros((4, 5)), gradient, curvature, allowed, none, 0.0, 5000, 1e-13)
    found = descend(*arguments)
    lowest = np.array([-np.inf, 0.0, 0.0, 0.0, 0.0])
    for j in range(4):
        exact = lsq_linear(design[j], answers[j], bounds=(lowest, np.inf), tol=1e-14).x
        np.testing.assert_allclose(found[j], exact, atol=1e-6)
    assert (found[:, 1:] == 0).any()
    assert (found[:, 0] < 0).any()
    np.testing.assert_allclose(found, descend.py_func(*arguments), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_penalty_finds_the_support(name):
    truth = design("Chain-5", "Q1", "gaussian", rng=0)
    model = DCRL(5, family="gaussian", penalty=name, random_state=0)
    model.fit(simulate(truth, 1500, rng=1).X)
    assert evaluate(model, truth).shd_q <= 2
