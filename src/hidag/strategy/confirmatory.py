"""Confirmatory estimation: Q is given in full, and the likelihood itself is maximised.

All starts are made and compared in the model that is fitted, whatever its effects: random starts
and starts from sub-models. Likelihoods with a given Q have many local maxima, and EM steps are
cheap: many short runs come first, the best of them continue, some items of the best distinct ends
are restarted while that helps, and these ends are run to convergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.cells import CellModel, run_cells
from hidag.em.em import Estimate, Schedule, append_run, run_em
from hidag.em.m_step import coefficient_scales
from hidag.initialization.initializers import generators_of
from hidag.initialization.start_points import (
    StartPoint,
    confirmatory_start,
    null_parameters,
    spread_law,
)
from hidag.latent.laws import factorise_counts, is_saturated
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Effects
from hidag.strategy.item_terms import fixed_terms, started_in
from hidag.strategy.labels import reverse_levels
from hidag.strategy.moves.level_moves import with_level_moves
from hidag.strategy.problem import (
    NetworkEstimate,
    SearchProblem,
    StageOne,
    StartRecord,
    Starts,
)
from hidag.strategy.structural_em import initial_structure_step, structural_em

Array = NDArray[np.float64]


def estimate_confirmatory(problem: SearchProblem, start: StartPoint | None = None) -> StageOne:
    """Return the maximum likelihood estimate for a given Q, any effects and any kind of law.

    Parameters
    ----------
    start : StartPoint or None
        Starting point that replaces all others.
    """
    found = _best_saturated(_with_cells(fixed_terms(problem)), start)
    if problem.law == "saturated":
        return _reported(found, problem)
    network = _under_network(fixed_terms(problem), found)
    # A law over a complete graph is the saturated one.
    complete = is_saturated(network.parents, problem.space)
    if problem.law == "network" or (network.preferred and not complete):
        found = replace(found, network=network)
    return _reported(found, problem)


def _with_cells(problem: SearchProblem) -> SearchProblem:
    cells, schedule = CellModel.of(problem), problem.schedule
    # Newton steps on arrays cost more than another E-step.
    n_newton = 1 if cells is None else CONFIG.m_step.newton_steps
    return replace(problem, cells=cells, schedule=replace(schedule, n_newton=n_newton))


def _reported(found: StageOne, problem: SearchProblem) -> StageOne:
    """Return the estimate with levels as the user reads them."""
    return reverse_levels(found, problem.space) if problem.effects.reversed else found


def _under_network(problem: SearchProblem, found: StageOne) -> NetworkEstimate:
    """Return the estimate under a network law.

    A converged saturated law has fitted noise, and items may have followed it to an extreme. Its
    graph competes with those of laws that have only had a few steps from the uniform one, with its
    items and with initial ones.
    """
    fine = replace(problem, schedule=_final_schedule(problem, CONFIG.confirmatory.law_tolerance))
    brief = replace(problem, schedule=problem.tolerating(0.0, CONFIG.confirmatory.law_steps))
    even = problem.space.uniform()
    first = _random_start(problem, None).parameters
    laws = (found.best, *(run_em(brief, items, even) for items in (found.best.parameters, first)))
    candidates = []
    for law in laws:
        candidate = initial_structure_step(fine, law, n_steps=max(law.n_iter, 1))
        # States that lost their mass under the saturated law get some back.
        law_step = partial(factorise_counts, parents=candidate.parents, space=problem.space)
        spread = law_step(spread_law(candidate.estimate.probabilities))
        again = run_em(fine, candidate.estimate.parameters, spread, law_step=law_step)
        gain = again.objective - candidate.estimate.objective
        if gain > 0:
            estimate = append_run(candidate.estimate, again)
            candidate = replace(candidate, estimate=estimate, criterion=candidate.criterion + gain)
        candidates.append(replace(candidate, saturated=found.best))
    best = max(candidates, key=lambda one: one.criterion)
    return with_level_moves(structural_em(fine, best), best, fine)


def _final_schedule(problem: SearchProblem, tolerance: float) -> Schedule:
    config, schedule = CONFIG.confirmatory, problem.schedule
    factor = tolerance if problem.effects.main_only else config.interaction_tolerance
    last = config.final_steps * schedule.max_iter
    return replace(schedule, tolerance=factor * schedule.tolerance, max_iter=last)


#: Runs EM: (problem, index of the start, items, law) to the end of the run.
_Run = Callable[[SearchProblem, int, MeasurementParameters, Array], Estimate]
#: A label and the end of a short run.
_End = tuple[str, Estimate]
#: Labels of starts from nested models, and their effects.
SUBMODELS = {f"given Q, {name} model": Effects.of(name) for name in ("main", "dina", "dino", 2)}


def _best_saturated(problem: SearchProblem, start: StartPoint | None) -> StageOne:
    """Return the best estimate over all starts under a saturated law."""
    starts = problem.starts("confirmatory") if start is None else Starts(1)

    def run(
        searched: SearchProblem, index: int, items: MeasurementParameters, law: Array
    ) -> Estimate:
        observer = problem.observer_of(min(index, starts.most - 1), starts.most)
        observed, cells = replace(searched, observer=observer), searched.cells
        if cells is not None and cells.fits(observed):
            return run_cells(cells, observed, items, law)
        return run_em(observed, items, law)

    config = CONFIG.confirmatory
    some = problem if start is not None else _on_sample(problem, config.rows_for_starts)
    short = replace(some, schedule=some.tolerating(config.short_tolerance, config.short_steps))
    low: dict[str, float] = {}
    if start is not None:
        # Other rows may need states that were empty where the law comes from.
        items, law = _lifted(problem, problem.effects, start.parameters, start.probabilities)
        end = run(short, 0, items, spread_law(law))
        found = [(start.label, end)]
    else:
        found = [*_submodel_ends(some, short, run, low), *_start_ends(short, starts, run)]
    ends = [end for _, end in found]
    order, agree = _race(some, ends, run)
    if not agree and start is None:
        _restart_items(some, ends, order, run)
    compared = [end.objective for end in ends]
    larger, size = some, config.rows_for_starts
    while larger is not problem:
        size *= config.row_growth
        larger = _on_sample(problem, size)
        order = _on_more_rows(larger, ends, order, run)
    for place, (label, value) in enumerate(low.items()):
        if value > max(compared) - config.submodel_margin:
            best = _best_saturated(_nested(problem, SUBMODELS[label]), None).best
            point = best.parameters, best.probabilities
            ends[place] = run(problem, place, *_lifted(problem, SUBMODELS[label], *point))
            order = sorted({*order, place})
    for index, end in enumerate(ends):
        if index in order:
            ends[index] = _restart_law(problem, end, partial(run, problem, index))
        else:
            ends[index] = replace(end, converged=False)
    records = tuple(
        StartRecord.of(label, end, 0 if some is problem or i in order else config.rows_for_starts)
        for i, ((label, _), end) in enumerate(zip(found, ends, strict=True))
    )
    near = config.same_optimum * min(some.data.n_counted, CONFIG.em.max_tolerance_rows)
    reached = sum(max(compared) - value <= near for value in compared)
    first = max(order, key=lambda i: ends[i].objective)
    best = ends[first]
    final = replace(problem, schedule=_final_schedule(problem, config.final_tolerance))
    polished = run(final, first, best.parameters, best.probabilities)
    # An estimate that converged stays so, even if the finer tolerance was not reached.
    converged = best.converged or polished.converged
    winner = replace(append_run(best, polished), converged=converged)
    return StageOne(winner, records, reached, "em", problem.penalty)


def _on_sample(problem: SearchProblem, n_rows: int) -> SearchProblem:
    """Return the problem for a sample of so many rows, or itself if it has no more."""
    data = problem.data.first_rows(n_rows)
    if 2 * data.n_samples > problem.data.n_samples:
        return problem
    return _with_cells(replace(problem, data=data))


def _on_more_rows(
    problem: SearchProblem, ends: list[Estimate], order: list[int], run: _Run
) -> list[int]:
    """Continue the chosen ends of fewer rows; return places of the distinct ones."""
    again = [replace(ends[i], n_iter=0, trace=ends[i].trace[:0]) for i in order]
    chosen, _ = _race(problem, again, run)
    for k in chosen:
        ends[order[k]] = again[k]
    return [order[k] for k in chosen]


def _start_ends(short: SearchProblem, starts: Starts, run: _Run) -> list[_End]:
    """Return the ends of short runs from random starts, the first of them a fixed one.

    There are fewer if most of the first ones converge to the same maximum, unless the user asks
    for a number of starts.
    """
    out: list[_End] = []
    enough = CONFIG.confirmatory.starts_to_agree if starts.adaptive else starts.most
    near = short.schedule.tolerance * min(short.data.n_counted, CONFIG.em.max_tolerance_rows)
    near *= CONFIG.confirmatory.starts_distance
    for index, rng in enumerate(generators_of(short.seed, starts.most)):
        point = _random_start(short, None if index == 0 else rng)
        out.append((point.label, run(short, index, point.parameters, point.probabilities)))
        best = max(end.objective for _, end in out)
        same = sum(end.converged and best - end.objective <= near for _, end in out)
        if len(out) >= enough and 2 * same > len(out):
            break
    return out


def _race_problem(problem: SearchProblem) -> SearchProblem:
    config = CONFIG.confirmatory
    return replace(problem, schedule=problem.tolerating(config.race_tolerance, config.race_steps))


def _race(problem: SearchProblem, ends: list[Estimate], run: _Run) -> tuple[list[int], bool]:
    """Continue the best ends; return places of those to be converged, whether most starts agree.

    Short runs separate bad starts from good ones, but not the best from the tenth best.
    """
    config = CONFIG.confirmatory
    longer = _race_problem(problem)
    n_ends = max(config.n_finalists, round(config.race_share * len(ends)))
    by_value = sorted(range(len(ends)), key=lambda i: -ends[i].objective)[:n_ends]
    for i in by_value:
        ends[i] = append_run(ends[i], run(longer, i, ends[i].parameters, ends[i].probabilities))
    chosen: list[int] = []
    for i in sorted(by_value, key=lambda i: -ends[i].objective):
        gaps = [ends[j].objective - ends[i].objective for j in chosen]
        if len(chosen) < config.n_finalists and min(gaps, default=np.inf) > config.agreement:
            chosen.append(i)
    # The best ends agree with each other more than all starts do.
    rows = min(problem.data.n_counted, CONFIG.em.max_tolerance_rows)
    near = max(config.agreement, config.short_tolerance * problem.schedule.tolerance * rows)
    same = sum(ends[chosen[0]].objective - end.objective <= near for end in ends)
    return chosen, 2 * same > len(ends)


def _restart_items(
    problem: SearchProblem, ends: list[Estimate], order: list[int], run: _Run
) -> None:
    """Replace ends by better ones that EM reaches after a restart of a random share of the items.

    A local maximum is often wrong in some items only; the others lead EM out of it.
    """
    config, brief = CONFIG.confirmatory, _race_problem(problem)
    rng = generators_of(problem.seed, len(ends) + 1)[-1]
    waited = 0
    for place in cycle(order):
        if waited >= config.restarts_without_gain:
            return
        now = ends[place].parameters
        other = _random_start(problem, rng).parameters
        chosen = rng.random(len(now.intercept)) < rng.uniform(*config.restarted_shares)
        items = replace(
            now,
            intercept=np.where(chosen, other.intercept, now.intercept),
            loadings=np.where(chosen[:, None], other.loadings, now.loadings),
        )
        found = run(brief, place, items, spread_law(ends[place].probabilities))
        waited += 1
        if found.objective > ends[place].objective + config.same_objective:
            ends[place], waited = found, 0


def _submodel_ends(
    problem: SearchProblem, short: SearchProblem, run: _Run, low: dict[str, float]
) -> Iterator[_End]:
    """Yield ends of short runs from models that are nested in a model with interactions.

    They start at a maximum of the nested model, the best of few starts; ``low`` gets its objective.
    """
    if short.effects.main_only or short.effects.conjunctive:
        return
    for label, effects in SUBMODELS.items():
        nested = _nested(short, effects)
        own, whole = (set(one.terms.interactions) for one in (nested, short))
        if not own <= whole or (own == whole and not effects.conjunctive):
            continue
        starts, config = short.starts("confirmatory"), CONFIG.confirmatory
        number = max(config.fewest_starts, starts.most // config.submodel_share)
        fewer = replace(starts, most=number)
        _, end = max(_start_ends(nested, fewer, run), key=lambda found: found[1].objective)
        nested = replace(nested, schedule=problem.schedule)
        end = _restart_law(nested, end, partial(run, nested, 0))
        low[label] = end.objective
        yield label, run(short, 0, *_lifted(short, effects, end.parameters, end.probabilities))


def _nested(problem: SearchProblem, effects: Effects) -> SearchProblem:
    return _with_cells(fixed_terms(replace(problem, effects=effects)))


def _lifted(
    problem: SearchProblem, effects: Effects, items: MeasurementParameters, law: Array
) -> tuple[MeasurementParameters, Array]:
    """Return a point of a model with some effects as a point of the problem."""
    if effects.reversed:
        items, law = items.flipped(np.ones(len(items.terms.levels), dtype=bool)), law[::-1]
    return started_in(problem, items), law


def _ordered_start(problem: SearchProblem, rng: np.random.Generator) -> StartPoint:
    """Return a random start in which the predictors of every item rise with its latents' levels.

    The cells of an item, the distinct values of its terms, get sorted random predictors. Models
    with fewer coefficients than cells use their least-squares approximation.
    """
    config, data = CONFIG.confirmatory, problem.data
    null = null_parameters(data, problem.terms)
    reach = config.ordered_reach * coefficient_scales(data)
    beta = np.zeros((data.n_items, 1 + problem.terms.n_terms))
    for j, row in enumerate(problem.allowed):
        cells = problem.basis.cells_of(row)
        heights = cells.values.sum(axis=1) * (-1.0 if problem.effects.reversed else 1.0)
        drawn = np.empty(len(heights))
        rising = np.argsort(heights + rng.random(len(heights)), kind="stable")
        drawn[rising] = np.sort(rng.uniform(-reach[j], reach[j], len(heights)))
        beta[j, cells.terms] = cells.inverse @ drawn
    beta[:, 0] += null.intercept
    items = replace(null, intercept=beta[:, 0], loadings=beta[:, 1:])
    kept = items.in_range()
    items = replace(
        items,
        intercept=np.where(kept, items.intercept, null.intercept),
        loadings=np.where(kept[:, None], items.loadings, 0.0),
    )
    law = spread_law(rng.dirichlet(np.ones(problem.space.n_states)))
    return StartPoint(items, law, "given Q, ordered")


def _random_start(problem: SearchProblem, rng: np.random.Generator | None) -> StartPoint:
    """Return a start in the model that is fitted; a fixed one without a generator."""
    if rng is not None and rng.random() < CONFIG.confirmatory.ordered_share:
        return _ordered_start(problem, rng)
    point = confirmatory_start(problem.data, problem.space, problem.q_entries, rng=rng)
    items = point.parameters
    if problem.effects.conjunctive:
        # The probability of success rises with the levels; labels of DINO are reversed.
        slopes = np.abs(items.loadings) * (-1.0 if problem.effects.reversed else 1.0)
        middle = items.intercept + 0.5 * items.loadings.sum(axis=1)
        items = replace(items, loadings=slopes, intercept=middle - 0.5 * slopes.sum(axis=1))
    return replace(point, parameters=started_in(problem, items))


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
