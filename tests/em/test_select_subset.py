"""Stepwise selection: latents as a whole, interactions with their latents only."""

from __future__ import annotations

import numpy as np

from hidag.em.support import (
    _solve_supports,
    group_moves,
    hierarchical_moves,
    same_model,
    select_subset,
)
from hidag.kernels.coordinate_descent import FREE, NONNEGATIVE, PENALISED, ZERO
from hidag.measurement import Terms
from hidag.measurement.terms import interactions_within

LEVELS = (3, 2, 2)
TERMS = Terms(LEVELS, interactions_within(np.ones((1, 3)), LEVELS, 2))
N_TERMS = TERMS.n_terms


def hierarchical(support):
    """Return whether every interaction has all its latents' thresholds, and latents are whole."""
    inside = [support[: TERMS.n_main][TERMS.main_latents == k] for k in range(3)]
    whole = all(part.all() or not part.any() for part in inside)
    return whole and all(
        all(inside[k].all() for k, _ in pairs)
        for t, pairs in enumerate(TERMS.interactions, start=TERMS.n_main)
        if support[t]
    )


def test_every_support_on_the_way_is_hierarchical():
    rng = np.random.default_rng(0)
    moves, everything = hierarchical_moves(TERMS), np.ones(N_TERMS, dtype=bool)
    support = np.zeros(N_TERMS, dtype=bool)
    for _ in range(300):
        near = list(moves(support, everything))
        assert all(hierarchical(other) for other in near)
        support = near[rng.integers(len(near))]


def test_dropping_a_latent_drops_its_interactions():
    full = np.ones(N_TERMS, dtype=bool)
    without = [s for s in hierarchical_moves(TERMS)(full, full) if not s[: TERMS.n_main][:2].any()]
    assert len(without) == 1
    assert not without[0][TERMS.involved[:, 0]].any()


def test_fixed_coefficients_do_not_change():
    support = np.zeros(N_TERMS, dtype=bool)
    open_ = np.zeros(N_TERMS, dtype=bool)
    open_[2] = True
    assert [np.flatnonzero(s).tolist() for s in hierarchical_moves(TERMS)(support, open_)] == [[2]]


def test_the_true_interaction_is_selected_at_its_cost():
    rng = np.random.default_rng(1)
    n = 2000
    states = np.stack([rng.integers(0, m, n) for m in LEVELS], axis=1)
    design = np.hstack([np.ones((n, 1)), TERMS.features(states)])
    beta = np.zeros(1 + N_TERMS)
    beta[[1, 2, 3]] = 1.0
    wanted = TERMS.n_main + TERMS.interactions.index(((0, 2), (1, 1)))
    beta[1 + wanted] = 1.5
    y = design @ beta + rng.standard_normal(n)
    allowed = np.full(N_TERMS, PENALISED, dtype=np.uint8)
    start = np.zeros(N_TERMS, dtype=bool)
    arguments = (
        design.T @ y,
        design.T @ design,
        allowed,
        start,
        np.log(n),
        hierarchical_moves(TERMS),
    )
    found = select_subset(*arguments)
    assert np.flatnonzero(found[1:]).tolist() == [0, 1, 2, wanted]
    np.testing.assert_allclose(found[1:][[0, 1, 2, wanted]], [1, 1, 1, 1.5], atol=0.4)
    allowed[wanted] = ZERO
    assert select_subset(*arguments)[1 + wanted] == 0
    allowed[:] = FREE
    assert (select_subset(*arguments) != 0).all()


def test_thresholds_of_a_latent_are_one_model():
    one, other = np.zeros(N_TERMS, dtype=bool), np.zeros(N_TERMS, dtype=bool)
    one[0] = True
    other[:2] = True
    assert same_model(one, other, TERMS)
    other[-1] = True
    assert not same_model(one, other, TERMS)


def test_coefficients_of_a_group_enter_and_leave_together():
    moves = group_moves(np.array([0, 0, 1]))
    support, open_ = np.array([True, False, False]), np.ones(3, dtype=bool)
    assert [s.tolist() for s in moves(support, open_)] == [
        [False, False, False],
        [True, False, True],
    ]


def test_nonnegative_loadings_are_never_negative():
    rng = np.random.default_rng(4)
    design = np.hstack([np.ones((200, 1)), rng.normal(size=(200, 4))])
    answers = design @ np.array([0.5, 1.0, -1.0, 0.4, 0.0]) + rng.normal(size=200)
    curvature, linear = design.T @ design, design.T @ answers
    every = np.ones(4, dtype=bool)
    moves = group_moves(np.arange(4))
    free = select_subset(
        linear, curvature, np.full(4, PENALISED, dtype=np.uint8), every, 3.0, moves
    )
    assert free[2] < 0
    found = select_subset(
        linear, curvature, np.full(4, NONNEGATIVE, dtype=np.uint8), every, 3.0, moves
    )
    values = {}
    for number in range(16):
        active = [0, *(1 + k for k in range(4) if number >> k & 1)]
        solution = np.linalg.solve(curvature[np.ix_(active, active)], linear[active])
        if (solution[1:] >= 0).all():
            values[tuple(active)] = 0.5 * linear[active] @ solution - 3.0 * (len(active) - 1)
    best = max(values, key=values.get)
    assert tuple(np.flatnonzero(found)) == best
    assert (found[1:] >= 0).all()


def test_supports_of_any_size_are_solved_at_once():
    rng = np.random.default_rng(3)
    root = rng.standard_normal((6, 20))
    curvature, linear = root @ root.T, rng.standard_normal(6)
    supports = np.array(
        [[0, 0, 0, 0, 0], [0, 1, 0, 0, 1], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0]], dtype=bool
    )
    found = _solve_supports(linear, curvature, supports)
    for row, support in zip(found, supports, strict=True):
        active = np.flatnonzero(np.concatenate([[True], support]))
        alone = np.linalg.solve(curvature[np.ix_(active, active)], linear[active])
        np.testing.assert_allclose(row[active], alone, rtol=1e-10)
        assert (np.delete(row, active) == 0).all()
