"""Item fit given the other items, and the directions of its test."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL
from hidag.diagnostics import fit_statistics
from hidag.diagnostics.item_fit import (
    MIN_RELATIVE_VARIANCE,
    MIN_RESIDUAL_RATIO,
    compute_item_fit,
    effective_deviations,
)
from hidag.information.free_parameters import FreeParameters, row_scores
from hidag.information.moment_tests import (
    LocalScores,
    ScoredColumns,
    ScoreSpace,
    chi_square,
    drop_constant,
)
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters

from ..fitted_models import FOUR_ITEMS_EACH, chain_of_three, drawn, result_at


def test_an_item_that_lacks_a_latent_does_not_fit():
    q = np.array([[1, 0]] * 4 + [[0, 1]] * 4 + [[1, 1]] * 2)
    rng = np.random.default_rng(0)
    loadings = q * rng.uniform(1.5, 2.5, q.shape)
    law = NetworkLaw(
        StateSpace((2, 2)), ((), (0,)), (np.array([0.5, 0.5]), np.array([[0.7, 0.3], [0.4, 0.6]]))
    )
    truth = result_at(
        MeasurementParameters(
            ("bernoulli",) * 10, -loadings.sum(axis=1) / 2, loadings, np.ones(10)
        ),
        law,
        n_samples=2000,
    )
    X, _ = drawn(truth, 2000, seed=4)
    wrong = q.copy()
    wrong[8, 1] = 0
    fit = DCRL(2, q_matrix=wrong, family="bernoulli", random_state=0, n_starts=2).fit(X).result_
    free = FreeParameters.of(fit, X)
    table = compute_item_fit(
        free, ScoredColumns.of(free, X), LocalScores.of(free, row_scores(free))
    )
    assert int(np.argmin(table.column("p_value"))) == 8
    assert table.column("p_value")[8] < 1e-6
    assert table.column("rmsd")[8] == max(table.column("rmsd"))


def test_leave_one_item_out_agrees_with_enumeration(mixed, monkeypatch):
    result, X = mixed
    free = FreeParameters.of(result, X)
    columns, space = (
        ScoredColumns.of(free, X),
        LocalScores.of(free, row_scores(free)),
    )
    summed = compute_item_fit(free, columns, space)
    monkeypatch.setattr("hidag.diagnostics.item_fit.MAX_GROUPED_SUMS", 0)
    listed = compute_item_fit(free, columns, space)
    for name in summed.columns[1:]:
        np.testing.assert_allclose(summed.column(name), listed.column(name), atol=1e-9)
    # By hand: drop an item by calling it missing, and expect it from what is left.
    without = X.copy()
    without[:, 0] = np.nan
    blind = FreeParameters.of(result, without)
    posterior = np.vstack([block.posteriors[0] for block in blind.row_blocks()])
    gap = np.nan_to_num(X[:, 0] - posterior @ columns.means[:, 0])
    reached = posterior @ result.law.space.states() > 0.5
    moments = np.column_stack([gap, gap[:, None] * reached])
    by_hand = chi_square(space.of_item(0), moments, MIN_RELATIVE_VARIANCE, MIN_RESIDUAL_RATIO)
    assert summed.column("chi_square")[0] == pytest.approx(by_hand[0], abs=1e-8)
    assert summed.column("degrees")[0] == by_hand[1]


def test_infinite_scores_are_left_out():
    scores = np.array([[1.0, np.inf], [-1.0, 0.0], [0.5, 1.0]])
    assert ScoreSpace.of(scores).basis.shape == (3, 1)


def test_boundary_parameters_do_not_explain_means():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 3))
    scores -= scores.mean(axis=0)
    # A small constant.
    faint = np.column_stack([scores, scores[:, 0] + 1e-4])
    basis = ScoreSpace.of(faint).basis
    assert basis.shape[1] == 4
    kept = drop_constant(basis)
    assert kept.shape[1] == 3
    np.testing.assert_allclose(kept.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(kept.T @ kept, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(drop_constant(basis[:, :2]), basis[:, :2])


def test_effective_deviations_count_the_rows_of_a_direction():
    same, lone = np.ones(40), np.eye(40)[0]
    moments = np.column_stack([same, lone, 1e-6 * same, 0.0 * same])
    np.testing.assert_allclose(
        effective_deviations(moments, same, integer=False), [40.0, 1.0, 40.0, 0.0]
    )
    # Deviations much smaller than one do not count for whole numbers.
    np.testing.assert_allclose(
        effective_deviations(moments, same, integer=True), [40.0, 1.0, 0.0, 0.0], atol=1e-9
    )


def test_directions_explained_by_the_scores_are_left_out():
    rng = np.random.default_rng(0)
    space = ScoreSpace.of(rng.normal(size=(100, 10)))
    own = rng.normal(size=(100, 1))
    nearly = space.basis[:, :1] + 0.02 * rng.normal(size=(100, 1))
    assert chi_square(space, np.hstack([own, nearly]))[1] == 2
    assert chi_square(space, np.hstack([own, nearly]), min_residual=2.0)[1] == 1
    value, degrees = chi_square(space, nearly, min_residual=2.0)
    assert np.isnan(value)
    assert degrees == 0


def test_items_that_hardly_deviate_have_no_test():
    result = chain_of_three(20.0, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 100, seed=0)
    found = fit_statistics(result, X, n_tables=2)
    assert np.isnan(found.items.column("p_value")).all()
    assert found.items.column("degrees") == [0] * 12
