"""Run the three stages of Algorithm 1, with a given or a selected number of latents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hidag.data.rows import MissingnessPatterns, scale_to_effective_size, select_weighted_rows
from hidag.data.table import Observations
from hidag.em.m_step import at_dispersion_floor
from hidag.em.problem import Schedule
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
    knowledge_conflicts,
    noiseless_items,
    noiseless_message,
    overdispersed_items,
    overdispersion_message,
    warn_if,
    warn_of_weak_evidence,
    with_knowledge_cost,
)
from hidag.fitting.graph_stage import LearnedGraph, learn_graph
from hidag.fitting.number_of_latents import (
    ComparedFit,
    InitialValues,
    choose_number,
    count_table_factors,
    number_from_settings,
)
from hidag.fitting.settings import plain_value
from hidag.fitting.task import FitTask
from hidag.formatting import plural
from hidag.network_em.overdispersion import count_dispersion
from hidag.results import FitResult, versions_used
from hidag.strategy.estimation import StageOneSettings, estimate_measurement
from hidag.strategy.measurement import Measurement
from hidag.structure.knowledge import Knowledge

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

    Parameters
    ----------
    task : FitTask
    settings : dict
        Plain values, stored in the result.
    begin : (MeasurementParameters, ndarray of shape (S,)), optional
        Initial items and latent distribution, instead of the starts.
    map_knowledge : callable, optional
        Returns the knowledge of Stage III for the latents of Stage I. Without Q the order of the
        latents is arbitrary, so that refits must relabel the knowledge. By default
        ``task.knowledge``.
    progress : callable, optional
        As in ``hidag.strategy.estimation.estimate_measurement``.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        measured = _measure(task, begin, progress)
        known = task.knowledge if map_knowledge is None else map_knowledge(measured)
        if known is not task.knowledge:
            settings = {**settings, "knowledge": plain_value(known)}
        found = learn_graph(measured, task.latent_names, replace(task.graph, knowledge=known))
        overdispersed = _overdispersed(task, measured, found)
    result = replace(
        _result(task, settings, measured, found),
        overdispersed=overdispersed,
        noiseless=_noiseless(task, measured),
    )
    result = with_knowledge_cost(result, found.knowledge_cost, measured.record.hierarchy_loss)
    if not result.converged or result.all_starts_stopped:
        _warn_of_nonconvergence(result, task.schedule)
    for message in knowledge_conflicts(result):
        warnings.warn(KnowledgeWarning.of(message), stacklevel=_STACK - 1)
    warn_if(overdispersion_message(result), MisfitWarning, stacklevel=_STACK - 1)
    warn_if(noiseless_message(result), IdentifiabilityWarning, stacklevel=_STACK - 1)
    warn_of_weak_evidence(
        measured.parameters,
        task.latent_names,
        _needs(task, result),
        found.information_ratio,
        # The user was warned about too few items before the fit.
        result.identifiability if task.enough_items else None,
        one_start=result.n_finished == 1,
    )
    return result


def _measure(
    task: FitTask,
    begin: InitialValues | None,
    progress: Callable[[int, int, int, int, float], None] | None,
) -> Measurement:
    """Return Stage I's estimate, in the user's order of items and latents."""
    responses = task.responses
    return estimate_measurement(
        responses.expand(task.counted.values),
        responses.families,
        StageOneSettings(
            task.levels,
            task.penalty,
            task.schedule,
            q_entries=None if task.q_spec is None else responses.of_items(task.q_spec.entries),
            effects=task.effects,
            method=task.method,
            law=task.law,
            knowledge=None if task.knowledge is None else task.knowledge.reindex(task.latent_names),
            adapt=task.adapt,
            n_starts=task.n_starts,
            seed=task.seed,
            n_threads=task.n_threads,
            progress=progress,
        ),
        weights=task.weights,
        start=begin,
    )


def _warn_of_nonconvergence(result: FitResult, schedule: Schedule) -> None:
    # Steps after the starts may converge from a start that is not the best.
    stage = "the starts of Stage I" if result.converged else "Stage I"
    sampled = result.method == "saem"
    warnings.warn(
        ConvergenceWarning(
            "not-converged",
            "{stage} did not converge in {steps} ({max_iter})",
            advice=Advice(
                "raise-iterations",
                "increase {iterations}" if sampled else "increase {iterations} or {tolerance}",
                {"iterations": Setting("max_iter"), "tolerance": Setting("tol")},
            ),
            stage=stage,
            steps=plural(schedule.max_iter, "iteration"),
            max_iter=Setting("max_iter", schedule.max_iter),
        ),
        stacklevel=_STACK,
    )


def _overdispersed(task: FitTask, measured: Measurement, found: LearnedGraph) -> dict[str, float]:
    """Return the variance ratios of Poisson items with more variance than that, by name."""
    responses, weights = task.responses, task.weights
    dispersion = count_dispersion(
        measured.parameters,
        found.law,
        responses.expand(task.counted.values),
        # The test needs the effective sample size of unequal weights.
        None if weights is None else scale_to_effective_size(weights),
        seed=task.seed,
        n_threads=task.n_threads,
    )
    return overdispersed_items(dispersion, responses.names(task.table.names))


def _noiseless(task: FitTask, measured: Measurement) -> tuple[str, ...]:
    """Return the names of items that are nearly deterministic functions of their latents."""
    parameters, responses = measured.parameters, task.responses
    at_bound = at_dispersion_floor(
        parameters,
        responses.expand(task.counted.values),
        task.weights,
        sampled=measured.record.method == "saem",
    )
    return noiseless_items(parameters, at_bound, responses.names(task.table.names))


def _needs(task: FitTask, result: FitResult) -> Needs:
    """Return the sample sizes that the coefficients and the graph require."""
    seen = ~np.isnan(task.counted.values)
    observed = np.average(seen, axis=0, weights=task.weights)
    open_q = np.full((seen.shape[1], task.n_latents), -1, dtype=np.int8)
    entries = open_q if task.q_spec is None else task.q_spec.entries
    possible = None if result.ruled_out is None else ~result.ruled_out
    return Needs.of(task.n_rows, observed, entries, task.levels, result.law, possible)


def _result(
    task: FitTask, settings: dict[str, Any], measured: Measurement, found: LearnedGraph
) -> FitResult:
    """Return the result of all stages."""
    record = measured.record
    penalty = record.log_likelihood - record.objective
    return FitResult(
        item_names=task.table.names,
        latent_names=task.latent_names,
        parameters=measured.parameters,
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
        graph_rows=found.n_rows,
        information_ratio=found.information_ratio,
        edge_tests=found.edge_tests,
        family_reasons=task.families.reasons,
        settings=settings,
        seed=task.seed,
        penalty_strength_used=record.penalty.strength,
        penalty_threshold_used=record.penalty.threshold,
        weighted=task.weights is not None,
        # Rows with weight zero and empty rows are in the table, but do not enter the estimates.
        n_counted=float(task.n_rows),
        n_unanswered=task.n_unanswered,
        graph_by_likelihood=found.by_likelihood,
        versions=versions_used(),
        item_families=() if task.responses.plain else task.families.families,
        seen_rows=MissingnessPatterns.of(task.counted.values, task.weights),
    )


def fit_selected_number(
    table: Observations,
    sample_weight: Any,
    settings: Mapping[str, Any],
    fit_number: Callable[[int, float | None, InitialValues | None], FitResult],
    *,
    log: Callable[[str], None],
) -> FitResult:
    """Return the fit with a number of latents given by other settings or selected by criteria.

    Parameters
    ----------
    table : Observations
    sample_weight : array, shape (N,), or None
    settings : mapping
        As in `DCRL`.
    fit_number : callable
        Fits with a number of latents, a strength of the penalty (None: as in the settings) and
        initial values (None: from starts).
    log : callable
        Receives a sentence about the selected number.
    """
    counted, weights = select_weighted_rows(table, sample_weight)
    n_rows = counted.n_samples if weights is None else float(weights.sum())
    fits: dict[int, tuple[FitResult, list[warnings.WarningMessage]]] = {}

    def fit_of(
        n_latents: int, strength: float | None, start: InitialValues | None = None
    ) -> ComparedFit:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = fit_number(n_latents, strength, start)
        # Further fits with another penalty or start only serve the comparison.
        if start is None:
            fits.setdefault(n_latents, (result, caught))
        return ComparedFit.of(result, n_rows)

    choice = number_from_settings(
        settings["q_matrix"], settings["levels"], settings["latent_names"], table.names
    )
    if choice is None:
        count = count_table_factors(counted, settings["family"], weights)
        choice = choose_number(count, fit_of, counted.values, weights)
    log(f"{plural(choice.n_latents, 'latent')}: {choice.reason}")
    if choice.n_latents not in fits:
        fit_of(choice.n_latents, None)
    result, caught = fits[choice.n_latents]
    for warning in caught:
        # Only warnings about the selected fit; frames: this function, ``fit``, the caller.
        warnings.warn(warning.message, stacklevel=3)
    settings = {**result.settings, "n_latents": "auto"}
    return replace(result, settings=settings, n_latents_reason=choice.reason)
