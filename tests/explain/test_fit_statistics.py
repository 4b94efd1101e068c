from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import comb, log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest, nbinom, ncx2, norm, poisson

from hidag import DCRL
from hidag.criteria import log_number_of_q
from hidag.explain import fit_statistics, person_fit
from hidag.explain.criteria import criteria
from hidag.explain.fit_statistics import untested_pairs
from hidag.explain.free_parameters import FreeParameters
from hidag.explain.item_fit import LEAST_LEFT, LEAST_SPREAD, item_fit, rests_on
from hidag.explain.limited_information import limited_information
from hidag.explain.local_scores import LocalScores, movable
from hidag.explain.moment_tests import ScoreSpace, chi_square
from hidag.explain.pairs import pair_residuals
from hidag.explain.predictive import predictive_checks
from hidag.explain.row_scores import posterior_blocks, row_scores
from hidag.explain.scored_columns import ScoredColumns
from hidag.item_order import with_items_in_order
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters

from .helpers import drawn, moved, result_at, two_latents

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def all_answers(families) -> np.ndarray:
    sizes = {"bernoulli": 2, "ordinal(3)": 3, "categorical(3)": 3, "binomial(2)": 3}
    return np.array(list(product(*(range(sizes[name]) for name in families))), dtype=float)


def moments_of(families, answers: np.ndarray) -> np.ndarray:
    """Return what M2 compares, for each answer: numbers and their products, items apart."""
    columns, item = [], []
    for j, name in enumerate(families):
        if name == "categorical(3)":
            columns += [answers[:, j] == 0, answers[:, j] == 1]
            item += [j, j]
        else:
            columns.append(answers[:, j])
            item.append(j)
    singles = np.column_stack(columns).astype(float)
    pairs = [
        singles[:, a] * singles[:, b]
        for a in range(len(item))
        for b in range(a + 1, len(item))
        if item[a] != item[b]
    ]
    return np.column_stack([singles, *pairs])


@pytest.mark.parametrize(
    "families",
    [("bernoulli",) * 9, ("categorical(3)", "ordinal(3)", "bernoulli", "binomial(2)") * 2],
)
def test_m2_is_what_the_list_of_all_answers_says(families):
    result = two_latents(families, law="saturated")
    X, _ = drawn(result, 400, seed=2)
    free = FreeParameters.of(result, X)
    found = limited_information(free, ScoredColumns.of(result, X))
    answers = all_answers(families)
    chance = np.exp(result.row_log_likelihood(answers))
    assert chance.sum() == pytest.approx(1.0)
    moments = moments_of(families, answers)
    expected = chance @ moments
    covariance = (moments * chance[:, None]).T @ moments - np.outer(expected, expected)
    step, slopes = 1e-5, []
    for p in range(free.n_parameters):
        up, down = (
            np.exp(moved(result, free, p, h).row_log_likelihood(answers)) @ moments
            for h in (step, -step)
        )
        slopes.append((up - down) / (2 * step))
    slopes = np.array(slopes).T
    inverse = np.linalg.inv(covariance)
    slopes /= np.sqrt((slopes**2).sum(axis=0))
    rank = int(np.linalg.matrix_rank(slopes, tol=1e-7))
    inner = np.linalg.pinv(slopes.T @ inverse @ slopes, rcond=1e-9, hermitian=True)
    weight = inverse - inverse @ slopes @ inner @ slopes.T @ inverse
    residual = moments_of(families, X).mean(axis=0) - expected
    assert found.m2 == pytest.approx(len(X) * residual @ weight @ residual, rel=1e-4)
    assert found.degrees == len(expected) - rank
    assert found.n_rows == 400


def test_rmsea_and_its_interval_come_from_the_non_central_law():
    result = two_latents(("bernoulli",) * 9)
    X, _ = drawn(result, 500, seed=0)
    X[:, 1] = X[:, 0]
    found = limited_information(FreeParameters.of(result, X), ScoredColumns.of(result, X))
    low, high = found.interval
    assert found.p_value == pytest.approx(chi2.sf(found.m2, found.degrees))
    assert 0 < low < found.rmsea < high
    shift = 500 * found.degrees * high**2
    assert ncx2.cdf(found.m2, found.degrees, shift) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("families", "missing", "sentence"),
    [
        (("gaussian",) * 5, 0.0, "M2 needs at least 3 categorical items, and there are 0"),
        (
            ("bernoulli",) * 3,
            0.0,
            "M2 has no degree of freedom: 6 moments, and no fewer parameters",
        ),
        (
            ("bernoulli",) * 9,
            0.6,
            "M2 needs rows without a missing cell, at least 30, and there are 0",
        ),
    ],
)
def test_m2_says_why_it_is_not_there(families, missing, sentence):
    result = two_latents(families)
    X, _ = drawn(result, 200, seed=0, missing=missing)
    found = limited_information(FreeParameters.of(result, X), ScoredColumns.of(result, X))
    assert found == sentence


