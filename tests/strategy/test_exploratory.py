"""Exploratory estimation: start points, number of starts, and reproducibility."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.m_step import Basis
from hidag.initialization.initializers import predictors, spectral_start
from hidag.initialization.rotations import varimax
from hidag.initialization.start_points import StartPoint
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, family_named
from hidag.simulation import banded_q, chain_dag, design, make_truth, random_law, simulate
from hidag.strategy import exploratory
from hidag.strategy.exploratory import estimate_exploratory
from hidag.strategy.moves.optima import loading_similarity
from hidag.strategy.problem import choose_method

from .problems import open_problem

K, N = 4, 600
SPACE = StateSpace.binary(K)


def parameters_of(loadings):
    n_items = len(loadings)
    return MeasurementParameters(
        ("gaussian",) * n_items, np.zeros(n_items), loadings, np.ones(n_items)
    )


@pytest.fixture(scope="module")
def gaussian_chain():
    """Return the truth of a chain of latents and the problem of a table drawn from it."""
    rng = np.random.default_rng(2)
    law = random_law(chain_dag(K), rng=rng)
    truth = make_truth(law, np.vstack([np.eye(K)] * 3), "gaussian", rng=rng)
    values = simulate(truth, N, rng=rng).X
    return truth, replace(open_problem(values, truth.families, K), seed=3)


def run(problem, start=None, **settings):
    return estimate_exploratory(replace(problem, law="network", **settings), start)


def test_loading_similarity_ignores_order_sign_and_size_of_latents():
    rng = np.random.default_rng(0)
    one = parameters_of(rng.standard_normal((9, 4)) * (rng.random((9, 4)) < 0.6))
    for _ in range(5):
        order = rng.permutation(4)
        assert loading_similarity(one, one.reordered(latents=order)) == pytest.approx(1.0)
        assert loading_similarity(one.reordered(latents=order), one) == pytest.approx(1.0)
    assert loading_similarity(one, parameters_of(-3.0 * one.loadings)) == pytest.approx(1.0)
    # Directions matter: the first two latents share their items.
    blocks = np.kron(np.eye(3), np.ones((3, 1)))
    mixed = blocks.copy()
    mixed[:6, :2] = 1.0
    assert loading_similarity(parameters_of(blocks), parameters_of(mixed)) == pytest.approx(
        0.5**0.5
    )


@pytest.mark.parametrize(
    ("cosine", "n_starts"), [(0.93, 1), (0.91, CONFIG.exploratory.starts_on_disagreement)]
)
def test_one_start_if_the_first_two_agree_and_several_otherwise(
    gaussian_chain, monkeypatch, cosine, n_starts
):
    monkeypatch.setattr(exploratory, "loading_similarity", lambda one, other: cosine)
    found = run(gaussian_chain[1])
    assert len(found.records) == n_starts
    assert 1 <= found.n_reached <= n_starts


@pytest.mark.parametrize(
    ("ratio", "n_starts"), [(0.11, 1), (0.09, CONFIG.exploratory.starts_on_disagreement)]
)
def test_agreement_of_two_starts_needs_informative_items(
    gaussian_chain, monkeypatch, ratio, n_starts
):
    monkeypatch.setattr(exploratory, "loading_similarity", lambda one, other: 0.95)
    monkeypatch.setattr(exploratory, "information_ratio", lambda *_: ratio)
    found = run(gaussian_chain[1])
    assert len(found.records) == n_starts
    # Starts that are added later are those that disagreement would have led to.
    monkeypatch.setattr(exploratory, "loading_similarity", lambda one, other: 0.5)
    labels = [record.label for record in run(gaussian_chain[1]).records]
    assert [record.label for record in found.records] == labels[:n_starts]


@pytest.mark.parametrize("n_starts", [1, 2, 5])
def test_user_sets_the_number_of_starts(gaussian_chain, n_starts):
    found = run(gaussian_chain[1], n_starts=n_starts)
    labels = [record.label for record in found.records]
    assert len(labels) == n_starts
    assert len({label.split(",")[0] for label in labels}) == min(2, n_starts)


def test_threads_and_repetition_change_no_bit(gaussian_chain):
    one, two, again = (run(gaussian_chain[1], n_starts=2, n_threads=n) for n in (1, 2, 1))
    for other in (two, again):
        assert np.array_equal(
            one.network.estimate.parameters.loadings, other.network.estimate.parameters.loadings
        )
        assert np.array_equal(
            one.network.estimate.probabilities, other.network.estimate.probabilities
        )
        assert one.network.parents == other.network.parents
        assert one.records == other.records


def test_given_start_replaces_the_initializers(gaussian_chain, monkeypatch):
    truth, problem = gaussian_chain

    def refuse(*_, **__):
        raise AssertionError("no initializer is needed")

    monkeypatch.setattr(exploratory, "start_points", refuse)
    monkeypatch.setattr(exploratory, "warm_start", refuse)
    user = MeasurementParameters(
        truth.families, truth.intercept, truth.loadings, np.nan_to_num(truth.dispersion, nan=1.0)
    )
    order = np.array([2, 0, 3, 1])
    items = problem.data.to_working(user).reordered(latents=order)
    point = StartPoint(items, np.full(SPACE.n_states, 1.0 / SPACE.n_states), "given")
    found = run(problem, point, n_starts=3)
    assert [record.label for record in found.records] == ["given"]
    # Latents stay in the order of the start.
    np.testing.assert_array_equal(
        found.network.estimate.parameters.loadings != 0, items.loadings != 0
    )


def test_progress_reports_every_start_within_its_limits(gaussian_chain):
    calls = []
    run(gaussian_chain[1], n_starts=2, progress=lambda *call: calls.append(call))
    assert {start for start, *_ in calls} == {0, 1}
    for start, count, iteration, last, value in calls:
        assert 0 <= start < count == 2
        assert 1 <= iteration <= last
        assert np.isfinite(value)


def test_saturated_law_has_no_network_estimate(gaussian_chain):
    found = estimate_exploratory(replace(gaussian_chain[1], law="saturated", n_starts=1))
    assert found.network is None
    assert found.estimate is found.best


def spectral(truth, X):
    data = WorkingData.from_values(np.array(X), truth.families)
    space = StateSpace.binary(truth.n_latents)
    q = np.full((truth.n_items, truth.n_latents), -1, dtype=np.int8)
    basis = Basis.of(space.states().astype(float))
    point = spectral_start(data, space, basis, q, predictors(data, truth.n_latents))
    return data, point


def matched_error(loadings: np.ndarray, q: np.ndarray) -> int:
    cost = ((loadings != 0).T[:, None, :] != (q == 1).T[None]).sum(axis=-1)
    rows, columns = linear_sum_assignment(cost)
    return int(cost[rows, columns].sum())


def test_varimax_reverses_a_rotation():
    rng = np.random.default_rng(0)
    simple = np.kron(np.eye(4), np.ones((5, 1))) / np.sqrt(5)
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    back = simple @ turn @ varimax(simple @ turn)
    assert np.sort(np.abs(back), axis=1)[:, :-1].max() < 1e-6
    rotation = varimax(simple @ turn)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(4), atol=1e-10)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_spectral_start_is_close_to_the_true_q(family, missing):
    truth = design("Chain-5", "Q1", family, design="research-code", rng=1)
    data, point = spectral(truth, simulate(truth, 4000, rng=2, missing=missing).X)
    assert matched_error(point.parameters.loadings, truth.q_matrix) <= 8
    assert (point.parameters.loadings.sum(axis=0) > 0).all()
    assert point.probabilities.min() > 0
    # Intercepts reproduce the column means.
    features = StateSpace.binary(5).states().astype(float)
    eta = point.parameters.intercept[:, None] + point.parameters.loadings @ features.T
    means = family_named(data.families[0]).mean(eta) @ point.probabilities
    np.testing.assert_allclose(means, data.mean, atol=0.35)


def test_spectral_start_with_unequal_numbers_of_items_per_latent():
    truth = design("Chain-5", "Q1", "gaussian", design="research-code", rng=1)
    X = simulate(truth, 2000, rng=2).X
    keep = np.r_[0:5, 5:13]
    data = WorkingData.from_values(X[:, keep], tuple(truth.families[j] for j in keep))
    space = StateSpace.binary(5)
    q = np.full((len(keep), 5), -1, dtype=np.int8)
    point = spectral_start(
        data, space, Basis.of(space.states().astype(float)), q, predictors(data, 5)
    )
    assert point.parameters.loadings.shape == (13, 5)
    assert (point.parameters.loadings != 0).any(axis=0).all()


def test_method_depends_on_the_cost_of_enumeration():
    for saturated in (True, False):
        assert choose_method("auto", 1000, 30, StateSpace.binary(8), saturated=saturated) == "em"
        big = StateSpace.binary(13)
        assert choose_method("auto", 10**6, 60, big, saturated=saturated) == "saem"
        assert choose_method("saem", 1000, 30, StateSpace.binary(3), saturated=saturated) == "saem"


@pytest.mark.parametrize("seed", range(3))
def test_spectral_start_with_families_of_different_scales(seed):
    # Logarithms of small counts and log odds have larger variances than standardised columns.
    rng = np.random.default_rng(seed)
    families = ["bernoulli"] * 4 + ["gaussian"] * 4 + ["poisson"] * 4
    law = random_law(chain_dag(4), rng=rng)
    truth = make_truth(law, banded_q(4, 1), families, rng=rng)
    _, point = spectral(truth, simulate(truth, 4000, rng=rng).X)
    assert matched_error(point.parameters.loadings, truth.q_matrix) <= 8
