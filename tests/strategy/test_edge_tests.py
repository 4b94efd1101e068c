"""Edges that the fitted law shows and the data do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.latent import LatentCounts
from hidag.latent.counts import resample
from hidag.latent.laws import factorise_counts, n_free_probabilities
from hidag.simulation import random_dag, random_law
from hidag.strategy.observed_likelihood.edge_tests import confirm_edges
from hidag.structure import DAG, Knowledge, search_graph
from hidag.structure.graph_search import climb_from
from hidag.structure.scores import CountScore, ScoreCache

from .tables import CHAIN, SPACE, bent_law, chain_law, observed_chain


def test_factorising_over_the_true_graph_changes_nothing():
    law = chain_law()
    np.testing.assert_allclose(factorise_counts(law, CHAIN, SPACE), law, atol=1e-12)
    apart = factorise_counts(law, ((), (), ()), SPACE).reshape(2, 2, 2)
    np.testing.assert_allclose(apart, 0.125, atol=1e-12)


def test_factorising_over_a_complete_graph_changes_nothing():
    law = np.random.default_rng(0).dirichlet(np.ones(8))
    np.testing.assert_allclose(factorise_counts(law, ((), (0,), (0, 1)), SPACE), law, atol=1e-12)


@pytest.fixture(scope="module")
def noisy():
    """A chain of latents seen through items that are weakly informative about the third."""
    return observed_chain((3.0, 3.0, 1.0), 2000, 1)


def test_restricting_the_law_never_raises_the_likelihood(noisy):
    full = DAG(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])).to_cpdag()
    chain = DAG(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])).to_cpdag()
    empty = DAG(np.zeros((3, 3), dtype=int)).to_cpdag()
    values = [noisy.law_under(g)[1] for g in (full, chain, empty)]
    assert values[0] > values[1] - 0.5
    assert values[1] > values[2] + 50
    graphs = (full, chain, empty)
    assert [n_free_probabilities(g.to_dag().parents, SPACE) for g in graphs] == [7, 5, 3]


def test_unsupported_edges_are_removed_and_true_edges_retained(noisy):
    bent = bent_law()
    states = SPACE.states().astype(np.uint8)
    counts = LatentCounts(states, 1000 * bent, SPACE.levels, ("a", "b", "c"))

    def search(knowledge, start=None):
        return search_graph(counts, knowledge=knowledge)

    found = search(None)
    assert ((found.graph.adjacency + found.graph.adjacency.T) > 0).sum() == 6
    observed = replace(noisy, law=bent)
    confirmed = confirm_edges(
        found,
        search,
        None,
        observed,
        CountScore(counts),
        n_rows=1000,
        n_scored=counts.total,
        max_tests=10,
    )
    graph, tests = confirmed.graph, confirmed.tests
    joined = (graph.adjacency | graph.adjacency.T) == 1
    assert joined[0, 1]
    assert joined[1, 2]
    assert not joined[0, 2]
    assert graph.is_valid()
    dropped = [t for t in tests if not t.kept]
    assert [t.pair for t in dropped] == [("a", "c")]
    assert dropped[0].likelihood_loss < dropped[0].saved


def test_edge_with_overstated_counts_is_tested(noisy):
    # The same spurious dependence, but the score counts on five times the rows that it should.
    bent = bent_law()
    states = SPACE.states().astype(np.uint8)
    counts = LatentCounts(states, 5000 * bent, SPACE.levels, ("a", "b", "c"))

    def search(knowledge, start=None):
        return search_graph(counts, knowledge=knowledge)

    def confirmed(n_scored):
        return confirm_edges(
            search(None),
            search,
            None,
            replace(noisy, law=bent),
            CountScore(counts),
            n_rows=1000,
            n_scored=n_scored,
            max_tests=10,
        )

    assert confirmed(1000.0).tests == ()
    found = confirmed(counts.total)
    assert [test.pair for test in found.tests if not test.kept] == [("a", "c")]
    assert found.tests[0].score_loss > CONFIG.edge_tests.certain_loss


@pytest.mark.parametrize(("share", "kept"), [(0.99, False), (1.01, True)])
def test_an_edge_stays_exactly_if_it_gains_more_than_it_costs(noisy, share, kept):
    bent = bent_law()
    states = SPACE.states().astype(np.uint8)
    counts = LatentCounts(states, 1000 * bent, SPACE.levels, ("a", "b", "c"))
    gain = 0.0

    class FixedLikelihood:
        """Data whose likelihood supports the edge between a and c by a given amount."""

        parameters, space, possible = noisy.parameters, noisy.space, noisy.possible

        def law_under(self, graph):
            joined = (graph.adjacency | graph.adjacency.T) == 1
            return bent, gain if joined[0, 2] else 0.0

    def tested():
        confirmed = confirm_edges(
            search_graph(counts),
            lambda knowledge, start: search_graph(counts, knowledge=knowledge),
            None,
            FixedLikelihood(),
            CountScore(counts),
            n_rows=1000,
            n_scored=counts.total,
            max_tests=1,
        )
        return confirmed.tests[0]

    first = tested()
    assert first.pair == ("a", "c")
    # The edge makes a table of two lines one of four; each line costs half of log 1000.
    assert first.saved == pytest.approx(2 * 0.5 * np.log(1000))
    gain = share * first.saved
    assert tested().kept is kept


def test_climbing_from_the_graph_without_a_weak_edge_finds_what_a_whole_search_finds():
    losses = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        law = random_law(random_dag(6, 0.5, rng=rng), effects=(0.3, 1.0), rng=rng)
        counts = resample(law, 1000, tuple("abcdef"), rng)
        found, names = search_graph(counts), counts.names
        cache = ScoreCache(CountScore(counts), 6)
        for a, b in np.argwhere(found.dag.adjacency):
            apart = Knowledge(forbidden=((names[a], names[b]), (names[b], names[a])))
            start = found.dag.adjacency.copy()
            start[a, b] = 0
            near = search_graph(counts, search=climb_from(start, cache), knowledge=apart)
            whole = search_graph(counts, knowledge=apart)
            assert near.graph.adjacency[a, b] == near.graph.adjacency[b, a] == 0
            losses.append((found.score - whole.score, found.score - near.score))
    weak = np.array([pair for pair in losses if min(pair) < CONFIG.edge_tests.certain_loss])
    assert len(weak) > 3
    np.testing.assert_allclose(weak[:, 1], weak[:, 0], atol=0.5)