@pytest.fixture(scope="module")
def mixed():
    """Items of many kinds with holes, two of them tied to each other beyond the latents."""
    families = ("bernoulli", "gaussian", "ordinal(3)", "poisson", "lognormal", "categorical(3)",
                "bernoulli", "gaussian", "bernoulli")  # fmt: skip
    result = two_latents(families)
    X, _ = drawn(result, 1500, seed=8, missing=0.05)
    X[:, 7] += 0.4 * (X[:, 1] - np.nanmean(X[:, 1]))
    X[:, 7] = np.where(np.isnan(X[:, 7]), 0.1, X[:, 7])
    model = DCRL(2, q_matrix=result.q_given, family=list(families), random_state=0, n_starts=2)
    return model.fit(X).result_, X


def test_tied_items_stand_out_among_pairs(mixed):
    result, X = mixed
    found = fit_statistics(result, X, n_tables=20)
    rows = sorted(found.pairs.to_dicts(), key=lambda row: -abs(row["z"]))
    assert (rows[0]["first"], rows[0]["second"]) == ("item_1", "item_7")
    assert rows[0]["residual"] > 0.1
    names = {row["first"] for row in rows}
    assert {"item_5=0", "item_5=1"} & names or {"item_5=2"} & names
    seen = ~np.isnan(X)
    assert rows[0]["n_rows"] == int((seen[:, 1] & seen[:, 7]).sum())
    assert found.criteria.n_cells == int(seen.sum())
    assert "missing for reasons" in found.notes[-1]
    text = found.summary()
    assert "item_1" in text
    assert "predictive checks" in text
    assert found.to_dict()["criteria"]["n_rows"] == 1500


def test_a_number_outside_its_predictive_interval_has_a_chance_of_at_most_a_tenth():
    result = two_latents(("gaussian",) * 6)
    X, _ = drawn(result, 60, seed=4)
    outside = []
    for seed in range(8):
        rows = predictive_checks(result, X, n_tables=39, seed=seed).to_dicts()
        beyond = [not row["lower"] <= row["observed"] <= row["upper"] for row in rows]
        # Of 39 draws the second from either end is the end: at most one lies beyond the observed.
        assert beyond == [row["p_value"] <= 0.1 + 1e-9 for row in rows]
        outside += beyond
    assert any(outside)


def test_expected_covariances_are_those_of_a_large_draw():
    families = ("bernoulli", "lognormal", "poisson", "ordinal(4)", "gamma", "categorical(3)")
    result = two_latents(families)
    X, _ = drawn(result, 60_000, seed=1)
    free = FreeParameters.of(result, X)
    nothing = LocalScores.none(len(X), len(families))
    table = pair_residuals(free, ScoredColumns.of(result, X), nothing)
    assert np.abs(table.column("residual")).max() < 0.02
    assert np.abs(table.column("z")).max() < 4.0


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
    table = item_fit(free, ScoredColumns.of(fit, X), LocalScores.of(free, row_scores(free)))
    assert int(np.argmin(table.column("p_value"))) == 8
    assert table.column("p_value")[8] < 1e-6
    assert table.column("rmsd")[8] == max(table.column("rmsd"))


