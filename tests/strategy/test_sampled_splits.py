"""Splits of merged latents from draws, without an enumeration of joint states."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.design_data import WorkingData
from hidag.em.m_step import allowed_coefficients
from hidag.initialization.start_points import parameters_from_loadings
from hidag.strategy.moves.split_moves import CorrelationCheck

#: Four items for each of three latents of a chain.
Q = np.repeat(np.eye(3, dtype=np.int8), 4, axis=0)
FAMILIES = ("gaussian", "bernoulli", "poisson", "gaussian") * 3


@pytest.fixture(scope="module")
def table():
    """Return working data of a chain of latents, and their states (N, 3)."""
    rng = np.random.default_rng(11)
    n = 1500
    states = np.zeros((n, 3), dtype=np.uint8)
    for k in range(3):
        fresh = rng.integers(0, 2, n)
        states[:, k] = np.where(rng.random(n) < 0.5, states[:, k - 1] if k else fresh, fresh)
    x = np.empty((n, 12))
    for j, family in enumerate(FAMILIES):
        z = states[:, j // 4].astype(float)
        if family == "gaussian":
            x[:, j] = rng.normal(2.5 * z)
        elif family == "bernoulli":
            x[:, j] = rng.random(n) < 0.1 + 0.8 * z
        else:
            x[:, j] = rng.poisson(np.exp(1.2 * z))
    x[rng.random(x.shape) < 0.05] = np.nan
    return WorkingData.from_values(x, FAMILIES), states


def fit(data, support, states):
    """Return items with a support, and draws of their latents, shape (1, N, K)."""
    return parameters_from_loadings(data, 2.0 * support, (2, 2, 2)), states[None]


def agreement(data, support, states, entries=None):
    entries = np.full(support.shape, -1, dtype=np.int8) if entries is None else entries
    items, draws = fit(data, support, states)
    return CorrelationCheck(data).agreement(
        items, draws, allowed_coefficients(entries, items.terms)
    )


def merged_fit(states):
    """Return the support and the states when latent 0 stands for 0 and 1, and 1 is noise."""
    support = Q.astype(float)
    support[:, 0] += support[:, 1]
    support[:, 1] = 0.0
    together = states.copy()
    together[:, 0] = states[:, 0] & states[:, 1]
    together[:, 1] = np.random.default_rng(1).integers(0, 2, len(states))
    return support, together


def test_right_fit_has_no_split(table):
    data, states = table
    assert agreement(data, Q.astype(float), states).start_points == ()


def test_merged_latent_is_split_with_the_unused_one(table):
    data, states = table
    found = agreement(data, *merged_fit(states))
    columns = {tuple(np.flatnonzero(column)) for column in found.start_points[0].loadings.T}
    assert columns == {(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)}
    assert found.criterion > agreement(data, Q.astype(float), states).criterion + 100


def test_items_shared_by_two_latents_are_divided(table):
    data, states = table
    support, together = merged_fit(states)
    support[:, 1] = support[:, 0]
    found = agreement(data, support, together)
    columns = {tuple(np.flatnonzero(column)) for column in found.start_points[0].loadings.T}
    assert columns == {(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)}


def test_item_without_a_latent_hardly_changes_the_criterion(table):
    data, states = table
    support = Q.astype(float)
    support[5] = 0.0
    missing, full = (agreement(data, one, states).criterion for one in (support, Q.astype(float)))
    assert missing == pytest.approx(full, abs=1.0)


def test_latents_with_given_entries_are_not_split(table):
    data, states = table
    entries = np.full(Q.shape, -1, dtype=np.int8)
    entries[0] = (1, 0, 0)
    assert agreement(data, *merged_fit(states), entries).start_points == ()


def test_follow_up_items_have_no_correlation_with_their_filter():
    rng = np.random.default_rng(2)
    first = rng.integers(0, 2, 400).astype(float)
    second = np.where(first == 0, rng.integers(0, 2, 400), np.nan)
    third = rng.integers(0, 2, 400).astype(float)
    data = WorkingData.from_values(np.column_stack([first, second, third]), ("bernoulli",) * 3)
    check = CorrelationCheck(data)
    assert check.rows[0, 1] == check.correlations[0, 1] == 0
    assert check.rows[0, 2] == 400
    assert check.correlations[0, 2] == pytest.approx(np.corrcoef(first, third)[0, 1])
    seen = first == 0
    assert check.rows[1, 2] == seen.sum()
    assert check.correlations[1, 2] == pytest.approx(np.corrcoef(second[seen], third[seen])[0, 1])


def test_order_of_columns_is_irrelevant(table):
    data, states = table
    order = np.random.default_rng(3).permutation(12)
    other = WorkingData.from_values(
        np.where(data.observed == 1, data.x * data.scale + data.shift, np.nan)[:, order],
        tuple(FAMILIES[j] for j in order),
    )
    support, together = merged_fit(states)
    one, two = agreement(data, support, together), agreement(other, support[order], together)
    assert two.criterion == pytest.approx(one.criterion, rel=1e-6)
    assert (two.start_points[0].loadings != 0).tolist() in (
        (one.start_points[0].loadings != 0)[order].tolist(),
        (one.start_points[0].loadings != 0)[order][:, [1, 0, 2]].tolist(),
    )
