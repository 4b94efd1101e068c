"""Candidates with monotone loadings: how they are made, and when they are selected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.em.e_step import run_e_step
from hidag.em.em import Schedule, run_em
from hidag.em.m_step import Basis
from hidag.kernels.coordinate_descent import NONNEGATIVE, PENALISED
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.simulation import simulate
from hidag.strategy.moves import optima
from hidag.strategy.moves.optima import (
    make_monotone,
    reversed_loadings,
    sign_complexity,
    try_monotone_loadings,
)
from hidag.strategy.structural_em import initial_structure_step

from .problems import chain_truth, open_problem, silent

K, N = 3, 1200
SPACE = StateSpace.binary(K)
TERMS = Terms.main(SPACE.levels)
BASIS = Basis.over(SPACE, TERMS)
Q = np.vstack([np.eye(K)] * 4)


def setting(signs):
    """Return a problem, its items and law; item j points where ``signs[j]`` says."""
    rng = np.random.default_rng(8)
    truth = chain_truth(Q, rng)
    loadings = truth.loadings * np.asarray(signs)[:, None]
    # Turned items have the mean that they had.
    intercept = truth.intercept + 0.5 * (truth.loadings - loadings).sum(axis=1)
    items = MeasurementParameters(truth.families, intercept, loadings, np.ones(len(Q)))
    states = simulate(truth, N, rng=rng).states
    chances = 1.0 / (1.0 + np.exp(-(intercept + states @ loadings.T)))
    values = (rng.random(chances.shape) < chances).astype(np.float64)
    problem = open_problem(values, truth.families, K)
    return problem, items, np.asarray(truth.law.probabilities)


def look_from(problem, items, law):
    plan = replace(problem.schedule, max_iter=3)
    brief = replace(problem, schedule=plan)
    return initial_structure_step(brief, run_em(brief, items, law), n_steps=3)


@pytest.fixture(scope="module")
def upright():
    return setting(np.ones(len(Q)))


@pytest.fixture(scope="module")
def both_ways():
    return setting(np.where(np.arange(len(Q)) < 6, 1.0, -1.0))


def test_sign_complexity_ignores_polarity_and_grows_with_reversed_loadings():
    loadings = np.zeros((6, 2))
    loadings[:4, 0], loadings[2:, 1] = 1.0, 2.0
    items = MeasurementParameters(("bernoulli",) * 6, np.zeros(6), loadings, np.ones(6))
    turned = items.flipped(np.array([True, False]))
    assert not reversed_loadings(turned).any()
    assert sign_complexity(turned) == sign_complexity(items)
    # Eight loadings along their latents: 1 / price is 1 3 5 ... 15 / (2 4 6 ... 16).
    odd, even = np.arange(1, 16, 2), np.arange(2, 17, 2)
    np.testing.assert_allclose(sign_complexity(items), -np.log(np.prod(odd / even)))
    loadings[3, 0] = -0.5
    other = replace(items, loadings=loadings)
    assert np.argwhere(reversed_loadings(other)).tolist() == [[3, 0]]
    np.testing.assert_allclose(sign_complexity(other) - sign_complexity(items), np.log(15.0))


def test_make_monotone_keeps_means_of_predictors(upright):
    problem, items, law = upright
    look = look_from(problem, items, law)
    turned = look.estimate.parameters.flipped(np.array([False, True, False]))
    cube = np.flip(look.estimate.probabilities.reshape(SPACE.levels), 1)
    away = replace(look.estimate, parameters=turned, probabilities=cube.ravel())
    back = make_monotone(replace(look, estimate=away), BASIS).estimate
    np.testing.assert_allclose(back.probabilities, look.estimate.probabilities)
    assert (back.parameters.loadings >= 0).all()
    _, value = run_e_step(back.parameters, back.probabilities, problem.data, BASIS.features.copy())
    np.testing.assert_allclose(value, look.estimate.log_likelihood, rtol=1e-9)
    # One loading against its latent goes, and the item's mean predictor stays.
    bent = look.estimate.parameters.loadings.copy()
    bent[0, 1] = -0.7
    against = replace(look.estimate, parameters=replace(look.estimate.parameters, loadings=bent))
    found = make_monotone(replace(look, estimate=against), BASIS).estimate
    assert found.parameters.loadings[0, 1] == 0
    means = look.estimate.probabilities @ BASIS.features
    np.testing.assert_allclose(
        found.parameters.intercept + found.parameters.loadings @ means,
        against.parameters.intercept + bent @ means,
    )


def test_em_with_nonnegative_loadings_never_falls(both_ways):
    problem, items, law = both_ways
    allowed = np.where(problem.allowed == PENALISED, NONNEGATIVE, problem.allowed).astype(np.uint8)
    begin = replace(items, loadings=np.maximum(items.loadings, 0.0) + 0.2)
    for max_iter in (1, 5, 40):
        plan = Schedule(max_iter=max_iter)
        found = run_em(replace(problem, allowed=allowed, schedule=plan), begin, law)
        assert (found.parameters.loadings >= 0).all()
        assert (np.diff(found.trace[:, 0]) >= -1e-8).all()


def ends(problem, items, law, wrong):
    """Return two looks in different places, and as the best end the one with a wrong loading."""
    good = look_from(problem, items, law)
    mixed = items.loadings.copy()
    mixed[:, 0] = np.roll(mixed[:, 0], 1)
    elsewhere = look_from(problem, replace(items, loadings=mixed), law)
    bent = good.estimate.parameters.loadings.copy()
    bent[1, 0] = wrong
    estimate = replace(good.estimate, parameters=replace(good.estimate.parameters, loadings=bent))
    return [good, elsewhere], replace(good, estimate=estimate)


def test_reversed_loading_with_a_small_gain_is_dropped(upright):
    problem, items, law = upright
    looks, best = ends(problem, items, law, -0.2)
    reached = optima.run_to_convergence(make_monotone(best, BASIS), problem, silent)
    # A gain of two units is less than the complexity of a reversed sign.
    best = replace(best, criterion=reached.criterion + 2.0)
    (found, *_), after = try_monotone_loadings([best, looks[1]], looks, problem, [silent, silent])
    assert not reversed_loadings(found.estimate.parameters).any()
    assert set(np.unique(after.allowed[:, 1:])) == {NONNEGATIVE}
    assert found.criterion >= reached.criterion - 1e-6
    # A larger gain keeps the end and its problem.
    sure = replace(best, criterion=reached.criterion + 20.0)
    (selected, *_), same = try_monotone_loadings([sure, looks[1]], looks, problem, [silent, silent])
    assert selected is sure
    assert same is problem


def test_items_keyed_in_both_directions_keep_their_signs(both_ways):
    problem, items, law = both_ways
    looks, _ = ends(problem, items, law, 0.0)
    best = optima.run_to_convergence(looks[0], problem, silent)
    (found, *_), same = try_monotone_loadings([best, looks[1]], looks, problem, [silent, silent])
    assert found is best
    assert same is problem
    assert reversed_loadings(found.estimate.parameters).any()


def test_monotone_loadings_are_tried_only_with_reversed_loadings_and_several_optima(
    upright, monkeypatch
):
    problem, items, law = upright
    looks, best = ends(problem, items, law, -0.2)
    monkeypatch.setattr(optima, "converge", None)
    monkeypatch.setattr(optima, "run_to_convergence", None)
    single = replace(looks[0], estimate=best.estimate)
    assert try_monotone_loadings([single], [single], problem, [silent])[0] == [single]
    two = [looks[0], looks[1]]
    assert try_monotone_loadings(two, looks, problem, [silent, silent])[0] is two
