"""Goodness of fit with sample weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL
from hidag.data.rows import effective_sample_size, scale_to_effective_size
from hidag.diagnostics import fit_statistics, person_fit
from hidag.diagnostics.goodness_of_fit import WEIGHTS_MISSING, WEIGHTS_NEW
from hidag.diagnostics.item_fit import MIN_RELATIVE_VARIANCE, MIN_RESIDUAL_RATIO, compute_item_fit
from hidag.diagnostics.limited_information import compute_limited_information
from hidag.diagnostics.pair_residuals import compute_pair_residuals
from hidag.exceptions import DataError
from hidag.inference.fitted_rows import weighted_sample
from hidag.information.free_parameters import FreeParameters, row_scores
from hidag.information.moment_tests import (
    LocalScores,
    ScoredColumns,
    ScoreSpace,
    chi_square,
    drop_constant,
)

from ..fitted_models import columns_of, drawn, moved, two_latents

MIXED = ("bernoulli", "gaussian", "ordinal(3)", "poisson", "categorical(3)", "bernoulli")


def some_weights(n_rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, 3.0, n_rows)


@pytest.fixture(scope="module")
def weighted():
    """A weighted fit of items of several families with missing cells."""
    truth = two_latents(MIXED * 2)
    X, _ = drawn(truth, 700, seed=8, missing=0.05)
    weights = scale_to_effective_size(some_weights(700))
    model = DCRL(2, q_matrix=truth.q_given, family=list(truth.families), random_state=0, n_starts=1)
    return model.fit(X, sample_weight=weights).result_, X, weights


def numbers_of(found) -> list[float]:
    """Return all numbers of the statistics in order."""
    out: list[float] = []

    def gather(value: object) -> None:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list | tuple):
            for entry in value:
                gather(entry)
        elif isinstance(value, int | float):
            out.append(float(value))

    gather(found.to_dict())
    return out


def test_equal_weights_have_no_effect():
    result = two_latents(MIXED * 2)
    X, _ = drawn(result, 300, seed=1, missing=0.05)
    plain = fit_statistics(result, X, n_tables=5)
    # As text, where what is not known equals itself.
    for equal in (np.ones(300), np.full(300, 0.3), np.full(300, 7.0)):
        assert repr(fit_statistics(result, X, sample_weight=equal, n_tables=5)) == repr(plain)
    assert plain.n_effective == plain.n_rows == 300
    assert "n_effective" not in plain.pairs.columns
    assert "weight" not in plain.summary()


def test_nearly_equal_weights_have_almost_no_effect():
    result = two_latents(("bernoulli",) * 9)
    X, _ = drawn(result, 300, seed=1, missing=0.02)
    plain = fit_statistics(result, X, n_tables=2)
    slightly = 1.0 + 1e-13 * np.arange(300)
    nearly = fit_statistics(result, X, sample_weight=slightly, n_tables=2)
    assert nearly.absolute.m2 == pytest.approx(plain.absolute.m2, rel=1e-9)
    assert nearly.absolute.srmsr == pytest.approx(plain.absolute.srmsr, rel=1e-9)
    assert nearly.criteria.bic == pytest.approx(plain.criteria.bic, rel=1e-9)
    assert nearly.criteria.entropy == pytest.approx(plain.criteria.entropy, rel=1e-9)
    for part in ("pairs", "items", "checks"):
        one, other = getattr(plain, part), getattr(nearly, part)
        assert other.columns == (*one.columns, "n_effective")
        # What is drawn depends on which rows are same, and so on weights.
        for name in ("observed",) if part == "checks" else one.columns[2:]:
            np.testing.assert_allclose(other.column(name), one.column(name), rtol=1e-7)
        np.testing.assert_allclose(other.column("n_effective"), one.column("n_rows"), rtol=1e-9)


def test_only_ratios_of_weights_matter_and_rows_of_weight_zero_are_left_out(weighted):
    result, X, weights = weighted
    found = fit_statistics(result, X, sample_weight=weights, n_tables=5)
    people = fit_statistics(result, X, sample_weight=5000.0 * weights, n_tables=5)
    np.testing.assert_allclose(numbers_of(people), numbers_of(found), rtol=1e-6, atol=1e-9)
    longer = np.vstack([X, X[:50]])
    none = np.concatenate([weights, np.zeros(50)])
    without = fit_statistics(result, longer, sample_weight=none, n_tables=5)
    np.testing.assert_array_equal(numbers_of(without), numbers_of(found))
    assert found.n_rows == 700
    assert found.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_statistics_do_not_depend_on_the_order_of_rows(weighted):
    result, X, weights = weighted
    # Copies of rows with other weights, which contents alone do not put in order.
    table, counts = np.vstack([X, X]), np.concatenate([weights, weights[::-1]])
    order = np.random.default_rng(0).permutation(len(table))
    one = fit_statistics(result, table, sample_weight=counts, n_tables=5)
    other = fit_statistics(result, table[order], sample_weight=counts[order], n_tables=5)
    np.testing.assert_allclose(numbers_of(other), numbers_of(one), rtol=1e-6, atol=1e-9)


def test_weighted_m2_agrees_with_enumerated_answers():
    result = two_latents(("bernoulli",) * 9, law="saturated")
    X, _ = drawn(result, 400, seed=2)
    # Weights that have to do with the answers, so that Kish's number is not M2's.
    weights = scale_to_effective_size(np.where(X.sum(axis=1) > 5, 1.0, 6.0))
    plain = compute_limited_information(*columns_of(result, X))
    free = FreeParameters.of(result, X, weights)
    found = compute_limited_information(free, ScoredColumns.of(free, X))
    left, right = np.triu_indices(9, 1)

    def moments(answers):
        return np.hstack([answers, answers[:, left] * answers[:, right]])

    every = np.array(np.meshgrid(*[[0.0, 1.0]] * 9)).reshape(9, -1).T
    chance = np.exp(result.row_log_likelihood(every))
    expected = chance @ moments(every)
    centred = moments(every) - expected
    covariance = (centred * chance[:, None]).T @ centred
    # The same as without weights, and so is what no parameter moves; that is found from two tables.
    shown = moments(X) - expected
    gap = weights @ shown / weights.sum()
    inverse = _form_of(result, X, covariance, expected)
    squares = np.einsum("na,ab,nb->n", shown, inverse, shown)
    by_hand = weights.sum() * (weights @ squares) / (weights**2 @ squares)
    assert found.n_effective == pytest.approx(by_hand, rel=1e-6)
    assert abs(found.n_effective / effective_sample_size(weights) - 1.0) > 0.02
    assert found.m2 == pytest.approx(by_hand * gap @ inverse @ gap, rel=1e-4)
    assert (found.degrees, found.n_rows) == (plain.degrees, 400)
    assert found.rmsea == pytest.approx(
        np.sqrt(max(found.m2 - found.degrees, 0.0) / (by_hand * found.degrees))
    )
    assert f"400 rows (effective sample size {by_hand:,.1f}) without a missing cell" in (
        found.summary()
    )


def _form_of(result, X, covariance, expected):
    """Return the matrix of M2's quadratic form, from the covariance and numeric slopes."""
    free = FreeParameters.of(result, X)
    left, right = np.triu_indices(9, 1)
    every = np.array(np.meshgrid(*[[0.0, 1.0]] * 9)).reshape(9, -1).T
    shown = np.hstack([every, every[:, left] * every[:, right]])
    slopes = []
    for p in range(free.n_parameters):
        up, down = (
            np.exp(moved(result, free, p, h).row_log_likelihood(every)) @ shown
            for h in (1e-5, -1e-5)
        )
        slopes.append((up - down) / 2e-5)
    slopes = np.array(slopes).T
    slopes /= np.sqrt((slopes**2).sum(axis=0))
    inverse = np.linalg.inv(covariance)
    inner = np.linalg.pinv(slopes.T @ inverse @ slopes, rcond=1e-9, hermitian=True)
    return inverse - inverse @ slopes @ inner @ slopes.T @ inverse


