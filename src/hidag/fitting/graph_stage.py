"""Stages II and III of Algorithm 1: counts of the latent states, and the graph they support."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.exceptions import Choices, invalid_setting
from hidag.latent.counts import LatentCounts, ResampleRule, resample, resample_size
from hidag.latent.laws import LatentLaw
from hidag.strategy.measurement import Measurement
from hidag.strategy.observed_likelihood.edge_tests import (
    Confirmed,
    EdgeTest,
    KnowledgeCost,
    confirm_edges,
    cost_of_knowledge,
    cost_on_counts,
    search_by_likelihood,
)
from hidag.strategy.observed_likelihood.likelihood_search import ObservedFit, use_likelihood_search
from hidag.structure.graph_search import SearchResult, choose_sample_size, search_graph
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge, admits_complete_dag
from hidag.structure.scores import ScoreCache, choose_score, make_score

#: Spawn key of Stage II in the tree of seeds, far from the keys of the starts.
_RESAMPLING_KEY = 1 << 20


@dataclass(frozen=True)
class GraphSettings:
    """Settings of Stages II and III, as `DCRL` takes them.

    Attributes
    ----------
    resample, effective_size
        Stage II: expected or resampled counts, and the sample size of expected counts.
    score, equivalent_sample_size, search
        Stage III; ``score`` is the setting ``graph_score`` of `DCRL`.
    knowledge : Knowledge or None
    law : {"auto", "network", "saturated"}
        With "saturated" the law does not obey the knowledge, but the graph does.
    seed : int
        Of the resampling.
    """

    resample: ResampleRule = "expected"
    effective_size: str | float = "auto"
    score: Any = "auto"
    equivalent_sample_size: float | str = "auto"
    search: str | Callable[..., Any] = "xges"
    knowledge: Knowledge | None = None
    law: str = "auto"
    seed: int = 0

    @property
    def expected(self) -> bool:
        """Whether Stage II uses expected counts."""
        return isinstance(self.resample, str) and self.resample == "expected"

    @property
    def calibrated(self) -> bool:
        """Whether expected counts have the effective sample size for edges."""
        return self.expected and self.effective_size == "auto"


@dataclass(frozen=True)
class LearnedGraph:
    """Result of Stages II and III.

    Attributes
    ----------
    graph : CPDAG
        Over all latents; latents without items have no edges.
    edge_tests : tuple of EdgeTest
    information_ratio : float
        Share of the pairwise information about the latents that the items carry.
    n_rows : float
        Sample size of the graph's score.
    law : LatentLaw
        Stage I's law if it is saturated and allowed; otherwise the law over the graph.
    log_likelihood : float
        Of the observed data under ``law``; NaN if joint states were not listed.
    by_likelihood : bool
        Whether the observed-data likelihood search improved the graph.
    knowledge_cost : KnowledgeCost or None
        Log-likelihood lost by the prior knowledge; None if not computed.
    """

    graph: CPDAG
    edge_tests: tuple[EdgeTest, ...]
    information_ratio: float
    n_rows: float
    law: LatentLaw
    log_likelihood: float
    by_likelihood: bool
    knowledge_cost: KnowledgeCost | None


def learn_graph(
    measurement: Measurement, names: tuple[str, ...], settings: GraphSettings | None = None
) -> LearnedGraph:
    """Return the graph among the latents, from Stages II and III.

    Latents without items are excluded from the search; knowledge about them is ignored, except for
    chains through them. If the knowledge forbids pairs, a saturated law is replaced by the law over
    the graph, unless it was requested.
    """
    chosen = GraphSettings() if settings is None else settings
    knowledge = chosen.knowledge
    adjacency = np.zeros((len(names), len(names)), dtype=np.int8)
    idle = measurement.idle()
    used = np.setdiff1d(np.arange(len(names)), idle)
    if len(used) == 0:
        return _with_law(measurement, Confirmed(CPDAG(adjacency, names), (), None), 0.0, 0.0)
    obey = (
        chosen.law != "saturated"
        and knowledge is not None
        and not admits_complete_dag(knowledge, names)
    )
    part = measurement.restricted(used) if len(idle) else measurement
    ratio = part.information_ratio()
    used_names = tuple(names[k] for k in used)
    if chosen.expected:
        share = effective_share(chosen.effective_size, measurement.effective_sample_ratio(ratio))
        # Uninformative items still leave one row, because the score needs a positive size.
        counts = part.counts(max(share * part.n_samples, 1.0), used_names)
    else:
        counts = _resampled_counts(
            measurement.law,
            max(round(part.n_samples), 1),
            used_names,
            chosen,
            used if len(idle) else None,
        )
    found = _search(
        counts,
        replace(
            chosen,
            knowledge=None if knowledge is None else knowledge.reindex(names, used.tolist()),
        ),
        part.observed if chosen.calibrated else None,
        ratio * part.n_samples,
    )
    adjacency[np.ix_(used, used)] = found.graph.adjacency
    whole = replace(found, graph=CPDAG(adjacency, names), law=found.law if len(idle) == 0 else None)
    return _with_law(measurement, whole, ratio, counts.total, obey=obey)


def effective_share(effective_size: str | float, calibrated: float) -> float:
    """Return the sample size of expected counts as a share of N."""
    if effective_size == "auto":
        return calibrated
    if effective_size == "all":
        return 1.0
    if isinstance(effective_size, (int, float)) and 0 < effective_size <= 1:
        return float(effective_size)
    expected = Choices(("auto", "all"), "a share of N between 0 and 1")
    raise invalid_setting("effective_size", expected, effective_size)


def _resampled_counts(
    law: LatentLaw,
    n_samples: int,
    names: tuple[str, ...],
    settings: GraphSettings,
    latents: NDArray[np.intp] | None,
) -> LatentCounts:
    """Return counts of f(N) rows drawn from the law, for some of the latents or all (None)."""
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(_RESAMPLING_KEY,)))
    n_rows = resample_size(settings.resample, n_samples)
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


def _search(
    counts: LatentCounts, settings: GraphSettings, observed: ObservedFit | None, n_rows: float
) -> Confirmed:
    """Return Stage III's graph, with its weakest edges tested on the observed data if given.

    ``n_rows`` is the effective sample size of the observed data. With a low information ratio the
    search continues by the observed-data likelihood.
    """
    if counts.n_variables == 1:
        return Confirmed(CPDAG(np.zeros((1, 1), dtype=np.int8), counts.names), (), None)
    score, knowledge = settings.score, settings.knowledge
    if isinstance(score, str) and score == "auto":
        score = choose_score(counts.levels)
    weight = choose_sample_size(counts, settings.equivalent_sample_size, score, knowledge)
    made = make_score(score, counts, weight, knowledge)
    # Searches without one of the edges need mostly the same local scores.
    cache = ScoreCache(made, counts.n_variables)

    def run(known: Knowledge | None) -> SearchResult:
        return search_graph(
            counts, score=made, search=settings.search, knowledge=known, cache=cache
        )

    found = run(knowledge)
    if callable(settings.search):
        return Confirmed(found.graph, (), None)
    most = CONFIG.graph_stage.max_edge_tests
    if observed is None:
        confirmed, max_tests = Confirmed(found.graph, (), None), 0
        if not settings.calibrated:
            return confirmed
    else:
        max_tests = int(min(most, CONFIG.graph_stage.edge_test_work // observed.work()))
        if use_likelihood_search(observed, n_rows / observed.data.n_counted):
            confirmed = search_by_likelihood(found, observed, made, knowledge)
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
    # The cost on observed data needs at least two fitted laws; otherwise counts are used.
    if observed is None or max_tests < 2:
        cost = cost_on_counts(found.graph, run, knowledge, counts, max_pairs=most)
    else:
        cost = cost_of_knowledge(confirmed.graph, run, knowledge, observed, max_pairs=max_tests)
    return replace(confirmed, knowledge_cost=cost)


def _with_law(
    measurement: Measurement, found: Confirmed, ratio: float, n_rows: float, *, obey: bool = False
) -> LearnedGraph:
    """Return the graph with the law over it and the likelihood of that law."""
    law = measurement.law_over(found.graph, found.law, obey=obey)
    return LearnedGraph(
        found.graph,
        found.tests,
        ratio,
        n_rows,
        law,
        measurement.log_likelihood_of(law),
        found.by_likelihood,
        found.knowledge_cost,
    )
