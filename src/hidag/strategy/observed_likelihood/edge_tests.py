"""Are the weakest edges borne out by the data themselves, not only by the fitted latent law?

Counts made from a fitted law treat latents as if they had been seen. How much is lost differs from
state to state: a law may show a dependence that rests on states the items can hardly tell apart.
So the weakest pairs of neighbours are put to a test on the observed data: the law is restricted to
the graph with the pair and to the best graph without it, both are fitted by EM with the items'
coefficients held, and the Bayesian information criterion of the observed data decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.latent.conditional_tables import network_complexity
from hidag.latent.counts import LatentCounts
from hidag.latent.laws import Parents
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

# --- Do the observed data speak against what was told about the graph beforehand?

#: Log-likelihood beyond its price from which evidence is called very strong (twice it: 10).
VERY_STRONG = 5.0


@dataclass(frozen=True)
class KnowledgeCost:
    """What the data have against knowledge about the graph.

    Attributes
    ----------
    log_likelihood : float
        What the observed data's log-likelihood loses by it.
    saved : float
        What the fewer numbers of the law that obeys are worth in the same units: half log N each.
    pairs : tuple of (name, name, float)
        Pairs that were kept apart and alone cost more than they save, and how much log-likelihood;
        the dearest first. Empty also where pairs are too many to be asked one by one.
    counted : float or None
        Rows that expected counts of the latents stand for, where these were asked.
    """

    log_likelihood: float
    saved: float
    pairs: tuple[tuple[str, str, float], ...] = ()
    counted: float | None = None

    @property
    def strong(self) -> bool:
        """Whether the data speak strongly against it."""
        # What obeys may need more numbers than what need not: that is no word against it.
        return bool(self.log_likelihood - max(self.saved, 0.0) > VERY_STRONG)


def cost_of_knowledge(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    observed: ObservedFit,
    *,
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return what knowledge costs where the data speak strongly against it, or None.

    Prerequisites are taken for granted here: states that they rule out have no mass in any law.

    Parameters
    ----------
    graph : CPDAG
        It obeys.
    search : callable
        Repeats the search under other knowledge.
    knowledge : Knowledge
    observed : ObservedFit
    max_pairs : int
        Pairs that are asked one by one, at the most.
    """
    fits = LikelihoodSearch(observed)

    def weighed(parents: Parents) -> tuple[float, float]:
        found = fits.fitted(parents, observed.law)
        return found.log_likelihood, found.criterion

    return _strong_cost(graph, search, knowledge, weighed, max_pairs)


