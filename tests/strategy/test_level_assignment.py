"""Which latent has how many levels: changes keep what items are like, the likelihood decides."""

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, evaluate
from hidag.em.design_data import WorkingData
from hidag.em.em import Problem, Schedule, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.initialization.start_points import StartPoint
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import NO_SPARSITY
from hidag.simulation import banded_q, chain_dag, random_law, random_truth, simulate
from hidag.strategy.moves.level_assignment import (
    assign_levels,
    change_levels,
    other_assignments,
)


def truth_of(levels, family="gaussian", items=4, seed=4):
    """A chain of evenly distributed latents, and items of one latent each."""
    tables, parents = [np.full(levels[0], 1 / levels[0])], [()]
    for k, m in enumerate(levels[1:], start=1):
        tables.append(np.full((levels[k - 1], m), 1 / m))
        parents.append((k - 1,))
    law = NetworkLaw(StateSpace(levels), tuple(parents), tuple(tables))
    return random_truth(
        law, np.repeat(np.eye(len(levels), dtype=int), items, axis=0), family, rng=seed
    )


def moments(items, law):
    """Mean and variance of the items' predictors under a law."""
    values = items.predictors(StateSpace(items.terms.levels).states())
    mean = values @ law
    return mean, (values - mean[:, None]) ** 2 @ law


@pytest.mark.parametrize("levels", [(2, 2, 2), (3, 5, 2), (2, 4, 4)])
def test_changed_levels_keep_means_and_directions_of_items(levels):
    truth = truth_of((2, 4, 2))
    law = np.asarray(truth.law.probabilities)
    items, moved = change_levels(truth.items, law, levels)
    assert items.terms.levels == levels
    assert moved.sum() == pytest.approx(1.0)
    assert moved.min() > 0
    assert np.array_equal(items.q_matrix, truth.q_matrix)
    assert (np.sign(items.strengths) == np.sign(truth.items.strengths)).all()
    before, after = moments(truth.items, law), moments(items, moved)
    assert after[0] == pytest.approx(before[0], abs=0.05)
    assert (np.abs(np.log(after[1] / before[1])) < 0.7).all()


def test_the_same_levels_change_nothing_but_their_order():
    truth = truth_of((2, 4, 2))
    law = np.asarray(truth.law.probabilities)
    items, _ = change_levels(truth.items, law, (2, 4, 2))
    assert items.loadings == pytest.approx(truth.items.loadings)
    assert items.intercept == pytest.approx(truth.items.intercept)


def test_effects_that_would_leave_the_range_of_a_family_are_shrunk():
    truth = truth_of((2, 4, 2), "poisson")
    # Means of identity-link counts are positive; here the lowest level has the least.
    items = replace(
        truth.items,
        families=("poisson-identity",) * 12,
        intercept=np.full(12, 0.05),
        loadings=np.abs(truth.items.loadings),
    )
    law = np.zeros(16)
    law[0], law[-1] = 0.9, 0.1
    found, _ = change_levels(items, law, (3, 2, 4))
    assert found.in_range().all()


@pytest.mark.parametrize(
    ("levels", "given", "family"),
    [
        ((2, 3), (3, 2), "gaussian"),
        ((5, 2, 2), (2, 2, 5), "poisson"),
        ((2, 4, 3), (4, 2, 3), "bernoulli"),
        ((3, 3, 2, 2), (2, 3, 2, 3), "gaussian"),
    ],
)
def test_levels_that_were_given_to_the_wrong_latents_find_the_right_ones(levels, given, family):
    truth = truth_of(levels, family, items=6)
    data = WorkingData.from_values(simulate(truth, 2000, rng=2).X, truth.families)
    items, law = change_levels(
        data.to_working(truth.items), np.asarray(truth.law.probabilities), given
    )
    # The problem's latents have these levels; the point has the items in the same order.
    space = StateSpace(given)
    basis = Basis.over(space, items.terms)
    allowed = allowed_coefficients(items.q_matrix, items.terms)
    problem = Problem(data, space, basis, allowed, NO_SPARSITY, Schedule())
    points = assign_levels(problem, data, [StartPoint(items, law, "wrong levels")])
    assert all(one.parameters.terms.levels == given for one in points)
    assert points[0].probabilities.shape == (space.n_states,)

    def levels_of_items(point):
        """The number of levels that the items of each true latent have."""
        largest = np.abs(point.parameters.strengths).argmax(axis=1)
        return tuple(given[largest[6 * j]] for j in range(len(levels)))

    # Short runs on binary items do not decide between 3 and 4 levels: both become starts.
    likely = points if family == "bernoulli" else points[:1]
    assert levels in [levels_of_items(one) for one in likely]


def test_exchanges_lead_from_a_wrong_assignment_to_the_right_one():
    truth = truth_of((2, 4, 2), "gaussian", items=5)
    data = WorkingData.from_values(simulate(truth, 2000, rng=3).X, truth.families)
    items, law = change_levels(
        data.to_working(truth.items), np.asarray(truth.law.probabilities), (4, 2, 2)
    )
    space = StateSpace((4, 2, 2))
    basis = Basis.over(space, items.terms)
    allowed = allowed_coefficients(items.q_matrix, items.terms)
    problem = Problem(data, space, basis, allowed, NO_SPARSITY, Schedule())
    now = run_em(problem, items, law)
    # The best exchange gives four levels to the latent of the second five items.
    found = other_assignments(problem, data, now)[0]
    largest = np.abs(found.parameters.strengths).argmax(axis=1)
    assert (largest[5:10] == 0).all()
    assert (largest[:5] != 0).all()
    right = replace(problem, allowed=allowed_coefficients(np.full((15, 3), -1), items.terms))
    better = run_em(right, found.parameters, found.probabilities)
    assert better.log_likelihood > now.log_likelihood + 100


@pytest.mark.filterwarnings("ignore::hidag.exceptions.IdentifiabilityWarning")
def test_binary_items_show_which_latent_has_four_levels():
    # A penalty of single steps let a latent of four levels pass for one of three.
    law = random_law(chain_dag(4), levels=(2, 4, 2, 3), rng=np.random.default_rng(4))
    truth = random_truth(law, banded_q(4, 1), "bernoulli", rng=4)
    x = simulate(truth, 4000, rng=5).X
    settings = {"levels": (2, 4, 2, 3), "family": "bernoulli", "uncertainty": "none"}
    given = DCRL(4, q_matrix=truth.q_matrix, random_state=0, **settings).fit(x)
    found = DCRL(4, random_state=0, **settings).fit(x)
    comparison = evaluate(found, truth)
    assert comparison.shd_q == 0
    assert [(2, 4, 2, 3)[k] for k in comparison.permutation] == [2, 4, 2, 3]
    assert found.log_likelihood_ > given.log_likelihood_ - 1.0
