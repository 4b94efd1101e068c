"""Exploratory estimation: Q, coefficients, latent law and graph are all unknown.

One search for any number of latents. Candidates from different initializers are fitted to a sample
of rows and compared; the best few are run to convergence on all rows; moves (monotone loadings,
unpenalised steps, assigned levels) are kept if they raise the criterion; structural EM on all rows
finishes the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.em import Estimate, Observer, append_run, run_em
from hidag.em.information import information_ratio
from hidag.em.m_step import Basis, penalty_scales, total_penalty
from hidag.em.support import select_support
from hidag.initialization.initializers import (
    fit_own_support,
    generators_of,
    mostly_binary,
    start_points,
    warm_start,
)
from hidag.initialization.start_points import StartPoint, spread_law
from hidag.latent.laws import SaturatedLaw, factorise_counts
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.strategy.moves.level_assignment import assign_levels, other_assignments
from hidag.strategy.moves.level_moves import (
    relabel_levels,
    short_runs_after_moves,
    with_level_moves,
)
from hidag.strategy.moves.optima import (
    converge,
    loading_similarity,
    mostly_agree,
    run_to_convergence,
    try_monotone_loadings,
    with_selected_loadings,
)
from hidag.strategy.moves.unpenalised_steps import try_unpenalised_steps
from hidag.strategy.problem import NetworkEstimate, SearchProblem, StageOne, StartRecord
from hidag.strategy.structural_em import Candidate, initial_structure_step, structural_em

Array = NDArray[np.float64]


def estimate_exploratory(problem: SearchProblem, start: StartPoint | None = None) -> StageOne:
    """Return the best estimate over several starts, for a Q-matrix with unknown entries.

    Parameters
    ----------
    problem : SearchProblem
        With ``n_starts="auto"``, one start is used if two of different kinds agree and the items
        are informative, and several otherwise.
    start : StartPoint or None
        Starting point that replaces all initializers.
    """
    candidates, points = _first_candidates(problem, start)
    count = len(points)
    observers = [problem.observer_of(index, count) for index in range(count)]
    best = max(range(count), key=lambda i: candidates[i].criterion)
    observed_problem = replace(problem, observer=observers[best])
    ends = converge(candidates, problem, observers)
    # Starts of binary items agree about the noise in the same correlations, too.
    noisy = start is None and problem.levels_unassigned and mostly_binary(problem.data)
    if len(ends) == 1 and noisy:
        ends = [run_to_convergence(ends[0], problem, observers[best])]
    chosen, monotone = ends[0], problem
    if noisy or not mostly_agree(candidates):
        ends, monotone = try_monotone_loadings(ends, candidates, problem, observers)
        chosen = try_unpenalised_steps(ends, monotone, observers[best])
    observed_problem = replace(observed_problem, allowed=monotone.allowed)
    if start is None and max(problem.space.levels) > 2:
        chosen = _improve_levels(chosen, monotone, observers[best])
    rival_gap = _rival_gap(chosen, ends)
    # The final fit learns the graph again.
    selected = structural_em(observed_problem, chosen, max_rounds=1)
    network = _fit_selected(observed_problem, selected, chosen)
    records = tuple(
        StartRecord.of(
            point.label, one.estimate, 0 if one.data is problem.data else one.data.n_samples
        )
        for point, one in zip(points, candidates, strict=True)
    )
    near = CONFIG.exploratory.same_optimum * min(
        problem.data.n_counted, CONFIG.em.max_tolerance_rows
    )
    reached = sum(candidates[best].criterion - one.criterion <= near for one in candidates)
    found = StageOne(chosen.saturated, records, reached, "em", network.penalty, network)
    found = replace(found, rival_gap=rival_gap)
    if problem.law == "network" or (problem.law == "auto" and network.preferred):
        return found
    return _under_saturated_law(observed_problem, found)


def _rival_gap(chosen: Candidate, ends: list[Candidate]) -> float:
    """Return how much worse the best of the converged ends with other latents is; NaN if none."""
    items, same = chosen.estimate.parameters, CONFIG.optima.same_optimum_cosine
    others = (one for one in ends if loading_similarity(one.estimate.parameters, items) < same)
    return float(min((chosen.criterion - one.criterion for one in others), default=np.nan))


def _first_candidates(
    problem: SearchProblem, start: StartPoint | None
) -> tuple[list[Candidate], list[StartPoint]]:
    """Return candidates on a sample of rows, and the points they started from."""
    some = problem.data.first_rows(CONFIG.exploratory.rows_for_first_steps)
    starts = problem.starts("exploratory")
    generators = generators_of(problem.seed, starts.most)
    linear = bool(problem.terms.linear)
    assigned = start is None and problem.levels_unassigned and not linear
    warm_up = start is None and not assigned
    second: list[StartPoint] = []
    others: Iterator[StartPoint] = iter(())
    if start is not None:
        points = [start]
    else:
        space, basis = problem.space, problem.basis
        if assigned:
            space = StateSpace((min(space.levels),) * space.n_latents)
        if assigned or linear:
            basis = Basis.over(space, Terms.main(space.levels))
        others = start_points(problem.data, space, basis, problem.q_entries, generators)
        points = list(islice(others, min(2, starts.most)))
        agree = (
            len(points) == 2
            and starts.adaptive
            and loading_similarity(points[0].parameters, points[1].parameters)
            >= CONFIG.exploratory.same_directions
        )
        if agree and max(problem.space.levels) == 2:
            points, second = points[:1], points[1:]
            # Coefficients regressed on scores that another start confirms need no warm-up.
            warm_up = mostly_binary(problem.data)
        elif not agree or assigned:
            points.extend(others)
        if assigned:
            points = assign_levels(problem, some, points)
        points = [
            replace(one, parameters=one.parameters.with_terms(problem.terms)) for one in points
        ]

    def first_candidate(index: int) -> Candidate:
        point = points[index]
        parameters, law = point.parameters, point.probabilities
        sample = replace(problem, data=some, observer=problem.observer_of(index, len(points)))
        if warm_up:
            parameters, law = warm_start(sample, point, generators[index % len(generators)])
        brief = replace(
            sample, schedule=problem.tolerating(CONFIG.exploratory.brief_tolerance), observer=None
        )
        saturated = run_em(brief, parameters, law)
        rough = sample
        if some is not problem.data:
            rough = replace(sample, schedule=problem.tolerating(CONFIG.exploratory.rough_tolerance))
        # Scores show at least as much of the latents' dependence as a warm-up does.
        n_steps = max(saturated.n_iter, 1)
        if start is None:
            n_steps += CONFIG.initialization.warm_up_steps // 2
        return initial_structure_step(rough, saturated, n_steps=n_steps)

    candidates = [first_candidate(0)]
    weak = start is None and _weakly_informative(candidates[0], problem)
    if weak and second:
        # Both starts come from the same correlations, and agree about the noise in them too.
        points, warm_up = [*points, *second, *others], True
    if weak and max(problem.space.levels) == 2:
        candidates = _graph_first(points, problem) or candidates
    candidates += [first_candidate(index) for index in range(len(candidates), len(points))]
    return candidates, points


def _weakly_informative(candidate: Candidate, problem: SearchProblem) -> bool:
    """Return whether the information ratio of a first candidate is low."""
    law = candidate.estimate.probabilities
    seen = SaturatedLaw(problem.space, law / law.sum())
    return (
        information_ratio(candidate.estimate.parameters, seen, candidate.data)
        < CONFIG.information.low_ratio
    )


def _graph_first(points: list[StartPoint], problem: SearchProblem) -> list[Candidate]:
    """Return a candidate from each start whose graph is learned with coefficients fixed.

    Empty if the first of them has no edge: a saturated law may then show more.
    """
    candidates: list[Candidate] = []
    for index, point in enumerate(points):
        candidates.append(graph_first(problem, point, problem.observer_of(index, len(points))))
        if not any(candidates[0].parents):
            return []
    return candidates


def graph_first(problem: SearchProblem, point: StartPoint, observer: Observer) -> Candidate:
    """Return the candidate whose graph is learned from independent latents, items fixed."""
    space, schedule = problem.space, problem.schedule
    brief = min(CONFIG.exploratory.steps_under_independence, schedule.max_iter)
    sample = replace(
        problem,
        data=problem.data.first_rows(CONFIG.exploratory.rows_for_weak_items),
        schedule=replace(schedule, max_iter=brief, tolerance=0.0),
        observer=None,
    )
    independent = fit_own_support(
        sample,
        point.parameters,
        law_step=partial(factorise_counts, parents=((),) * space.n_latents, space=space),
    )
    rough = replace(
        sample, schedule=problem.tolerating(CONFIG.exploratory.rough_tolerance), observer=observer
    )
    # The law has never been unconstrained: its counts show no dependence that it lacks.
    return initial_structure_step(rough, independent, n_steps=1)


def _improve_levels(now: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return the candidate after the changes of levels that raise the criterion."""
    rough = replace(
        problem, schedule=problem.tolerating(CONFIG.exploratory.rough_tolerance), observer=observer
    )
    brief = replace(
        problem, schedule=problem.tolerating(CONFIG.exploratory.brief_tolerance), observer=None
    )
    some = problem.data.first_rows(CONFIG.exploratory.rows_for_first_steps)

    def restructure(items: MeasurementParameters, law: Array) -> Candidate:
        saturated = run_em(brief, items, law)
        return initial_structure_step(rough, saturated, n_steps=max(saturated.n_iter, 1))

    def finish(one: Candidate) -> Candidate:
        return run_to_convergence(one, problem, observer)

    # All are compared on the same rows and after the same steps.
    here = now if now.data is problem.data else finish(now)
    found = here
    for _ in range(CONFIG.levels.max_rounds):
        at = found.estimate
        moves = relabel_levels(
            at.parameters, at.probabilities, problem.space, problem.basis.features
        )[: CONFIG.levels.max_relabelled]
        if problem.levels_unassigned:
            others = other_assignments(problem, some, at)[: CONFIG.levels.max_moved]
            moves += [(one.parameters, one.probabilities) for one in others]
        whole = with_selected_loadings(problem, at.parameters)
        moved = short_runs_after_moves(at, found.parents, whole)[: CONFIG.levels.max_moved]
        tried = [finish(restructure(*move)) for move in moves]
        tried += [finish(replace(found, estimate=append_run(at, one))) for one in moved]
        best = max(tried, key=lambda one: one.criterion, default=found)
        if best.criterion <= found.criterion + CONFIG.levels.min_gain:
            break
        found = best
    return now if found is here else found