def test_srmsr_compares_weighted_correlations():
    result = two_latents(("bernoulli",) * 9)
    X, _ = drawn(result, 500, seed=4)
    weights = scale_to_effective_size(some_weights(500))
    free = FreeParameters.of(result, X, weights)
    found = compute_limited_information(free, ScoredColumns.of(free, X))
    big, _ = drawn(result, 400_000, seed=5)
    left, right = np.triu_indices(9, 1)
    observed = np.cov(X.T, aweights=weights)
    unit = np.sqrt(np.diag(observed))
    gap = (observed / np.outer(unit, unit) - np.corrcoef(big.T))[left, right]
    assert found.srmsr == pytest.approx(np.sqrt(np.mean(gap**2)), abs=0.001)


@pytest.mark.parametrize("few", [True, False])
def test_weighted_pair_statistics_agree_with_single_pairs(weighted, few, monkeypatch):
    result, X, weights = weighted
    if not few:
        monkeypatch.setattr("hidag.information.moment_tests.MAX_SHARED", 3)
    monkeypatch.setattr("hidag.information.pair_sums.BLOCK_SIZE", 200)
    free = FreeParameters.of(result, X, weights)
    columns, local = (
        ScoredColumns.of(free, X),
        LocalScores.of(free, row_scores(free)),
    )
    table = compute_pair_residuals(free, columns, local)
    left, right = columns.pairs()
    means = free.probabilities @ columns.means
    centred = columns.means - means
    x = np.nan_to_num(columns.values - means)
    compared = 0
    for row, a, b in zip(table.to_dicts(), left, right, strict=True):
        both = ~np.isnan(columns.values[:, a] + columns.values[:, b])
        number = x[:, a] * x[:, b] - free.probabilities @ (centred[:, a] * centred[:, b])
        counted = weights * both * number
        own = np.hstack([local.shared, *(local.own[columns.item[g]] for g in (a, b))])
        rest = ScoreSpace.of(own).residuals(counted[:, None])[:, 0]
        n, used = effective_sample_size(weights[both] ** 2), own.shape[1]
        spread = np.sqrt(n / (n - used) * (rest**2).sum())
        if not np.isnan(row["z"]):
            compared += 1
            assert row["z"] == pytest.approx(rest.sum() / spread, abs=1e-4)
        units = [
            np.sqrt(np.cov(v[seen], aweights=weights[seen], bias=True))
            for v, seen in ((columns.values[:, g], ~np.isnan(columns.values[:, g])) for g in (a, b))
        ]
        by_hand = counted.sum() / weights[both].sum() / (units[0] * units[1])
        assert row["residual"] == pytest.approx(by_hand, abs=1e-9)
        assert row["n_rows"] == both.sum()
        assert row["n_effective"] == pytest.approx(effective_sample_size(weights[both]))
    assert compared > len(table) / 2


