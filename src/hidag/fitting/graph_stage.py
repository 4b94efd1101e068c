"""Stages II and III: counts of the latents, and the graph that explains them (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Choices, invalid_setting
from hidag.latent.counts import LatentCounts, ResampleRule, resample, resample_size
from hidag.latent.laws import LatentLaw
from hidag.strategy.measurement import Measurement
from hidag.strategy.observed_likelihood.edge_tests import (
    Confirmed,
    EdgeTest,
    KnowledgeCost,
    better_by_likelihood,
    confirm_edges,
    cost_of_knowledge,
    cost_on_counts,
)
from hidag.strategy.observed_likelihood.likelihood_search import ObservedFit, use_likelihood_search
from hidag.structure.graph_search import SearchResult, choose_sample_size, search_graph
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge, admits_complete_dag
from hidag.structure.scores import ScoreCache, choose_score, make_score

Array = NDArray[np.float64]

#: The weakest pairs of latents put to the test on the observed data, at the most.
MAX_EDGE_TESTS = 20
#: Fewer are made when an E-step is dear: this many multiplications divided by one E-step's.
WORK_FOR_EDGE_TESTS = 1e10
#: Stage II's draws are far from any start's in the tree of seeds.
_RESAMPLING_KEY = 1 << 20


def resampled_counts(
    law: LatentLaw,
    n_samples: int,
    names: tuple[str, ...],
    *,
    rule: ResampleRule,
    latents: NDArray[np.intp] | None = None,
    seed: int = 0,
) -> LatentCounts:
    """Return Stage II's counts of rows drawn from the law: f(N) of them, as the paper does.

    ``latents`` says which of them are counted, ``names`` long; None counts all.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_RESAMPLING_KEY,)))
    n_rows = resample_size(rule, n_samples)
    if latents is None:
        return resample(law, n_rows, names, rng)
    every = tuple(f"Z{k + 1}" for k in range(law.space.n_latents))
    drawn = resample(law, n_rows, every, rng)
    return LatentCounts.from_rows(
        drawn.states[:, latents],
        levels=tuple(law.space.levels[k] for k in latents),
        names=names,
        weights=drawn.weights,
    )


def effective_share(effective_size: str | float, calibrated: float) -> float:
    """Return how many rows expected counts stand for, as a share of N."""
    if effective_size == "auto":
        return calibrated
    if effective_size == "all":
        return 1.0
    if isinstance(effective_size, (int, float)) and 0 < effective_size <= 1:
        return float(effective_size)
    expected = Choices(("auto", "all"), "a share of N between 0 and 1")
    raise invalid_setting("effective_size", expected, effective_size)


