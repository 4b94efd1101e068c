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
from hidag.estimate.exact import expect_states
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Pairs whose removal costs the graph's score more than this many units are beyond doubt.
BEYOND_DOUBT = 30.0
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
        What the graph's score lost without the pair.
    likelihood_loss : float
        What the observed-data log-likelihood lost.
    saved : float
        Half the parameters saved times the log of the effective number of rows.
    kept : bool
    """

    pair: tuple[str, str]
    score_loss: float
    likelihood_loss: float
    saved: float
    kept: bool


@dataclass(frozen=True)
class ObservedFit:
    """The items' side of the fit, held while laws are compared."""

    data: WorkingData
    parameters: MeasurementParameters
    space: StateSpace
    n_threads: int = 1

    def law_under(self, graph: CPDAG, probabilities: Array) -> tuple[Array, float]:
        """Return the best law that factorises over the graph, and its log-likelihood."""
        features = self.space.states().astype(np.float64)
        parents = graph.to_dag().parents
        current = factorised(probabilities, parents, self.space)
        last = -np.inf
        for _ in range(MAX_LAW_STEPS):
            counts, value = expect_states(
                self.parameters, current, self.data, features, n_threads=self.n_threads
            )
            if value - last < LAW_TOLERANCE:
                break
            last = value
            current = factorised(counts, parents, self.space)
        return current, value

    def work(self) -> float:
        """Return about how many multiplications an E-step takes."""
        return float(self.data.n_samples) * self.data.n_items * self.space.n_states

    def n_parameters(self, graph: CPDAG) -> int:
        """Return how many free probabilities a law over the graph has."""
        levels = self.space.levels
        total = 0
        for k, parents in enumerate(graph.to_dag().parents):
            cells = 1
            for a in parents:
                cells *= levels[a]
            total += cells * (levels[k] - 1)
        return total


def factorised(counts: Array, parents: tuple[tuple[int, ...], ...], space: StateSpace) -> Array:
    """Return the law over a graph with the families' shares of ``counts``, shape (S,)."""
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)
    axes = range(space.n_latents)
    out = np.ones(space.levels)
    for k, pa in enumerate(parents):
        family = (k, *pa)
        joint = cube.sum(axis=tuple(a for a in axes if a not in family), keepdims=True)
        given = joint.sum(axis=k, keepdims=True)
        # A configuration that never occurs leaves its child undecided: every level alike.
        share = np.where(given > 0, joint / np.where(given > 0, given, 1.0), 1.0 / space.levels[k])
        out = out * share
    flat = out.ravel()
    return np.asarray(flat / flat.sum())


def confirm_edges(
    found: SearchResult,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge | None,
    observed: ObservedFit,
    probabilities: Array,
    *,
    n_rows: float,
    max_tests: int,
) -> tuple[CPDAG, tuple[EdgeTest, ...]]:
    """Return the graph without the weak edges that the observed data do not bear out.

    Parameters
    ----------
    found : SearchResult
    search : callable
        Repeats the search under other knowledge.
    knowledge : Knowledge or None
        What the user knows; required edges are never questioned.
    observed : ObservedFit
    probabilities : ndarray, shape (S,)
        The fitted law, where restricted laws start from.
    n_rows : float
        Rows that the counts stood for. A criterion that charged log N would charge for information
        that the items do not carry.
    max_tests : int
    """
    names = found.graph.names
    given = knowledge or Knowledge()
    required = given.required_adjacency(names)
    apart: list[tuple[int, int]] = []
    tests: list[EdgeTest] = []
    cleared: set[tuple[int, int]] = set()
    current = found
    law, value = None, 0.0
    half_log = 0.5 * np.log(max(n_rows, 2.0))
    while len(tests) < max_tests:
        weakest = None
        for pair in _neighbours(current.graph):
            a, b = pair
            if pair in cleared or required[a, b] or required[b, a]:
                continue
            other = search(_keep_apart(given, [*apart, pair]))
            loss = current.score - other.score
            if loss < BEYOND_DOUBT and (weakest is None or loss < weakest[0]):
                weakest = (loss, pair, other)
        if weakest is None:
            break
        loss, pair, other = weakest
        if law is None:
            law, value = observed.law_under(current.graph, probabilities)
        other_law, other_value = observed.law_under(other.graph, probabilities)
        saved = float(
            half_log * (observed.n_parameters(current.graph) - observed.n_parameters(other.graph))
        )
        kept = bool(value - other_value > saved)
        tests.append(
            EdgeTest((names[pair[0]], names[pair[1]]), loss, value - other_value, saved, kept)
        )
        if kept:
            cleared.add(pair)
        else:
            apart.append(pair)
            current, law, value = other, other_law, other_value
    graph = current.graph
    if apart and knowledge is None:
        graph = graph.to_dag().to_cpdag()
    return graph, tuple(tests)


def _neighbours(graph: CPDAG) -> list[tuple[int, int]]:
    joined = (graph.adjacency | graph.adjacency.T) == 1
    return [(int(a), int(b)) for a, b in np.argwhere(np.triu(joined, 1))]


def _keep_apart(given: Knowledge, pairs: list[tuple[int, int]]) -> Knowledge:
    both = [edge for a, b in pairs for edge in ((a, b), (b, a))]
    return replace(given, forbidden=(*given.forbidden, *both))
