"""Graphs by the observed data's likelihood: what is estimated, what is found, what may not be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.e_step import run_law_e_step
from hidag.latent import LatentCounts, StateSpace
from hidag.latent.laws import are_equivalent, factorise_counts
from hidag.strategy.observed_likelihood.edge_tests import search_by_likelihood
from hidag.strategy.observed_likelihood.likelihood_search import (
    LikelihoodSearch,
    SingleChanges,
    _observed,
    _Tables,
    move_estimates,
    use_likelihood_search,
)
from hidag.structure import DAG, Knowledge, SearchResult
from hidag.structure.mixed_graphs import parents_to_adjacency
from hidag.structure.scores import CountScore

from .tables import CHAIN, EMPTY, FULL, SPACE, bent_law, chain_law, observed_chain

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def weak():
    """A chain seen through items that are weakly informative about all latents."""
    return observed_chain((1.2, 1.2, 1.2), 3000, 2)


def likelihood_of(observed, law):
    features = np.ascontiguousarray(observed.parameters.terms.features(SPACE.states()))
    return run_law_e_step(observed.parameters, law, observed.data, features)[1]


def test_scores_of_the_tables_are_derivatives_of_the_observed_likelihood(weak):
    parents = ((), (0,), (0, 1))
    law = factorise_counts(np.random.default_rng(0).dirichlet(np.ones(8)), parents, SPACE)
    tables = _Tables.of(parents, law, SPACE.states())
    total, _ = _observed(weak, law, tables.scores)
    step = 1e-5
    for place in range(len(tables.probabilities)):
        # A table's number moves, and the law with it along its score.
        values = []
        for sign in (1.0, -1.0):
            moved = law * (1.0 + sign * step * tables.scores[:, place])
            values.append(likelihood_of(weak, moved))
        assert total[place] == pytest.approx(
            (values[0] - values[1]) / (2 * step), rel=1e-4, abs=0.01
        )


def test_estimated_gains_of_single_edges_are_near_those_of_fits(weak):
    search = LikelihoodSearch(weak)
    empty = search.fitted(EMPTY, chain_law())
    chain = search.fitted(CHAIN, chain_law())
    gains = move_estimates(weak, EMPTY, empty.law).gains
    one = search.fitted(((), (0,), ()), chain_law())
    assert set(gains) == {(0, 1), (0, 2), (1, 2)}
    assert gains[0, 1] == pytest.approx(one.log_likelihood - empty.log_likelihood, rel=0.35)
    found = move_estimates(weak, CHAIN, chain.law)
    other = search.fitted(((), (0,), ()), chain_law())
    assert found.losses[1, 2] == pytest.approx(
        chain.log_likelihood - other.log_likelihood, rel=0.35
    )
    # The ends of the chain have nothing more to say to each other.
    assert found.gains == {(0, 2): pytest.approx(0.0, abs=3.0)}


@pytest.mark.parametrize("begin", [EMPTY, FULL, ((2,), (2,), ())])
def test_the_chain_is_found_from_anywhere(weak, begin):
    observed = replace(weak, law=bent_law())
    search = LikelihoodSearch(observed)
    best = search.best_from(begin)
    assert are_equivalent(best.parents, CHAIN)
    assert best.criterion >= search.fitted(begin, observed.law).criterion
    assert best.log_likelihood == pytest.approx(likelihood_of(weak, best.law))


def test_the_search_obeys_required_and_forbidden_edges(weak):
    apart = Knowledge(forbidden=[("a", "b"), ("b", "a")], required=[("a", "c")])
    begin = ((), (), (0,))
    best = LikelihoodSearch(weak, SingleChanges(apart.constraints(NAMES))).best_from(begin)
    adjacency = parents_to_adjacency(best.parents)
    assert adjacency[0, 2]
    assert not adjacency[0, 1]
    assert not adjacency[1, 0]


def test_the_search_by_likelihood_returns_a_test_of_each_edge(weak):
    counts = LatentCounts(SPACE.states().astype(np.uint8), 500 * bent_law(), SPACE.levels, NAMES)
    score = CountScore(counts)
    full = DAG.from_parents(FULL, NAMES)
    found = SearchResult(full.to_cpdag(), 0.0, 0, 0, full)
    confirmed = search_by_likelihood(found, weak, score, None)
    assert confirmed.by_likelihood
    assert confirmed.graph.undirected_edges == [("a", "b"), ("b", "c")]
    assert {frozenset(test.pair) for test in confirmed.tests} == {
        frozenset(("a", "b")),
        frozenset(("b", "c")),
    }
    assert all(test.kept and test.likelihood_loss > test.saved > 0 for test in confirmed.tests)
    known = search_by_likelihood(found, weak, score, Knowledge(required=[("b", "c")]))
    assert ("b", "c") in known.graph.directed_edges
    assert [frozenset(test.pair) for test in known.tests] == [frozenset(("a", "b"))]


def test_it_is_for_binary_latents_with_a_low_information_ratio(weak):
    assert use_likelihood_search(weak, CONFIG.information.low_ratio / 2)
    assert not use_likelihood_search(weak, CONFIG.information.low_ratio)
    assert not use_likelihood_search(
        replace(weak, space=StateSpace((2, 3, 2))), CONFIG.information.low_ratio / 2
    )
    many = replace(weak, space=StateSpace.binary(20))
    assert not use_likelihood_search(many, CONFIG.information.low_ratio / 2)