def find_graph(
    counts: LatentCounts,
    *,
    score: Any = "auto",
    equivalent_sample_size: float | str = "auto",
    search: str | Callable[..., Any] = "xges",
    knowledge: Knowledge | None = None,
    observed: ObservedFit | None = None,
    n_rows: float = 0.0,
    calibrated: bool = False,
) -> Confirmed:
    """Return Stage III's graph and what the observed data said about its weakest edges.

    Edges are put to that test when ``observed`` is given and the search is one of ours; ``n_rows``
    is the number of rows that the observed data are worth. Where items hardly show latents, the
    graph goes on from there by the observed data's likelihood. ``calibrated`` says whether the
    counts stand for as many rows as tell of edges: then they can say what knowledge costs.
    """
    if counts.n_variables == 1:
        return Confirmed(CPDAG(np.zeros((1, 1), dtype=np.int8), counts.names), (), None)

    if isinstance(score, str) and score == "auto":
        score = choose_score(counts.levels)
    weight = choose_sample_size(counts, equivalent_sample_size, score, knowledge)
    made = make_score(score, counts, weight, knowledge)

    # The searches without one of the edges ask for much the same scores.
    cache = ScoreCache(made, counts.n_variables)

    def run(known: Knowledge | None) -> SearchResult:
        return search_graph(counts, score=made, search=search, knowledge=known, cache=cache)

    found = run(knowledge)
    if callable(search):
        return Confirmed(found.graph, (), None)
    if observed is None:
        alone = Confirmed(found.graph, (), None)
        if knowledge is None or not calibrated:
            return alone
        cost = cost_on_counts(found.graph, run, knowledge, counts, max_pairs=MAX_EDGE_TESTS)
        return replace(alone, knowledge_cost=cost)
    max_tests = int(min(MAX_EDGE_TESTS, WORK_FOR_EDGE_TESTS // observed.work()))
    if use_likelihood_search(observed, n_rows / observed.data.n_counted):
        confirmed = better_by_likelihood(found, observed, made, knowledge)
    else:
        confirmed = confirm_edges(
            found,
            run,
            knowledge,
            observed,
            made,
            n_rows=n_rows,
            n_scored=counts.total,
            max_tests=max_tests,
        )
    if knowledge is None:
        return confirmed
    # Two laws are fitted for the least of it. Else counts judge the graph that they led to.
    if max_tests < 2:
        cost = cost_on_counts(found.graph, run, knowledge, counts, max_pairs=MAX_EDGE_TESTS)
    else:
        cost = cost_of_knowledge(confirmed.graph, run, knowledge, observed, max_pairs=max_tests)
    return replace(confirmed, knowledge_cost=cost)


@dataclass(frozen=True)
class GraphFound:
    """What Stages II and III leave.

    Attributes
    ----------
    graph : CPDAG
        Among all latents; those that drive no item stand alone.
    edge_tests : tuple of EdgeTest
    information_ratio : float
        Share of the latents' pairwise information that the items carry.
    n_rows : float
        Rows that the graph's score counted on.
    law : LatentLaw
        Stage I's law when that is saturated and may be; otherwise the law over the graph found.
    log_likelihood : float
        Of the observed data under ``law``; NaN when joint states were not listed.
    by_likelihood : bool
        Whether the graph went on from what counts show by the observed data's likelihood.
    knowledge_cost : KnowledgeCost or None
        What the data have against what was told about the graph; None if nothing strong.
    """

    graph: CPDAG
    edge_tests: tuple[EdgeTest, ...]
    information_ratio: float
    n_rows: float
    law: LatentLaw
    log_likelihood: float
    by_likelihood: bool
    knowledge_cost: KnowledgeCost | None


def latent_graph(
    measurement: Measurement,
    names: tuple[str, ...],
    *,
    rule: ResampleRule = "expected",
    effective_size: str | float = "auto",
    seed: int = 0,
    score: Any = "auto",
    equivalent_sample_size: float | str = "auto",
    search: str | Callable[..., Any] = "xges",
    knowledge: Knowledge | None = None,
    law: str = "auto",
) -> GraphFound:
    """Return the graph among the latents that drive items: Stages II and III in one call.

    What is known about latents that turn out to drive no item is set aside, but for chains through
    them. Where knowledge keeps latents apart, a saturated law contradicts it and gives way to the
    law over the graph, unless it was asked for (``law="saturated"``).
    """
    adjacency = np.zeros((len(names), len(names)), dtype=np.int8)
    idle = measurement.idle()
    busy = np.setdiff1d(np.arange(len(names)), idle)
    if len(busy) == 0:
        return _with_law(measurement, Confirmed(CPDAG(adjacency, names), (), None), 0.0, 0.0)
    obey = (
        law != "saturated" and knowledge is not None and not admits_complete_dag(knowledge, names)
    )
    part = measurement.restricted(busy) if len(idle) else measurement
    ratio = part.information_ratio()
    kept = tuple(names[k] for k in busy)
    if isinstance(rule, str) and rule == "expected":
        share = effective_share(effective_size, measurement.effective_sample_ratio(ratio))
        # Items that say nothing still leave one row: too little for an edge, enough for a score.
        counts = part.counts(max(share * part.n_samples, 1.0), kept)
        tested = part.observed if effective_size == "auto" else None
    else:
        counts = resampled_counts(
            measurement.law,
            max(round(part.n_samples), 1),
            kept,
            rule=rule,
            latents=busy if len(idle) else None,
            seed=seed,
        )
        tested = None
    found = find_graph(
        counts,
        score=score,
        equivalent_sample_size=equivalent_sample_size,
        search=search,
        knowledge=None if knowledge is None else knowledge.reindex(names, busy.tolist()),
        observed=tested,
        n_rows=ratio * part.n_samples,
        calibrated=isinstance(rule, str) and rule == "expected" and effective_size == "auto",
    )
    adjacency[np.ix_(busy, busy)] = found.graph.adjacency
    known = found.law if len(idle) == 0 else None
    whole = replace(found, graph=CPDAG(adjacency, names), law=known)
    return _with_law(measurement, whole, ratio, counts.total, obey=obey)


def _with_law(
    measurement: Measurement, found: Confirmed, ratio: float, n_rows: float, *, obey: bool = False
) -> GraphFound:
    """Return what was found with the law over its graph and that law's likelihood."""
    law = measurement.law_over(found.graph, found.law, obey=obey)
    value = measurement.log_likelihood_of(law)
    return GraphFound(
        found.graph,
        found.tests,
        ratio,
        n_rows,
        law,
        value,
        found.by_likelihood,
        found.knowledge_cost,
    )
