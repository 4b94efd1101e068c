"""Graphs, laws and measurement matrices of other shapes than the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.exceptions import SettingError
from hidag.simulation import (
    banded_q,
    chain_dag,
    random_dag,
    random_law,
    random_q,
    spread_slopes,
    tree_dag,
)


def test_chains_and_trees() -> None:
    assert chain_dag(4).parents == ((), (0,), (1,), (2,))
    assert tree_dag(6, branching=3).parents == ((), (0,), (0,), (0,), (1,), (1,))
    assert tree_dag(1).parents == ((),)


def test_random_dags_have_the_average_number_of_parents_and_no_fixed_order() -> None:
    rng = np.random.default_rng(0)
    graphs = [random_dag(10, 1.5, rng=rng) for _ in range(300)]
    # 45 pairs joined with probability 1/3: standard deviation 3.16 edges a graph.
    assert np.mean([g.n_edges for g in graphs]) == pytest.approx(15, abs=4 * 3.17 / np.sqrt(300))
    forward = np.mean([np.triu(g.adjacency).sum() / max(1, g.n_edges) for g in graphs])
    assert forward == pytest.approx(0.5, abs=0.06)
    assert random_dag(6, 2.5, rng=1).n_edges == 15
    assert random_dag(6, 0, rng=1).n_edges == 0
    assert random_dag(8, 2, rng=5) == random_dag(8, 2, rng=5)


def test_every_edge_of_a_random_law_has_an_effect() -> None:
    for seed in range(20):
        dag = random_dag(6, 1.5, rng=seed)
        law = random_law(dag, rng=seed)
        assert law.parents == dag.parents
        for table, parents in zip(law.tables, dag.parents, strict=True):
            logit = np.log(table[..., 1] / table[..., 0])
            for axis in range(len(parents)):
                effect = np.abs(np.diff(logit, axis=axis))
                assert effect.min() > 1.2 - 1e-9
                assert effect.max() < 2.0 + 1e-9
            if not parents:
                assert table.tolist() == [0.5, 0.5]


def test_random_laws_with_many_levels_and_uneven_roots() -> None:
    law = random_law(chain_dag(3), rng=0, levels=(2, 3, 4), root_probability=(0.2, 0.3))
    assert [t.shape for t in law.tables] == [(2,), (2, 3), (3, 4)]
    assert 0.2 <= law.tables[0][1] <= 0.3
    assert law.probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("share", [0.0, 0.25, 2 / 3, 1.0])
def test_random_q_has_the_share_of_pure_items_and_covers_every_latent(share: float) -> None:
    q = random_q(24, 6, pure_share=share, max_parents=4, rng=0)
    n_parents = q.sum(axis=1)
    assert (n_parents == 1).sum() == round(24 * share)
    assert n_parents.min() >= 1
    assert n_parents.max() <= 4
    assert q.sum(axis=0).min() >= 1
    pure = q[n_parents == 1].sum(axis=0)
    assert pure.max() - pure.min() <= 1
    if share < 1:
        assert set(n_parents[n_parents > 1]) <= {2, 3, 4}
    assert np.array_equal(q, random_q(24, 6, pure_share=share, max_parents=4, rng=0))


def test_random_q_covers_every_latent_even_with_few_items() -> None:
    for seed in range(20):
        assert random_q(6, 6, pure_share=0.5, max_parents=2, rng=seed).sum(axis=0).min() >= 1


def test_spread_slopes() -> None:
    q = np.array([[1, 1, 1], [0, 1, 0], [0, 0, 0]])
    assert spread_slopes(q, 3).tolist() == [[1, 1, 1], [0, 3, 0], [0, 0, 0]]
    unequal = spread_slopes(q, [7, 2, 1], ratio=2, rng=0)
    assert sorted(unequal[0]) == pytest.approx([1, 2, 4])
    assert unequal[1].tolist() == [0, 2, 0]
    orders = {tuple(np.argsort(spread_slopes(q, 7, ratio=2, rng=s)[0])) for s in range(40)}
    assert len(orders) == 6


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: random_dag(5, 3),
            "average_parents must be from 0 to 2 for 5 latents, got 3",
        ),
        (
            lambda: random_law(chain_dag(3), levels=(2, 2)),
            "3 latents need as many levels, got 2",
        ),
        (
            lambda: random_law(chain_dag(3), effects=(2, 1)),
            "effects must be a range (low, high) with 0 <= low, got (2, 1)",
        ),
        (
            lambda: random_law(chain_dag(3), root_probability=(0, 0.5)),
            "root_probability must be a range inside (0, 1), got (0, 0.5)",
        ),
        (
            lambda: random_q(3, 5),
            "every latent needs an item: 5 latents, but only 3 items",
        ),
        (
            lambda: random_q(9, 3, max_parents=4),
            "max_parents must be from 2 to 3, because items that are not pure measure several "
            "latents, got 4",
        ),
        (lambda: random_q(9, 3, pure_share=1.5), "pure_share must be from 0 to 1, got 1.5"),
        (
            lambda: banded_q(0, 1),
            "a banded Q needs at least 1 latent and a bandwidth >= 0, got n_latents=0 and "
            "bandwidth=1",
        ),
        (
            lambda: tree_dag(3, branching=0),
            "a tree needs at least 1 latent and 1 branch, got n_latents=3 and branching=0",
        ),
    ],
)
def test_invalid_settings_are_reported(call, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        call()
    assert str(caught.value) == sentence
