"""Several starts of Stage I under a law over a graph.

A saturated law is only the bridge to the graph's: a few steps on some of the rows do. Starts are
compared there, by penalised likelihood less the price of the law, and the best one goes on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import run_em
from hidag.em.information import information_ratio
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.em.problem import Observer, Schedule
from hidag.initialization.initializers import (
    WARM_UP,
    generators_of,
    levels_are_guessed,
    on_own_support,
    points_under_graph,
    warm_start,
)
from hidag.initialization.levels import with_better_levels
from hidag.initialization.spectral import mostly_binary
from hidag.initialization.start_points import StartPoint
from hidag.latent.laws import SaturatedLaw, factorise_counts
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import Terms
from hidag.strategy.moves.basin_hopping import best_after_hops
from hidag.strategy.moves.recombination import (
    Problem,
    better_in_one_direction,
    ends_of,
    loading_similarity,
)
from hidag.strategy.moves.split_moves import better_when_split
from hidag.strategy.multistart import (
    ROUGH_TOLERANCE,
    SAME_OPTIMUM,
    StageOne,
    StartProgress,
    StartRecord,
    observer_of,
)
from hidag.strategy.structural_em import (
    FirstLook,
    LearnParents,
    estimate_under_network,
    initial_structure_step,
)

# --- A first look where items hardly show latents: the graph comes before items may move

#: EM steps under independent latents, in which coefficients find their sizes.
STEPS_ALONE = 15
#: Rows that such looks are taken on, at the most.
ROWS_FOR_GRAPH = 10_000


def look_graph_first(point: StartPoint, problem: Problem, observer: Observer) -> FirstLook:
    """Return the estimate under the law over the graph that a start's items show when held.

    Parameters
    ----------
    point : StartPoint
    problem : Problem
    observer : callable
        Told of the steps.
    """
    some = problem.data.first_rows(ROWS_FOR_GRAPH)
    space, schedule = problem.space, problem.schedule
    alone = on_own_support(
        point.parameters,
        some,
        space,
        problem.basis,
        replace(schedule, max_iter=min(STEPS_ALONE, schedule.max_iter), tolerance=0.0),
        problem.n_threads,
        law_step=partial(factorise_counts, parents=((),) * space.n_latents, space=space),
    )
    return initial_structure_step(
        alone,
        some,
        space,
        problem.basis,
        problem.allowed,
        problem.penalty,
        replace(schedule, tolerance=ROUGH_TOLERANCE * schedule.tolerance),
        problem.learn_parents,
        # The law has never been free: its counts show no dependence that it lacks.
        n_steps=1,
        n_threads=problem.n_threads,
        observer=observer,
    )


# ---

Array = NDArray[np.float64]

#: Larger tables are fitted to some of their rows first: that costs less and ends close by.
ROWS_FOR_FIRST_STEPS = 2500
#: How much coarser the steps are that only prepare a law over a graph.
BRIEF_TOLERANCE = 200.0
#: Starts lead to the same place when no latent's loadings differ by more than this cosine.
SAME_DIRECTIONS = 0.92
#: Starts that are tried when the first two do not agree, if the user does not say.
STARTS_IN_DOUBT = 8


def estimate_under_graph(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    seed: int,
    learn_parents: LearnParents,
    adapt: bool = True,
    n_starts: int | str = "auto",
    begin: StartPoint | None = None,
    n_threads: int = 1,
    progress: StartProgress | None = None,
) -> StageOne:
    """Return Stage I's best estimate over several starts under a law over a graph.

    Parameters
    ----------
    data, space, q_entries, penalty, schedule, seed, adapt, n_threads, progress
        As in ``estimate_from_starts``; some of Q is to be estimated.
    learn_parents : callable
        Finds the graph that the law is restricted to.
    n_starts : int or "auto"
        "auto" takes one start when two of different kinds point the same way and items show their
        latents, several otherwise.
    begin : StartPoint or None
        Where to begin instead of any start.
    """
    terms = Terms.main(space.levels)
    basis, allowed = Basis.over(space, terms), allowed_coefficients(q_entries, terms)
    problem = Problem(
        data,
        space,
        basis,
        allowed,
        penalty,
        schedule,
        n_threads,
        learn_parents=learn_parents,
        adapt=adapt,
    )
    some = data.first_rows(ROWS_FOR_FIRST_STEPS)
    wanted = STARTS_IN_DOUBT if isinstance(n_starts, str) else n_starts
    generators = generators_of(seed, wanted)
    warm_up = begin is None
    further: list[StartPoint] | None = None
    if begin is not None:
        points = [begin]
    else:
        made = points_under_graph(data, space, basis, q_entries, generators)
        points = list(islice(made, min(2, wanted)))
        agree = len(points) == 2 and isinstance(n_starts, str)
        if (
            agree
            and loading_similarity(points[0].parameters, points[1].parameters) >= SAME_DIRECTIONS
        ):
            if max(space.levels) == 2:
                points, further = points[:1], points[1:]
                # Coefficients were fitted to scores that another start confirms: they have settled.
                warm_up = mostly_binary(data)
            # Where a score is cut into several levels directions are not all that can go wrong.
        else:
            points.extend(made)

    def look(index: int) -> FirstLook:
        point, rng = points[index], generators[index]
        parameters, law = point.parameters, point.probabilities
        if warm_up:
            parameters, law = warm_start(point, some, space, basis, rng, n_threads)
        brief = replace(schedule, tolerance=BRIEF_TOLERANCE * schedule.tolerance)
        rough = replace(schedule, tolerance=ROUGH_TOLERANCE * schedule.tolerance)
        saturated = run_em(replace(problem, data=some, schedule=brief), parameters, law)
        return initial_structure_step(
            saturated,
            some,
            space,
            basis,
            allowed,
            penalty,
            schedule if some is data else rough,
            learn_parents,
            # Scores show at least as much of the latents' dependence as a warm-up does.
            n_steps=(WARM_UP.max_iter // 2 if begin is None else 0) + max(saturated.n_iter, 1),
            n_threads=n_threads,
            observer=observer_of(progress, index, len(points)),
        )

    looks = [look(0)]
    hardly = begin is None and _hardly_seen(looks[0], space)
    if hardly and further is not None:
        # Both starts were made from the same correlations: they agree about the noise in them too.
        points, warm_up = [*points, *further, *made], True
    if hardly and max(space.levels) == 2:
        looks = _looks_graph_first(points, problem, progress) or looks
    looks += [look(index) for index in range(len(looks), len(points))]
    count = len(points)
    best = max(range(count), key=lambda i: looks[i].criterion)
    observers = [observer_of(progress, index, count) for index in range(count)]
    ends = ends_of(looks, problem, observers)
    in_doubt = len(ends) > 1
    ends, problem = better_in_one_direction(ends, looks, problem, observers)
    chosen = ends[0]
    if in_doubt:
        chosen = best_after_hops(ends, problem, observers[best])
        chosen = better_when_split(chosen, problem, observers[best])
    if begin is None and levels_are_guessed(space, q_entries):
        chosen = _with_better_levels(chosen, problem, observers[best])
    found = estimate_under_network(
        chosen,
        data,
        space,
        basis,
        problem.allowed,
        penalty,
        schedule,
        learn_parents,
        adapt=adapt,
        n_threads=n_threads,
        observer=observers[best],
    )
    records = tuple(
        StartRecord(
            p.label,
            one.estimate.objective,
            one.estimate.log_likelihood,
            one.estimate.n_iter,
            one.estimate.converged,
            0 if one.data is data else one.data.n_samples,
        )
        for p, one in zip(points, looks, strict=True)
    )
    near = SAME_OPTIMUM * min(data.n_counted, CONFIG.em.max_tolerance_rows)
    reached = sum(looks[best].criterion - one.criterion <= near for one in looks)
    return StageOne(chosen.saturated, records, reached, "em", found.penalty, found)


def _hardly_seen(look: FirstLook, space: StateSpace) -> bool:
    """Return whether the items of a first look say little about its latents."""
    law = look.estimate.probabilities
    seen = SaturatedLaw(space, law / law.sum())
    return (
        information_ratio(look.estimate.parameters, seen, look.data) < CONFIG.information.low_ratio
    )


def _looks_graph_first(
    points: list[StartPoint], problem: Problem, progress: StartProgress | None
) -> list[FirstLook]:
    """Return a look from each start with the graph learned first.

    None where the first of them shows no edge: a bridge that a free law makes may show more.
    """
    looks: list[FirstLook] = []
    for index, point in enumerate(points):
        observer = observer_of(progress, index, len(points))
        looks.append(look_graph_first(point, problem, observer))
        if not any(looks[0].parents):
            return []
    return looks


def _with_better_levels(now: FirstLook, problem: Problem, observer: Observer) -> FirstLook:
    """Return the look after exchanges of levels that pay on all rows, or as it was."""
    schedule = problem.schedule
    brief = replace(schedule, tolerance=BRIEF_TOLERANCE * schedule.tolerance)
    rough = replace(schedule, tolerance=ROUGH_TOLERANCE * schedule.tolerance)

    def looked(parameters: MeasurementParameters, law: Array) -> FirstLook:
        saturated = run_em(replace(problem, schedule=brief), parameters, law)
        return initial_structure_step(
            saturated,
            problem.data,
            problem.space,
            problem.basis,
            problem.allowed,
            problem.penalty,
            rough,
            problem.learn_parents,
            n_steps=max(saturated.n_iter, 1),
            n_threads=problem.n_threads,
            observer=observer,
        )

    def begun(items: MeasurementParameters) -> FirstLook:
        warm = on_own_support(
            items, problem.data, problem.space, problem.basis, rough, problem.n_threads
        )
        return looked(warm.parameters, warm.probabilities)

    # All are judged alike: on all rows, after as many kinds of steps.
    here = looked(now.estimate.parameters, now.estimate.probabilities)
    found = with_better_levels(
        here,
        lambda one: one.estimate.parameters,
        lambda one: one.criterion,
        begun,
        lambda one: looked(one.estimate.parameters, one.estimate.probabilities),
    )
    return now if found is here else found
