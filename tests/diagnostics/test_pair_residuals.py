"""Residual correlations of pairs of items and their tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from hidag import DCRL
from hidag.diagnostics import fit_statistics
from hidag.diagnostics.pair_residuals import compute_pair_residuals
from hidag.information.free_parameters import FreeParameters, row_scores
from hidag.information.moment_tests import LocalScores, ScoredColumns, ScoreSpace
from hidag.information.pair_sums import bound_p_values
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters
from hidag.results import FitResult

from ..fitted_models import FOUR_ITEMS_EACH, chain_of_three, drawn, result_at, two_latents


def test_expected_covariances_match_a_large_sample():
    families = ("bernoulli", "lognormal", "poisson", "ordinal(4)", "gamma", "categorical(3)")
    result = two_latents(families)
    X, _ = drawn(result, 60_000, seed=1)
    free = FreeParameters.of(result, X)
    empty = np.zeros((len(X), 0))
    nothing = LocalScores(empty, (empty,) * len(families), float(len(X)))
    table = compute_pair_residuals(free, ScoredColumns.of(free, X), nothing)
    assert np.abs(table.column("residual")).max() < 0.02
    assert np.abs(table.column("z")).max() < 4.0


@pytest.mark.parametrize("few", [True, False])
def test_pair_statistics_agree_with_single_pairs(mixed, few, monkeypatch):
    result, X = mixed
    if not few:
        monkeypatch.setattr("hidag.information.moment_tests.MAX_SHARED", 3)
    monkeypatch.setattr("hidag.information.pair_sums.BLOCK_SIZE", 200)
    free = FreeParameters.of(result, X)
    columns, local = (
        ScoredColumns.of(free, X),
        LocalScores.of(free, row_scores(free)),
    )
    assert few == all(own.shape[1] == 0 for own in local.own)
    table = compute_pair_residuals(free, columns, local)
    left, right = columns.pairs()
    assert len(table) == len(left)
    means = free.probabilities @ columns.means
    centred = columns.means - means
    for row, a, b in zip(table.to_dicts(), left, right, strict=True):
        assert (row["first"], row["second"]) == (columns.names[a], columns.names[b])
        both = ~np.isnan(columns.values[:, a] + columns.values[:, b])
        x = np.nan_to_num(columns.values - means)
        moment = both * (x[:, a] * x[:, b] - free.probabilities @ (centred[:, a] * centred[:, b]))
        own = np.hstack([local.shared, *(local.own[columns.item[g]] for g in (a, b))])
        space = ScoreSpace.of(own)
        rest = space.residuals(moment[:, None])[:, 0]
        z = rest.sum() / np.sqrt(space.variance_inflation * (rest**2).sum())
        # Degrees of freedom there are of all rows, here of those that observed both.
        n, used = both.sum(), own.shape[1]
        z *= np.sqrt(space.variance_inflation * (n - used) / n)
        assert row["z"] == pytest.approx(z, abs=1e-4)
        assert row["n_rows"] == n


def test_more_parameters_than_rows_leave_valid_tests():
    rng = np.random.default_rng(0)
    loadings = np.where(np.arange(60)[:, None] % 2 == np.arange(2), 2.0, 0.0)
    law = SaturatedLaw(StateSpace((2, 2)), np.array([0.3, 0.2, 0.2, 0.3]))
    items = MeasurementParameters(("bernoulli",) * 60, np.full(60, -1.0), loadings, np.ones(60))
    result = result_at(items, law, n_samples=100)
    X, _ = drawn(result, 100, seed=3)
    X[:, 1] = np.where(rng.random(100) < 0.9, X[:, 0], X[:, 1])
    found = fit_statistics(result, X, n_tables=2)
    assert found.criteria.n_parameters > len(X)
    rows = sorted(found.pairs.to_dicts(), key=lambda row: row["p_value"])
    assert {rows[0]["first"], rows[0]["second"]} == {"X1", "X2"}
    assert rows[0]["z"] > 4.0
    shares = np.mean(np.array(found.pairs.column("p_value")) < 0.05)
    assert 0.02 < shares < 0.09


def z_scores_of_true_models(truth, n_rows: int, n_tables: int) -> tuple[np.ndarray, float]:
    """Return z scores of the pairs of tables from a model that is fitted again, and the share."""
    z = []
    for seed in range(n_tables):
        X, _ = drawn(truth, n_rows, seed=seed)
        fit = DCRL(
            3, q_matrix=truth.q_given, family="bernoulli", random_state=0, n_starts=1
        ).fit(X).result_  # fmt: skip
        free = FreeParameters.of(fit, X)
        table = compute_pair_residuals(
            free, ScoredColumns.of(free, X), LocalScores.of(free, row_scores(free))
        )
        z += table.column("z")
        for row in table.to_dicts():
            assert np.isnan(row["z"]) or row["z"] * row["tested"] >= 0
    tested = np.array(z)[~np.isnan(z)]
    return tested, len(tested) / len(z)


def test_pairs_that_hardly_deviate_have_no_test():
    tested, share = z_scores_of_true_models(chain_of_three(8.0, FOUR_ITEMS_EACH), 300, 4)
    assert share < 0.2
    assert np.all(np.abs(tested) < 4.5)


def test_z_scores_have_unit_variance_with_few_residual_degrees():
    # Eight items and three latents: parameters are fitted to little else than some of the pairs.
    q = np.array(
        [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]],
        dtype=np.int8,
    )
    tested, share = z_scores_of_true_models(chain_of_three(2.6, q), 1000, 12)
    assert 0.85 < share < 1.0
    assert 0.85 < tested.std() < 1.15
    assert 0.02 < np.mean(np.abs(tested) > 1.96) < 0.09


def test_pairs_without_a_test_are_counted():
    result = chain_of_three(20.0, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 100, seed=0)
    found = fit_statistics(result, X, n_tables=10)
    assert np.isnan(found.pairs.column("p_value")).all()
    assert (
        "66 of 66 pairs have no test: too few rows deviate from the expectations of both items, or "
        "the parameters fit the pair almost exactly"
    ) in map(str, found.notes)
    assert "pairs of items (residual correlation): no test possible" in found.summary()


@pytest.mark.parametrize("sharp", [False, True])
def test_pairs_never_observed_together_are_noted(sharp):
    each = 4 if sharp else 8
    q = np.repeat(np.eye(3, dtype=np.int8), each, axis=0)
    result = chain_of_three(20.0 if sharp else 2.0, q)
    X, _ = drawn(result, 1000, seed=0)
    X[:500, 0] = X[500:, 1] = np.nan
    notes = fit_statistics(result, X, n_tables=10).notes
    (text,) = (str(note) for note in notes if note.code == "untested-pairs")
    if not sharp:
        assert text == "1 of 276 pairs have no test: no row has both items"
    else:
        assert text == (
            "66 of 66 pairs have no test: no row has both items (1 pair); too few rows deviate "
            "from the expectations of both items, or the parameters fit the pair almost exactly "
            "(65 pairs)"
        )


def two_latents_of_sharp_items(n_items: int) -> FitResult:
    """Return a model of yes/no items in turn of two latents, each off in one row of ten."""
    q = np.eye(2)[np.arange(n_items) % 2]
    off = float(np.log(9.0))
    items = MeasurementParameters(
        ("bernoulli",) * n_items, np.full(n_items, -off), 2.0 * off * q, np.ones(n_items)
    )
    return result_at(items, SaturatedLaw(StateSpace((2, 2)), np.full(4, 0.25)), n_samples=384)


@pytest.mark.parametrize("n_rows", [384, 3000])
def test_copies_of_an_item_are_detected_with_few_expected_deviations(n_rows):
    result = two_latents_of_sharp_items(11)
    X, _ = drawn(result, n_rows, seed=2)
    X[:, 10] = X[:, 0]
    found = fit_statistics(result, X, n_tables=2)
    tested = [row for row in found.pairs.to_dicts() if not np.isnan(row["z"])]
    worst = min(tested, key=lambda row: row["p_value"])
    assert (worst["first"], worst["second"]) == ("X1", "X11")
    assert worst["p_value"] < 1e-20
    assert worst["z"] > 9.0


def test_only_extreme_sums_have_a_bound_above_their_p_value():
    # In units of one departure: the second takes too few, the fourth has a chance of one in 40.
    size = np.array([12.0, 4.0, 30.0, 12.0])
    departures = np.array([2.0, 1e-9, 3.0, 30.0])
    bound = bound_p_values(size, departures, departures, departures)
    assert np.isnan(bound[[1, 3]]).all()
    exact = 2.0 * poisson.sf(size + departures - 1.0, departures)
    assert np.all(bound[[0, 2]] > exact[[0, 2]])
    assert np.all(bound[[0, 2]] < 20.0 * exact[[0, 2]])
