"""Interventions and conditioning against brute force, over members, and for many latents."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from hidag.causal import average_effects, what_if
from hidag.causal.possible_parents import enumerate_parent_sets
from hidag.causal.probability_queries import (
    WeightedSample,
    condition_law,
    factorise_over_dag,
    intervene,
)
from hidag.exceptions import DataError, SettingError
from hidag.latent import SaturatedLaw, StateSpace
from hidag.simulation import Truth, chain_dag, make_truth, random_dag, random_law
from hidag.structure import CPDAG, DAG

LEVELS = (2, 3, 2, 2)


def a_truth(seed=0, levels=LEVELS, average_parents=1.2, family="gaussian"):
    rng = np.random.default_rng(seed)
    dag = random_dag(len(levels), average_parents, rng=rng)
    q = np.vstack([np.eye(len(levels), dtype=int), rng.integers(0, 2, (3, len(levels)))])
    return make_truth(random_law(dag, rng=rng, levels=levels), q, family, rng=rng)


def joint_after(law, dag, do):
    """Truncated factorisation, state by state, with tables from sums over the joint law."""
    states, p = law.space.states(), np.asarray(law.probabilities)
    out = np.ones(len(states))
    for k, causes in enumerate(dag.parents):
        if k in do:
            out *= states[:, k] == do[k]
            continue
        for s, state in enumerate(states):
            same = (states[:, list(causes)] == state[list(causes)]).all(axis=1)
            out[s] *= p[same & (states[:, k] == state[k])].sum() / p[same].sum()
    return out


def marginal_of(joint, states, k, n_levels):
    return np.array([joint[states[:, k] == v].sum() for v in range(n_levels)]) / joint.sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("listed", [1, 1 << 11])
def test_interventions_follow_the_truncated_factorisation_in_every_member(
    seed, listed, as_result, monkeypatch
):
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_ENUMERATED_STATES", listed)
    truth = a_truth(seed)
    states = truth.law.space.states()
    do, given = {"Z2": 2, "Z4": 0}, {"Z1": 1}
    found = what_if(as_result(truth), do=do, given=given)
    low = [np.full(m, np.inf) for m in LEVELS]
    high = [np.full(m, -np.inf) for m in LEVELS]
    means = []
    for dag in truth.cpdag.members():
        joint = joint_after(truth.law, dag, {1: 2, 3: 0}) * (states[:, 0] == 1)
        joint /= joint.sum()
        means.append(joint @ truth.means(states))
        for k, m in enumerate(LEVELS):
            one = marginal_of(joint, states, k, m)
            low[k], high[k] = np.minimum(low[k], one), np.maximum(high[k], one)
    for k, name in enumerate(truth.latent_names):
        _, least, most = found.latent(name)
        np.testing.assert_allclose(least, low[k], atol=1e-12)
        np.testing.assert_allclose(most, high[k], atol=1e-12)
    np.testing.assert_allclose(found.items_after.min(axis=0), np.min(means, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.items_after.max(axis=0), np.max(means, axis=0), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_parent_sets_are_those_of_the_members(seed):
    rng = np.random.default_rng(seed)
    graph = random_dag(6, 1.7, rng=rng).to_cpdag()
    members = graph.members()
    for targets in ([0], [3], [1, 4]):
        wanted = {tuple(dag.parents[t] for t in targets) for dag in members}
        found = enumerate_parent_sets(graph, targets)
        assert {tuple(dag.parents[t] for t in targets) for dag in found.dags} == wanted
        assert found.complete
        assert len(found.dags) == len(wanted)
        assert all(graph.contains(dag) for dag in found.dags)


def test_parent_sets_respect_directions_from_knowledge():
    graph = CPDAG.from_edges("ABCD", [("A", "B"), ("B", "C")], [("A", "D")])
    # Data alone do not direct A -> B -> C: a chain has no collider.
    members = {tuple(dag.edges) for dag in graph.members()}
    found = enumerate_parent_sets(graph, [0])
    assert {dag.parents[0] for dag in found.dags} == {(), (3,)}
    assert {tuple(dag.edges) for dag in found.dags} <= members


def test_interventions_change_descendants_only(as_result):
    truth = a_truth()
    levels = truth.law.space.levels
    noise = np.random.default_rng(2).dirichlet(np.ones(truth.law.space.n_states))
    result = as_result(truth, law=SaturatedLaw(truth.law.space, noise))
    graph = CPDAG.from_edges(result.latent_names, [(result.latent_names[1], "Z1")], [])
    found = what_if(replace(result, graph=graph), do={"Z1": 1}, given={"Z2": 0})
    for k in range(1, len(levels)):
        np.testing.assert_allclose(found.latents_after[k], found.latents_before[k][None])
    untouched = [o for o, one in enumerate(found.outcomes) if 0 not in one.latents]
    assert untouched
    np.testing.assert_allclose(
        found.items_after[:, untouched], found.items_before[None, untouched], atol=1e-12
    )
    # Without an intervention the fitted law is used itself.
    seen = what_if(replace(result, graph=graph), given={"Z2": 0})
    right = noise.reshape(levels)[:, 0].sum(axis=tuple(range(1, len(levels) - 1)))
    np.testing.assert_allclose(seen.latents_before[0], right / right.sum())


@pytest.mark.parametrize("saturated", [False, True])
def test_conditioning_agrees_in_all_members_and_with_brute_force(saturated, as_result):
    truth = a_truth(1)
    law, states = truth.law, truth.law.space.states()
    if saturated:
        noise = np.random.default_rng(0).dirichlet(np.ones(law.space.n_states))
        law = SaturatedLaw(law.space, noise)
    joint = np.asarray(law.probabilities) * (states[:, 1] == 1) * (states[:, 3] == 0)
    joint /= joint.sum()
    found = what_if(as_result(truth, law=law), given={"Z2": 1, "Z4": 0})
    for k, name in enumerate(truth.latent_names):
        before, low, high = found.latent(name)
        expected = marginal_of(joint, states, k, LEVELS[k])
        for got in (before, low, high):
            np.testing.assert_allclose(got, expected, atol=1e-12)
    np.testing.assert_allclose(found.items_before, joint @ truth.means(states), atol=1e-12)
    if not saturated:
        for dag in truth.cpdag.members():
            np.testing.assert_allclose(
                factorise_over_dag(law, dag).probabilities, law.probabilities, atol=1e-12
            )


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
def test_items_can_be_given(family, as_result):
    truth = a_truth(2, family=family)
    result = as_result(truth)
    states = truth.law.space.states()
    row = np.full((1, truth.n_items), np.nan)
    row[0, 5], row[0, 1] = 1.0, 0.0
    found = what_if(result, given={"X6": 1, "X2": 0})
    for k, expected in enumerate(result.posterior_levels(row)):
        np.testing.assert_allclose(found.latents_before[k], expected[0], atol=1e-10)
    assert found.n_parent_sets == 1
    assert len(states) == truth.law.space.n_states


@pytest.mark.parametrize("n_latents_of_the_item", [1, 2])
def test_values_before_an_intervention_condition_on_the_given_items(
    n_latents_of_the_item, as_result
):
    truth = a_truth(2, family="bernoulli")
    result = as_result(truth)
    item = int(np.flatnonzero(truth.q_matrix[:, 0] * truth.q_matrix.sum(1) == 1)[0])
    if n_latents_of_the_item == 2:
        item = int(np.flatnonzero(truth.q_matrix[:, 0] * truth.q_matrix.sum(1) > 1)[0])
    given = {result.item_names[item]: 0}
    seen = what_if(result, given=given)
    both = what_if(result, do={"Z1": 1}, given=given)
    for alone, beside in zip(seen.latents_before, both.latents_before, strict=True):
        np.testing.assert_allclose(beside, alone, atol=1e-12)
    np.testing.assert_allclose(both.items_before, seen.items_before, atol=1e-12)
    # The level that is set later is not yet seen, by whatever name it goes.
    for name in ("Z1", 0, np.int64(0)):
        reported = what_if(result, do={"Z1": 1}, given=given | {name: 1})
        np.testing.assert_allclose(reported.latents_before[0], seen.latents_before[0], atol=1e-12)


def test_categories_have_probabilities_that_sum_to_one_and_match_the_mean(as_result):
    law = random_law(chain_dag(2), rng=0)
    cut = np.array([[1.0, 2.5], [np.nan, np.nan]])
    truth = Truth(
        np.ones((2, 2), dtype=int),
        [0.3, -1.0],
        [[1.0, -2.0], [1.0, 0.5]],
        [1.0, 1.0],
        ("ordinal(1..4)", "bernoulli"),
        law,
        cutpoints=cut,
    )
    found = what_if(as_result(truth), do={"Z1": 1})
    names = [(one.item, one.what) for one in found.outcomes]
    assert names == [
        ("X1", "mean"),
        *(("X1", f"P(={c})") for c in (1, 2, 3, 4)),
        ("X2", "mean"),
    ]
    shares = found.items_after[:, 1:5]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ [1, 2, 3, 4], found.items_after[:, 0])


@pytest.mark.parametrize("average_parents", [1.0, 1.6])
def test_queries_with_fifty_latents_are_exact(average_parents, as_result):
    rng = np.random.default_rng(3)
    dag = random_dag(50, average_parents, rng=rng)
    law = random_law(dag, rng=rng, effects=(0.5, 1.0))
    truth = make_truth(law, np.vstack([np.eye(50, dtype=int)] * 2), "gaussian")
    found = what_if(as_result(truth), do={"Z7": 1}, given={"Z20": 0})
    assert found.exact
    # The member that made the law is one of the choices; draws under it agree.
    after = intervene(law, {6: 1})
    drawn = after.sample(200_000, np.random.default_rng(0))
    drawn = drawn[drawn[:, 19] == 0]
    shares = drawn.mean(axis=0)
    for k, name in enumerate(truth.latent_names):
        _, low, high = found.latent(name)
        assert low[1] - 0.012 < shares[k] < high[1] + 0.012


def test_dense_graphs_are_sampled(monkeypatch):
    truth = a_truth(0, levels=(2,) * 6, average_parents=2.0)
    exact = condition_law(truth.law)
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_ENUMERATED_STATES", 1)
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_TABLE_CELLS", 2)
    drawn = condition_law(truth.law)
    assert isinstance(drawn, WeightedSample)
    np.testing.assert_allclose(drawn.marginal((4, 1)), exact.marginal((4, 1)), atol=0.005)


@pytest.mark.parametrize("listed", [1, 1 << 11])
def test_marginals_of_any_latents_in_any_order_are_exact(listed, monkeypatch):
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_ENUMERATED_STATES", listed)
    truth = a_truth(5, levels=(2, 3, 2, 2, 3, 2), average_parents=1.5)
    law = truth.law
    cube = np.asarray(law.probabilities).reshape(law.space.levels)
    known = condition_law(law)
    for wanted in product(range(6), repeat=3):
        if len(set(wanted)) < 3:
            continue
        others = tuple(k for k in range(6) if k not in wanted)
        expected = np.transpose(cube.sum(axis=others), np.argsort(np.argsort(wanted)))
        np.testing.assert_allclose(known.marginal(wanted), expected, atol=1e-12)


def test_intervening_on_a_root_is_conditioning_and_on_an_effect_changes_no_cause(as_result):
    dag = DAG.from_edges(["A", "B"], [("A", "B")])
    law = random_law(dag, rng=0)
    truth = make_truth(law, np.eye(2, dtype=int), "gaussian")
    result = as_result(truth, graph=CPDAG(dag.adjacency, truth.latent_names))
    seen, done = what_if(result, given={"Z1": 1}), what_if(result, do={"Z1": 1})
    np.testing.assert_allclose(seen.latents_after[1], done.latents_after[1])
    assert done.determined
    before, low, high = what_if(result, do={"Z2": 1}).latent("Z1")
    np.testing.assert_allclose(low, before)
    np.testing.assert_allclose(high, before)


@pytest.mark.parametrize(
    ("do", "given", "kind", "words"),
    [
        ({"Z9": 1}, {}, SettingError, "'Z9' is not a latent; the latents are Z1, Z2, Z3, Z4"),
        (
            {"X1": 1},
            {},
            SettingError,
            "X1 is an item and cannot be set: items are effects, and an intervention on one "
            "changes no latent; set one of the latents Z1, Z2, Z3, Z4",
        ),
        ({"Z1": 2}, {}, SettingError, "Z1=2 is not a level of Z1: its levels are 0 to 1"),
        ({"Z1": 1, 0: 0}, {}, SettingError, "Z1 is set twice, by name and by index; set it once"),
        (["Z1"], {}, SettingError, "do must be a mapping such as {'Z1': 1}, got list"),
        ({}, "Z1=1", SettingError, "given must be a mapping such as {'Z1': 1}, got str"),
        ({"Z1": "high"}, {}, DataError, "Z1='high' must be a number"),
        (
            {},
            {"Q": 1},
            SettingError,
            "'Q' is not a latent, nor one of the 7 items; the latents are Z1, Z2, Z3, Z4",
        ),
        (
            {"Z1": 1},
            {"Z1": 0},
            SettingError,
            "Z1 is set to 1 but given as 0; leave it out of given",
        ),
        (
            {"Z1": 1},
            {np.int64(0): 0},
            SettingError,
            "Z1 is set to 1 but given as 0; leave it out of given",
        ),
        (
            {},
            {"X1": 0.5},
            DataError,
            "X1=0.5 cannot be given: the item (bernoulli) takes 0 and 1",
        ),
    ],
)
def test_invalid_queries_are_refused(do, given, kind, words, as_result):
    result = as_result(a_truth(0, family="bernoulli"))
    with pytest.raises(kind) as caught:
        what_if(result, do=do, given=given)
    assert str(caught.value) == words


def test_invalid_settings_are_refused(as_result):
    result = as_result(a_truth())
    for ask in (what_if, average_effects):
        with pytest.raises(SettingError) as caught:
            ask(result, limit=0)
        assert str(caught.value) == "limit must be a whole number of at least 1, got 0"
        with pytest.raises(SettingError) as caught:
            ask(result, graph=np.zeros((4, 4)))
        assert str(caught.value) == "graph must be a CPDAG or a DAG, got ndarray"


def test_impossible_evidence_is_refused(as_result):
    truth = a_truth(0, levels=(2, 2), average_parents=0.5)
    law = SaturatedLaw(StateSpace((2, 2)), np.array([0.5, 0.0, 0.2, 0.3]))
    with pytest.raises(DataError) as caught:
        what_if(as_result(truth, law=law), given={"Z1": 0, "Z2": 1})
    assert str(caught.value) == (
        "the given values have probability zero under the fitted latent distribution"
    )
