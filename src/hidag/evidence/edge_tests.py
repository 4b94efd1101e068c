"""Are the weakest edges borne out by the data themselves, not only by the fitted latent law?

Counts made from a fitted law treat latents as if they had been seen. How much is lost differs from
state to state: a law may show a dependence that rests on states the items can hardly tell apart.
So the weakest pairs of neighbours are put to a test on the observed data: the law is restricted to
the graph with the pair and to the best graph without it, both are fitted by EM with the items'
coefficients held, and the Bayesian information criterion of the observed data decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, Knowledge, SearchResult
from hidag.discover.scores import LocalScore
from hidag.estimate.level_order import all_in_line
from hidag.evidence.observed import ObservedFit
from hidag.latent.lean_tables import law_price

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
    """

    graph: CPDAG
    tests: tuple[EdgeTest, ...]
    law: Array | None
    by_likelihood: bool = False


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
    orders = all_in_line(observed.parameters)

    def judged(result: SearchResult) -> _Judged:
        law, value = observed.law_under(result.graph)
        price = law_price(
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
