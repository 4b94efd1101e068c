"""Moves of levels, edges that are dropped, and the final fit of the selected Q."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hidag import DCRL
from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.latent import NetworkLaw, StateSpace
from hidag.latent.laws import factorise_counts
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Terms
from hidag.simulation import Truth, random_truth, simulate
from hidag.strategy.moves.level_moves import move_levels, relabel_levels, with_level_moves
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import (
    initial_structure_step,
    parents_by_search,
    structural_em,
    without_needless_edges,
)


def gaussian_items(levels, heights, noise=1.0):
    """Return Gaussian items; ``heights[j]`` has one tuple of level effects for each latent."""
    terms = Terms.main(levels)
    loadings = np.array([np.concatenate([np.diff(h) for h in row]) for row in heights])
    first = np.array([sum(h[0] for h in row) for row in heights], dtype=float)
    n_items = len(heights)
    return MeasurementParameters(
        ("gaussian",) * n_items, first, loadings, np.full(n_items, noise**2), terms
    )


def given_problem(values, items, learn=None):
    """Return the problem of a table whose Q is that of the items."""
    space = StateSpace(items.terms.levels)
    q = np.asarray(items.q_matrix, dtype=np.int8)
    return SearchProblem(
        WorkingData.from_values(values, items.families),
        space,
        Basis.over(space, items.terms),
        allowed_coefficients(q, items.terms),
        NO_SPARSITY,
        Schedule(),
        terms=items.terms,
        q_entries=q,
        learn_parents=learn or parents_by_search(space),
        adapt=False,
    )


def candidate(problem, items, law, n_steps=500):
    """Return the candidate that EM reaches from items in the user's units."""
    steady = replace(problem, schedule=Schedule(max_iter=n_steps, tolerance=1e-6))
    saturated = run_em(steady, problem.data.to_working(items), law)
    return initial_structure_step(steady, saturated, n_steps=saturated.n_iter)


@pytest.mark.parametrize(("n_levels", "n_moves"), [(2, 0), (3, 2), (4, 6)])
def test_each_pair_of_neighbours_merges_and_each_other_level_splits(n_levels, n_moves):
    steps = tuple(np.arange(n_levels, dtype=float) ** 2)
    items = gaussian_items((n_levels, 2), [(steps, (0.0, 0.0)), ((0.0,) * n_levels, (0.0, 1.0))])
    law = np.random.default_rng(1).dirichlet(np.ones(2 * n_levels))
    found = list(move_levels(items, law))
    assert len(found) == n_moves
    mean = law @ items.predictors(StateSpace((n_levels, 2)).states()).T
    for moved, new_law in found:
        assert new_law.sum() == pytest.approx(1.0)
        assert moved.terms == items.terms
        # The other latent keeps its items and, but for a uniform share, its distribution.
        assert np.array_equal(moved.loadings[1], items.loadings[1])
        other = new_law.reshape(n_levels, 2).sum(axis=0)
        assert other == pytest.approx(0.9 * law.reshape(n_levels, 2).sum(axis=0) + 0.05)
        # Merging and splitting around the mean leave the items' means.
        without_share = (new_law - 0.1 / len(law)) / 0.9
        states = StateSpace((n_levels, 2)).states()
        assert without_share @ moved.predictors(states).T == pytest.approx(mean)


def test_merged_level_has_the_mean_of_its_parts():
    items = gaussian_items((3,), [((0.0, 1.0, 5.0),)])
    moved, law = next(move_levels(items, np.array([0.3, 0.1, 0.6])))
    # Levels 0 and 1 merge at .25; the third splits to 5 -+ half a mean step of 2.5.
    heights = moved.intercept[0] + np.concatenate([[0.0], np.cumsum(moved.loadings[0])])
    assert heights == pytest.approx([0.25, 3.75, 6.25])
    assert (law - 0.1 / 3) / 0.9 == pytest.approx([0.4, 0.3, 0.3])


@pytest.fixture(scope="module")
def clear_levels():
    """Return the problem of a latent with three separate levels, and its items and law."""
    heights = (0.0, 3.0, 6.0)
    items = gaussian_items((3,), [(heights,)] * 4, noise=0.7)
    rng = np.random.default_rng(3)
    states = rng.choice(3, size=600, p=[0.3, 0.4, 0.3])
    values = np.array(heights)[states][:, None] + 0.7 * rng.standard_normal((600, 4))
    return given_problem(values, items), items, np.array([0.3, 0.4, 0.3])


