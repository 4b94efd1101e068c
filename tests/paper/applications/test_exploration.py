"""Exploratory analysis: replication, names of latents, residual correlations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, design, simulate
from hidag.data import read_table
from hidag.model_selection.candidates import Table
from hidag_paper.applications.exploration import (
    edge_support,
    explore,
    match_posteriors,
    name_latents,
    rename_latents,
    residual_correlations,
    select_replicated,
    split_rows,
    standardized_effects,
)


@pytest.fixture(scope="module")
def data():
    return simulate(design("Chain-5", "Q1", "gaussian", rng=3), 600, rng=4)


@pytest.fixture(scope="module")
def table(data):
    names = [f"item {j}" for j in range(15)]
    return Table(read_table(np.array(data.X), names=names), ("gaussian",) * 15)


@pytest.fixture(scope="module")
def found(table):
    return explore(table, (4, 5), seed=1, n_seeds=1, settings={"n_starts": 1})


def test_replicated_number_is_chosen(found):
    assert found.chosen == 5
    assert found.all_replicated
    assert found.halves[5].lowest > 0.9
    assert found.result.q_matrix.shape == (15, 5)


def test_support_of_edges_and_latents_in_refits(found):
    assert len(found.refits) == 3
    assert found.replication.shape == (3, 5)
    adjacency = found.result.graph.adjacency
    for cause, effect, joined, same in found.edges:
        assert adjacency[cause, effect]
        assert 0 <= same <= joined <= 1


def test_latents_are_named_by_their_strongest_items(found):
    for k, name in enumerate(found.result.latent_names):
        first = name.split(", ")[0].removeprefix("\N{MINUS SIGN}")
        strongest = int(np.argmax(np.abs(found.effects[:, k])))
        assert first == found.result.item_names[strongest]
    assert found.result.graph.names == found.result.latent_names


def test_effect_is_the_difference_of_means_in_standard_deviations(found, table):
    result = found.result
    j, k = map(
        int, np.argwhere(result.q_matrix.sum(axis=1, keepdims=True) * result.q_matrix == 1)[0]
    )
    step = result.loadings[j, k] / table.values[:, j].std()
    assert standardized_effects(result, table)[j, k] == pytest.approx(step)


def test_means_are_clipped_to_the_range_of_the_table(found, table):
    wild = np.array(found.result.intercept)
    wild[3] = 1e12
    items = replace(found.result.parameters, intercept=wild)
    assert standardized_effects(replace(found.result, parameters=items), table)[3] == pytest.approx(
        0
    )


def test_equal_names_are_extended_by_more_items():
    data = simulate(design("Chain-5", "Q1", "gaussian", rng=1), 200, rng=2)
    result = DCRL(2, random_state=0, n_starts=1, family="gaussian", max_iter=5).fit(data.X).result_
    effects = np.where(result.q_matrix == 1, np.linspace(2, 1, 15)[:, None], 0.0)
    names = name_latents(result, effects)
    assert len(set(names)) == 2
    lowered = np.where(result.q_matrix == 1, -1.0, 0.0)
    assert name_latents(result, lowered, positive_only=True) == result.latent_names
    assert rename_latents(result, ("a", "b")).graph.names == ("a", "b")


@pytest.mark.parametrize(
    ("lowest", "chosen"),
    [
        ({2: 0.9, 3: 0.85, 4: 0.5}, 3),
        ({2: 0.5, 3: 0.9, 4: 0.7}, 3),
        ({2: 0.5, 3: 0.7, 4: 0.6}, 3),
    ],
)
def test_select_replicated(lowest, chosen):
    assert select_replicated(lowest) == chosen


def test_match_ignores_order_and_direction():
    rng = np.random.default_rng(0)
    one = rng.random((200, 3))
    other = np.column_stack([one[:, 2], 1 - one[:, 0], one[:, 1] + 0.2 * rng.random(200)])
    match = match_posteriors(one, other)
    assert match.partner.tolist() == [1, 2, 0]
    assert match.correlation[[0, 2]] == pytest.approx([1.0, 1.0])
    assert 0.9 < match.lowest < 1


def test_split_does_not_depend_on_row_order(table):
    first, second = split_rows(table)
    assert (first ^ second).all()
    assert abs(int(first.sum()) - int(second.sum())) <= 1
    order = np.random.default_rng(1).permutation(len(first))
    turned = Table(read_table(table.values[order]), table.families)
    assert np.array_equal(split_rows(turned)[0], first[order])


def test_residuals_increase_with_too_few_latents(found, table):
    good = residual_correlations(found.result, table)
    poor = residual_correlations(found.selection.fitted[4].result, table)
    assert good.root_mean_square < 0.5 * poor.root_mean_square < poor.observed_root_mean_square
    observed, implied = good.pairs[0][2:]
    assert abs(observed - implied) == pytest.approx(
        max(abs(a - b) for _, _, a, b in good.pairs), abs=1e-12
    )


def test_fit_replicates_itself(found, table):
    edges, again = edge_support(found.result, [found.result], table)
    assert all((joined, same) == (1.0, 1.0) for _, _, joined, same in edges)
    assert again == pytest.approx(np.ones((1, 5)))
