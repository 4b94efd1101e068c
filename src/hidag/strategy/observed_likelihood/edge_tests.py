"""Tests of edges and of prior knowledge by the observed-data likelihood.

Counts expected under a fitted law treat latents as if they were observed, although items may not
distinguish some of their states. The weakest edges are therefore tested on the observed data: the
law over the graph with the edge and the law over the best graph without it are both fitted by EM
with the items' coefficients fixed, and compared by the Bayesian information criterion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.latent.counts import LatentCounts
from hidag.latent.laws import Parents, network_complexity
from hidag.measurement.parameters import order_all_levels
from hidag.strategy.observed_likelihood.likelihood_search import (
    FittedGraph,
    LikelihoodSearch,
    ObservedFit,
    SingleChanges,
    edges_of,
)
from hidag.structure.graph_search import SearchResult
from hidag.structure.graphs import CPDAG, DAG
from hidag.structure.knowledge import Knowledge, nonadjacent_pairs, orient_by_knowledge
from hidag.structure.scores import CountScore, LocalScore


@dataclass(frozen=True)
class KnowledgeCost:
    """Evidence of the data against prior knowledge about the graph."""

    log_likelihood: float  # Loss of observed-data log-likelihood by the knowledge.
    saved: float  # Complexity that the law saves, in the same units: half log N per parameter.
    # Forbidden pairs that alone cost more than they save, with the loss of log-likelihood, the
    # largest first. Empty too if there are too many pairs to test.
    pairs: tuple[tuple[str, str, float], ...] = ()
    # Effective number of rows of expected counts, if those were used; None otherwise.
    counted: float | None = None

    @property
    def strong(self) -> bool:
        """Whether the evidence against the knowledge is very strong."""
        # A law with the knowledge may have more parameters, which is no evidence against it.
        return bool(self.log_likelihood - max(self.saved, 0.0) > CONFIG.edge_tests.very_strong)


def cost_of_knowledge(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    observed: ObservedFit,
    *,
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return the cost of knowledge if the evidence against it is very strong, otherwise None.

    A hierarchy is not tested: the states that it excludes have no mass in any law.

    Parameters
    ----------
    graph : CPDAG
        Found under the knowledge.
    search : callable
        Repeats the search under other knowledge.
    max_pairs : int
        Largest number of pairs that are tested one by one.
    """
    fits = LikelihoodSearch(observed)

    def evaluate(parents: Parents) -> tuple[float, float]:
        found = fits.fitted(parents, observed.law)
        return found.log_likelihood, found.criterion

    return _strong_cost(graph, search, knowledge, evaluate, max_pairs)