def test_item_fit_uses_the_weights(weighted):
    result, X, weights = weighted
    free = FreeParameters.of(result, X, weights)
    columns, local = (
        ScoredColumns.of(free, X),
        LocalScores.of(free, row_scores(free)),
    )
    table = compute_item_fit(free, columns, local)
    # By hand: drop an item by calling it missing, and expect it from what is left.
    without = X.copy()
    without[:, 0] = np.nan
    posterior = np.vstack(
        [b.posteriors[0] for b in FreeParameters.of(result, without).row_blocks()]
    )
    gap = np.nan_to_num(X[:, 0] - posterior @ columns.means[:, 0])
    reached = posterior @ result.law.space.states() > 0.5
    moments = weights[:, None] * np.column_stack([gap, gap[:, None] * reached])
    space = local.of_item(0)
    assert space.n_rows == pytest.approx(effective_sample_size(weights**2))
    value, degrees = chi_square(space, moments, MIN_RELATIVE_VARIANCE, MIN_RESIDUAL_RATIO)
    assert table.column("chi_square")[0] == pytest.approx(value, abs=1e-8)
    assert table.column("degrees")[0] == degrees
    seen = ~np.isnan(X[:, 0])
    assert table.column("observed")[0] == pytest.approx(
        np.average(X[seen, 0], weights=weights[seen])
    )
    assert table.column("n_effective")[0] == pytest.approx(effective_sample_size(weights[seen]))


