"""Pairs of items that no row has both of, as in tests with booklets."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.model_selection.factor_count import count_factors, filled_correlations
from hidag.simulation import Truth, random_law, random_q, simulate, tree_dag


def booklets(n_latents: int, family: str, seed: int, n: int = 2000, n_items: int = 40, blocks=8):
    """Return a table (N, J) in which each row has two neighbouring blocks of the items."""
    rng = np.random.default_rng(seed)
    q = random_q(n_items, n_latents, max_parents=2, rng=rng)
    loadings = q * rng.uniform(1.5, 2.5, q.shape)
    law = random_law(tree_dag(n_latents), rng=rng)
    truth = Truth(
        q, -loadings.sum(axis=1) / 2, loadings, np.ones(n_items), (family,) * n_items, law
    )
    values = np.array(simulate(truth, n, rng=rng).X)
    block = rng.permutation(np.arange(n_items) % blocks)
    first = rng.integers(0, blocks, n)[:, None]
    return np.where((block == first) | (block == (first + 1) % blocks), values, np.nan)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("n_latents", [2, 3])
def test_blocks_of_items_are_not_counted_as_latents(family, n_latents):
    # With zeros for unobserved pairs, all 19 would exceed the noise.
    found = [
        count_factors(booklets(n_latents, family, seed), [family] * 40).by_parallel_analysis
        for seed in range(3)
    ]
    assert np.median(found) == n_latents
    assert max(found) <= n_latents + 1


def test_the_result_does_not_depend_on_the_order_of_items():
    table = booklets(2, "bernoulli", seed=5, n=800)
    turned = table[:, np.random.default_rng(0).permutation(40)]
    one, two = (count_factors(x, ["bernoulli"] * 40) for x in (table, turned))
    assert np.array_equal(one.eigenvalues, two.eigenvalues)
    assert np.array_equal(one.factor_bic, two.factor_bic, equal_nan=True)


def test_observed_correlations_stay_and_others_follow_from_factors():
    loadings = np.array(
        [[0.8, 0.0], [0.6, 0.0], [0.7, 0.3], [0.3, 0.7], [0.0, 0.6], [0.0, 0.8]] * 3
    )
    whole = loadings @ loadings.T
    np.fill_diagonal(whole, 1.0)
    unseen = np.zeros(whole.shape, dtype=bool)
    unseen[:3, -3:] = unseen[-3:, :3] = True
    raw = np.where(unseen, 0.0, whole)
    filled = filled_correlations(
        raw, unseen, lambda now: int((np.linalg.eigvalsh(now) > 1.2).sum()), 5
    )
    assert np.array_equal(filled[~unseen], raw[~unseen])
    assert filled[unseen] == pytest.approx(whole[unseen], abs=0.03)
