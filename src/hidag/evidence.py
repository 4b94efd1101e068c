"""Is the graph borne out by the data themselves, not only by the fitted latent law?

Counts made from a fitted law treat latents as if they had been seen. How much is lost differs from
state to state: a law may show a dependence that rests on states the items can hardly tell apart.
So the graph that the search found is compared, on the observed data, with the graphs it beat by
little: the best ones without one of its edges, and the best ones with an arrow turned. For each of
two graphs the law is restricted to it and fitted by EM with the items' coefficients held; the
marginal likelihood of the observed data (in the approximation of Cheeseman and Stutz) decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, Knowledge, SearchResult
from hidag.discover.scores import CountScore, LocalScore, graph_score
from hidag.estimate.fixed_items import fit_law
from hidag.estimate.working import WorkingData
from hidag.latent import LatentCounts, StateSpace
from hidag.latent.factorise import factorised, n_free_probabilities
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Edges whose removal costs the graph's score more than this many units are beyond doubt.
BEYOND_DOUBT = 15.0
#: When simply taking an edge out costs more than this, no search is made for a better way.
NO_SEARCH_NEEDED = 4.0 * BEYOND_DOUBT
#: A graph with an arrow turned is looked at when it scores at most this many units less.
CLOSE_CALL = 6.0
#: EM for a restricted law ends when a step gains less than this, in units of log-likelihood.
LAW_TOLERANCE = 0.05
MAX_LAW_STEPS = 40


@dataclass(frozen=True)
class EdgeTest:
    """What the observed data said about one pair of neighbours.

    Attributes
    ----------
    pair : tuple of str
    score_loss : float
        What the graph's score lost without the pair, or with the arrow turned.
    likelihood_loss : float
        What the observed-data log-likelihood lost.
    saved : float
        What the other graph's smaller law is worth, in the same units.
    kept : bool
    question : {"edge", "arrow"}
        Whether the pair's being neighbours was tested, or the arrow from the first to the second.
    """

    pair: tuple[str, str]
    score_loss: float
    likelihood_loss: float
    saved: float
    kept: bool
    question: str = "edge"


@dataclass(frozen=True)
class ObservedFit:
    """The items' side of the fit, held while laws are compared."""

    data: WorkingData
    parameters: MeasurementParameters
    space: StateSpace
    n_threads: int = 1

    def law_under(self, graph: CPDAG, probabilities: Array) -> tuple[Array, Array, float]:
        """Return the best law over the graph, expected counts under it, and its likelihood."""
        parents = graph.to_dag().parents

        def law_step(counts: Array) -> Array:
            return factorised(counts, parents, self.space)

        return fit_law(
            self.parameters,
            law_step(probabilities),
            self.data,
            self.space.states().astype(np.float64),
            law_step,
            tolerance=LAW_TOLERANCE,
            max_steps=MAX_LAW_STEPS,
            n_threads=self.n_threads,
        )

    def work(self) -> float:
        """Return about how many multiplications an E-step takes."""
        return float(self.data.n_samples) * self.data.n_items * self.space.n_states

    def price(self, graph: CPDAG, counts: Array, kind: str, sample_size: float) -> float:
        """Return what the law's free probabilities cost: best minus mean likelihood of the counts.

        Under BDeu the mean is over its prior (Cheeseman and Stutz); under BIC it is half the
        parameters times log N.
        """
        parents = graph.to_dag().parents
        n_free = n_free_probabilities(parents, self.space)
        half_log = 0.5 * np.log(max(float(self.data.n_samples), 2.0))
        if kind != "bdeu":
            return float(half_log * n_free)
        names = tuple(graph.names)
        states = self.space.states().astype(np.uint8)
        table = LatentCounts(states, counts, self.space.levels, names)
        best = graph_score(CountScore(table, "bic"), parents) + 0.5 * n_free * np.log(table.total)
        return float(best - graph_score(CountScore(table, "bdeu", sample_size), parents))


