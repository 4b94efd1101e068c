"""Laws over a graph from counts of joint states, against sums and searches by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hidag.latent import NetworkLaw, StateSpace
from hidag.latent.laws import (
    factorise_counts,
    fit_network_law,
    is_saturated,
    n_free_probabilities,
    possible_cells,
)

#: Parents out of order and more than two levels: axes in the wrong order show.
SPACE = StateSpace((2, 3, 2, 2))
PARENTS = ((), (2, 0), (), (1, 0))


def by_hand(counts, parents, space):
    """Return the product of the families' shares, state by state."""
    states = space.states()
    out = np.ones(len(states))
    for i, state in enumerate(states):
        for k, causes in enumerate(parents):
            same = np.all(states[:, list(causes)] == state[list(causes)], axis=1)
            given = counts[same].sum()
            joint = counts[same & (states[:, k] == state[k])].sum()
            out[i] *= joint / given if given > 0 else 1.0 / space.levels[k]
    return out


@pytest.fixture
def counts():
    return np.random.default_rng(1).gamma(0.5, size=SPACE.n_states)


def test_the_shares_are_those_of_sums_by_hand(counts):
    np.testing.assert_allclose(
        factorise_counts(counts, PARENTS, SPACE), by_hand(counts, PARENTS, SPACE), rtol=1e-12
    )


def test_the_network_is_the_same_law(counts):
    network = fit_network_law(counts, PARENTS, SPACE)
    assert network.parents == PARENTS
    np.testing.assert_allclose(
        network.probabilities, factorise_counts(counts, PARENTS, SPACE), rtol=1e-12
    )


def test_no_law_over_the_graph_is_more_likely(counts):
    best = float(counts @ np.log(factorise_counts(counts, PARENTS, SPACE)))
    found = fit_network_law(counts, PARENTS, SPACE)
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-2, 0.3):
        tables = []
        for table in found.tables:
            moved = table * np.exp(size * rng.standard_normal(table.shape))
            tables.append(moved / moved.sum(axis=-1, keepdims=True))
        other = NetworkLaw(SPACE, PARENTS, tuple(tables))
        assert float(counts @ np.log(other.probabilities)) < best


def test_a_complete_graph_changes_nothing(counts):
    complete = tuple(tuple(range(k)) for k in range(4))
    np.testing.assert_allclose(
        factorise_counts(counts, complete, SPACE), counts / counts.sum(), rtol=1e-12
    )


def test_states_that_never_occur_leave_a_law():
    space, parents = StateSpace.binary(3), ((), (0,), (1, 0))
    counts = np.zeros(8)
    counts[[0, 1]] = 3.0, 5.0
    with np.errstate(all="raise"):
        law = factorise_counts(counts, parents, space)
        network = fit_network_law(counts, parents, space)
    np.testing.assert_allclose(law, counts / 8.0)
    np.testing.assert_allclose(network.probabilities, law)
    # The second latent never had the first at 1: every level same.
    np.testing.assert_allclose(network.tables[1], [[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(factorise_counts(np.zeros(8), parents, space), np.full(8, 1 / 8))


def test_counts_too_small_to_divide_by_are_none():
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        law = factorise_counts(np.array([1.0, 1.0, 1e-310, 0.0]), ((), (0,)), StateSpace.binary(2))
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1.0)


def test_free_probabilities_are_counted_table_by_table():
    assert n_free_probabilities(PARENTS, SPACE) == 1 + 4 * 2 + 1 + 6
    complete = tuple(tuple(range(k)) for k in range(4))
    assert n_free_probabilities(complete, SPACE) == SPACE.n_states - 1
    for first, second in itertools.permutations([((), (0,)), ((1,), ())]):
        both = [n_free_probabilities(p, StateSpace.binary(2)) for p in (first, second)]
        assert both[0] == both[1] == 3


@pytest.mark.parametrize(
    ("parents", "n_free"),
    [
        (((), (0,), (1,), ()), 1 + 2 + 2 + 2),
        # Who has the second has the first, which says no more of the third.
        (((), (0,), (0, 1), ()), 1 + 2 + 2 + 2),
        (((3,), (0, 3), (1,), ()), 3 + 3 * 2 + 2 + 2),
        (((), (0,), (1,), (0, 2)), 1 + 2 + 2 + 3 * 2),
    ],
)
def test_free_probabilities_of_possible_states_are_the_directions_a_law_can_take(parents, n_free):
    """By brute force: the rank of what small changes of the tables do to the law.

    Nobody has the second latent without the first, nor the third without the second.
    """
    space = StateSpace((2, 3, 2, 3))
    states = space.states()
    possible = ~((states[:, 1] > 0) & (states[:, 0] == 0))
    possible &= ~((states[:, 2] > 0) & (states[:, 1] == 0))
    rng = np.random.default_rng(0)
    logs = [rng.normal(size=[space.levels[a] for a in (*pa, k)]) for k, pa in enumerate(parents)]

    def law(moved):
        out = np.zeros(space.n_states)
        out[possible] = 1.0
        for k, pa in enumerate(parents):
            weights = np.exp(moved[k]).reshape(-1, space.levels[k])
            weights = weights * possible_cells(possible, space, k, pa)
            total = weights.sum(axis=1, keepdims=True)
            shares = (weights / np.where(total > 0, total, 1.0)).reshape(moved[k].shape)
            out *= shares[tuple(states[:, [*pa, k]].T)]
        return out

    assert law(logs).sum() == pytest.approx(1.0)
    step, directions = 1e-5, []
    for k, table in enumerate(logs):
        for place in np.ndindex(table.shape):
            up, down = [t.copy() for t in logs], [t.copy() for t in logs]
            up[k][place] += step
            down[k][place] -= step
            directions.append((law(up) - law(down)) / (2 * step))
    rank = np.linalg.matrix_rank(np.array(directions), tol=1e-7)
    assert rank == n_free_probabilities(parents, space, possible) == n_free


def test_a_graph_is_saturated_if_no_possible_state_is_restricted():
    space = StateSpace.binary(3)
    line, full = ((), (0,), (1,)), ((), (0,), (0, 1))
    assert is_saturated(full, space)
    assert not is_saturated(line, space)
    possible = np.array([1, 0, 0, 0, 1, 0, 1, 1], dtype=bool)
    assert is_saturated(line, space, possible)
    fork = np.array([1, 0, 0, 0, 1, 1, 1, 1], dtype=bool)
    assert not is_saturated(((), (0,), (0,)), space, fork)
    assert is_saturated(full, space, fork)
