"""Residual correlations of items, and the sides of a latent that stands for two."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.strategy.moves.split_moves import residual_correlation, split_sides

#: Four items for each of three latents of a chain.
Q = np.repeat(np.eye(3), 4, axis=0)


@pytest.fixture(scope="module")
def residual():
    """Return residual correlations of a fit in which one latent stands for two, shape (12, 12)."""
    rng = np.random.default_rng(8)
    states = np.zeros((3000, 3))
    for k in range(3):
        fresh = rng.integers(0, 2, 3000)
        states[:, k] = np.where(rng.random(3000) < 0.5, states[:, k - 1] if k else fresh, fresh)
    x = rng.normal(2.0 * states @ Q.T)
    x[0, 0] = np.nan
    merged = states[:, 0] + states[:, 1]
    groups, law = np.unique(np.column_stack([merged, states[:, 2]]), axis=0, return_counts=True)
    member = [(merged == a) & (states[:, 2] == c) for a, c in groups]
    means = np.stack([np.nanmean(x[m], axis=0) for m in member], axis=1)
    seen = (~np.isnan(x)).astype(float)
    return residual_correlation(x, seen, None, means, law / 3000)


def test_merged_latent_leaves_residual_correlations(residual):
    pairs = np.triu_indices(4, 1)
    same = np.concatenate([residual[:4, :4][pairs], residual[4:8, 4:8][pairs]])
    assert same.mean() > residual[:4, 4:8].mean() + 0.05
    assert np.abs(residual[8:, 8:]).max() < 0.05
    assert (np.diag(residual) == 0).all()


def test_split_of_a_merged_latent_separates_its_parts(residual):
    leaving, excess = split_sides(residual, np.arange(8))
    assert set(leaving) == {4, 5, 6, 7}
    assert excess > 2 * split_sides(residual, np.arange(8, 12))[1]
