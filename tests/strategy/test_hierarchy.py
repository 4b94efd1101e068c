"""Knowledge while the law is estimated: its graph obeys, and prerequisites rule states out."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, Knowledge
from hidag.cli.messages import CommandLineStyle
from hidag.exceptions import HidagWarning, SettingError
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.simulation import Truth, chain_dag, make_truth, random_law, simulate

Q = np.array([[1, 0, 0]] * 4 + [[0, 1, 0]] * 4 + [[0, 0, 1]] * 4 + [[1, 1, 0], [0, 1, 1]])


def linear_truth():
    """A before B before C; one of A's items is turned the other way."""
    tables = (
        np.array([0.3, 0.7]),
        np.array([[1.0, 0.0], [0.3, 0.7]]),
        np.array([[1.0, 0.0], [0.4, 0.6]]),
    )
    law = NetworkLaw(StateSpace.binary(3), ((), (0,), (1,)), tables)
    loadings = 2.5 * Q.astype(float)
    loadings[0, 0] = -2.5
    return Truth(
        Q,
        np.full(len(Q), -1.0),
        loadings,
        np.ones(len(Q)),
        ("bernoulli",) * len(Q),
        law,
        latent_names=("A", "B", "C"),
    )


LINEAR = Knowledge(hierarchy=[("A", "B"), ("B", "C"), ("A", "C")])


@pytest.fixture(scope="module")
def rows():
    return np.array(simulate(linear_truth(), 1500, rng=np.random.default_rng(5)).X)


def fitted(rows, **settings):
    chosen = {"family": "bernoulli", "q_matrix": Q, "latent_names": ("A", "B", "C"), "n_starts": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        return DCRL(3, **{**chosen, "random_state": 0, **settings}).fit(rows)


@pytest.mark.parametrize("law", ["saturated", "network"])
def test_states_without_prerequisites_have_no_mass_and_steps_are_edges(rows, law):
    free = fitted(rows, law=law)
    held = fitted(rows, law=law, knowledge=LINEAR)
    possible = np.array([1, 0, 0, 0, 1, 0, 1, 1], dtype=bool)
    shares = np.asarray(held.latent_law_.probabilities)
    assert shares[~possible].max() == 0.0
    np.testing.assert_allclose(
        shares[possible], linear_truth().law.probabilities[possible], atol=0.05
    )
    assert {("A", "B"), ("B", "C")} <= set(held.graph_.directed_edges)
    assert held.log_likelihood_ <= free.log_likelihood_ + 0.1
    assert free.log_likelihood_ - held.log_likelihood_ < 10
    assert held.loadings_[0, 0] < 0


def test_interactions_add_nothing_where_skills_are_in_a_line(rows):
    main = fitted(rows, law="saturated", knowledge=LINEAR, tol=1e-6)
    every = fitted(rows, law="saturated", knowledge=LINEAR, effects="all", tol=1e-6)
    assert every.log_likelihood_ == pytest.approx(main.log_likelihood_, abs=0.05)


def test_transitive_steps_of_a_hierarchy_are_not_edges():
    assert LINEAR.required_adjacency(["A", "B", "C"]).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    allowed = Knowledge(hierarchy=[(0, 1)]).possible_states(["x", "y"], (3, 2))
    assert allowed.tolist() == [[True, False], [True, True], [True, True]]


@pytest.mark.parametrize("method", ["em", "saem"])
def test_the_graph_of_the_law_obeys_while_it_is_estimated(method):
    truth = make_truth(random_law(chain_dag(4), rng=0), np.vstack([np.eye(4, dtype=int)] * 4))
    X = np.array(simulate(truth, 400, rng=np.random.default_rng(0)).X)
    known = Knowledge(required=[("Z4", "Z1")], forbidden=[("Z1", "Z2"), ("Z2", "Z1"), ("Z2", "Z3")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        model = DCRL(
            4,
            family="gaussian",
            q_matrix=truth.q_matrix,
            law="network",
            method=method,
            knowledge=known,
            n_starts=1,
            max_iter=40,
            random_state=0,
        ).fit(X)
    law = model.latent_law_
    assert 3 in law.parents[0]
    assert 0 not in law.parents[1]
    assert 1 not in law.parents[0]
    assert 1 not in law.parents[2]
    stored = json.loads(json.dumps(model.result_.settings["knowledge"]))
    again = Knowledge.from_dict(stored)
    names = model.latent_names_
    np.testing.assert_array_equal(again.constraints(names), known.constraints(names))


def test_reindexed_knowledge_drops_latents_without_items():
    known = Knowledge(
        required=[("a", "b"), ("b", "d")], tiers=[["c"], ["a", "d"]], hierarchy=[("d", "c")]
    )
    left = known.reindex("abcd", [3, 0, 1])
    assert left == Knowledge(required=((1, 2), (2, 0)), tiers=((), (1, 0)))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"q_matrix": None},
            "a hierarchy is about latents with a meaning, but without a Q-matrix the fit decides "
            "which latent is which; give q_matrix (-1 where it is to be estimated)",
        ),
        (
            {"method": "saem"},
            "a hierarchy needs an enumeration of the joint states, but with 2^3 states latents "
            "would be sampled; use method='em', whose cost grows with the number of states",
        ),
    ],
)
def test_hierarchy_needs_q_and_enumeration(rows, settings, sentence):
    with pytest.raises(SettingError) as caught:
        fitted(rows, knowledge=LINEAR, **settings)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("method", ["auto", "em", "saem"])
