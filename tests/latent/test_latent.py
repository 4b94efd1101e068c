"""State spaces, laws, counts and resampling."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hidag.exceptions import DataError, GraphError, HidagWarning, SettingError
from hidag.latent import (
    LatentCounts,
    NetworkLaw,
    SaturatedLaw,
    StateSpace,
    expected_counts,
    resample,
    resample_size,
)


@pytest.fixture
def network() -> NetworkLaw:
    # Z1 -> Z3 <- Z2 with three levels for Z2.
    space = StateSpace((2, 3, 2))
    child = np.array([[[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], [[0.4, 0.6], [0.7, 0.3], [0.1, 0.9]]])
    tables = (np.array([0.3, 0.7]), np.array([0.2, 0.3, 0.5]), child)
    return NetworkLaw(space, ((), (), (0, 1)), tables)


def test_state_numbers_run_like_a_c_array():
    space = StateSpace((2, 3, 2))
    states = space.states()
    assert states.shape == (12, 3)
    np.testing.assert_array_equal(space.number(states), np.arange(12))
    np.testing.assert_array_equal(states[1], [0, 0, 1])
    np.testing.assert_array_equal(space.strides(), [6, 2, 1])


def test_a_space_too_large_is_not_listed():
    space = StateSpace.binary(40)
    assert space.n_states == 2**40
    assert not space.listable
    with pytest.raises(SettingError, match="too many to list"):
        space.states()


def test_a_network_law_is_its_factors(network):
    p = network.probabilities.reshape(2, 3, 2)
    assert p.sum() == pytest.approx(1.0)
    assert p[1, 2, 1] == pytest.approx(0.7 * 0.5 * 0.9)
    np.testing.assert_allclose(network.marginals()[1], [0.2, 0.3, 0.5])
    saturated = SaturatedLaw(network.space, network.probabilities)
    np.testing.assert_allclose(saturated.marginals(), network.marginals())


@pytest.mark.parametrize("kind", ["network", "saturated"])
def test_samples_follow_the_law(network, kind):
    law = network if kind == "network" else SaturatedLaw(network.space, network.probabilities)
    drawn = law.sample(200_000, np.random.default_rng(0))
    seen = np.bincount(law.space.number(drawn), minlength=12) / 200_000
    np.testing.assert_allclose(seen, law.probabilities, atol=0.005)


def test_laws_that_are_none_are_refused(network):
    with pytest.raises(DataError, match="sum to 1"):
        SaturatedLaw(StateSpace.binary(1), np.array([0.5, 0.6]))
    with pytest.raises(GraphError, match="form a cycle"):
        NetworkLaw(StateSpace.binary(2), ((1,), (0,)), (np.full((2, 2), 0.5),) * 2)
    with pytest.raises(GraphError, match="must have shape"):
        NetworkLaw(network.space, network.parents, network.tables[::-1])


def test_equal_rows_are_merged():
    counts = LatentCounts.from_rows(np.array([[0, 1], [1, 1], [0, 1]]))
    assert counts.total == 3
    assert len(counts.weights) == 2
    assert counts.levels == (2, 2)
    with pytest.raises(DataError, match="has 2 levels, but state 2 occurs"):
        LatentCounts(np.array([[2]], dtype=np.uint8), np.ones(1), (2,), ("Z1",))


def test_expected_counts_are_the_mean_of_resampled_ones(network):
    names = ("a", "b", "c")
    expected = expected_counts(network, 100.0, names)
    assert expected.total == pytest.approx(100.0)
    rng = np.random.default_rng(1)
    total = np.zeros(12)
    for _ in range(300):
        drawn = resample(network, 100, names, rng)
        total[network.space.number(drawn.states)] += drawn.weights
    np.testing.assert_allclose(total / 300, expected.weights, atol=1.5)


@pytest.mark.parametrize(
    ("rule", "rows"), [("N", 50), ("2N", 100), ("0.5 N", 25), (7, 7), (lambda n: 3 * n, 150)]
)
def test_rules(rule, rows):
    assert resample_size(rule, 50) == rows


def test_rules_that_make_no_sense():
    for rule in ("M", "expected", 0, lambda n: float("nan")):
        with pytest.raises(SettingError):
            resample_size(rule, 50)


def test_growth_is_judged_by_n_log_n():
    with pytest.warns(HidagWarning, match="grows as fast as N log N or faster"):
        resample_size(lambda n: n**1.5, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resample_size(lambda n: n, 50)
        resample_size(lambda n: n**0.5, 50)


def test_marginals_of_many_latents_need_no_list_of_states(configure):
    rise = np.array([[0.8, 0.2], [0.3, 0.7]])
    long = NetworkLaw(
        StateSpace.binary(40),
        ((), *((k,) for k in range(39))),
        (np.array([0.9, 0.1]), *(rise,) * 39),
    )
    exact = [np.array([0.9, 0.1])]
    for _ in range(39):
        exact.append(exact[-1] @ rise)
    assert not long.space.listable
    np.testing.assert_allclose(long.marginals(), exact, atol=1e-12)
    # Where cliques are too large to make, draws stand for the law: always the same ones.
    configure("law", largest_clique=1)
    np.testing.assert_allclose(long.marginals(), exact, atol=0.006)
    np.testing.assert_array_equal(long.marginals(), long.marginals())


def test_marginals_do_not_depend_on_how_they_are_summed(network, configure):
    listed = network.marginals()
    configure("law", few_states=1)
    np.testing.assert_allclose(network.marginals(), listed, atol=1e-14)
    configure("law", largest_clique=1)
    np.testing.assert_array_equal(network.marginals(), listed)


def test_a_relabelled_network_is_the_relabelled_table(network):
    order = np.array([2, 0, 1])
    levels = [np.array([1, 0]), np.array([0, 1]), np.array([2, 0, 1])]
    cube = network.probabilities.reshape(2, 3, 2).transpose(order)
    moved = network.relabelled(order, levels)
    assert moved.space.levels == (2, 2, 3)
    np.testing.assert_allclose(moved.probabilities, cube[np.ix_(*levels)].ravel())
