"""Recombination of candidates: matching and exchange of latents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.em.em import run_em
from hidag.em.m_step import Basis
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.strategy.moves import recombination
from hidag.strategy.moves.recombination import (
    converge_and_recombine,
    exchange_latents,
    match_latents,
)
from hidag.strategy.structural_em import initial_structure_step

from .problems import drawn, silent

K, N = 4, 1500
SPACE = StateSpace.binary(K)
TERMS = Terms.main(SPACE.levels)
BASIS = Basis.over(SPACE, TERMS)
Q = np.vstack([np.eye(K)] * 3 + [np.eye(K) + np.roll(np.eye(K), 1, axis=1)])


@pytest.fixture(scope="module")
def setting():
    return drawn(Q, N, 5)


def look_from(problem, items, law, allowed=None):
    if allowed is not None:
        problem = replace(problem, allowed=allowed)
    saturated = run_em(problem, items, law)
    return initial_structure_step(problem, saturated, n_steps=saturated.n_iter)


def confused(problem, items, law, latent):
    """Return where a start ends whose latent has the wrong items, and may have no others."""
    wrong = items.loadings.copy()
    wrong[:, latent] = np.roll(wrong[:, latent], 1)
    allowed = problem.allowed.copy()
    allowed[:, 1 + latent] = wrong[:, latent] != 0
    return look_from(problem, replace(items, loadings=wrong), law, allowed)


def test_match_latents_reverses_permutation_and_flips():
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((12, K)) * Q[:12]
    items = MeasurementParameters(("gaussian",) * 12, rng.random(12), loadings, np.ones(12))
    order, flips = np.array([2, 0, 3, 1]), np.array([True, False, True, False])
    again = match_latents(items, items.reordered(latents=order).flipped(flips))
    np.testing.assert_allclose(again.loadings, items.loadings, atol=1e-12)
    np.testing.assert_allclose(again.intercept, items.intercept, atol=1e-12)


def test_match_latents_respects_numbers_of_levels():
    terms = Terms.main((2, 3))
    rng = np.random.default_rng(1)
    one = MeasurementParameters(
        ("gaussian",) * 5, np.zeros(5), rng.random((5, 3)), np.ones(5), terms
    )
    other = one.reordered(latents=np.array([1, 0]))
    assert match_latents(one, other).terms.levels == (2, 3)
    np.testing.assert_allclose(match_latents(one, other).loadings, one.loadings)


def test_exchange_keeps_means_and_range_of_predictors(setting):
    problem, items, law = setting
    look = look_from(problem, items, law)
    partner = replace(items, loadings=np.roll(items.loadings, 3, axis=0))
    found = exchange_latents(look.estimate, partner, 2, BASIS)
    means = look.estimate.probabilities @ BASIS.features
    mine = look.estimate.parameters
    np.testing.assert_array_equal(found.loadings[:, 2], partner.loadings[:, 2])
    others = [0, 1, 3]
    np.testing.assert_array_equal(found.loadings[:, others], mine.loadings[:, others])
    np.testing.assert_allclose(
        found.intercept + found.loadings @ means, mine.intercept + mine.loadings @ means
    )
    # A mean of counts that would fall below zero in some state: that item stays as it was.
    counts = replace(mine, families=("poisson-identity",) * len(Q), intercept=np.ones(len(Q)))
    counts = replace(counts, loadings=np.abs(mine.loadings))
    steep = replace(counts, loadings=np.where(np.arange(len(Q))[:, None] == 0, 50.0, 0.1 * Q))
    kept = exchange_latents(replace(look.estimate, parameters=counts), steep, 2, BASIS)
    assert kept.in_range().all()
    np.testing.assert_array_equal(kept.loadings[0], counts.loadings[0])


def test_recombination_takes_the_right_latent_of_each_end(setting, monkeypatch):
    problem, items, law = setting
    looks = [confused(problem, items, law, latent) for latent in (0, 3)]
    # Ends are what they are: only the exchange is looked at.
    monkeypatch.setattr(
        recombination,
        "run_to_convergence",
        lambda look, problem, observer: replace(
            look, criterion=recombination.criterion_of(look.estimate, look.parents, problem)
        ),
    )
    found = converge_and_recombine(looks, problem, [silent, silent])[0]
    best = max(recombination.criterion_of(look.estimate, look.parents, problem) for look in looks)
    assert found.criterion > best + 10.0
    right = match_latents(items, found.estimate.parameters)
    for latent in (0, 3):
        cosine = recombination._cosine(right.loadings[:, latent], items.loadings[:, latent])
        assert cosine > 0.95
    # The order in which starts come does not matter.
    again = converge_and_recombine(looks[::-1], problem, [silent, silent])[0]
    assert again.criterion == found.criterion


def test_best_end_is_no_worse_than_any_candidate(setting):
    problem, items, law = setting
    looks = [confused(problem, items, law, latent) for latent in (0, 3)]
    assert converge_and_recombine(looks[:1], problem, [silent])[0] is looks[0]
    # Starts that lead to one place are nothing to choose from either.
    again = replace(looks[0], criterion=looks[0].criterion - 1.0)
    assert converge_and_recombine([again, looks[0]], problem, [silent, silent])[0] is looks[0]
    found, *others = converge_and_recombine(looks, problem, [silent, silent])
    assert len(others) == 1
    alone = [recombination.run_to_convergence(look, problem, silent) for look in looks]
    assert found.criterion >= max(one.criterion for one in alone)


def test_distinct_optima_drops_duplicates(setting):
    problem, items, law = setting
    good = look_from(problem, items, law)
    mixed = items.loadings.copy()
    mixed[:, 0] = np.roll(mixed[:, 0], 2)
    elsewhere = replace(good.estimate, parameters=replace(items, loadings=mixed))
    bad = replace(good, estimate=elsewhere, criterion=good.criterion - 1.0)
    looks = [bad, good, good, bad]
    parameters = [look.estimate.parameters for look in looks]
    assert recombination.distinct_optima(parameters, [look.criterion for look in looks]) == [1, 0]