def test_items_are_held_against_the_others_as_a_list_of_all_states_says(mixed, monkeypatch):
    result, X = mixed
    free = FreeParameters.of(result, X)
    columns, space = ScoredColumns.of(result, X), LocalScores.of(free, row_scores(free))
    summed = item_fit(free, columns, space)
    monkeypatch.setattr("hidag.explain.item_fit.MOST_SUMS", 0)
    listed = item_fit(free, columns, space)
    for name in summed.columns[1:]:
        np.testing.assert_allclose(summed.column(name), listed.column(name), atol=1e-9)
    # By hand: drop an item by calling it missing, and expect it from what is left.
    without = X.copy()
    without[:, 0] = np.nan
    blind = FreeParameters.of(result, without)
    posterior = np.vstack([block for _, block, _ in posterior_blocks(blind)])
    gap = np.nan_to_num(X[:, 0] - posterior @ columns.means[:, 0])
    reached = posterior @ result.law.space.states() > 0.5
    moments = np.column_stack([gap, gap[:, None] * reached])
    by_hand = chi_square(space.of_item(0), moments, LEAST_SPREAD, LEAST_LEFT)
    assert summed.column("chi_square")[0] == pytest.approx(by_hand[0], abs=1e-8)
    assert summed.column("degrees")[0] == by_hand[1]


@pytest.mark.parametrize("few", [True, False])
def test_sums_of_all_pairs_are_those_of_each_pair(mixed, few, monkeypatch):
    result, X = mixed
    if not few:
        monkeypatch.setattr("hidag.explain.local_scores.MOST_SHARED", 3)
    monkeypatch.setattr("hidag.explain.pair_tests.BLOCK_NUMBERS", 200)
    free = FreeParameters.of(result, X)
    columns, local = ScoredColumns.of(result, X), LocalScores.of(free, row_scores(free))
    assert few == all(own.shape[1] == 0 for own in local.own)
    table = pair_residuals(free, columns, local)
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
        rest = space.left_over(moment[:, None])[:, 0]
        z = rest.sum() / np.sqrt(space.stretch * (rest**2).sum())
        # There regression takes its rows from all, here from those that observed both.
        n, used = both.sum(), own.shape[1]
        z *= np.sqrt(space.stretch * (n - used) / n)
        assert row["z"] == pytest.approx(z, abs=1e-4)
        assert row["n_rows"] == n


def test_as_many_parameters_as_rows_do_not_explain_everything():
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


def test_criteria_count_what_is_free(mixed):
    result, X = mixed
    found = criteria(FreeParameters.of(result, X), X)
    assert found.log_likelihood == pytest.approx(result.log_likelihood, abs=1e-6)
    # Coefficients of the nine items, two variances, a cutpoint, two linked latents.
    assert found.n_parameters == (2 + 2 + 3 + 2 + 2 + 2 * 3 + 2 + 2 + 3) + (3 + 1) + 3
    assert found.bic - found.aic == pytest.approx(found.n_parameters * (np.log(1500) - 2))
    assert found.ebic == found.bic
    open_q = replace(result, q_given=None)
    ones = int(open_q.q_matrix.sum())
    assert log_number_of_q(open_q) == pytest.approx(log(comb(18, ones)))


def test_rows_of_the_model_fit_and_careless_ones_do_not():
    families = ("bernoulli", "poisson", "gaussian", "categorical(3)", "ordinal(3)") * 4
    result = two_latents(families)
    X, _ = drawn(result, 800, seed=3, missing=0.1)
    usual = np.array(person_fit(result, X, random_state=1).table.column("p_value"))
    assert kstest(usual, "uniform").pvalue > 0.01
    rng = np.random.default_rng(5)
    careless = X.copy()
    careless[:40] = np.column_stack([rng.permutation(X[:, j])[:40] for j in range(20)])
    careless[:40, 2::5] = rng.normal(0, 3, (40, 4))
    found = person_fit(result, careless, ids=[f"r{i}" for i in range(800)])
    p = np.array(found.table.column("p_value"))
    assert np.mean(p[:40] < 0.05) > 0.5
    assert found.table.column("id")[0] == "r0"
    assert "drawn from the model" in found.summary()


def test_an_absurd_row_is_rare_whatever_rows_it_comes_with():
    result = two_latents(("poisson", "gaussian", "bernoulli") * 3)
    X, _ = drawn(result, 1200, seed=0)
    X[0, 0] = 200.0
    many, alone = person_fit(result, X), person_fit(result, X[:1])
    assert many.table.column("lz")[0] == alone.table.column("lz")[0]
    assert many.table.column("lz")[0] < -50
    assert many.table.column("p_value")[0] == 1 / 4801
    assert alone.table.column("p_value")[0] == 1 / 4001
    assert (many.n_reference, alone.n_reference) == (4800, 4000)
    # Rows that are not rare are as usual alone as among others, within the noise of the draws.
    few = person_fit(result, X[1:8], n_tables=1).table.column("p_value")
    np.testing.assert_allclose(few, many.table.column("p_value")[1:8], atol=0.04)
    assert person_fit(result, X[1:8], n_tables=1).table.column("p_value") == few