def test_merge_and_split_leave_an_optimum_that_em_does_not(clear_levels):
    problem, items, law = clear_levels
    best = candidate(problem, items, law)
    # Two levels share the lowest group; the third stands for the other two groups.
    wrong = gaussian_items((3,), [((-0.3, 0.3, 4.5),)] * 4, noise=1.5)
    stuck = candidate(problem, wrong, np.array([0.15, 0.15, 0.7]))
    assert stuck.estimate.log_likelihood < best.estimate.log_likelihood - 100
    network = structural_em(problem, stuck)
    assert network.estimate.log_likelihood < best.estimate.log_likelihood - 100
    found = with_level_moves(network, stuck, problem)
    assert found.estimate.log_likelihood > best.estimate.log_likelihood - 0.5


def test_right_levels_and_binary_latents_stay_as_they_are(clear_levels):
    problem, items, law = clear_levels
    best = candidate(problem, items, law)
    network = structural_em(problem, best)
    assert with_level_moves(network, best, problem) is network
    binary = gaussian_items((2,), [((0.0, 2.0),)] * 3)
    values = np.random.default_rng(5).standard_normal((200, 3))
    problem = given_problem(values, binary)
    first = candidate(problem, binary, np.array([0.5, 0.5]))
    network = structural_em(problem, first)
    assert with_level_moves(network, first, problem) is network


def test_shift_removes_loadings_of_levels_that_depend_on_another_latent():
    # Z2 is never 0 where Z1 is 1, so that Z2 - Z1 is a latent with three levels too.
    space = StateSpace((2, 3))
    cube = np.array([[0.2, 0.2, 0.2], [0.0, 0.25, 0.15]])
    right = gaussian_items(
        space.levels, [((0.0, 1.0), (0.0,) * 3)] * 3 + [((0.0, 0.0), (0.0, 2.0, 4.0))] * 3
    )
    shifted = gaussian_items(
        space.levels, [((0.0, 1.0), (0.0,) * 3)] * 3 + [((0.0, 2.0), (0.0, 2.0, 4.0))] * 3
    )
    law = np.zeros((2, 3))
    law[0] = cube[0]
    law[1, :2] = cube[1, 1:]
    features = Basis.over(space, right.terms).features
    found = relabel_levels(shifted, law.ravel(), space, features)
    moved, new_law = found[0]
    assert np.array_equal(moved.support, right.support)
    assert moved.predictors(space.states()) == pytest.approx(right.predictors(space.states()))
    assert (new_law.reshape(2, 3) - 0.1 / 6) / 0.9 == pytest.approx(cube)
    # From the right levels there is nothing to gain.
    assert relabel_levels(right, cube.ravel(), space, features) == []


