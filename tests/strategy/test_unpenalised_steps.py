"""Unpenalised steps: escape from local optima, kept loadings, and termination."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.em import run_em
from hidag.em.m_step import allowed_coefficients
from hidag.kernels.coordinate_descent import FREE, PENALISED
from hidag.latent import StateSpace
from hidag.latent.laws import factorise_counts
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Terms
from hidag.strategy.moves import unpenalised_steps
from hidag.strategy.moves.optima import loading_similarity, run_to_convergence
from hidag.strategy.moves.unpenalised_steps import (
    largest_loadings,
    leave_penalty,
    try_unpenalised_steps,
)
from hidag.strategy.structural_em import Candidate

from .problems import drawn, silent

N = 3000
SPACE = StateSpace.binary(3)
TERMS = Terms.main(SPACE.levels)
#: The first two latents share more items than either has alone.
Q = np.array(
    [[1, 1, 0]] * 4 + [[1, 0, 0]] * 2 + [[0, 1, 0]] * 2 + [[0, 0, 1]] * 3 + [[0, 1, 1]],
    dtype=np.int8,
)


@pytest.fixture(scope="module")
def setting():
    return drawn(Q, N, 3)


def optimum_from(problem, items, law, parents=((), (0,), (1,))):
    """Return the candidate from items and a law over a graph, without moves."""
    allowed = problem.allowed.copy()
    allowed[:, 1:] *= items.loadings != 0
    schedule = replace(problem.schedule, max_iter=30)
    first = run_em(
        replace(problem, allowed=allowed, penalty=NO_SPARSITY, schedule=schedule),
        items,
        factorise_counts(law, parents, SPACE),
        law_step=lambda counts: factorise_counts(counts, parents, SPACE),
    )
    candidate = Candidate(first, first, parents, problem.data, -np.inf)
    return run_to_convergence(candidate, problem, silent)


def with_a_sum(items):
    """Return items whose first latent is the sum of the first two.

    Items of both then have one loading, and items of the first alone two, one of them negative.
    """
    loadings = items.loadings.copy()
    loadings[:, 1] -= loadings[:, 0]
    assert ((loadings != 0).sum(axis=1) == [1] * 4 + [2] * 2 + [1] * 5 + [2]).all()
    return replace(items, intercept=np.zeros(len(loadings)), loadings=1.3 * loadings)


def test_unpenalised_steps_recover_latents_from_their_sum():
    uniform = np.full(SPACE.n_states, 1 / SPACE.n_states)
    below = []
    for seed in (3, 4, 5):
        problem, items, law = drawn(Q, N, seed)
        right = optimum_from(problem, items, law)
        poor = optimum_from(problem, with_a_sum(items), uniform)
        below.append(right.criterion - poor.criterion)
        found = try_unpenalised_steps([poor], problem, silent)
        assert found.criterion > right.criterion - 2 * CONFIG.unpenalised_steps.least_gain
        assert loading_similarity(found.estimate.parameters, items) > 0.97
        # Steps of accepted moves are counted.
        assert len(found.estimate.trace) == found.estimate.n_iter >= poor.estimate.n_iter
    # EM alone leaves the local optimum for some laws, not for all.
    assert max(below) > 50.0


def test_an_optimum_that_no_move_improves_is_returned(setting):
    problem, items, law = setting
    right = optimum_from(problem, items, law)
    assert try_unpenalised_steps([right], problem, silent) is right


def test_the_best_of_all_optima_moves_on_while_it_gains(setting, monkeypatch):
    problem, items, law = setting
    first = optimum_from(problem, items, law)
    second = replace(first, criterion=first.criterion - 5.0)
    gains, started = iter([0.0, 20.0, 3.0, 0.5]), []

    def move(one, *_):
        started.append(one.criterion - first.criterion)
        return replace(one, criterion=one.criterion + next(gains))

    monkeypatch.setattr(unpenalised_steps, "leave_penalty", move)
    found = try_unpenalised_steps([first, second], problem, silent)
    assert found.criterion == pytest.approx(first.criterion + 18.0)
    np.testing.assert_allclose(started, [0.0, -5.0, 15.0, 18.0], atol=1e-9)


def test_nothing_is_tried_without_a_penalty(setting, monkeypatch):
    problem, items, law = setting
    first = optimum_from(problem, items, law)
    monkeypatch.setattr(unpenalised_steps, "leave_penalty", None)
    assert try_unpenalised_steps([first], replace(problem, penalty=NO_SPARSITY), silent) is first


def test_largest_loadings_of_each_item_stay():
    loadings = np.array(
        [
            [1.0, 0.4, -0.5, 0.1, 0.0, 0.0],
            [1.0, 0.9, 0.8, 0.7, 0.6, 0.2],
            [0.2, 1.0, 0.0, 0.0, 0.0, 0.1],
        ]
    )
    items = MeasurementParameters(("bernoulli",) * 3, np.zeros(3), loadings, np.ones(3))
    allowed = np.full((3, 7), PENALISED, dtype=np.uint8)
    expected = [
        [1, 0, 1, 0, 0, 0],
        # Four at the most, but every latent has one item: its largest.
        [1, 1, 1, 1, 1, 1],
        [0, 1, 0, 0, 0, 0],
    ]
    np.testing.assert_array_equal(
        largest_loadings(items, allowed, 0.45), np.array(expected, dtype=bool)
    )
    allowed[2, 1] = FREE
    assert largest_loadings(items, allowed, 0.45)[2, 0]
    assert largest_loadings(items, allowed, 0.3)[0, 1]


def test_terms_of_a_latent_with_more_levels_are_selected_together():
    terms = Terms.main((3, 2))
    loadings = np.array([[0.1, 1.0, 0.2], [0.1, 0.1, 1.0]])
    items = MeasurementParameters(("bernoulli",) * 2, np.zeros(2), loadings, np.ones(2), terms)
    kept = largest_loadings(items, np.full((2, 4), PENALISED, dtype=np.uint8), 0.45)
    np.testing.assert_array_equal(kept, [[True, True, False], [False, False, True]])


def test_unpenalised_steps_keep_given_entries_of_q(setting):
    problem, items, law = setting
    right = optimum_from(problem, items, law)
    known = np.full(Q.shape, -1, dtype=np.int8)
    known[0, 2], known[1, 0] = 1, 0
    partial = replace(problem, allowed=allowed_coefficients(known, TERMS))
    found = leave_penalty(replace(right, criterion=-np.inf), partial, silent)
    loadings = found.estimate.parameters.loadings
    assert found.estimate is not right.estimate
    assert loadings[0, 2] != 0
    assert loadings[1, 0] == 0
