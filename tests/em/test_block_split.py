"""Splits of the state space into two blocks: the cheapest one, and the order of its states."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.block_e_step import BlockSplit, choose_split
from hidag.latent import StateSpace


def scopes(*sets):
    return tuple(sum(1 << k for k in latents) for latents in sets)


def test_without_coupled_latents_blocks_are_consecutive():
    split = choose_split((2,) * 6, scopes((0,), (4,)))
    assert (split.first, split.second) == ((0, 1, 2), (3, 4, 5))
    assert not split.has_boundary
    np.testing.assert_array_equal(split.order, np.arange(64))


def test_latents_of_one_item_stay_in_one_block():
    split = choose_split((2,) * 6, scopes((0, 3), (0, 5), (1, 2), (2, 4)))
    assert {split.first, split.second} == {(0, 3, 5), (1, 2, 4)}
    assert not split.has_boundary


def test_a_chain_is_cut_with_a_small_boundary():
    split = choose_split((2,) * 8, scopes(*((k, k + 1) for k in range(7))))
    assert {frozenset(split.first), frozenset(split.second)} == {
        frozenset(range(4)),
        frozenset(range(4, 8)),
    }
    assert {split.first[0], split.second[-1]} == {3, 4}
    assert split.cross.shape == (2, 2)


def test_there_is_no_split_if_it_saves_no_work():
    assert choose_split((2,) * 6, scopes(range(6))) is None
    assert choose_split((2,), ()) is None


@pytest.mark.parametrize("levels", [(2,) * 5, (3, 2, 2, 4)])
def test_order_lists_states_by_block(levels):
    split = BlockSplit.of(levels, (0, 2), frozenset({2, 3}))
    assert split.first == (2, 0)
    assert split.second[-1] == 3
    states = StateSpace(levels).states()
    n_first, n_second = len(split.first_states), len(split.second_states)
    by_place = states[split.order].reshape(n_first, n_second, -1)
    first, second = list(split.first), list(split.second)
    np.testing.assert_array_equal(
        by_place[..., first],
        np.repeat(states[split.first_states][:, None, first], n_second, axis=1),
    )
    np.testing.assert_array_equal(
        by_place[..., second],
        np.repeat(states[split.second_states][None, :, second], n_first, axis=0),
    )
    boundary = states[split.cross]
    assert boundary.shape[:2] == (levels[2], levels[3])
    assert (boundary[..., [k for k in range(len(levels)) if k not in (2, 3)]] == 0).all()
    assert sorted(split.order) == list(range(len(states)))
