"""Who has how many levels: exchanges keep what items are like, and the likelihood decides."""

from dataclasses import replace

import numpy as np
import pytest

from hidag.em.design_data import WorkingData
from hidag.em.em import Problem, Schedule, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.initialization.start_points import exchanges, with_better_levels
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import NO_SPARSITY
from hidag.simulation import random_truth, simulate

LEVELS = (2, 4, 2)
Q = np.repeat(np.eye(3, dtype=int), 4, axis=0)


def even_truth():
    tables = tuple(np.full(m, 1.0 / m) for m in LEVELS)
    law = NetworkLaw(StateSpace(LEVELS), ((),) * 3, tables)
    return random_truth(law, Q, "gaussian", rng=4)


def moments(parameters, latent):
    """Mean and variance, under even levels, of what a latent adds to each item."""
    heights = parameters.heights(latent)
    return heights.mean(axis=1), heights.var(axis=1)


def test_only_latents_that_differ_exchange_and_items_keep_mean_and_variance() -> None:
    items = even_truth().items
    found = list(exchanges(items))
    assert len(found) == 2
    for one, (a, b) in zip(found, ((0, 1), (1, 2)), strict=True):
        assert one.terms.levels == LEVELS
        assert np.array_equal(one.q_matrix[:, [a, b]], Q[:, [b, a]])
        states = StateSpace(LEVELS).states()
        before = items.intercept + (items.terms.features(states) @ items.loadings.T).mean(axis=0)
        after = one.intercept + (one.terms.features(states) @ one.loadings.T).mean(axis=0)
        # Uneven steps have other means than even ones; two levels have one step.
        of_two = Q[:, next(k for k in (a, b) if LEVELS[k] == 2)] == 1
        assert after[of_two] == pytest.approx(before[of_two])
        two, four = (a, b) if LEVELS[a] == 2 else (b, a)
        assert moments(one, four)[1][of_two] == pytest.approx(moments(items, two)[1][of_two])
    back = next(iter(exchanges(found[0])))
    assert back.q_matrix.tolist() == items.q_matrix.tolist()


def test_latents_with_as_many_levels_have_nothing_to_exchange() -> None:
    law = NetworkLaw(StateSpace((3, 3)), ((), ()), (np.full(3, 1 / 3),) * 2)
    items = random_truth(law, np.repeat(np.eye(2, dtype=int), 3, axis=0), rng=1).items
    assert list(exchanges(items)) == []
    same = with_better_levels(items, lambda one: one, lambda one: 0.0, lambda one: one, lambda x: x)
    assert same is items


def test_levels_assigned_to_wrong_latents_are_exchanged() -> None:
    truth = even_truth()
    data = WorkingData.from_values(simulate(truth, 800, rng=2).X, truth.families)
    space = StateSpace(LEVELS)
    basis = Basis.over(space, truth.terms)
    even = np.full(space.n_states, 1.0 / space.n_states)
    plan = Schedule(max_iter=60)

    def fitted(items):
        allowed = allowed_coefficients(items.q_matrix, items.terms)
        problem = Problem(data, space, basis, allowed, NO_SPARSITY, plan)
        return run_em(problem, items, even)

    wrong = list(exchanges(data.to_working(truth.items)))[1]
    first = fitted(wrong)
    found = with_better_levels(
        first, lambda one: one.parameters, lambda one: one.objective, fitted, lambda one: one
    )
    assert np.array_equal(found.parameters.q_matrix, Q)
    assert found.objective > first.objective + 100
    # From the right ones there is nothing better.
    again = with_better_levels(
        replace(found),
        lambda one: one.parameters,
        lambda one: one.objective,
        fitted,
        lambda one: one,
    )
    assert again.objective == found.objective
