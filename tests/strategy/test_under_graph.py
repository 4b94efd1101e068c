"""Starts under a law over a graph: how many, which, and the same whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.design_data import WorkingData
from hidag.em.problem import Schedule
from hidag.initialization.start_points import StartPoint
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, default_penalty
from hidag.simulation import chain_dag, make_truth, random_law, simulate
from hidag.strategy import structural_multistart
from hidag.strategy.algorithm_choice import estimate_with_law
from hidag.strategy.measurement import parents_by_search
from hidag.strategy.moves.recombination import loading_similarity
from hidag.strategy.structural_multistart import STARTS_IN_DOUBT, estimate_under_graph

K, N = 4, 600
SPACE = StateSpace.binary(K)
ANY = np.full((3 * K, K), -1, dtype=np.int8)


def parameters_of(loadings):
    n_items = len(loadings)
    return MeasurementParameters(
        ("gaussian",) * n_items, np.zeros(n_items), loadings, np.ones(n_items)
    )


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(2)
    law = random_law(chain_dag(K), rng=rng)
    truth = make_truth(law, np.vstack([np.eye(K)] * 3), "gaussian", rng=rng)
    return truth, WorkingData.from_values(simulate(truth, N, rng=rng).X, truth.families)


def run(data, **settings):
    return estimate_under_graph(
        data,
        SPACE,
        ANY,
        default_penalty("tlp", N, K),
        Schedule(),
        seed=3,
        learn_parents=parents_by_search(SPACE),
        **settings,
    )


def test_agreement_does_not_depend_on_the_order_of_latents():
    rng = np.random.default_rng(0)
    one = parameters_of(rng.standard_normal((9, 4)) * (rng.random((9, 4)) < 0.6))
    for _ in range(5):
        order = rng.permutation(4)
        assert loading_similarity(one, one.reordered(latents=order)) == pytest.approx(1.0)
        assert loading_similarity(one.reordered(latents=order), one) == pytest.approx(1.0)
    # Signs and sizes do not matter, directions do: two latents with their items mixed up.
    assert loading_similarity(one, parameters_of(-3.0 * one.loadings)) == pytest.approx(1.0)
    blocks = np.kron(np.eye(3), np.ones((3, 1)))
    mixed = blocks.copy()
    mixed[:6, :2] = 1.0
    assert loading_similarity(parameters_of(blocks), parameters_of(mixed)) == pytest.approx(
        0.5**0.5
    )


@pytest.mark.parametrize(("share", "n_starts"), [(0.93, 1), (0.91, STARTS_IN_DOUBT)])
def test_one_start_when_two_kinds_agree_and_several_otherwise(
    problem, monkeypatch, share, n_starts
):
    monkeypatch.setattr(structural_multistart, "loading_similarity", lambda one, other: share)
    found = run(problem[1])
    assert len(found.records) == n_starts
    assert 1 <= found.n_reached <= n_starts


@pytest.mark.parametrize(("seen", "n_starts"), [(0.11, 1), (0.09, STARTS_IN_DOUBT)])
def test_agreement_is_believed_only_where_items_show_their_latents(
    problem, monkeypatch, seen, n_starts
):
    monkeypatch.setattr(structural_multistart, "loading_similarity", lambda one, other: 0.95)
    monkeypatch.setattr(structural_multistart, "information_ratio", lambda *_: seen)
    found = run(problem[1])
    assert len(found.records) == n_starts
    # Those that come later are the ones that would have been made at once.
    monkeypatch.setattr(structural_multistart, "loading_similarity", lambda one, other: 0.5)
    labels = [record.label for record in run(problem[1]).records]
    assert [record.label for record in found.records] == labels[:n_starts]


@pytest.mark.parametrize("n_starts", [1, 2, 5])
def test_a_number_of_starts_is_kept(problem, n_starts):
    found = run(problem[1], n_starts=n_starts)
    labels = [record.label for record in found.records]
    assert len(labels) == n_starts
    assert len({label.split(",")[0] for label in labels}) == min(2, n_starts)


def test_threads_and_repetition_change_no_bit(problem):
    one, two, again = (run(problem[1], n_starts=2, n_threads=n) for n in (1, 2, 1))
    for other in (two, again):
        assert np.array_equal(
            one.network.estimate.parameters.loadings, other.network.estimate.parameters.loadings
        )
        assert np.array_equal(
            one.network.estimate.probabilities, other.network.estimate.probabilities
        )
        assert one.network.parents == other.network.parents
        assert one.records == other.records


def test_a_given_beginning_is_where_it_begins(problem, monkeypatch):
    truth, data = problem

    def no_start(*_, **__):
        raise AssertionError("no start was asked for")

    monkeypatch.setattr(structural_multistart, "points_under_graph", no_start)
    monkeypatch.setattr(structural_multistart, "warm_start", no_start)
    user = MeasurementParameters(
        truth.families, truth.intercept, truth.loadings, np.nan_to_num(truth.dispersion, nan=1.0)
    )
    order = np.array([2, 0, 3, 1])
    turned = data.to_working(user).reordered(latents=order)
    point = StartPoint(turned, np.full(SPACE.n_states, 1.0 / SPACE.n_states), "given")
    found = run(data, begin=point, n_starts=3)
    assert [record.label for record in found.records] == ["given"]
    # Latents stay in the beginning's order: no other start would have put them there.
    np.testing.assert_array_equal(
        found.network.estimate.parameters.loadings != 0, turned.loadings != 0
    )


def test_every_step_is_told_and_none_beyond_the_last(problem):
    told = []
    run(problem[1], n_starts=2, progress=lambda *words: told.append(words))
    assert {start for start, *_ in told} == {0, 1}
    for start, count, iteration, last, value in told:
        assert 0 <= start < count == 2
        assert 1 <= iteration <= last
        assert np.isfinite(value)


def test_an_unwanted_law_leaves_no_trace(problem):
    found = estimate_with_law(
        problem[1],
        SPACE,
        ANY,
        default_penalty("tlp", N, K),
        Schedule(),
        law="saturated",
        method="em",
        seed=0,
        learn_parents=None,
        n_starts=1,
    )
    assert found.network is None