@pytest.mark.parametrize("n_rows", [1, 3, 40])
def test_the_order_of_items_has_no_say_in_person_fit_even_of_one_row(mixed, n_rows):
    result, X = mixed
    order = np.random.default_rng(2).permutation(len(result.item_names))
    turned = with_items_in_order(result, order)
    one, other = person_fit(result, X[:n_rows]), person_fit(turned, X[:n_rows, order])
    assert other.table == one.table


def test_a_lone_state_has_the_textbook_lz():
    p = np.array([0.2, 0.5, 0.7, 0.9])
    parameters = MeasurementParameters(
        ("bernoulli",) * 4, np.log(p / (1 - p)), np.zeros((4, 1)), np.ones(4)
    )
    result = result_at(
        parameters, SaturatedLaw(StateSpace((2,)), np.array([0.5, 0.5])), n_samples=3
    )
    X = np.array([[1.0, 0, 1, 1], [1, 1, 0, 0], [0, np.nan, np.nan, np.nan]])
    x, at = X[0], np.log(p / (1 - p))
    mean = (p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
    variance = (p * (1 - p) * at**2).sum()
    total = (x * np.log(p) + (1 - x) * np.log(1 - p)).sum()
    found = person_fit(result, X).table.column("lz")
    assert found[0] == pytest.approx((total - mean) / np.sqrt(variance))
    assert np.isnan(found[2])


@pytest.mark.parametrize("mean", [0.3, 40.0, 5000.0])
def test_lz_of_measures_and_counts_is_exact(mean):
    families = ("gaussian", "lognormal", "poisson", "negative-binomial")
    parameters = MeasurementParameters(
        families,
        np.array([1.0, 0.5, np.log(mean), np.log(mean)]),
        np.zeros((4, 1)),
        np.array([0.7, 0.3, 1.0, 0.5]),
    )
    law = SaturatedLaw(StateSpace((2,)), np.array([0.5, 0.5]))
    X = np.array([[2.0, 1.2, np.floor(mean), np.ceil(mean)]])
    counts = np.arange(2_000_000 if mean > 100 else 10_000)
    laws = [poisson(mean), nbinom(2.0, 1 / (1 + 0.5 * mean))]
    total = norm.logpdf(2.0, 1.0, np.sqrt(0.7)) + norm.logpdf(np.log(1.2), 0.5, np.sqrt(0.3))
    expected = -0.5 * (np.log(2 * np.pi * np.array([0.7, 0.3])) + 1).sum()
    variance = 1.0
    for one, x in zip(laws, X[0, 2:], strict=True):
        p, logs = one.pmf(counts), one.logpmf(counts)
        seen = p > 0
        middle = p[seen] @ logs[seen]
        total += one.logpmf(x)
        expected += middle
        variance += p[seen] @ (logs[seen] - middle) ** 2
    found = person_fit(result_at(parameters, law, n_samples=1), X).table.column("lz")[0]
    assert found == pytest.approx((total - expected) / np.sqrt(variance), abs=1e-5)


def test_means_of_logarithms_are_called_so():
    result = two_latents(("lognormal", "gaussian", "bernoulli") * 3)
    X, _ = drawn(result, 300, seed=0)
    found = fit_statistics(result, X, n_tables=2)
    assert found.items.column("item")[:4] == ["log(X1)", "X2", "X3", "log(X4)"]
    assert found.items.column("observed")[0] == pytest.approx(np.log(X[:, 0]).mean())
    assert found.pairs.column("first")[0] == "log(X1)"


def test_times_beyond_the_limit_are_compared_as_they_were_fitted():
    limit = 2.0
    result = two_latents((f"censored-lognormal({limit:g})", "gaussian", "bernoulli") * 3)
    cut, _ = drawn(result, 300, seed=0)
    rng = np.random.default_rng(1)
    beyond = np.where(np.arange(9) % 3 == 0, cut * rng.uniform(1, 9, cut.shape), cut)
    beyond = np.where(cut == limit, beyond, cut)
    assert beyond.max() > 3 * limit
    table = beyond.copy()
    found = fit_statistics(result, beyond, n_tables=5)
    np.testing.assert_equal(found.to_dict(), fit_statistics(result, cut, n_tables=5).to_dict())
    assert person_fit(result, beyond).table == person_fit(result, cut).table
    np.testing.assert_array_equal(beyond, table)
    assert found.items.column("item")[:2] == ["min(X1, 2)", "X2"]
    assert found.items.column("observed")[0] == pytest.approx(cut[:, 0].mean())
    assert found.checks.column("item")[0] == "X1"


@pytest.mark.parametrize("weighted", [False, True])
def test_permuting_rows_and_items_permutes_the_statistics_bit_for_bit(mixed, weighted):
    result, X = mixed
    rng = np.random.default_rng(1)
    order, rows = rng.permutation(9), rng.permutation(len(X))
    frame = pd.DataFrame(X, columns=result.item_names)
    weights = rng.uniform(0.3, 3.0, len(X)) if weighted else None
    one = fit_statistics(result, frame, sample_weight=weights, n_tables=10).to_dict()
    # The same fit told in another order.
    other = fit_statistics(
        with_items_in_order(result, order),
        frame.iloc[rows, order],
        sample_weight=None if weights is None else weights[rows],
        n_tables=10,
    ).to_dict()
    # Tables are in the order of the items that they were asked for.
    names = list(dict.fromkeys(row["item"] for row in other["checks"]))
    assert names == [*(result.item_names[j] for j in order), "(all items)"]
    firsts = [row["item"] for row in other["items"]]
    assert all(firsts.index(row["first"]) < firsts.index(row["second"]) for row in other["pairs"])
    keys = {
        "pairs": lambda row: sorted((row["first"], row["second"])),
        "items": lambda row: row["item"],
        "checks": lambda row: (row["item"], row["statistic"]),
    }
    for name, key in keys.items():
        for found in (one, other):
            found[name] = sorted(found[name], key=key)
            for row in found[name]:
                if name == "pairs":
                    row["first"], row["second"] = sorted((row["first"], row["second"]))
    np.testing.assert_equal(other, one)


@pytest.mark.data
def test_absolute_fit_of_ecpe_is_what_another_program_finds():
    path = DATA / "ecpe"
    if not path.is_dir():
        pytest.skip("the ecpe data are not here")
    table = pd.read_csv(path / "responses.csv")
    model = DCRL(
        3, effects="all", law="saturated", q_matrix=pd.read_csv(path / "q.csv"), random_state=0
    ).fit(table)
    found = fit_statistics(model.result_, table, n_tables=10)
    # The tests of the R package measr expect these of its estimate of the same model, whose main
    # effects it holds above zero: 507.1 on 325 degrees, .0138 (.0115 to .0161), .0316.
    assert found.absolute.m2 == pytest.approx(507.1, rel=0.02)
    assert found.absolute.degrees == 325
    assert found.absolute.rmsea == pytest.approx(0.0138, abs=0.0004)
    np.testing.assert_allclose(found.absolute.interval, (0.0115, 0.0161), atol=0.0004)
    assert found.absolute.srmsr == pytest.approx(0.0316, abs=0.0002)
    # 81 parameters: 74 of the items and 7 shares, each counted whether at the edge or not.
    assert found.criteria.n_parameters == 81
    assert found.criteria.aic == pytest.approx(2 * 42738.56 + 2 * 81, abs=0.1)


def test_scores_beyond_floating_point_explain_nothing():
    scores = np.array([[1.0, np.inf], [-1.0, 0.0], [0.5, 1.0]])
    assert ScoreSpace.of(scores).basis.shape == (3, 1)


@pytest.mark.parametrize("law", ["saturated", "network"])
def test_m2_tests_prerequisites_that_were_given_and_not_zeros_that_were_found(law):
    families = ("bernoulli",) * 9
    result = two_latents(families, effects="all")
    parents = ((), (0,))
    line = NetworkLaw(
        result.law.space, parents, (np.array([0.4, 0.6]), np.array([[1.0, 0.0], [0.3, 0.7]]))
    )
    held = SaturatedLaw(line.space, line.probabilities) if law == "saturated" else line
    found = replace(result, law=held)
    known = {"knowledge": {"hierarchy": [["Z1", "Z2"]]}}
    given = replace(found, settings={**found.settings, **known})
    X, _ = drawn(found, 400, seed=3)

    def degrees(fit) -> int:
        free = FreeParameters.of(fit, X)
        return limited_information(free, ScoredColumns.of(fit, X)).degrees

    def moments(numbers: np.ndarray) -> np.ndarray:
        """Return means and products of items by their chances in three profiles, and shares."""
        shares = np.array([*numbers[:2], 1 - numbers[:2].sum()])
        chance = np.empty((3, 9))
        profiles, at = np.array([[0, 0], [1, 0], [1, 1]]), 2
        for j, row in enumerate(result.q_given):
            own, place = np.unique(profiles * row, axis=0, return_inverse=True)
            chance[:, j] = numbers[at + place.ravel()]
            at += len(own)
        left, right = np.triu_indices(9, 1)
        return np.concatenate([shares @ chance, shares @ (chance[:, left] * chance[:, right])])

    n_free = 2 + sum(3 if row.all() else 2 for row in result.q_given)
    middle = np.random.default_rng(0).uniform(0.2, 0.4, n_free)
    slopes = [(moments(middle + h) - moments(middle - h)) / 2e-5 for h in 1e-5 * np.eye(n_free)]
    assert degrees(given) == 45 - np.linalg.matrix_rank(np.array(slopes), tol=1e-6)
    # A share that came out as zero might have come out otherwise.
    assert degrees(found) < degrees(given)


@pytest.mark.parametrize("effects", ["main", "all"])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("item", [0, -1])
def test_m2_lets_a_chance_at_the_edge_move_as_one_near_it(effects, sign, item):
    result = two_latents(("bernoulli",) * 9, effects=effects)
    X, _ = drawn(result, 400, seed=3)
    own = np.flatnonzero(result.loadings[item])

    def at(far: float):
        """Return M2 where nobody, or everybody, says yes who has none of the item's latents."""
        intercept, loadings = result.intercept.copy(), result.loadings.copy()
        intercept[item] = sign * far
        # All others say yes as often as not, also those with both latents if these interact.
        loadings[item, own] = -sign * far * np.where(own < 2, 1.0, -1.0)
        items = replace(result.parameters, intercept=intercept, loadings=loadings)
        fit = replace(result, parameters=items)
        return limited_information(FreeParameters.of(fit, X), ScoredColumns.of(fit, X))

    near, beyond = at(10.0), at(40.0)
    assert beyond.degrees == near.degrees
    assert beyond.m2 == pytest.approx(near.m2, rel=1e-3)


FOUR_ITEMS_EACH = np.repeat(np.eye(3, dtype=np.int8), 4, axis=0)


def chain_of_three(loading: float, q: np.ndarray):
    """Return a true model of yes/no items, each driven by so much in all."""
    law = NetworkLaw(
        StateSpace.binary(3),
        ((), (0,), (1,)),
        (
            np.array([0.45, 0.55]),
            np.array([[0.75, 0.25], [0.3, 0.7]]),
            np.array([[0.7, 0.3], [0.2, 0.8]]),
        ),
    )
    n_items = len(q)
    loadings = q * (loading / q.sum(axis=1))[:, None]
    items = MeasurementParameters(
        ("bernoulli",) * n_items, np.full(n_items, -loading / 2), loadings, np.ones(n_items)
    )
    return result_at(items, law, n_samples=300, q_given=q)


def z_scores_of_true_models(truth, n_rows: int, n_tables: int) -> tuple[np.ndarray, float]:
    """Return z scores of the pairs of tables from a model that is fitted again, and the share."""
    z = []
    for seed in range(n_tables):
        X, _ = drawn(truth, n_rows, seed=seed)
        fit = DCRL(
            3, q_matrix=truth.q_given, family="bernoulli", random_state=0, n_starts=1
        ).fit(X).result_  # fmt: skip
        free = FreeParameters.of(fit, X)
        table = pair_residuals(
            free, ScoredColumns.of(fit, X), LocalScores.of(free, row_scores(free))
        )
        z += table.column("z")
        for row in table.to_dicts():
            assert np.isnan(row["z"]) or row["z"] * row["tested"] >= 0
    tested = np.array(z)[~np.isnan(z)]
    return tested, len(tested) / len(z)


def test_pairs_of_items_that_hardly_ever_depart_from_their_state_have_no_test():
    tested, share = z_scores_of_true_models(chain_of_three(8.0, FOUR_ITEMS_EACH), 300, 4)
    assert share < 0.2
    assert np.all(np.abs(tested) < 4.5)


def test_z_scores_of_pairs_vary_as_they_should_where_little_is_left():
    # Eight items and three latents: parameters are fitted to little else than some of the pairs.
    q = np.array(
        [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]],
        dtype=np.int8,
    )
    tested, share = z_scores_of_true_models(chain_of_three(2.6, q), 1000, 12)
    assert 0.85 < share < 1.0
    assert 0.85 < tested.std() < 1.15
    assert 0.02 < np.mean(np.abs(tested) > 1.96) < 0.09


