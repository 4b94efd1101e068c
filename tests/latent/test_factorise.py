"""Laws over a graph from counts of joint states, against sums and searches by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hidag.latent import NetworkLaw, StateSpace
from hidag.latent.factorise import factorised, n_free_probabilities, network_of_counts

#: Parents out of order and more than two levels: axes taken the wrong way round show.
SPACE = StateSpace((2, 3, 2, 2))
PARENTS = ((), (2, 0), (), (1, 0))


def by_hand(counts, parents, space):
    """Return the product of the families' shares, state by state."""
    states = space.states()
    out = np.ones(len(states))
    for i, state in enumerate(states):
        for k, causes in enumerate(parents):
            alike = np.all(states[:, list(causes)] == state[list(causes)], axis=1)
            given = counts[alike].sum()
            joint = counts[alike & (states[:, k] == state[k])].sum()
            out[i] *= joint / given if given > 0 else 1.0 / space.levels[k]
    return out


@pytest.fixture
def counts():
    return np.random.default_rng(1).gamma(0.5, size=SPACE.n_states)


def test_the_shares_are_those_of_sums_by_hand(counts):
    np.testing.assert_allclose(
        factorised(counts, PARENTS, SPACE), by_hand(counts, PARENTS, SPACE), rtol=1e-12
    )


def test_the_network_is_the_same_law(counts):
    network = network_of_counts(counts, PARENTS, SPACE)
    assert network.parents == PARENTS
    np.testing.assert_allclose(
        network.probabilities, factorised(counts, PARENTS, SPACE), rtol=1e-12
    )


def test_no_law_over_the_graph_is_more_likely(counts):
    best = float(counts @ np.log(factorised(counts, PARENTS, SPACE)))
    found = network_of_counts(counts, PARENTS, SPACE)
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
        factorised(counts, complete, SPACE), counts / counts.sum(), rtol=1e-12
    )


def test_states_that_never_occur_leave_a_law():
    space, parents = StateSpace.binary(3), ((), (0,), (1, 0))
    counts = np.zeros(8)
    counts[[0, 1]] = 3.0, 5.0
    with np.errstate(all="raise"):
        law = factorised(counts, parents, space)
        network = network_of_counts(counts, parents, space)
    np.testing.assert_allclose(law, counts / 8.0)
    np.testing.assert_allclose(network.probabilities, law)
    # The second latent never had the first at 1: every level alike.
    np.testing.assert_allclose(network.tables[1], [[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(factorised(np.zeros(8), parents, space), np.full(8, 1 / 8))


def test_counts_too_small_to_divide_by_are_none():
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        law = factorised(np.array([1.0, 1.0, 1e-310, 0.0]), ((), (0,)), StateSpace.binary(2))
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1.0)


def test_free_probabilities_are_counted_table_by_table():
    assert n_free_probabilities(PARENTS, SPACE) == 1 + 4 * 2 + 1 + 6
    complete = tuple(tuple(range(k)) for k in range(4))
    assert n_free_probabilities(complete, SPACE) == SPACE.n_states - 1
    for first, second in itertools.permutations([((), (0,)), ((1,), ())]):
        both = [n_free_probabilities(p, StateSpace.binary(2)) for p in (first, second)]
        assert both[0] == both[1] == 3
