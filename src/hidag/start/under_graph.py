"""Several starts of Stage I under a law over a graph.

A saturated law is only the bridge to the graph's: a few steps on some of the rows do. Starts are
compared there, by penalised likelihood less the price of the law, and the best one goes on.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.law_rounds import (
    FirstLook,
    LearnParents,
    estimate_under_network,
    look_under_network,
)
from hidag.estimate.loading_costs import permissions
from hidag.estimate.loop import MOST_TOLERANT_ROWS, Observer, Schedule, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.posterior import HARDLY_SEEN, information_ratio
from hidag.estimate.working import WorkingData
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Penalty, Terms
from hidag.start.beginnings import (
    WARM_UP,
    generators_of,
    levels_are_guessed,
    on_own_support,
    points_under_graph,
    warmed_up,
)
from hidag.start.crossing import Problem, ends_of, starts_agree
from hidag.start.exchange_levels import with_better_levels
from hidag.start.graph_first import look_graph_first
from hidag.start.hops import best_after_hops
from hidag.start.one_direction import better_in_one_direction
from hidag.start.points import StartPoint
from hidag.start.records import StageOne, StartProgress, StartRecord, observer_of
from hidag.start.several import ROUGH_TOLERANCE, SAME_OPTIMUM
from hidag.start.spectral import mostly_binary
from hidag.start.splits import better_when_split

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
    basis, allowed = Basis.over(space, terms), permissions(q_entries, terms)
    problem = Problem(
        data, space, basis, allowed, penalty, schedule, learn_parents, adapt, n_threads
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
        if agree and starts_agree(points[0].parameters, points[1].parameters) >= SAME_DIRECTIONS:
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
            parameters, law = warmed_up(point, some, space, basis, rng, n_threads)
        brief = replace(schedule, tolerance=BRIEF_TOLERANCE * schedule.tolerance)
        rough = replace(schedule, tolerance=ROUGH_TOLERANCE * schedule.tolerance)
        saturated = run_em(
            parameters, law, some, basis, allowed, penalty, brief, n_threads=n_threads
        )
        return look_under_network(
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
    near = SAME_OPTIMUM * min(data.n_counted, MOST_TOLERANT_ROWS)
    reached = sum(looks[best].criterion - one.criterion <= near for one in looks)
    return StageOne(chosen.saturated, records, reached, "em", found.penalty, found)


def _hardly_seen(look: FirstLook, space: StateSpace) -> bool:
    """Return whether the items of a first look say little about its latents."""
    law = look.estimate.probabilities
    seen = SaturatedLaw(space, law / law.sum())
    return information_ratio(look.estimate.parameters, seen, look.data) < HARDLY_SEEN


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
        saturated = run_em(
            parameters,
            law,
            problem.data,
            problem.basis,
            problem.allowed,
            problem.penalty,
            brief,
            n_threads=problem.n_threads,
        )
        return look_under_network(
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