def test_criteria_are_those_of_the_weighted_fit(weighted):
    result, X, weights = weighted
    found = fit_statistics(result, X, sample_weight=weights, n_tables=2).criteria
    assert found.log_likelihood == pytest.approx(result.log_likelihood, abs=1e-6)
    assert found.n_effective == pytest.approx(result.n_counted)
    price = found.n_parameters * np.log(result.n_counted)
    assert found.bic == pytest.approx(price - 2 * found.log_likelihood)
    repeated = np.repeat([1.0, 2.0], 350)
    twice = fit_statistics(result, X, sample_weight=repeated, n_tables=2)
    # Whole numbers are a survey's weights too: no row is taken for two.
    assert twice.n_effective == pytest.approx((350 + 700) ** 2 / (350 + 4 * 350))


def test_checks_use_weighted_statistics(weighted):
    result, X, weights = weighted
    found = fit_statistics(result, X, sample_weight=weights, n_tables=5).checks
    rows = {(row["item"], row["statistic"]): row for row in found.to_dicts()}
    for j, name in enumerate(result.item_names):
        seen = ~np.isnan(X[:, j])
        x, own = X[seen, j], weights[seen]
        if result.families[j] == "gaussian":
            mean = np.average(x, weights=own)
            assert rows[name, "mean"]["observed"] == pytest.approx(mean)
            spread = np.sqrt(np.average((x - mean) ** 2, weights=own))
            assert rows[name, "standard deviation"]["observed"] == pytest.approx(spread)
            assert rows[name, "mean"]["n_effective"] == pytest.approx(effective_sample_size(own))
    said = {statistic for _, statistic in rows}
    assert not said & {"smallest", "largest"}
    assert "share of zeros" in said


def test_drawn_tables_vary_as_weighted_ones_do():
    result = two_latents(("gaussian",) * 6)
    X, _ = drawn(result, 400, seed=4)
    few = np.where(np.arange(400) < 40, 1.0, 1e-6)
    plain = fit_statistics(result, X, n_tables=600).checks
    found = fit_statistics(result, X, sample_weight=few, n_tables=600).checks

    def width(checks) -> float:
        means = checks.where(statistic="mean").to_dicts()
        return float(np.mean([row["upper"] - row["lower"] for row in means]))

    # Forty of four hundred rows count: numbers vary as those of forty rows, sqrt(10) times as much.
    assert width(found) / width(plain) == pytest.approx(np.sqrt(10.0), rel=0.15)


def test_a_constant_score_explains_no_weighted_mean():
    rng = np.random.default_rng(0)
    # So unequal that the effective sample size is below a quarter of the rows.
    weights = np.where(np.arange(60) < 6, 20.0, 1.0)
    assert effective_sample_size(weights) < 15
    scores = rng.normal(size=(60, 3))
    scores -= np.average(scores, axis=0, weights=weights)
    faint = np.column_stack([scores, scores[:, 0] + 1e-4])
    basis = ScoreSpace.of(weights[:, None] * faint).basis
    kept = drop_constant(basis, effective_sample_size(weights))
    assert (basis.shape[1], kept.shape[1]) == (4, 3)
    np.testing.assert_allclose(kept.sum(axis=0), 0.0, atol=1e-9)


