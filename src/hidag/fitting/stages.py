"""Run the three stages of Algorithm 1, with a given or a selected number of latents."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.rows import (
    MissingnessPatterns,
    nonempty_rows,
    scale_to_effective_size,
)
from hidag.em.m_step import at_dispersion_floor
from hidag.exceptions import (
    Advice,
    ConvergenceWarning,
    IdentifiabilityWarning,
    KnowledgeWarning,
    MisfitWarning,
    Setting,
)
from hidag.fitting.fit_warnings import (
    Needs,
    count_dispersion,
    interactions_message,
    knowledge_conflicts,
    noiseless_items,
    noiseless_message,
    overdispersed_items,
    overdispersion_message,
    warn_if,
    warn_of_weak_evidence,
    with_knowledge_cost,
)
from hidag.fitting.settings import (
    NOT_STORED,
    FitTask,
    GraphSettings,
    effective_share,
    min_items,
    plain_value,
)
from hidag.formatting import plural
from hidag.latent.counts import LatentCounts, resample, resample_size
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.parameters import MeasurementParameters
from hidag.parallel import one_blas_thread
from hidag.results import FitResult, NuisanceFactor, resumed_fit, versions_used
from hidag.strategy.estimation import estimate_measurement
from hidag.strategy.measurement import Measurement
from hidag.strategy.observed_likelihood.edge_probabilities import edge_probabilities
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
from hidag.strategy.problem import LevelTest
from hidag.structure.graph_search import (
    SearchResult,
    choose_sample_size,
    climb_from,
    search_graph,
)
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import Knowledge, admits_complete_dag
from hidag.structure.scores import LeanScore, ScoreCache, choose_score, make_score

#: Initial item parameters and latent distribution, shape (S,).
InitialValues = tuple[MeasurementParameters, NDArray[np.float64]]
#: Spawn key of Stage II in the tree of seeds, far from the keys of the starts.
_RESAMPLING_KEY = 1 << 20
#: Frames between a helper's ``warnings.warn`` and the caller of ``fit``.
_STACK = 4


def run_stages(
    task: FitTask,
    settings: dict[str, Any],
    *,
    begin: InitialValues | None = None,
    map_knowledge: Callable[[Measurement], Knowledge | None] | None = None,
    progress: Callable[[int, int, int, int, float], None] | None = None,
) -> FitResult:
    """Return the fit of Stages I, II and III, and warn about weak evidence and misfit.

    ``settings`` are plain values, stored in the result; ``begin`` are initial items and latent
    distribution (S,) instead of the starts. ``map_knowledge`` returns the knowledge of Stage III
    for the latents of Stage I: without Q their order is arbitrary, so refits must relabel it.
    ``progress`` is as in ``hidag.strategy.estimation.estimate_measurement``.
    """

    def compute() -> FitResult:
        return _estimate(task, settings, begin, map_knowledge, progress)

    # Functions have no content by which a stored fit could be recognised.
    if map_knowledge is None and NOT_STORED not in str(settings):
        facts = [task.table.names, task.families.families, task.graph.seed, task.latent_names]
        arrays: list[Any] = [task.table.values, task.counted.values, task.weights]
        arrays += [] if task.q_spec is None else [task.q_spec.entries]
        if begin is not None:
            items, law = begin
            facts.append(items.terms.interactions)
            arrays += [items.intercept, items.loadings, items.dispersion, items.cutpoints, law]
        result = resumed_fit(compute, {"settings": settings, "facts": facts}, arrays)
    else:
        result = compute()
    if not result.converged or result.all_starts_stopped:
        _warn_of_nonconvergence(result, task.measurement.schedule.max_iter)
    for message in knowledge_conflicts(result):
        warnings.warn(KnowledgeWarning.of(message), stacklevel=_STACK - 1)
    warn_if(overdispersion_message(result), MisfitWarning, stacklevel=_STACK - 1)
    warn_if(interactions_message(result), MisfitWarning, stacklevel=_STACK - 1)
    warn_if(noiseless_message(result), IdentifiabilityWarning, stacklevel=_STACK - 1)
    certificate = None
    # Otherwise the user was warned about too few items before the fit.
    if task.table.n_items >= min_items(task.n_latents):
        certificate = result.identifiability
    needs, ratio, one_start = _needs(task, result), result.information_ratio, result.n_finished == 1
    warn_of_weak_evidence(
        result.parameters, task.latent_names, needs, ratio, certificate, one_start=one_start
    )
    return result


def _estimate(
    task: FitTask,
    settings: dict[str, Any],
    begin: InitialValues | None,
    map_knowledge: Callable[[Measurement], Knowledge | None] | None,
    progress: Callable[[int, int, int, int, float], None] | None,
) -> FitResult:
    """Return the fit of the three stages, without warnings."""
    given = task.graph.knowledge
    rows = task.responses.expand(task.counted.values)
    with one_blas_thread():
        chosen, families = replace(task.measurement, progress=progress), task.responses.families
        measured = estimate_measurement(rows, families, chosen, weights=task.weights, start=begin)
        known = given if map_knowledge is None else map_knowledge(measured)
        if known is not given:
            settings = {**settings, "knowledge": plain_value(known)}
        found = learn_graph(measured, task.latent_names, replace(task.graph, knowledge=known))
        base = _result(task, settings, measured, found)
        # The test needs the effective sample size of unequal weights.
        weights = None if task.weights is None else scale_to_effective_size(task.weights)
        seed, n_threads = task.graph.seed, task.measurement.n_threads
        dispersion = count_dispersion(
            *base.whole_model, rows, weights, seed=seed, n_threads=n_threads
        )
    # Dispersions of sampled estimates have other bounds.
    sampled = measured.record.method == "saem"
    at_bound = at_dispersion_floor(measured.parameters, rows, task.weights, sampled=sampled)
    names = task.responses.names(task.table.names)
    result = replace(
        base,
        overdispersed=overdispersed_items(dispersion, names),
        noiseless=noiseless_items(measured.parameters, at_bound, names),
        interacting=tuple(
            task.table.names[j]
            for j in np.unique(task.responses.item[[*measured.record.interacting]])
        ),
    )
    return with_knowledge_cost(result, found.knowledge_cost, measured.record.hierarchy_loss)


def _warn_of_nonconvergence(result: FitResult, max_iter: int) -> None:
    # Steps after the starts may converge from a start that is not the best.
    stage = "the starts of Stage I" if result.converged else "Stage I"
    sentence = "increase {iterations}" + " or {tolerance}" * (result.method != "saem")
    settings = {"iterations": Setting("max_iter"), "tolerance": Setting("tol")}
    warning = ConvergenceWarning(
        "not-converged",
        "{stage} did not converge in {steps} ({max_iter})",
        {"stage": stage, "steps": plural(max_iter, "iteration")},
        max_iter=Setting("max_iter", max_iter),
        advice=Advice("raise-iterations", sentence, settings),
    )
    warnings.warn(warning, stacklevel=_STACK)


def _needs(task: FitTask, result: FitResult) -> Needs:
    """Return the sample sizes that the coefficients and the graph require."""
    seen = ~np.isnan(task.counted.values)
    observed = np.average(seen, axis=0, weights=task.weights)
    open_q = np.full((seen.shape[1], task.n_latents), -1, dtype=np.int8)
    entries = open_q if task.q_spec is None else task.q_spec.entries
    possible = None if result.ruled_out is None else ~result.ruled_out
    levels = result.terms.levels
    return Needs.of(task.n_rows, observed, entries, levels, result.law, possible)


def _result(
    task: FitTask, settings: dict[str, Any], measured: Measurement, found: LearnedGraph
) -> FitResult:
    """Return the result of all stages."""
    record = measured.record
    penalty = record.log_likelihood - record.objective
    whole = measured.parameters
    factors = tuple(
        NuisanceFactor(one.name, whole.loadings[:, whole.terms.firsts[k]], one.n_levels)
        for k, one in enumerate(task.measurement.nuisances, start=task.n_latents)
    )
    return FitResult(
        item_names=task.table.names,
        latent_names=task.latent_names,
        parameters=_without_nuisances(whole, factors),
        nuisance=factors,
        law=found.law,
        graph=found.graph,
        q_given=None if task.q_spec is None else np.array(task.q_spec.entries),
        log_likelihood=found.log_likelihood,
        objective=found.log_likelihood - penalty,
        n_samples=task.table.n_samples,
        missing_share=task.counted.missing_share,
        n_iter=record.n_iter,
        converged=record.converged,
        method=record.method,
        trace=record.trace,
        starts=record.starts,
        n_reached=record.n_reached,
        rival_gap=record.rival_gap,
        graph_rows=found.n_rows,
        information_ratio=found.information_ratio,
        edge_tests=found.edge_tests,
        family_reasons=task.families.reasons,
        answer_words={name: list(one.labels) for name, one in task.table.labels.items()},
        settings=settings,
        seed=task.graph.seed,
        penalty_strength_used=record.penalty.strength,
        penalty_threshold_used=record.penalty.threshold,
        weighted=task.weights is not None,
        # Rows with weight zero and empty rows are in the table, but do not enter the estimates.
        n_counted=float(task.n_rows),
        n_unanswered=int((~nonempty_rows(task.table.values)).sum()),
        graph_by_likelihood=found.by_likelihood,
        versions=versions_used(),
        item_families=() if task.responses.plain else task.families.families,
        seen_rows=MissingnessPatterns.of(task.counted.values, task.weights),
        edge_probabilities=found.edge_probabilities,
        uncertainty_note=found.uncertainty_note,
        levels_reason=_levels_reason(record.level_tests, task.latent_names),
    )


def _without_nuisances(
    whole: MeasurementParameters, factors: tuple[NuisanceFactor, ...]
) -> MeasurementParameters:
    """Return the items of the latents, with the predictors of a person without a response style."""
    if not factors:
        return whole
    items = whole.reordered(latents=np.arange(whole.n_latents - len(factors)))
    middle = 0.5 * sum(one.loadings for one in factors)
    return replace(items, intercept=items.intercept + middle)


def _levels_reason(tests: tuple[LevelTest, ...], names: tuple[str, ...]) -> str:
    """Return which levels were selected, and by how much; empty if they were given."""

    def text(steps: tuple[int, bool]) -> str:
        return f"{steps[0]} levels" + " in equal steps" * steps[1]

    parts = [
        f"{name}: {text(one.chosen)} (BIC {2 * one.margin:.1f} lower than with {text(one.other)})"
        for name, one in zip(names, tests, strict=False)
    ]
    return "; ".join(parts)


@dataclass(frozen=True)
class LearnedGraph:
    """Result of Stages II and III."""

    graph: CPDAG  # over all latents; latents without items have no edges
    edge_tests: tuple[EdgeTest, ...]
    information_ratio: float  # share of the pairwise information about the latents in the items
    n_rows: float  # sample size of the graph's score
    law: LatentLaw  # Stage I's law if it is saturated and allowed; otherwise the law over the graph
    log_likelihood: float  # of the observed data; NaN if joint states were not listed
    by_likelihood: bool  # whether the observed-data likelihood search improved the graph
    knowledge_cost: KnowledgeCost | None  # log-likelihood lost by the prior knowledge, if computed
    # (K, K): probabilities of direct causes and effects, NaN if not computed, and then why
    edge_probabilities: NDArray[np.float64]
    uncertainty_note: str = ""


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
        n_samples = max(round(part.n_samples), 1)
        latents = used if len(idle) else None
        counts = _resampled_counts(measurement.law, n_samples, used_names, chosen, latents)
    known = None if knowledge is None else knowledge.reindex(names, used.tolist())
    observed = part.observed if chosen.calibrated else None
    found = _search(counts, replace(chosen, knowledge=known), observed, ratio * part.n_samples)
    adjacency[np.ix_(used, used)] = found.graph.adjacency
    whole = replace(found, graph=CPDAG(adjacency, names), law=found.law if len(idle) == 0 else None)
    learned = _with_law(measurement, whole, ratio, counts.total, obey=obey)
    if chosen.uncertainty == "none" or len(used) < 2:
        return replace(learned, uncertainty_note="they were not requested")
    rules = None if known is None else known.constraints(used_names)
    space = part.law.space
    if part.observed is None or space.n_states > CONFIG.edge_probabilities.max_states:
        note = "the latents have too many joint states for the likelihoods of many graphs"
        return replace(learned, uncertainty_note=note)
    law = np.asarray(learned.law.probabilities)
    if len(idle) or not isinstance(learned.law, NetworkLaw):
        law, _ = part.observed.law_under(found.graph)
    learned.edge_probabilities[np.ix_(used, used)] = edge_probabilities(
        part.observed,
        found.graph.to_dag().parents,
        law,
        ratio=ratio,
        n_graphs=getattr(CONFIG.edge_probabilities, f"{chosen.uncertainty}_graphs"),
        rules=rules,
        seed=chosen.seed,
    )
    failed = not np.isfinite(learned.edge_probabilities[np.ix_(used, used)]).all()
    note = "the likelihoods of graphs could not be computed" if failed else ""
    return replace(learned, uncertainty_note=note)


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
    levels, states = tuple(law.space.levels[k] for k in latents), drawn.states[:, latents]
    return LatentCounts.from_rows(states, levels=levels, names=names, weights=drawn.weights)


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
        how = settings.search
        return search_graph(counts, score=made, search=how, knowledge=known, cache=cache)

    def climb(known: Knowledge, start: NDArray[np.int8]) -> SearchResult:
        if settings.search == "exact" or isinstance(made, LeanScore):
            return run(known)
        near = climb_from(start, cache)
        return search_graph(counts, score=made, search=near, knowledge=known, cache=cache)

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
            test = partial(confirm_edges, n_rows=n_rows, n_scored=counts.total, max_tests=max_tests)
            confirmed = test(found, climb, knowledge, observed, made)
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
    likelihood = measurement.log_likelihood_of(law)
    costs = found.by_likelihood, found.knowledge_cost
    unknown = np.full((len(found.graph.names),) * 2, np.nan)
    return LearnedGraph(found.graph, found.tests, ratio, n_rows, law, likelihood, *costs, unknown)