def test_hierarchy_of_too_many_latents_is_refused_with_advice(method):
    rng = np.random.default_rng(0)
    n_latents = 17
    z = (rng.random((300, n_latents)) < 0.6).astype(int)
    z[:, 1] *= z[:, 0]
    q = np.vstack([np.eye(n_latents, dtype=int)] * 3)
    X = (rng.random((300, len(q))) < 0.1 + 0.8 * z @ q.T).astype(float)
    step = [("Z1", "Z2")]

    def model(**known):
        return DCRL(
            n_latents, q_matrix=q, knowledge=Knowledge(**known), method=method, random_state=0
        )

    with pytest.raises(SettingError) as caught:
        model(hierarchy=step).fit(X)
    assert str(caught.value) == (
        "a hierarchy needs an enumeration of the joint states, and 2^17 are more than 2^16; give "
        "its steps as required edges instead, which exclude no state, or use fewer latents"
    )
    assert "give its steps with --require instead" in caught.value.render(CommandLineStyle())
    if method != "em":
        result = model(required=step).fit(X).result_
        assert step[0] in result.graph.directed_edges
        assert isinstance(result.law, NetworkLaw)
        assert result.law.tables[1][0, 1] < 0.1


def fork_truth():
    """A before B and before C, which have nothing to do with each other beside it."""
    after = np.array([[1.0, 0.0], [0.4, 0.6]])
    tables = (np.array([0.3, 0.7]), after, after)
    law = NetworkLaw(StateSpace.binary(3), ((), (0,), (0,)), tables)
    return replace(linear_truth(), law=law)


@pytest.mark.parametrize("seed", range(4))
def test_the_law_is_selected_among_those_that_the_hierarchy_allows(seed):
    rows = np.array(simulate(fork_truth(), 1500, rng=np.random.default_rng(seed)).X)
    fork = Knowledge(hierarchy=[("A", "B"), ("A", "C")])
    held = fitted(rows, knowledge=fork)
    # Three numbers instead of four: the skills are independent given their prerequisite.
    assert isinstance(held.latent_law_, NetworkLaw)
    assert sorted(held.graph_.directed_edges) == [("A", "B"), ("A", "C")]
    assert not held.graph_.undirected_edges
    shares = np.asarray(held.latent_law_.probabilities)
    assert shares[held.result_.ruled_out].max() == 0.0


def test_the_law_is_saturated_under_a_linear_hierarchy_of_binary_skills(rows):
    held = fitted(rows, knowledge=LINEAR)
    assert isinstance(held.latent_law_, SaturatedLaw)
    assert isinstance(fitted(rows, knowledge=LINEAR, law="network").latent_law_, NetworkLaw)
    assert sorted(held.graph_.directed_edges) == [("A", "B"), ("B", "C")]


TWO = np.array([[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]] * 2)


@pytest.fixture(scope="module")
def any_is_enough():
    """No row has Z2 without Z1; items with both need any of them."""
    rng = np.random.default_rng(0)
    states = np.array([[0, 0], [1, 0], [1, 1]])[rng.choice(3, 1000, p=[0.3, 0.3, 0.4])]
    met = np.array([states[:, row == 1].any(axis=1) for row in TWO]).T
    return (rng.random(met.shape) < 0.15 + 0.7 * met) * 1.0


@pytest.mark.parametrize("law", ["saturated", "network"])
def test_dino_items_remain_disjunctive_under_a_hierarchy(any_is_enough, law):
    def dino(**settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HidagWarning)
            return DCRL(
                2,
                q_matrix=TWO,
                effects="dino",
                family="bernoulli",
                law=law,
                tol=1e-8,
                max_iter=2000,
                random_state=0,
                **settings,
            ).fit(any_is_enough)

    free, held = dino(), dino(knowledge=Knowledge(hierarchy=[("Z1", "Z2")]))
    # The states 00, 01, 10, 11.
    assert held.latent_law_.probabilities[1] == 0.0
    assert held.graph_.directed_edges == [("Z1", "Z2")]
    assert held.log_likelihood_ <= free.log_likelihood_ + 1e-6
    one = held.loadings_[6:, :1]
    np.testing.assert_allclose(held.loadings_[6:], one * [[1.0, 1.0, -1.0]], rtol=1e-12)
    np.testing.assert_array_equal(held.loadings_[:6, 2], 0.0)