def survey_of(truth, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a survey that has those with many yeses four times as often, and weights for that."""
    X, _ = drawn(truth, 6 * n_rows, seed=seed)
    often = np.where(X.sum(axis=1) > X.shape[1] / 2, 1.0, 0.25)
    kept = np.flatnonzero(np.random.default_rng(seed).random(len(X)) < often)[:n_rows]
    return X[kept], 1.0 / often[kept]


def test_a_true_model_fits_a_survey_with_its_weights_and_not_without():
    truth = two_latents(("bernoulli",) * 10)
    m2, z, items, off, off_without = [], [], [], [], []
    for seed in range(16):
        X, weights = survey_of(truth, 800, seed)
        model = DCRL(2, q_matrix=truth.q_given, family="bernoulli", random_state=0, n_starts=1)
        result = model.fit(X, sample_weight=weights).result_
        found = fit_statistics(result, X, sample_weight=weights, n_tables=40)
        m2.append(found.absolute.m2 / found.absolute.degrees)
        z += found.pairs.column("z")
        items += found.items.column("p_value")
        off += found.checks.column("p_value")
        once = fit_statistics(result, X, n_tables=40)
        off_without += once.checks.column("p_value")
        assert WEIGHTS_MISSING in once.notes
        assert WEIGHTS_MISSING not in found.notes
    assert 0.85 < np.mean(m2) < 1.15
    assert np.mean(np.array(off) < 0.05) < 0.02
    assert np.mean(np.array(off_without) < 0.05) > 0.5
    assert 0.9 < np.nanstd(z) < 1.1
    assert np.nanmean(np.array(items) < 0.05) < 0.12


def test_a_dependent_pair_is_found_in_weighted_rows():
    truth = two_latents(("bernoulli",) * 10)
    X, weights = survey_of(truth, 1500, 0)
    same = np.random.default_rng(1).random(len(X)) < 0.3
    X[same, 7] = X[same, 0]
    model = DCRL(2, q_matrix=truth.q_given, family="bernoulli", random_state=0, n_starts=1)
    result = model.fit(X, sample_weight=weights).result_
    found = fit_statistics(result, X, sample_weight=weights, n_tables=2)
    worst = min(found.pairs.to_dicts(), key=lambda row: row["p_value"])
    assert {worst["first"], worst["second"]} == {result.item_names[0], result.item_names[7]}
    assert found.absolute.p_value < 1e-3


def test_notes_report_weights_of_the_fit_or_the_statistics_only(weighted):
    result, X, weights = weighted
    plain = replace(result, weighted=False)
    assert WEIGHTS_NEW in fit_statistics(plain, X, sample_weight=weights, n_tables=2).notes
    found = fit_statistics(result, X, sample_weight=weights, n_tables=2)
    assert not any(note in (WEIGHTS_MISSING, WEIGHTS_NEW) for note in found.notes)
    worth = f"700 rows (effective sample size {found.n_effective:,.1f})"
    assert worth in found.summary()
    equal = fit_statistics(result, X, sample_weight=np.ones(len(X)), n_tables=2)
    assert WEIGHTS_MISSING not in equal.notes


def test_too_many_states_leave_the_checks_with_their_weights(weighted, sum_nothing):
    result, X, weights = weighted
    sum_nothing()
    found = fit_statistics(result, X, sample_weight=weights, n_tables=2)
    assert found.criteria is None
    assert found.n_effective == pytest.approx(effective_sample_size(weights))
    assert "n_effective" in found.checks.columns


def test_invalid_weights_are_refused(weighted):
    result, X, _ = weighted
    with pytest.raises(DataError) as refused:
        fit_statistics(result, X, sample_weight=[1.0, 2.0])
    assert str(refused.value) == (
        "sample_weight must have shape (700,), one weight for each row, got (2,)"
    )


def test_weights_sum_to_the_effective_sample_size():
    values = np.arange(8.0).reshape(4, 2)
    rows, weights = weighted_sample(values, [10.0, 0.0, 20.0, 30.0])
    np.testing.assert_array_equal(rows, values[[0, 2, 3]])
    assert weights.sum() == pytest.approx(60.0**2 / 1400.0)
    assert (weights**2).sum() == pytest.approx(60.0**2 / 1400.0)
    assert weighted_sample(values, [3.0, 0.0, 3.0, 3.0])[1] is None


def test_person_fit_takes_no_weights(weighted):
    result, X, _ = weighted
    assert len(person_fit(result, X).table) == len(X)
