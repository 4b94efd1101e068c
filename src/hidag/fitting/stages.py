"""The three stages of a fit, one after the other: from a task to what was found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hidag.data.missingness_patterns import MissingnessPatterns
from hidag.data.sample_weights import scale_to_effective_size, select_weighted_rows
from hidag.data.table import Observations
from hidag.em.m_step import at_dispersion_floor
from hidag.em.problem import Schedule
from hidag.exceptions import (
    ConvergenceWarning,
    IdentifiabilityWarning,
    KnowledgeWarning,
    MisfitWarning,
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
from hidag.fitting.graph_stage import GraphFound, latent_graph
from hidag.fitting.number_of_latents import (
    JudgedFit,
    Place,
    choose_number,
    count_in_table,
    number_told,
)
from hidag.fitting.settings import plain_value
from hidag.fitting.task import FitTask
from hidag.formatting import plural
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.overdispersion import count_dispersion
from hidag.results import FitResult, versions_used
from hidag.strategy.estimation import StageOneSettings, estimate_measurement
from hidag.strategy.measurement import Measurement
from hidag.structure.knowledge import Knowledge

#: From the caller of ``fit``: the warning function, ``run_stages``, ``fit``, the caller.
_STACK = 4


def run_stages(
    task: FitTask,
    settings: dict[str, Any],
    *,
    begin: tuple[MeasurementParameters, NDArray[np.float64]] | None = None,
    known_of: Callable[[Measurement], Knowledge | None] | None = None,
    progress: Callable[[int, int, int, int, float], None] | None = None,
) -> FitResult:
    """Return what Stages I, II and III find, with warnings of what makes it untrustworthy.

    Parameters
    ----------
    task : FitTask
    settings : dict
        As plain values, for the result to keep; the penalty that was used is added.
    begin : (MeasurementParameters, ndarray of shape (S,)), optional
        Items and a law to begin from instead of any start.
    known_of : callable, optional
        From Stage I's answer to what is known about its latents in Stage III. Without a Q latents
        come in an order of their own, and what was known of those of another fit has to follow
        them; ``task.knowledge`` as it is unless given.
    progress : callable, optional
        Called as ``hidag.strategy.estimation.estimate_measurement`` does.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        measured = _measure(task, begin, progress)
        known = task.knowledge if known_of is None else known_of(measured)
        if known is not task.knowledge:
            settings = {**settings, "knowledge": plain_value(known)}
        found = latent_graph(
            measured,
            task.latent_names,
            rule=task.resample,
            effective_size=task.effective_size,
            seed=task.seed,
            score=task.score,
            equivalent_sample_size=task.equivalent_sample_size,
            search=task.search,
            knowledge=known,
            law=task.law,
        )
        varied = _overdispersed(task, measured, found)
    noiseless = _noiseless(task, measured)
    result = with_knowledge_cost(
        replace(
            _result(task, settings, measured, found),
            overdispersed=varied,
            noiseless=noiseless,
        ),
        found.knowledge_cost,
        measured.record.hierarchy_loss,
    )
    if not result.converged or result.all_starts_stopped:
        _warn_unsettled(result, task.schedule)
    for message in knowledge_conflicts(result):
        warnings.warn(KnowledgeWarning.of(message), stacklevel=_STACK - 1)
    warn_if(overdispersion_message(result), MisfitWarning, stacklevel=_STACK - 1)
    warn_if(noiseless_message(result), IdentifiabilityWarning, stacklevel=_STACK - 1)
    warn_of_weak_evidence(
        measured.parameters,
        task.latent_names,
        _needs(task, result),
        found.information_ratio,
        # Too few items for so many latents have been spoken of already.
        result.identifiability if task.enough_items else None,
        one_start=result.n_finished == 1,
    )
    return result


