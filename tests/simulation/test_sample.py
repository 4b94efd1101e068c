"""Data drawn from a truth follow it: states, means and variances per state, missing cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hidag.exceptions import SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulation import Truth, design, random_dag, random_law, simulate

MIXED = ("bernoulli", "poisson", "poisson-identity", "gaussian", "lognormal")


def small_truth(**changes) -> Truth:
    law = NetworkLaw(
        StateSpace.binary(2),
        ((), (0,)),
        (np.array([0.4, 0.6]), np.array([[0.7, 0.3], [0.2, 0.8]])),
    )
    parts = {
        "q_matrix": np.array([[1, 0], [1, 1], [0, 1], [1, 1], [1, 0]]),
        "intercept": [-0.5, 0.3, 1.0, -1.0, 0.2],
        "loadings": [[1.5, 0], [0.8, -0.4], [0, 2.0], [2.0, 1.0], [0.6, 0]],
        "dispersion": [9, 9, 9, 2.25, 0.25],
        "families": MIXED,
        "law": law,
    }
    return Truth(**(parts | changes))


@pytest.mark.parametrize("model", ["Model-5", "Model-7"])
def test_frequencies_of_states_follow_the_law(model: str) -> None:
    truth = design(model, rng=4)
    n = 40_000
    drawn = simulate(truth, n, rng=5)
    counts = np.bincount(truth.law.space.number(drawn.states), minlength=truth.law.space.n_states)
    assert drawn.states.dtype == np.uint8
    assert stats.chisquare(counts, n * truth.law.probabilities).pvalue > 1e-3


def test_probabilities_by_hand() -> None:
    assert small_truth().law.probabilities.tolist() == pytest.approx([0.28, 0.12, 0.12, 0.48])


def test_means_and_variances_of_every_family_in_every_state() -> None:
    truth = small_truth()
    drawn = simulate(truth, 200_000, rng=1)
    for z in ([0, 0], [0, 1], [1, 0], [1, 1]):
        rows = drawn.X[(drawn.states == z).all(axis=1)]
        a, b = z
        p = 1 / (1 + np.exp(-(-0.5 + 1.5 * a)))
        rate = np.exp(0.3 + 0.8 * a - 0.4 * b)
        mean = np.array([p, rate, 1 + 2 * b, -1 + 2 * a + b, np.exp(0.2 + 0.6 * a + 0.125)])
        lognormal = (np.exp(0.25) - 1) * np.exp(2 * (0.2 + 0.6 * a) + 0.25)
        variance = np.array([p * (1 - p), rate, 1 + 2 * b, 2.25, lognormal])
        np.testing.assert_allclose(truth.means(np.array([z]))[0], mean, rtol=1e-12)
        error = np.sqrt(variance / len(rows))
        assert np.all(np.abs(rows.mean(axis=0) - mean) < 4.5 * error)
        np.testing.assert_allclose(rows.var(axis=0), variance, rtol=0.06)
        log_time = np.log(rows[:, 4])
        assert abs(log_time.mean() - (0.2 + 0.6 * a)) < 4.5 * np.sqrt(0.25 / len(rows))
        assert log_time.var() == pytest.approx(0.25, rel=0.04)


def test_items_are_independent_given_the_latents() -> None:
    truth = small_truth()
    drawn = simulate(truth, 100_000, rng=2)
    rows = drawn.X[(drawn.states == 1).all(axis=1)]
    correlation = np.corrcoef(rows, rowvar=False)[np.triu_indices(5, k=1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(len(rows))


def test_second_moments_mix_over_the_law() -> None:
    truth = design("Tree-5", rng=0)
    X = simulate(truth, 60_000, rng=3).X
    means = truth.means(truth.law.space.states())
    p = truth.law.probabilities
    centre = p @ means
    covariance = (means * p[:, None]).T @ means - np.outer(centre, centre) + np.eye(15)
    np.testing.assert_allclose(X.mean(axis=0), centre, atol=0.04)
    np.testing.assert_allclose(np.cov(X, rowvar=False), covariance, atol=0.09)


def test_latents_with_more_than_two_levels() -> None:
    law = random_law(random_dag(3, 1, rng=0), rng=1, levels=(3, 2, 4))
    truth = Truth(np.eye(3), np.zeros(3), np.eye(3), np.ones(3), ("gaussian",) * 3, law)
    drawn = simulate(truth, 30_000, rng=2)
    assert drawn.states.max(axis=0).tolist() == [2, 1, 3]
    top = drawn.states[:, 2] == 3
    assert drawn.X[top, 2].mean() == pytest.approx(3, abs=5 / np.sqrt(top.sum()))


def test_missing_cells_are_missing_completely_at_random_and_change_nothing_else() -> None:
    truth = small_truth()
    whole = simulate(truth, 20_000, rng=7)
    holed = simulate(truth, 20_000, rng=7, missing=0.2)
    gone = np.isnan(holed.X)
    assert not np.isnan(whole.X).any()
    assert np.array_equal(whole.states, holed.states)
    assert np.array_equal(whole.X[~gone], holed.X[~gone])
    assert np.abs(gone.mean(axis=0) - 0.2).max() < 4.5 * np.sqrt(0.16 / 20_000)
    shares = [gone[(whole.states == z).all(axis=1)].mean() for z in ([0, 0], [1, 1])]
    assert shares == pytest.approx([0.2, 0.2], abs=0.01)


def test_same_seed_same_bits_and_generators_move_on() -> None:
    truth = small_truth()
    assert simulate(truth, 100, rng=3).X.tobytes() == simulate(truth, 100, rng=3).X.tobytes()
    seed = np.random.SeedSequence(1, spawn_key=(2,))
    assert np.array_equal(simulate(truth, 9, rng=seed).X, simulate(truth, 9, rng=seed).X)
    rng = np.random.default_rng(3)
    first, second = simulate(truth, 100, rng=rng), simulate(truth, 100, rng=rng)
    assert np.array_equal(first.X, simulate(truth, 100, rng=3).X)
    assert not np.array_equal(first.X, second.X)


def test_arrays_are_read_only() -> None:
    truth = small_truth()
    drawn = simulate(truth, 5, rng=0)
    for values in (truth.q_matrix, truth.loadings, truth.intercept, drawn.X, drawn.states):
        assert not values.flags.writeable


def test_a_truth_does_not_share_memory_with_what_it_was_given() -> None:
    loadings = np.array(small_truth().loadings)
    truth = small_truth(loadings=loadings)
    loadings[0, 0] = 99
    assert truth.loadings[0, 0] == 1.5


def test_names_and_graph() -> None:
    truth = small_truth()
    assert truth.item_names == ("X1", "X2", "X3", "X4", "X5")
    assert truth.dag.edges == [("Z1", "Z2")]
    assert truth.cpdag.undirected_edges == [("Z1", "Z2")]
    named = replace(truth, latent_names=("skill", "speed"))
    assert named.dag.edges == [("skill", "speed")]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"intercept": [-0.5, 0.3, -0.25, -1.0, 0.2]},
            "family='poisson-identity' needs a mean > 0 in every latent state, but item 'X3' has "
            "mean -0.25 in one (1 of 5 items); raise the intercept or use a family with a log "
            "link",
        ),
        (
            {"intercept": [-0.5, 40, 1, -1.0, 0.2]},
            "family='poisson' can be simulated with a linear predictor of at most 36, but item "
            "'X2' reaches 40.8 (1 of 5 items); lower the intercept or the slopes",
        ),
        ({"intercept": [1, 2]}, "intercept must have shape (5,), got (2,)"),
        ({"loadings": np.ones((5, 3))}, "loadings must have shape (5, 2), got (5, 3)"),
        ({"dispersion": [1, 1]}, "dispersion must have shape (5,), got (2,)"),
        (
            {"loadings": np.ones((5, 2))},
            "loadings must be 0 where q_matrix is 0, but item 'X1' has loading 1 on 'Z2' "
            "(3 entries)",
        ),
        (
            {"dispersion": [0, 0, 0, 0, -1]},
            "dispersion must be a finite variance > 0, but item 'X4' has 0 (2 of 5 items)",
        ),
        ({"families": ("gaussian",)}, "5 items need as many families, got 1"),
        (
            {"families": ("weibull",) * 5},
            "family must be one of 'bernoulli', 'bernoulli-cloglog', 'bernoulli-probit', 'beta', "
            "'binomial(number of trials)', 'categorical(number of categories)', "
            "'censored-lognormal(limit)', 'gamma', 'gaussian', "
            "'lognormal', 'negative-binomial', 'ordinal(number of grades)', 'poisson', "
            "'poisson-identity', 'zero-inflated-poisson', got 'weibull'",
        ),
        ({"q_matrix": np.full((5, 2), 2)}, "q_matrix must be a two-dimensional array of 0 and 1"),
        (
            {"q_matrix": np.ones((5, 3))},
            "q_matrix has 3 columns, but the law has 2 latents",
        ),
        ({"item_names": ("a",)}, "5 items need as many names, got 1"),
        ({"loadings": np.full((5, 2), np.nan)}, "intercept and loadings must be finite"),
    ],
)
def test_invalid_truths_are_reported(changes: dict, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        small_truth(**changes)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1, got 0"),
        (
            {"n_samples": 5, "missing": 1.0},
            "missing must be a probability from 0 to below 1, got 1.0",
        ),
    ],
)
def test_invalid_requests_are_reported(arguments: dict, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        simulate(small_truth(), **arguments)
    assert str(caught.value) == sentence