def cost_on_counts(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    counts: LatentCounts,
    *,
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return the result of :func:`cost_of_knowledge` from expected counts of the latents."""
    score, levels = CountScore(counts, "bic"), counts.levels
    half_log = 0.5 * math.log(counts.total)

    def evaluate(parents: Parents) -> tuple[float, float]:
        criterion = sum(score.local(k, tuple(causes)) for k, causes in enumerate(parents))
        free = (
            (levels[k] - 1) * math.prod(levels[a] for a in causes)
            for k, causes in enumerate(parents)
        )
        return criterion + half_log * sum(free), criterion

    cost = _strong_cost(graph, search, knowledge, evaluate, max_pairs)
    return None if cost is None else replace(cost, counted=counts.total)


def _strong_cost(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    evaluate: Callable[[Parents], tuple[float, float]],
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return the cost of knowledge; ``evaluate`` gives log-likelihood and criterion of a graph."""
    obeying = evaluate(graph.to_dag().parents)

    def cost(freer: Knowledge) -> KnowledgeCost:
        other = evaluate(search(freer).dag.parents)
        loss = other[0] - obeying[0]
        return KnowledgeCost(loss, loss - (other[1] - obeying[1]))

    whole = cost(Knowledge(hierarchy=knowledge.hierarchy))
    if not whole.strong:
        return None
    names = graph.names
    given = knowledge.reindex(names)
    apart = nonadjacent_pairs(given, names)
    alone = []
    for a, b in apart if len(apart) <= max_pairs else ():
        others = tuple(edge for edge in given.forbidden if set(edge) != {a, b})
        found = cost(replace(given, forbidden=others))
        if found.strong:
            alone.append((names[a], names[b], found.log_likelihood))
    return replace(whole, pairs=tuple(sorted(alone, key=lambda one: -one[2])))


Array = NDArray[np.float64]
#: Finds the best graph under other knowledge, near a DAG with this adjacency.
NearbySearch = Callable[[Knowledge, NDArray[np.int8]], SearchResult]


@dataclass(frozen=True)
class EdgeTest:
    """The test of one edge by the observed-data likelihood."""

    pair: tuple[str, str]
    score_loss: float  # Loss of the graph's score without the edge.
    likelihood_loss: float  # Loss of observed-data log-likelihood.
    saved: float  # Complexity saved: half the log of the effective number of rows per parameter.
    kept: bool


@dataclass(frozen=True)
class _Evaluated:
    """A graph, its law, and the log-likelihood and complexity of that law."""

    found: SearchResult
    law: Array
    likelihood: float
    cost: float


@dataclass(frozen=True)
class Confirmed:
    """The graph after tests by the observed-data likelihood."""

    graph: CPDAG
    tests: tuple[EdgeTest, ...]  # The comparisons that were made.
    law: Array | None  # The law over the graph, if it was fitted, shape (S,).
    # Whether the graph was searched by the observed-data likelihood, not only tested by it.
    by_likelihood: bool = False
    # Very strong evidence against prior knowledge, if any.
    knowledge_cost: KnowledgeCost | None = None


@dataclass(frozen=True)
class _Alternative:
    """The best graph without one of the pairs."""

    loss: float
    pair: tuple[int, int]
    found: SearchResult


def supports_edge(lost: float, saved: float) -> bool:
    """Return whether an edge stays that gains ``lost`` log-likelihood at a complexity ``saved``."""
    return bool(lost > saved)


def confirm_edges(
    found: SearchResult,
    search: NearbySearch,
    knowledge: Knowledge | None,
    observed: ObservedFit,
    score: LocalScore,
    *,
    n_rows: float,
    n_scored: float,
    max_tests: int,
) -> Confirmed:
    """Return the graph without edges that the observed-data likelihood does not support.

    Parameters
    ----------
    search : callable
        Climbs from a DAG under other knowledge.
    knowledge : Knowledge or None
        Required edges are not tested.
    score : LocalScore
        Score that the search maximised.
    n_rows : float
        Effective number of rows. The number of rows of the table would penalise for information
        that the items do not carry.
    n_scored : float
        Number of rows in the score. It exceeds ``n_rows`` after few unconstrained updates, which
        understate dependence that the law lacked; other dependence is then overstated, and its
        edges are tested.
    """
    half_log = 0.5 * float(np.log(max(n_rows, 2.0)))
    certain_loss = CONFIG.edge_tests.certain_loss * max(1.0, n_scored / max(n_rows, 1.0))
    orders = order_all_levels(observed.parameters)[: observed.space.n_latents]

    def evaluate(result: SearchResult) -> _Evaluated:
        law, value = observed.law_under(result.graph)
        cost = network_complexity(
            law * n_rows, result.dag.parents, observed.space, orders, half_log, observed.possible
        )
        return _Evaluated(result, law, value, cost)

    given = knowledge or Knowledge()
    names = found.graph.names
    required = given.required_adjacency(names)
    apart: list[tuple[int, int]] = []
    tests: list[EdgeTest] = []
    tested: set[tuple[int, int]] = set()
    current: _Evaluated | None = None
    alternatives = _alternatives(found, search, given, apart, required, score, certain_loss)
    while len(tests) < max_tests:
        left = [alternative for alternative in alternatives if alternative.pair not in tested]
        if not left:
            break
        alternative = min(left, key=lambda one: one.loss)
        current = current or evaluate(found)
        other = evaluate(alternative.found)
        lost = current.likelihood - other.likelihood
        saved = current.cost - other.cost
        kept = supports_edge(lost, saved)
        a, b = alternative.pair
        tests.append(EdgeTest((names[a], names[b]), alternative.loss, lost, saved, kept))
        tested.add(alternative.pair)
        if not kept:
            apart.append(alternative.pair)
            current, found = other, alternative.found
            alternatives = _alternatives(found, search, given, apart, required, score, certain_loss)
    graph = found.graph
    if apart and knowledge is None:
        graph = graph.to_dag().to_cpdag()
    return Confirmed(graph, tuple(tests), None if current is None else current.law)


def _alternatives(
    found: SearchResult,
    search: NearbySearch,
    given: Knowledge,
    apart: list[tuple[int, int]],
    required: NDArray[np.int8],
    score: LocalScore,
    certain_loss: float,
) -> list[_Alternative]:
    """Return the best graphs without one of the edges, of those with a small loss of score."""
    adjacency = found.graph.adjacency
    weak = _weak_edges(found, score, CONFIG.edge_tests.no_search_needed * certain_loss)
    out = []
    joined = np.triu((adjacency | adjacency.T) == 1, 1)
    for a, b in np.argwhere(joined).tolist():
        if required[a, b] or required[b, a] or not weak[a, b]:
            continue
        start = found.dag.adjacency.copy()
        start[[a, b], [b, a]] = 0
        other = search(_keep_apart(given, [*apart, (a, b)]), start)
        if found.score - other.score < certain_loss:
            out.append(_Alternative(found.score - other.score, (a, b), other))
    return out


def _weak_edges(found: SearchResult, score: LocalScore, most: float) -> NDArray[np.bool_]:
    """Return the edges whose removal loses less than ``most``, shape (K, K), symmetric.

    Dropping an edge without another change loses at least as much as the best graph without it.
    """
    parents = found.graph.to_dag().parents
    out = np.zeros(found.graph.adjacency.shape, dtype=bool)
    for child, causes in enumerate(parents):
        best = score.local(child, causes)
        for cause in causes:
            left = score.local(child, tuple(a for a in causes if a != cause))
            out[cause, child] = out[child, cause] = best - left < most
    return out


def _keep_apart(given: Knowledge, pairs: list[tuple[int, int]]) -> Knowledge:
    both = [edge for a, b in pairs for edge in ((a, b), (b, a))]
    return replace(given, forbidden=(*given.forbidden, *both))


def search_by_likelihood(
    found: SearchResult, observed: ObservedFit, score: LocalScore, knowledge: Knowledge | None
) -> Confirmed:
    """Return the graph that a search by observed-data likelihood finds, and a test of each edge.

    Parameters
    ----------
    found : SearchResult
        Starting point of the search, from counts.
    score : LocalScore
        Score of the counts.
    """
    names = found.graph.names
    rules = None if knowledge is None else knowledge.constraints(names)
    search = LikelihoodSearch(observed, SingleChanges(rules))
    best = search.best_from(found.dag.parents)
    completed = DAG.from_parents(best.parents, names).to_cpdag().adjacency
    graph = CPDAG(orient_by_knowledge(completed, rules), names)
    return Confirmed(graph, _tests(search, best, score, names), best.law, by_likelihood=True)


def _tests(
    search: LikelihoodSearch, best: FittedGraph, score: LocalScore, names: tuple[str, ...]
) -> tuple[EdgeTest, ...]:
    """Return tests of the edges that knowledge does not require, the weakest first."""
    tests = []
    for a, k in edges_of(best.parents):
        parents = search.changes.parted(best.parents, a, k)
        if parents is None:
            continue
        other = search.fitted(parents, best.law)
        lost = best.log_likelihood - other.log_likelihood
        saved = lost - (best.criterion - other.criterion)
        loss = score.local(k, best.parents[k]) - score.local(k, parents[k])
        kept = supports_edge(lost, saved)
        tests.append(EdgeTest((names[a], names[k]), float(loss), lost, saved, kept))
    return tuple(sorted(tests, key=lambda test: test.likelihood_loss - test.saved))
