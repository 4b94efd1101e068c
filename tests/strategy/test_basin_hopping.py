"""Basin hopping: start points of the moves, escape from local optima, and termination."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.em import run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.kernels.coordinate_descent import FREE, PENALISED
from hidag.latent import StateSpace
from hidag.latent.laws import factorise_counts
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Terms
from hidag.strategy.moves import basin_hopping
from hidag.strategy.moves.basin_hopping import (
    hop_between_optima,
    hop_from,
    largest_loadings,
    lift_penalty,
    restart_law,
)
from hidag.strategy.moves.optima import loading_similarity, run_to_convergence
from hidag.strategy.structural_em import Candidate

from .problems import drawn, silent

K, N = 3, 3000
SPACE = StateSpace.binary(K)
TERMS = Terms.main(SPACE.levels)
BASIS = Basis.over(SPACE, TERMS)
#: The first two latents share more items than either has alone.
Q = np.array(
    [[1, 1, 0]] * 4 + [[1, 0, 0]] * 2 + [[0, 1, 0]] * 2 + [[0, 0, 1]] * 3 + [[0, 1, 1]],
    dtype=np.int8,
)


@pytest.fixture(scope="module")
def setting():
    return drawn(Q, N, 3)


def end_from(problem, items, law, parents=((), (0,), (1,))):
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
    look = Candidate(first, first, parents, problem.data, -np.inf)
    return run_to_convergence(look, problem, silent)


def with_a_sum(items):
    """Return items whose first latent is the sum of the first two.

    Items of both then have one loading, and items of the first alone two, one of them negative.
    """
    loadings = items.loadings.copy()
    loadings[:, 1] -= loadings[:, 0]
    assert ((loadings != 0).sum(axis=1) == [1] * 4 + [2] * 2 + [1] * 5 + [2]).all()
    return replace(items, intercept=np.zeros(len(loadings)), loadings=1.3 * loadings)


def test_moves_recover_latents_from_their_sum():
    even = np.full(SPACE.n_states, 1 / SPACE.n_states)
    below = []
    for seed in (3, 4, 5):
        problem, items, law = drawn(Q, N, seed)
        right = end_from(problem, items, law)
        end = end_from(problem, with_a_sum(items), even)
        below.append(right.criterion - end.criterion)
        found = hop_from(end, problem, silent)
        assert found.criterion > right.criterion - 2 * CONFIG.optima.least_gain
        assert loading_similarity(found.estimate.parameters, items) > 0.97
        # Steps of accepted moves are counted.
        assert len(found.estimate.trace) == found.estimate.n_iter >= end.estimate.n_iter
    # EM alone leaves the local optimum for some laws, not for all.
    assert max(below) > 50.0


def test_restart_of_the_law_recovers_its_graph(setting):
    problem, items, law = setting
    right = end_from(problem, items, law)
    # The law has no edges, and no graph was searched.
    parents = ((),) * K
    alone = run_em(
        problem,
        right.estimate.parameters,
        factorise_counts(law, parents, SPACE),
        law_step=lambda counts: factorise_counts(counts, parents, SPACE),
    )
    end = Candidate(alone, alone, parents, problem.data, alone.objective)
    found = restart_law(end, problem, silent)
    assert sum(map(len, found.parents)) == 2
    assert found.criterion > right.criterion - 2 * CONFIG.optima.least_gain


def test_end_without_improving_moves_is_returned(setting):
    problem, items, law = setting
    right = end_from(problem, items, law)
    assert hop_from(right, problem, silent) is right


def test_ends_are_tried_until_two_lead_to_the_best(setting, monkeypatch):
    problem, items, law = setting
    right = end_from(problem, items, law)
    mixed = replace(items, loadings=np.roll(items.loadings, 3, axis=0))
    wrong = replace(
        right,
        estimate=replace(right.estimate, parameters=mixed),
        criterion=right.criterion - 50.0,
    )
    assert loading_similarity(mixed, items) < CONFIG.optima.same_optimum_cosine
    lower = replace(right, criterion=right.criterion - 0.5)
    started = []

    def stay(end, *_):
        started.append(end)
        return end

    monkeypatch.setattr(basin_hopping, "hop_from", stay)
    assert hop_between_optima([wrong, right, lower, wrong], problem, silent) is right
    assert started == [wrong, right, lower]
    started.clear()
    assert hop_between_optima([right, wrong, wrong, wrong, lower], problem, silent) is right
    assert started == [right, wrong, wrong, wrong]


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
    kept = largest_loadings(items, allowed, 0.45)
    expected = [
        [1, 0, 1, 0, 0, 0],
        # Four at the most, but every latent has one item: its largest.
        [1, 1, 1, 1, 1, 1],
        [0, 1, 0, 0, 0, 0],
    ]
    np.testing.assert_array_equal(kept, np.array(expected, dtype=bool))
    allowed[2, 1] = FREE
    assert largest_loadings(items, allowed, 0.45)[2, 0]
    assert largest_loadings(items, allowed, 0.3)[0, 1]


def test_terms_of_a_latent_with_more_levels_are_selected_together():
    terms = Terms.main((3, 2))
    loadings = np.array([[0.1, 1.0, 0.2], [0.1, 0.1, 1.0]])
    items = MeasurementParameters(("bernoulli",) * 2, np.zeros(2), loadings, np.ones(2), terms)
    kept = largest_loadings(items, np.full((2, 4), PENALISED, dtype=np.uint8), 0.45)
    np.testing.assert_array_equal(kept, [[True, True, False], [False, False, True]])


def make_move(gains):
    """Return a move with the given gains, and the list of the criteria it starts from."""
    left, seen = list(gains), []

    def move(end, problem, observer):
        seen.append(end.criterion)
        return replace(end, criterion=end.criterion + left.pop(0))

    return move, seen


@pytest.mark.parametrize(
    ("of_law", "of_penalty", "n_moves", "gain"),
    [
        # Both kinds fail once.
        ([0.5], [-3.0], 2, 0.0),
        # After a gain the other kind is tried again.
        ([5.0, 0.0], [0.0], 3, 5.0),
        ([0.0, 2.0, 0.0], [7.0, 0.0], 5, 9.0),
        ([9.0] * 5, [9.0] * 5, 10, 90.0),
    ],
)
def test_two_kinds_of_moves_alternate_until_neither_gains(
    setting, monkeypatch, of_law, of_penalty, n_moves, gain
):
    problem, items, law = setting
    look = end_from(problem, items, law)
    law_move, law_seen = make_move(of_law)
    penalty_move, penalty_seen = make_move(of_penalty)
    monkeypatch.setattr(basin_hopping, "restart_law", law_move)
    monkeypatch.setattr(basin_hopping, "lift_penalty", penalty_move)
    found = hop_from(look, problem, silent)
    assert len(law_seen) + len(penalty_seen) == n_moves <= CONFIG.basin_hopping.most_moves
    assert found.criterion == pytest.approx(look.criterion + gain)


def test_penalty_is_not_lifted_without_a_penalty(setting, monkeypatch):
    problem, items, law = setting
    look = end_from(problem, items, law)
    monkeypatch.setattr(basin_hopping, "lift_penalty", None)
    move, seen = make_move([0.0])
    monkeypatch.setattr(basin_hopping, "restart_law", move)
    assert hop_from(look, replace(problem, penalty=NO_SPARSITY), silent) is look
    assert len(seen) == 1


def test_unpenalised_steps_keep_given_entries_of_q(setting):
    problem, items, law = setting
    right = end_from(problem, items, law)
    known = np.full(Q.shape, -1, dtype=np.int8)
    known[0, 2], known[1, 0] = 1, 0
    found = lift_penalty(
        right, replace(problem, allowed=allowed_coefficients(known, TERMS)), silent
    ).estimate.parameters.loadings
    assert found[0, 2] != 0
    assert found[1, 0] == 0