def _measure(
    task: FitTask,
    begin: tuple[MeasurementParameters, NDArray[np.float64]] | None,
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


def _warn_unsettled(result: FitResult, schedule: Schedule) -> None:
    advice = f"raise max_iter or tol (now {schedule.tolerance:g})"
    if result.method == "saem":
        advice = "raise max_iter"
    # What comes after the starts may settle all the same, but nobody knows at the best of them.
    what = "the starts of Stage I" if result.converged else "Stage I"
    warnings.warn(
        f"{what} had not settled after max_iter={plural(schedule.max_iter, 'step')}; {advice}",
        ConvergenceWarning,
        stacklevel=_STACK,
    )


def _overdispersed(task: FitTask, measured: Measurement, found: GraphFound) -> dict[str, float]:
    """Return Poisson items that vary more than that, by name, with how many times as much."""
    responses, weights = task.responses, task.weights
    varied = count_dispersion(
        measured.parameters,
        found.law,
        responses.expand(task.counted.values),
        # What is chance goes by how many rows of equal weight there are.
        None if weights is None else scale_to_effective_size(weights),
        seed=task.seed,
        n_threads=task.n_threads,
    )
    return overdispersed_items(varied, responses.names(task.table.names))


def _noiseless(task: FitTask, measured: Measurement) -> tuple[str, ...]:
    """Return the names of items that are nearly deterministic functions of their latents."""
    parameters, responses = measured.parameters, task.responses
    smallest = at_dispersion_floor(
        parameters,
        responses.expand(task.counted.values),
        task.weights,
        sampled=measured.record.method == "saem",
    )
    return noiseless_items(parameters, smallest, responses.names(task.table.names))


def _needs(task: FitTask, result: FitResult) -> Needs:
    """Return what the fit asks of the table: rows for items' coefficients and for the graph."""
    seen = ~np.isnan(task.counted.values)
    observed = np.average(seen, axis=0, weights=task.weights)
    open_q = np.full((seen.shape[1], task.n_latents), -1, dtype=np.int8)
    entries = open_q if task.q_spec is None else task.q_spec.entries
    possible = None if result.ruled_out is None else ~result.ruled_out
    return Needs.of(task.n_rows, observed, entries, task.levels, result.law, possible)


def _result(
    task: FitTask, settings: dict[str, Any], measured: Measurement, found: GraphFound
) -> FitResult:
    """Return everything the stages leave in one object."""
    record = measured.record
    penalty_paid = record.log_likelihood - record.objective
    return FitResult(
        item_names=task.table.names,
        latent_names=task.latent_names,
        parameters=measured.parameters,
        law=found.law,
        graph=found.graph,
        q_given=None if task.q_spec is None else np.array(task.q_spec.entries),
        log_likelihood=found.log_likelihood,
        objective=found.log_likelihood - penalty_paid,
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
        # Rows of weight zero and empty rows are in the table, but in no estimate.
        n_counted=float(task.n_rows),
        n_unanswered=task.n_unanswered,
        graph_by_likelihood=found.by_likelihood,
        versions=versions_used(),
        item_families=() if task.responses.plain else task.families.families,
        seen_rows=MissingnessPatterns.of(task.counted.values, task.weights),
    )


# --- The fit when nobody says how many latents there are: choose, fit, and keep why

#: From the caller of ``fit``: ``fit_chosen_number``, ``fit``, the caller.
_CHOSEN_NUMBER_STACK = 3


def fit_chosen_number(
    table: Observations,
    sample_weight: Any,
    settings: Mapping[str, Any],
    fit_number: Callable[[int, float | None, Place | None], FitResult],
    *,
    tell: Callable[[str], None],
) -> FitResult:
    """Return the fit with the number of latents that other settings or the table tell.

    Parameters
    ----------
    table : Observations
    sample_weight : array, shape (N,), or None
    settings : mapping
        As the estimator takes them.
    fit_number : callable
        Fits with so many latents, a strength of the penalty, as the settings say for None, and a
        place to begin at, if any.
    tell : callable
        Takes a sentence on what was chosen.
    """
    counted, weights = select_weighted_rows(table, sample_weight)
    n_rows = counted.n_samples if weights is None else float(weights.sum())
    fits: dict[int, tuple[FitResult, list[warnings.WarningMessage]]] = {}

    def fit_of(n_latents: int, strength: float | None, place: Place | None = None) -> JudgedFit:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = fit_number(n_latents, strength, place)
        # A second fit with another number's penalty, or from its fit, is for the comparison alone.
        if place is None:
            fits.setdefault(n_latents, (result, caught))
        return JudgedFit.of(result, n_rows)

    choice = number_told(
        settings["q_matrix"], settings["levels"], settings["latent_names"], table.names
    )
    if choice is None:
        count = count_in_table(counted, settings["family"], weights)
        choice = choose_number(count, fit_of, counted.values, weights)
    tell(f"{plural(choice.n_latents, 'latent')}: {choice.reason}")
    if choice.n_latents not in fits:
        fit_of(choice.n_latents, None)
    result, caught = fits[choice.n_latents]
    for warning in caught:
        # Only what was said of the fit that is kept.
        warnings.warn(warning.message, stacklevel=_CHOSEN_NUMBER_STACK)
    settings = {**result.settings, "n_latents": "auto"}
    return replace(result, settings=settings, n_latents_reason=choice.reason)