def _fit_selected(
    problem: SearchProblem, network: NetworkEstimate, first: Candidate
) -> NetworkEstimate:
    """Return the maximum likelihood estimate for the selected Q: the fit if that Q were given.

    All steps of a latent that an item has are free; the penalty may have removed some of them.
    """
    final = replace(problem, schedule=problem.tolerating(CONFIG.exploratory.final_tolerance))
    fixed = with_selected_loadings(final, network.estimate.parameters)
    one = replace(first, estimate=network.estimate, parents=network.parents)
    found = with_level_moves(structural_em(fixed, one), one, fixed)
    cost = total_penalty(
        found.estimate.parameters, network.penalty, penalty_scales(problem.data), problem.allowed
    )
    estimate = replace(found.estimate, objective=found.estimate.log_likelihood - cost)
    return replace(found, estimate=estimate, penalty=network.penalty)


def _under_saturated_law(problem: SearchProblem, found: StageOne) -> StageOne:
    """Return the estimate under a saturated law, from the one under a network law.

    The trace has only these steps: objectives under the two kinds of law are not comparable.
    """
    now = found.estimate
    fitted = run_em(problem, now.parameters, spread_law(now.probabilities))
    best, penalty = select_support(problem, fitted, adapt=problem.adapt)
    return replace(found, best=best, penalty=penalty, network=None)


def estimate_by_saturated_saem(
    problem: SearchProblem, run: Callable[[int, StartPoint], Estimate], points: list[StartPoint]
) -> StageOne:
    """Return the best of several SAEM runs under a saturated law, the paper's Algorithm S.2."""
    ends = [run(index, point) for index, point in enumerate(points)]
    best = max(ends, key=lambda one: one.objective)
    near = CONFIG.exploratory.same_optimum * min(
        problem.data.n_counted, CONFIG.em.max_tolerance_rows
    )
    records = tuple(StartRecord.of(p.label, e) for p, e in zip(points, ends, strict=True))
    reached = sum(best.objective - one.objective <= near for one in ends)
    return StageOne(best, records, reached, "saem", problem.penalty)