@dataclass(frozen=True)
class _Judged:
    """A graph with its law's likelihood on the observed data and the price of its parameters."""

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
    """

    graph: CPDAG
    tests: tuple[EdgeTest, ...]
    law: Array | None


@dataclass(frozen=True)
class _Rival:
    """A graph that the search would have preferred but for one edge or arrow."""

    loss: float
    question: str
    pair: tuple[int, int]
    found: SearchResult


def confirm_edges(
    found: SearchResult,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge | None,
    observed: ObservedFit,
    probabilities: Array,
    score: LocalScore,
    *,
    kind: str = "bdeu",
    equivalent_sample_size: float = 1.0,
    max_tests: int,
) -> Confirmed:
    """Return the graph that the observed data bear out, and the comparisons that were made.

    Parameters
    ----------
    found : SearchResult
    search : callable
        Repeats the search under other knowledge.
    knowledge : Knowledge or None
        What the user knows; required edges are never questioned, and arrows only without any.
    observed : ObservedFit
    probabilities : ndarray, shape (S,)
        The fitted law, where restricted laws start from.
    score : LocalScore
        What the search maximised.
    kind, equivalent_sample_size
        Of the graph's score; any score but BDeu is taken for BIC.
    max_tests : int
    """

    def judged(result: SearchResult) -> _Judged:
        law, counts, value = observed.law_under(result.graph, probabilities)
        price = observed.price(result.graph, counts, kind, equivalent_sample_size)
        return _Judged(result, law, value, price)

    given = knowledge or Knowledge()
    names = found.graph.names
    required = given.required_adjacency(names)
    apart: list[tuple[int, int]] = []
    tests: list[EdgeTest] = []
    settled: set[tuple[str, tuple[int, int]]] = set()
    current: _Judged | None = None
    rivals = _rivals(found, search, given, apart, required, score, arrows=knowledge is None)
    while len(tests) < max_tests:
        left = [rival for rival in rivals if (rival.question, rival.pair) not in settled]
        if not left:
            break
        rival = min(left, key=lambda one: one.loss)
        current = current or judged(found)
        other = judged(rival.found)
        lost = current.likelihood - other.likelihood
        saved = current.price - other.price
        kept = bool(lost > saved)
        a, b = rival.pair
        tests.append(EdgeTest((names[a], names[b]), rival.loss, lost, saved, kept, rival.question))
        settled.add((rival.question, rival.pair))
        if not kept:
            if rival.question == "edge":
                apart.append(rival.pair)
            current, found = other, rival.found
            rivals = _rivals(found, search, given, apart, required, score, arrows=knowledge is None)
    return Confirmed(found.graph, tuple(tests), None if current is None else current.law)


def _rivals(
    found: SearchResult,
    search: Callable[[Knowledge], SearchResult],
    given: Knowledge,
    apart: list[tuple[int, int]],
    required: NDArray[np.int8],
    score: LocalScore,
    *,
    arrows: bool,
) -> list[_Rival]:
    """Return the graphs that come close: without one edge, or with one arrow turned."""
    adjacency = found.graph.adjacency
    doubtful = _doubtful(found, score)
    kept_apart = [edge for a, b in apart for edge in ((a, b), (b, a))]
    out = []
    joined = np.triu((adjacency | adjacency.T) == 1, 1)
    for a, b in np.argwhere(joined).tolist():
        if required[a, b] or required[b, a] or not doubtful[a, b]:
            continue
        other = search(_with_forbidden(given, [*kept_apart, (a, b), (b, a)]))
        if found.score - other.score < BEYOND_DOUBT:
            out.append(_Rival(found.score - other.score, "edge", (a, b), _completed(other, arrows)))
    if not arrows:
        return out
    for a, b in np.argwhere((adjacency == 1) & (adjacency.T == 0)).tolist():
        other = search(_with_forbidden(given, [*kept_apart, (a, b)]))
        loss = found.score - other.score
        # A loss of nothing is the same class, or one that the search cannot tell from it.
        if 0 < loss < CLOSE_CALL:
            out.append(_Rival(loss, "arrow", (a, b), _completed(other, arrows)))
    return out


def _doubtful(found: SearchResult, score: LocalScore) -> NDArray[np.bool_]:
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
            out[cause, child] = out[child, cause] = best - left < NO_SEARCH_NEEDED
    return out


def _completed(result: SearchResult, free: bool) -> SearchResult:
    """Return the result with the whole class as its graph, when no user's knowledge binds it."""
    if not free:
        return result
    return replace(result, graph=result.graph.to_dag().to_cpdag())


def _with_forbidden(given: Knowledge, edges: list[tuple[int, int]]) -> Knowledge:
    return replace(given, forbidden=(*given.forbidden, *edges))


__all__ = ["Confirmed", "EdgeTest", "ObservedFit", "confirm_edges"]