def test_relabelling_finds_the_levels_that_are_mixed_with_those_of_another_latent():
    # The four levels are two halves of two levels; the other latent says which of the two.
    space = StateSpace((2, 4))
    right = gaussian_items(
        space.levels,
        [((0.0, 1.5), (0.0,) * 4)] * 3
        + [((0.0, 0.0), (0.0, 1.0, 2.0, 3.0))] * 3
        + [((0.0, 1.5), (0.0, 1.0, 2.0, 3.0))],
    )
    # Binary: is the level odd? Four levels: the half, and the binary latent.
    mixed = gaussian_items(
        space.levels,
        [((0.0, 0.0), (0.0, 1.5, 0.0, 1.5))] * 3
        + [((0.0, 1.0), (0.0, 0.0, 2.0, 2.0))] * 3
        + [((0.0, 1.0), (0.0, 1.5, 2.0, 3.5))],
    )
    law = np.random.default_rng(2).dirichlet(np.full(8, 5.0))
    # The levels of both, by the state of the mixed latents.
    odd, four = space.states().T
    cells = space.number(np.stack([four % 2, 2 * (four // 2) + odd], axis=1))
    features = Basis.over(space, right.terms).features
    moved, new_law = relabel_levels(mixed, law, space, features)[0]
    assert np.array_equal(moved.support, right.support)
    assert moved.predictors(space.states()) == pytest.approx(right.predictors(space.states()))
    expected = np.bincount(cells, law, 8)
    assert (new_law - 0.1 / 8) / 0.9 == pytest.approx(expected)


def test_items_that_need_both_latents_are_not_shifted():
    space = StateSpace((2, 3))
    both = gaussian_items(
        space.levels,
        [((0.0, 1.0), (0.0,) * 3), ((0.0, 0.0), (0.0, 1.0, 2.0)), ((0.0, 1.2), (0.0, 2.0, 3.0))],
    )
    features = Basis.over(space, both.terms).features
    assert relabel_levels(both, space.uniform(), space, features) == []


def two_latents(dependence, levels=(3, 3)):
    """Return the problem and the estimate of two latents under a law with an edge."""
    rows, columns = levels
    joint = np.full(levels, (1.0 - dependence) / (rows * columns))
    joint[np.arange(min(levels)), np.arange(min(levels))] += dependence / min(levels)
    space = StateSpace(levels)
    rng = np.random.default_rng(11)
    states = space.states()[rng.choice(space.n_states, size=1500, p=joint.ravel())]
    one, other = (tuple(1.5 * np.arange(m)) for m in levels)
    items = gaussian_items(levels, [(one, (0.0,) * columns)] * 3 + [((0.0,) * rows, other)] * 3)
    values = items.predictors(states).T + rng.standard_normal((1500, 6))
    problem = given_problem(values, items)
    law_step = partial(factorise_counts, parents=((), (0,)), space=space)
    return problem, run_em(
        problem, problem.data.to_working(items), law_step(joint.ravel()), law_step=law_step
    )


@pytest.mark.parametrize(("dependence", "parents"), [(0.0, ((), ())), (0.3, ((), (0,)))])
def test_an_edge_stays_only_where_latents_depend_on_each_other(dependence, parents):
    problem, estimate = two_latents(dependence)
    assert without_needless_edges(problem, estimate, ((), (0,))) == parents


def test_structural_em_drops_an_edge_that_the_search_would_keep():
    problem, estimate = two_latents(0.0)
    # A search that always returns the edge: counts expected under an edge confirm it.
    stubborn = replace(problem, learn_parents=lambda *_: ((), (0,)))
    first = initial_structure_step(stubborn, estimate, n_steps=10)
    assert first.parents == ((), (0,))
    found = structural_em(stubborn, first)
    assert found.parents == ((), ())
    law = found.estimate.probabilities
    np.testing.assert_allclose(law, factorise_counts(law, ((), ()), problem.space), atol=1e-12)


def small_steps() -> Truth:
    """Return a truth in which some items hardly distinguish two of three levels."""
    steps = np.array([[2.0, 2.0, 0.0]] * 3 + [[0.1, 2.0, 0.0], [2.0, 0.1, 0.0]] * 2)
    steps = np.vstack([steps, [[0.0, 0.0, 2.0]] * 5])
    tables = (np.array([0.3, 0.4, 0.3]), np.array([0.5, 0.5]))
    law = NetworkLaw(StateSpace((3, 2)), ((), ()), tables)
    q = np.repeat(np.eye(2, dtype=int), (7, 5), axis=0)
    return Truth(q, np.zeros(12), steps, np.ones(12), ("gaussian",) * 12, law)


@pytest.mark.parametrize("levels", [(3, 2), (2, 2)])
def test_the_fit_is_the_maximum_for_the_selected_q(levels):
    truth = small_steps()
    if levels == (2, 2):
        law = NetworkLaw(StateSpace.binary(2), ((), ()), (np.array([0.4, 0.6]),) * 2)
        truth = random_truth(law, np.repeat(np.eye(2, dtype=int), 5, axis=0), "gaussian", rng=13)
    x = simulate(truth, 1200, rng=14).X
    settings = {"levels": levels, "family": "gaussian", "law": "network", "random_state": 1}
    model = DCRL(2, **settings).fit(x)
    given = DCRL(2, q_matrix=model.q_matrix_, **settings).fit(x)
    assert np.array_equal(given.q_matrix_, model.q_matrix_)
    assert model.log_likelihood_ == pytest.approx(given.log_likelihood_, abs=0.05)
