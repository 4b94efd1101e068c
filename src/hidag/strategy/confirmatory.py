"""Confirmatory estimation: Q is given in full, and the likelihood itself is maximised.

All starts are made and compared in the model that is fitted, whatever its effects: random starts,
starts from converged sub-models, and restarts of some latents of the best ends so far. Likelihoods
with a given Q have many local maxima, and EM steps are cheap, so many short runs come first and the
best distinct ends are run to convergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.em import Estimate, append_run, run_em
from hidag.em.problem import Schedule
from hidag.initialization.initializers import generators_of
from hidag.initialization.start_points import StartPoint, confirmatory_start, spread_law
from hidag.latent.laws import factorise_counts, is_saturated
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import MAIN_EFFECTS, Effects
from hidag.strategy.item_terms import fixed_terms, started_in
from hidag.strategy.labels import reverse_levels
from hidag.strategy.moves.basin_hopping import LAW_STEPS, fixed_steps
from hidag.strategy.moves.level_moves import with_level_moves
from hidag.strategy.moves.recombination import MOST_ENDS, distinct_optima, exchange_latents
from hidag.strategy.problem import NetworkEstimate, SearchProblem, StageOne, StartRecord
from hidag.strategy.structural_em import initial_structure_step, structural_em

Array = NDArray[np.float64]

#: Multiplications of all starts' E-steps together per EM step, unless the user sets n_starts.
WORK_FOR_STARTS = 3e8
FEWEST_STARTS, MOST_STARTS = 4, 90
#: Share of the starts that are independent; the others restart some latents of the best ends.
INDEPENDENT_SHARE = 0.25
#: Ends that restarts improve in parallel.
MOST_HEADS = 3
#: Share of latents that a restart draws again, at least and at most.
FEWEST_RESTARTED, MOST_RESTARTED = 0.25, 0.6
#: A sub-model gets this fraction of the starts of the model itself.
SUBMODEL_SHARE = 6
#: Length and tolerance of the short runs, and tolerance of the final run, relative to the schedule.
SHORT_STEPS, SHORT_TOLERANCE, FINAL_TOLERANCE = 40, 30.0, 0.01
#: Models with interactions converge slowly near the boundary: their final run is finer and longer.
INTERACTION_TOLERANCE, INTERACTION_STEPS = 1e-6, 10
#: Objectives this close to the best, per row, count as the same optimum.
SAME_OPTIMUM = 1e-3


def choose_n_starts(problem: SearchProblem) -> int:
    """Return the number of starts: as many as the E-steps' cost allows."""
    if not isinstance(problem.n_starts, str):
        return problem.n_starts
    work = float(problem.data.n_samples) * problem.data.n_items * problem.space.n_states
    return int(np.clip(WORK_FOR_STARTS // work, FEWEST_STARTS, MOST_STARTS))


def estimate_confirmatory(problem: SearchProblem, start: StartPoint | None = None) -> StageOne:
    """Return the maximum likelihood estimate for a given Q, any effects and any kind of law.

    Parameters
    ----------
    problem : SearchProblem
    start : StartPoint or None
        Starting point that replaces all others.
    """
    found = _best_saturated(fixed_terms(problem), start)
    if problem.law == "saturated":
        return _reported(found, problem)
    network = _under_network(fixed_terms(problem), found)
    # A law over a complete graph is the saturated one.
    complete = is_saturated(network.parents, problem.space)
    if problem.law == "network" or (network.preferred and not complete):
        found = replace(found, network=network)
    return _reported(found, problem)


def _reported(found: StageOne, problem: SearchProblem) -> StageOne:
    """Return the estimate with levels as the user reads them."""
    return reverse_levels(found, problem.space) if problem.effects.reversed else found


def _under_network(problem: SearchProblem, found: StageOne) -> NetworkEstimate:
    """Return the estimate under a network law.

    A converged saturated law has fitted noise, and items may have followed it to an extreme. Its
    graph competes with those of laws that have only had a few steps from the uniform one, with its
    items and with initial ones.
    """
    fine = replace(problem, schedule=_final_schedule(problem))
    brief = replace(problem, schedule=fixed_steps(problem.schedule, LAW_STEPS))
    even = np.full(problem.space.n_states, 1.0 / problem.space.n_states)
    first = _random_start(problem, None).parameters
    laws = (found.best, *(run_em(brief, items, even) for items in (found.best.parameters, first)))
    looks = []
    for law in laws:
        look = initial_structure_step(fine, law, n_steps=max(law.n_iter, 1))
        # States that lost their mass under the saturated law get some back.
        law_step = partial(factorise_counts, parents=look.parents, space=problem.space)
        spread = law_step(spread_law(look.estimate.probabilities))
        again = run_em(fine, look.estimate.parameters, spread, law_step=law_step)
        gain = again.objective - look.estimate.objective
        if gain > 0:
            estimate = append_run(look.estimate, again)
            look = replace(look, estimate=estimate, criterion=look.criterion + gain)
        looks.append(replace(look, saturated=found.best))
    best = max(looks, key=lambda one: one.criterion)
    return with_level_moves(structural_em(fine, best), best, fine)


def _final_schedule(problem: SearchProblem) -> Schedule:
    if problem.effects.main_only:
        return problem.tolerating(FINAL_TOLERANCE)
    schedule = problem.schedule
    return replace(
        schedule,
        tolerance=INTERACTION_TOLERANCE * schedule.tolerance,
        max_iter=INTERACTION_STEPS * schedule.max_iter,
    )


def _best_saturated(problem: SearchProblem, start: StartPoint | None) -> StageOne:
    """Return the best estimate over all starts under a saturated law."""
    n_starts = 1 if start is not None else choose_n_starts(problem)
    short = replace(problem, schedule=problem.tolerating(SHORT_TOLERANCE, SHORT_STEPS))

    def run(
        searched: SearchProblem, index: int, items: MeasurementParameters, law: Array
    ) -> Estimate:
        watched = replace(searched, observer=problem.observer_of(index, n_starts))
        return run_em(watched, items, law)

    labels: list[str] = []
    ends: list[Estimate] = []
    if start is not None:
        # Other rows may need states that were empty where the law comes from.
        items, law = start.parameters, start.probabilities
        if problem.effects.reversed:
            items = items.flipped(np.ones(problem.space.n_latents, dtype=bool))
            law = law[::-1]
        labels.append(start.label)
        ends.append(run(short, 0, started_in(problem, items), spread_law(law)))
    else:
        for label, submodel in _submodel_estimates(problem):
            labels.append(label)
            items = started_in(problem, submodel.parameters)
            ends.append(run(short, 0, items, spread_law(submodel.probabilities)))
        generators = generators_of(problem.seed, n_starts)
        n_independent = max(1, round(INDEPENDENT_SHARE * n_starts))
        for index in range(n_independent):
            rng = None if index == 0 else generators[index]
            point = _random_start(problem, rng)
            labels.append(point.label)
            ends.append(run(short, index, point.parameters, point.probabilities))
        order = distinct_optima(
            [e.parameters for e in ends], [e.objective for e in ends], MOST_HEADS
        )
        heads = [ends[i] for i in order]
        for index in range(n_independent, n_starts):
            head = index % len(heads)
            items, law, count = _restart_latents(problem, heads[head], generators[index])
            labels.append(f"given Q, {count} of {problem.space.n_latents} latents restarted")
            ends.append(run(short, index, items, law))
            if ends[-1].objective > heads[head].objective:
                heads[head] = ends[-1]
    order = distinct_optima([e.parameters for e in ends], [e.objective for e in ends], MOST_ENDS)
    for index, end in enumerate(ends):
        if index in order:
            ends[index] = _restart_law(
                problem, end, partial(run, problem, min(index, n_starts - 1))
            )
        else:
            ends[index] = replace(end, converged=False)
    records = tuple(StartRecord.of(label, end) for label, end in zip(labels, ends, strict=True))
    first = max(order, key=lambda i: ends[i].objective)
    near = SAME_OPTIMUM * min(problem.data.n_counted, CONFIG.em.max_tolerance_rows)
    reached = sum(ends[first].objective - end.objective <= near for end in ends)
    best = ends[first]
    final = replace(problem, schedule=_final_schedule(problem))
    polished = run(final, min(first, n_starts - 1), best.parameters, best.probabilities)
    # An estimate that converged stays so, even if the finer tolerance was not reached.
    converged = best.converged or polished.converged
    winner = replace(append_run(best, polished), converged=converged)
    return StageOne(winner, records, reached, "em", problem.penalty)


def _submodel_estimates(problem: SearchProblem) -> Iterator[tuple[str, Estimate]]:
    """Yield estimates of models that are nested in a model with interactions.

    A fit then never ends below a nested model.
    """
    if problem.effects.main_only or problem.effects.conjunctive:
        return
    terms = problem.terms
    for name in ("main", "dina", "dino"):
        effects = MAIN_EFFECTS if name == "main" else Effects.of(name)
        fewer = max(FEWEST_STARTS, choose_n_starts(problem) // SUBMODEL_SHARE)
        nested = fixed_terms(replace(problem, effects=effects, n_starts=fewer))
        if set(nested.terms.interactions) <= set(terms.interactions):
            found = _reported(_best_saturated(nested, None), nested)
            yield f"given Q, {name} model", found.best


def _random_start(problem: SearchProblem, rng: np.random.Generator | None) -> StartPoint:
    """Return a start in the model that is fitted; a fixed one without a generator."""
    point = confirmatory_start(problem.data, problem.space, problem.q_entries, rng=rng)
    items = point.parameters
    if problem.effects.conjunctive:
        # The probability of success rises with the levels; labels of DINO are reversed.
        slopes = np.abs(items.loadings) * (-1.0 if problem.effects.reversed else 1.0)
        middle = items.intercept + 0.5 * items.loadings.sum(axis=1)
        items = replace(items, loadings=slopes, intercept=middle - 0.5 * slopes.sum(axis=1))
    return replace(point, parameters=started_in(problem, items))


def _restart_latents(
    problem: SearchProblem, best: Estimate, rng: np.random.Generator
) -> tuple[MeasurementParameters, Array, int]:
    """Return an end with some latents drawn again: items, law (S,) and how many latents."""
    space = problem.space
    fewest = max(1, int(FEWEST_RESTARTED * space.n_latents + 0.5))
    most = max(fewest, int(MOST_RESTARTED * space.n_latents + 0.5))
    fresh = _random_start(problem, rng)
    count = int(rng.integers(fewest, most + 1))
    latents = rng.choice(space.n_latents, size=count, replace=False)
    law = law_without(best.probabilities, latents, space)
    items = exchange_latents(best, fresh.parameters, latents, problem.basis, law)
    return items, law, count


def _restart_law(
    problem: SearchProblem, end: Estimate, run: Callable[[MeasurementParameters, Array], Estimate]
) -> Estimate:
    """Return the best of EM runs from an end's items with its own law and with fresh laws.

    Its trace is that of one ascending run: without the steps to the end if a fresh law won.
    """
    own = append_run(end, run(end.parameters, end.probabilities))
    fresh = [run(end.parameters, law) for law in _fresh_laws(end, problem.space)]
    return max((own, *fresh), key=lambda one: one.objective)


def _fresh_laws(end: Estimate, space: StateSpace) -> Iterator[Array]:
    """Yield laws in which every state is possible: the end's own spread out, and its margins."""
    law = end.probabilities
    yield spread_law(law)
    cube = law.reshape(space.levels)
    axes = range(space.n_latents)
    margins = [cube.sum(axis=tuple(a for a in axes if a != k)) for k in axes]
    yield spread_law(reduce(np.multiply.outer, margins).ravel())


def law_without(law: Array, latents: NDArray[np.integer], space: StateSpace) -> Array:
    """Return the law with some latents independent of all others and uniform, shape (S,)."""
    cube = law.reshape(space.levels)
    even = cube.mean(axis=tuple(int(k) for k in latents), keepdims=True)
    return spread_law(np.broadcast_to(even, cube.shape).ravel())