def test_parameters_that_ran_to_the_edge_do_not_explain_means_away():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 3))
    scores -= scores.mean(axis=0)
    # Faint, but alike in all rows.
    faint = np.column_stack([scores, scores[:, 0] + 1e-4])
    basis = ScoreSpace.of(faint).basis
    assert basis.shape[1] == 4
    kept = movable(basis)
    assert kept.shape[1] == 3
    np.testing.assert_allclose(kept.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(kept.T @ kept, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(movable(basis[:, :2]), basis[:, :2])


def test_directions_rest_on_the_rows_that_make_them():
    alike, lone = np.ones(40), np.eye(40)[0]
    moments = np.column_stack([alike, lone, 1e-6 * alike, 0.0 * alike])
    np.testing.assert_allclose(rests_on(moments, alike, whole=False), [40.0, 1.0, 40.0, 0.0])
    # Whole numbers that are never off by more than that do not depart from what is expected.
    np.testing.assert_allclose(
        rests_on(moments, alike, whole=True), [40.0, 1.0, 0.0, 0.0], atol=1e-9
    )


def test_directions_of_which_the_scores_leave_little_are_left_out():
    rng = np.random.default_rng(0)
    space = ScoreSpace.of(rng.normal(size=(100, 10)))
    own = rng.normal(size=(100, 1))
    nearly = space.basis[:, :1] + 0.02 * rng.normal(size=(100, 1))
    assert chi_square(space, np.hstack([own, nearly]))[1] == 2
    assert chi_square(space, np.hstack([own, nearly]), least_left=2.0)[1] == 1
    value, degrees = chi_square(space, nearly, least_left=2.0)
    assert np.isnan(value)
    assert degrees == 0


def test_items_that_hardly_ever_depart_from_their_state_have_no_test():
    result = chain_of_three(20.0, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 100, seed=0)
    found = fit_statistics(result, X, n_tables=2)
    assert np.isnan(found.items.column("p_value")).all()
    assert found.items.column("degrees") == [0] * 12


def test_chances_allow_for_variances_that_few_rows_tell():
    result = chain_of_three(2.6, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 300, seed=0)
    found = fit_statistics(result, X, n_tables=2)
    for chances, as_if_known in (
        (found.pairs.column("p_value"), 2.0 * norm.sf(np.abs(found.pairs.column("z")))),
        (
            found.items.column("p_value"),
            chi2.sf(found.items.column("chi_square"), found.items.column("degrees")),
        ),
    ):
        low = as_if_known < 0.2
        assert low.any()
        assert np.all(np.array(chances)[low] > as_if_known[low])


def test_what_a_true_model_gives_is_said_for_each_kind_of_test():
    result = chain_of_three(2.6, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 600, seed=0)
    found = fit_statistics(result, X, n_tables=10)
    text = found.summary()
    assert "of 66 have p < 0.05, where chance alone gives about 3" in text
    assert "of 12 have p < 0.05, where chance alone gives less than one" in text
    assert (
        "predictive checks (tables drawn from the fit): 0 of 14 have p < 0.05, where a true model "
        "gives few or none, because most of this was fitted"
    ) in text
    assert untested_pairs(found.pairs) == ""


def test_pairs_without_a_test_are_counted():
    result = chain_of_three(20.0, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 100, seed=0)
    found = fit_statistics(result, X, n_tables=10)
    assert np.isnan(found.pairs.column("p_value")).all()
    assert (
        "66 of 66 pairs have no test: both items depart from what the latents say in too few rows, "
        "or the parameters were fitted to little else than the pair"
    ) in found.notes
    assert "pairs of items (residual correlation): none could be tested" in found.summary()
