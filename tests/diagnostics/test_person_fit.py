"""Person fit: lz and its p-values."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy.stats import beta, gamma, kstest, nbinom, norm, poisson

from hidag.diagnostics import person_fit
from hidag.diagnostics.person_fit_statistics import DensityMoments
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters
from hidag.results import reorder_items

from ..fitted_models import chain_of_three, drawn, result_at, two_latents


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


def test_rows_with_one_answer_have_a_summary_without_shares():
    result = two_latents(("bernoulli",) * 6)
    X = np.full((4, 6), np.nan)
    X[:, 0] = [0.0, 1.0, 1.0, 0.0]
    found = person_fit(result, X)
    assert found.summary() == "person fit (lz) has no row: it needs at least 2 answers in one"


def test_an_extreme_row_has_a_small_p_value_in_any_table():
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


def unequal_rows(n_rows):
    """Return a fit of sharp items, rows of which every other one lacks most cells, and which."""
    result = chain_of_three(3.0, np.repeat(np.eye(3, dtype=np.int8), 10, axis=0))
    X, _ = drawn(result, n_rows, seed=4)
    short = np.arange(n_rows) % 2 == 1
    X[np.ix_(short, np.arange(8, 30))] = np.nan
    return result, X, short


def test_p_values_compare_rows_with_the_same_missing_cells():
    result, X, short = unequal_rows(2000)
    p = np.array(person_fit(result, X).table.column("p_value"))
    for part in (~short, short):
        alone = np.array(person_fit(result, X[part]).table.column("p_value"))
        np.testing.assert_allclose(p[part], alone, atol=0.04)
        # Few answers have few values of lz, so that chances have wide steps.
        assert 0.02 < np.mean(p[part] < 0.05) < 0.07
        assert 0.12 < np.mean(p[part] < 0.2) < 0.24


@pytest.mark.parametrize("most", [2000, 60])
def test_many_patterns_use_the_nearest_reference_rows(most, monkeypatch):
    module = import_module("hidag.diagnostics.person_fit_statistics")
    monkeypatch.setattr(module, "MAX_PATTERNS", most)
    monkeypatch.setattr(module, "BLOCK_SIZE", 64)
    monkeypatch.setattr(module, "MAX_EXTRA_ROWS", 20_000)
    result, X, short = unequal_rows(1000)
    X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    p = np.array(person_fit(result, X).table.column("p_value"))
    for part in (~short, short):
        assert 0.02 < np.nanmean(p[part] < 0.05) < 0.08
        assert 0.12 < np.nanmean(p[part] < 0.2) < 0.26
    back = np.array(person_fit(result, X[::-1]).table.column("p_value"))
    np.testing.assert_array_equal(back[::-1], p)


@pytest.mark.parametrize("n_rows", [1, 3, 40])
def test_person_fit_does_not_depend_on_the_order_of_items(mixed, n_rows):
    result, X = mixed
    order = np.random.default_rng(2).permutation(len(result.item_names))
    turned = reorder_items(result, order)
    one, other = person_fit(result, X[:n_rows]), person_fit(turned, X[:n_rows, order])
    assert other.table == one.table


def test_lz_of_a_single_state_matches_the_formula():
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


@pytest.mark.parametrize(
    ("family", "own", "eta"),
    [
        ("gamma", 0.3, 0.4),
        ("gamma", 1.6, -2.0),
        ("beta", 0.2, 0.4),
        ("beta", 0.9, -1.5),
        ("censored-lognormal(4)", 0.5, 0.6),
        ("censored-lognormal(4)", 0.5, 4.0),
        ("censored-lognormal(4)", 0.5, -9.0),
    ],
)
def test_log_densities_of_measures_have_exact_moments(family, own, eta):
    parameters = MeasurementParameters(
        (family,), np.array([eta]), np.zeros((1, 1)), np.array([own])
    )
    law = SaturatedLaw(StateSpace((2,)), np.array([0.5, 0.5]))
    means, variances = DensityMoments(result_at(parameters, law, n_samples=1)).of(
        0, np.array([[eta]])
    )
    mu = 1 / (1 + np.exp(-eta))
    # Of a time it is the density of its logarithm, and of a censored one the chance of that.
    one, at_limit = {
        "gamma": (gamma(1 / own, scale=own * np.exp(eta)), 0.0),
        "beta": (beta(mu / own, (1 - mu) / own), 0.0),
        "cens": (norm(eta, np.sqrt(own)), norm.sf(np.log(4), eta, np.sqrt(own))),
    }[family[:4] if family[0] == "c" else family]
    chances = (np.arange(2_000_000) + 0.5) / 2_000_000 * (1 - at_limit)
    logs = one.logpdf(one.ppf(chances))
    rest = np.log(at_limit) if at_limit else 0.0
    right = (1 - at_limit) * logs.mean() + at_limit * rest
    square = (1 - at_limit) * (logs**2).mean() + at_limit * rest**2
    assert means[0] == pytest.approx(right, abs=2e-3)
    assert variances[0] == pytest.approx(square - right**2, rel=5e-3, abs=1e-4)


def test_person_fit_does_not_depend_on_the_unit_of_times():
    found = []
    for factor in (1.0, 1000.0):
        name = f"censored-lognormal({4 * factor:g})"
        intercept = np.linspace(0.2, 1.4, 6) + np.log(factor)
        parameters = MeasurementParameters(
            (name,) * 6, intercept, np.full((6, 1), 0.6), np.full(6, 0.5)
        )
        law = SaturatedLaw(StateSpace((2,)), np.array([0.5, 0.5]))
        result = result_at(parameters, law, n_samples=50)
        X, _ = drawn(result, 50, seed=1)
        found.append(person_fit(result, X).table)
    np.testing.assert_allclose(found[1].column("lz"), found[0].column("lz"), atol=1e-6)