def cost_on_counts(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    counts: LatentCounts,
    *,
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return what :func:`cost_of_knowledge` does, by expected counts of the latents."""
    score, levels = CountScore(counts, "bic"), counts.levels
    price = 0.5 * math.log(counts.total)

    def weighed(parents: Parents) -> tuple[float, float]:
        criterion = sum(score.local(k, tuple(causes)) for k, causes in enumerate(parents))
        free = (
            (levels[k] - 1) * math.prod(levels[a] for a in causes)
            for k, causes in enumerate(parents)
        )
        return criterion + price * sum(free), criterion

    cost = _strong_cost(graph, search, knowledge, weighed, max_pairs)
    return None if cost is None else replace(cost, counted=counts.total)


def _strong_cost(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    weighed: Callable[[Parents], tuple[float, float]],
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return what knowledge costs by log-likelihoods of laws over graphs, less their price too."""
    obeying = weighed(graph.to_dag().parents)

    def cost(freer: Knowledge) -> KnowledgeCost:
        other = weighed(search(freer).dag.parents)
        loss = other[0] - obeying[0]
        return KnowledgeCost(loss, loss - (other[1] - obeying[1]))

    whole = cost(Knowledge(hierarchy=knowledge.hierarchy))
    if not whole.strong:
        return None
    names = graph.names
    told = knowledge.reindex(names)
    apart = nonadjacent_pairs(told, names)
    alone = []
    for a, b in apart if len(apart) <= max_pairs else ():
        others = tuple(edge for edge in told.forbidden if set(edge) != {a, b})
        found = cost(replace(told, forbidden=others))
        if found.strong:
            alone.append((names[a], names[b], found.log_likelihood))
    return replace(whole, pairs=tuple(sorted(alone, key=lambda one: -one[2])))


# ---

Array = NDArray[np.float64]

#: Edges whose removal costs the graph's score more than this many units are beyond doubt. Where a
#: score counts on more rows than the observed data are worth, that takes as many times more.
BEYOND_DOUBT = 15.0
#: When simply taking an edge out costs so many times that much, no search for a better way is made.
NO_SEARCH_NEEDED = 4.0


@dataclass(frozen=True)
class EdgeTest:
    """What the observed data said about one pair of neighbours.

    Attributes
    ----------
    pair : tuple of str
    score_loss : float
        What the graph's score lost without the pair.
    likelihood_loss : float
        What the observed-data log-likelihood lost.
    saved : float
        Half the numbers saved in the law's tables times the log of the effective number of rows.
    kept : bool
    """

    pair: tuple[str, str]
    score_loss: float
    likelihood_loss: float
    saved: float
    kept: bool


@dataclass(frozen=True)
class _Judged:
    """A graph with its law, that law's likelihood on the observed data, and its price."""

    found: SearchResult
    law: Array
    likelihood: float
    price: float


@dataclass(frozen=True)
class Confirmed:
    """The graph that the observed data bear out.

    Attributes
    ----------
    graph : CPDAG
    tests : tuple of EdgeTest
        The comparisons that were made.
    law : ndarray, shape (S,), or None
        The law over the graph, when it was fitted on the way.
    by_likelihood : bool
        Whether the graph was found by the observed data's likelihood, not tested by it alone.
    knowledge_cost : KnowledgeCost or None
        What the data have against what was told about the graph; None if nothing strong.
    """

    graph: CPDAG
    tests: tuple[EdgeTest, ...]
    law: Array | None
    by_likelihood: bool = False
    knowledge_cost: KnowledgeCost | None = None


@dataclass(frozen=True)
class _Rival:
    """The best graph without one of the pairs."""

    loss: float
    pair: tuple[int, int]
    found: SearchResult


def confirm_edges(
    found: SearchResult,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge | None,
    observed: ObservedFit,
    score: LocalScore,
    *,
    n_rows: float,
    n_scored: float,
    max_tests: int,
) -> Confirmed:
    """Return the graph without the weak edges that the observed data do not bear out.

    Parameters
    ----------
    found : SearchResult
    search : callable
        Repeats the search under other knowledge.
    knowledge : Knowledge or None
        What the user knows; required edges are never questioned.
    observed : ObservedFit
    score : LocalScore
        What the search maximised.
    n_rows : float
        Rows that the observed data are worth. A criterion that charged log N would charge for
        information that the items do not carry.
    n_scored : float
        Rows that the score counts on. They are more than ``n_rows`` where the law has had too few
        steps to show all of a dependence that it lacked; dependence that it had all the time is
        overstated by that, and such edges are the ones to be tested.
    max_tests : int
    """
    half_log = 0.5 * float(np.log(max(n_rows, 2.0)))
    beyond_doubt = BEYOND_DOUBT * max(1.0, n_scored / max(n_rows, 1.0))
    orders = order_all_levels(observed.parameters)

    def judged(result: SearchResult) -> _Judged:
        law, value = observed.law_under(result.graph)
        price = network_complexity(
            law * n_rows, result.dag.parents, observed.space, orders, half_log, observed.possible
        )
        return _Judged(result, law, value, price)

    given = knowledge or Knowledge()
    names = found.graph.names
    required = given.required_adjacency(names)
    apart: list[tuple[int, int]] = []
    tests: list[EdgeTest] = []
    settled: set[tuple[int, int]] = set()
    current: _Judged | None = None
    rivals = _rivals(found, search, given, apart, required, score, beyond_doubt)
    while len(tests) < max_tests:
        left = [rival for rival in rivals if rival.pair not in settled]
        if not left:
            break
        rival = min(left, key=lambda one: one.loss)
        current = current or judged(found)
        other = judged(rival.found)
        lost = current.likelihood - other.likelihood
        saved = current.price - other.price
        kept = bool(lost > saved)
        a, b = rival.pair
        tests.append(EdgeTest((names[a], names[b]), rival.loss, lost, saved, kept))
        settled.add(rival.pair)
        if not kept:
            apart.append(rival.pair)
            current, found = other, rival.found
            rivals = _rivals(found, search, given, apart, required, score, beyond_doubt)
    graph = found.graph
    if apart and knowledge is None:
        graph = graph.to_dag().to_cpdag()
    return Confirmed(graph, tuple(tests), None if current is None else current.law)


def _rivals(
    found: SearchResult,
    search: Callable[[Knowledge], SearchResult],
    given: Knowledge,
    apart: list[tuple[int, int]],
    required: NDArray[np.int8],
    score: LocalScore,
    beyond_doubt: float,
) -> list[_Rival]:
    """Return the graphs that come close without one of the edges."""
    adjacency = found.graph.adjacency
    doubtful = _doubtful(found, score, NO_SEARCH_NEEDED * beyond_doubt)
    out = []
    joined = np.triu((adjacency | adjacency.T) == 1, 1)
    for a, b in np.argwhere(joined).tolist():
        if required[a, b] or required[b, a] or not doubtful[a, b]:
            continue
        other = search(_keep_apart(given, [*apart, (a, b)]))
        if found.score - other.score < beyond_doubt:
            out.append(_Rival(found.score - other.score, (a, b), other))
    return out


def _doubtful(found: SearchResult, score: LocalScore, most: float) -> NDArray[np.bool_]:
    """Return which pairs may be weak, shape (K, K), symmetric.

    Taking an edge out of the graph and changing nothing else costs at least what the best graph
    without it costs: only pairs for which even that is not many times too much need a search.
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


# --- Stage III where items hardly show latents: the graph that the observed data speak for


def better_by_likelihood(
    found: SearchResult, observed: ObservedFit, score: LocalScore, knowledge: Knowledge | None
) -> Confirmed:
    """Return the graph that a search by likelihood leads to from one that counts have shown.

    Every edge of it comes with its test: what the likelihood loses without it, and what the law's
    fewer numbers save.

    Parameters
    ----------
    found : SearchResult
    observed : ObservedFit
    score : LocalScore
        Of the counts.
    knowledge : Knowledge or None
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
    """Return the tests of the edges that may be taken out, the weakest first."""
    tests = []
    for a, k in edges_of(best.parents):
        parents = search.changes.parted(best.parents, a, k)
        if parents is None:
            continue
        other = search.fitted(parents, best.law)
        lost = best.log_likelihood - other.log_likelihood
        saved = lost - (best.criterion - other.criterion)
        loss = score.local(k, best.parents[k]) - score.local(k, parents[k])
        tests.append(EdgeTest((names[a], names[k]), float(loss), lost, saved, bool(lost > saved)))
    return tuple(sorted(tests, key=lambda test: test.likelihood_loss - test.saved))
