"""Factors turned towards items of one latent: right for any angle between latents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from hidag.initialization.rotations import rotate_to_anchors
from hidag.initialization.start_points import discretise, match_levels


def factors_of(loadings, correlations, rng):
    """Return correlations with an arbitrary basis of factors that are correlated like that."""
    root = np.linalg.cholesky(correlations)
    turn, _ = np.linalg.qr(rng.standard_normal(correlations.shape))
    return loadings @ root @ turn


def matched(found, loadings):
    sizes = found / np.linalg.norm(found, axis=0)
    cosines = sizes.T @ (loadings / np.linalg.norm(loadings, axis=0))
    rows, columns = linear_sum_assignment(-np.abs(cosines))
    return np.abs(cosines[rows, columns]).min()


@pytest.mark.parametrize("shared", [0.5, 0.0, -0.3])
def test_loadings_come_back_whatever_the_angles_between_latents(shared):
    rng = np.random.default_rng(0)
    pure, mixed = np.tile(np.eye(3), (3, 1)), np.array([[1, 1, 0]] * 6 + [[0, 1, 1], [1, 1, 1]])
    loadings = np.vstack([pure, mixed]) * rng.uniform(0.3, 0.6, (17, 3))
    correlations = np.full((3, 3), shared) + (1.0 - shared) * np.eye(3)
    found = rotate_to_anchors(factors_of(loadings, correlations, rng))
    assert matched(found, loadings) > 1 - 1e-9


def test_noise_moves_them_a_little():
    rng = np.random.default_rng(1)
    loadings = np.vstack([np.tile(np.eye(4), (4, 1)), rng.integers(0, 2, (6, 4))]) * 0.5
    factors = factors_of(loadings, np.full((4, 4), 0.3) + 0.7 * np.eye(4), rng)
    found = rotate_to_anchors(factors + 0.02 * rng.standard_normal(factors.shape))
    assert matched(found, loadings) > 0.98


def test_reverse_keyed_items_are_reversed():
    rng = np.random.default_rng(2)
    loadings = np.vstack([np.tile(np.eye(2), (4, 1)), [[1.0, 1.0]] * 2]) * 0.6
    signs = np.array([1, 1, -1, -1, 1, -1, 1, 1, -1, 1])[:, None]
    found = rotate_to_anchors(signs * factors_of(loadings, np.array([[1, 0.4], [0.4, 1]]), rng))
    assert matched(np.abs(found), loadings) > 1 - 1e-9


def test_too_few_items_have_no_anchors():
    assert rotate_to_anchors(np.array([[0.5, 0.1], [1e-6, 0.0], [0.4, 0.1]])) is None


def test_scores_are_cut_where_their_groups_are():
    rng = np.random.default_rng(3)
    levels = rng.integers(0, 4, 4000)
    centres = np.array([-3.0, -1.0, 1.5, 4.0])
    found = discretise(centres[levels] + 0.2 * rng.standard_normal(4000), 4)
    assert (found == levels).mean() > 0.999
    assert discretise(np.array([-1.0, 2.0]), 2).tolist() == [0, 1]


def test_columns_go_to_the_latents_with_as_many_levels():
    rng = np.random.default_rng(4)
    columns = [2, 4, 3, 2]
    scores = np.stack(
        [rng.integers(0, m, 3000) + 0.25 * rng.standard_normal(3000) for m in columns], axis=1
    )
    order = match_levels(scores, (4, 2, 2, 3))
    assert [columns[k] for k in order] == [4, 2, 2, 3]
    assert order.tolist() == [1, 0, 3, 2]
    assert match_levels(scores, (3, 3, 3, 3)).tolist() == [0, 1, 2, 3]


def test_a_column_has_the_levels_of_the_rows_that_count():
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 4, 3000), rng.integers(0, 4, 3000)
    scores = np.stack([first, second], axis=1) + 0.25 * rng.standard_normal((3000, 2))
    # Weights leave two levels of one column, or of the other.
    for two, column in ((0, first), (1, second)):
        weights = np.where(np.isin(column, (0, 3)), 1.0, 1e-6)
        assert match_levels(scores, (2, 4), weights=weights).tolist() == [two, 1 - two]
