"""Latents in two halves: the cheapest split, and where its states are."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.block_e_step import Split, split_of
from hidag.latent import StateSpace


def together(*sets):
    return tuple(sum(1 << k for k in latents) for latents in sets)


def test_without_coupled_latents_the_first_half_comes_first():
    split = split_of((2,) * 6, together((0,), (4,)))
    assert (split.first, split.second) == ((0, 1, 2), (3, 4, 5))
    assert not split.has_border
    np.testing.assert_array_equal(split.order, np.arange(64))


def test_latents_of_one_item_stay_in_one_half():
    split = split_of((2,) * 6, together((0, 3), (0, 5), (1, 2), (2, 4)))
    assert {split.first, split.second} == {(0, 3, 5), (1, 2, 4)}
    assert not split.has_border


def test_neighbours_are_cut_where_few_of_them_meet():
    split = split_of((2,) * 8, together(*((k, k + 1) for k in range(7))))
    assert {frozenset(split.first), frozenset(split.second)} == {
        frozenset(range(4)),
        frozenset(range(4, 8)),
    }
    assert {split.first[0], split.second[-1]} == {3, 4}
    assert split.between.shape == (2, 2)


def test_a_split_that_saves_nothing_is_none():
    assert split_of((2,) * 6, together(range(6))) is None
    assert split_of((2,), ()) is None


@pytest.mark.parametrize("levels", [(2,) * 5, (3, 2, 2, 4)])
def test_places_and_states_go_together(levels):
    split = Split.of(levels, (0, 2), frozenset({2, 3}))
    assert split.first == (2, 0)
    assert split.second[-1] == 3
    states = StateSpace(levels).states()
    n_first, n_second = len(split.of_first), len(split.of_second)
    by_place = states[split.order].reshape(n_first, n_second, -1)
    first, second = list(split.first), list(split.second)
    np.testing.assert_array_equal(
        by_place[..., first], np.repeat(states[split.of_first][:, None, first], n_second, axis=1)
    )
    np.testing.assert_array_equal(
        by_place[..., second], np.repeat(states[split.of_second][None, :, second], n_first, axis=0)
    )
    border = states[split.between]
    assert border.shape[:2] == (levels[2], levels[3])
    assert (border[..., [k for k in range(len(levels)) if k not in (2, 3)]] == 0).all()
    assert sorted(split.order) == list(range(len(states)))
