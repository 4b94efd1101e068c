"""Several seeded starts of Stage I, the best by penalised likelihood kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loading_costs import permissions
from hidag.estimate.loop import MOST_TOLERANT_ROWS, Estimate, Schedule, continued, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.saem import run_saem
from hidag.estimate.support import select_support
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Penalty, Terms
from hidag.start.beginnings import (
    generators_of,
    levels_are_guessed,
    on_own_support,
    points_for_saturated,
    warmed_up,
)
from hidag.start.crossing import MOST_ENDS, different_places
from hidag.start.exchange_levels import with_better_levels
from hidag.start.points import StartPoint, spread_law
from hidag.start.records import StageOne, StartProgress, StartRecord, observer_of
from hidag.start.renewal import best_with_law_begun_again, fresh_starts, starts_renewed

Array = NDArray[np.float64]

#: Starts whose objective is this close to the best, per row, are said to have reached it.
SAME_OPTIMUM = 1e-3
#: From this many starts on, all get a rough look first: so many steps, so much more tolerance.
SCREENED_FROM = 9
ROUGH_STEPS = 40
ROUGH_TOLERANCE = 30.0
#: How much finer the last steps of a fit without penalty are.
FINAL_TOLERANCE = 0.01


def estimate_from_starts(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    method: str,
    seed: int,
    adapt: bool = True,
    n_starts: int = 1,
    begin: StartPoint | None = None,
    n_threads: int = 1,
    progress: StartProgress | None = None,
) -> StageOne:
    """Return Stage I's best estimate over several starts, the law saturated.

    Parameters
    ----------
    data : WorkingData
    space : StateSpace
    q_entries : ndarray of int8, shape (J, K)
        1 (loads), 0 (does not), -1 (estimate this). With no -1 the fit is confirmatory: no penalty.
    penalty : Penalty
    schedule : Schedule
    method : {"em", "saem"}
    seed : int
        Root seed; start ``i`` draws from ``SeedSequence(seed, spawn_key=(i,))``.
    adapt : bool
        Whether EM learns the penalty's strength from the table once the best start has settled.
    n_starts, n_threads : int
    begin : StartPoint or None
        Where every start begins, its law with some mass in every state; None makes starts from the
        data.
    progress : callable or None
        Called with (start, n_starts, iteration, max_iter, objective).
    """
    terms = Terms.main(space.levels)
    basis, allowed = Basis.over(space, terms), permissions(q_entries, terms)
    known = bool((q_entries >= 0).all())
    if known:
        penalty = NO_SPARSITY
    generators = generators_of(seed, n_starts)
    renewing = known and begin is None and method == "em" and n_starts >= SCREENED_FROM
    n_fresh = fresh_starts(n_starts) if renewing else n_starts
    if begin is None:
        points = points_for_saturated(data, space, basis, q_entries, generators[:n_fresh])
    else:
        # Other rows may have states that were empty where the law is from: EM would keep them so.
        points = [replace(begin, probabilities=spread_law(begin.probabilities))] * n_starts

    def run(index: int, begin: tuple[MeasurementParameters, Array], plan: Schedule) -> Estimate:
        parameters, law = begin
        if method == "em":
            return run_em(
                parameters,
                law,
                data,
                basis,
                allowed,
                penalty,
                plan,
                n_threads=n_threads,
                observer=observer_of(progress, index, n_starts),
            )
        return run_saem(
            parameters,
            law,
            data,
            basis,
            allowed,
            penalty,
            plan,
            space=space,
            rng=generators[index],
            n_threads=n_threads,
            observer=observer_of(progress, index, n_starts),
        )

    first = [(point.parameters, point.probabilities) for point in points]
    if method == "em" and penalty.name is not None:
        first = [
            warmed_up(point, data, space, basis, rng, n_threads)
            for point, rng in zip(points, generators, strict=True)
        ]
    labels = [point.label for point in points]
    screened = method == "em" and n_starts >= SCREENED_FROM
    order = list(range(n_starts))
    if screened:
        # Many starts: a rough look at each, and only the best go all the way.
        rough = replace(
            schedule,
            tolerance=ROUGH_TOLERANCE * schedule.tolerance,
            max_iter=min(ROUGH_STEPS, schedule.max_iter),
        )
        estimates = [run(i, one, rough) for i, one in enumerate(first)]
        if renewing:
            more = starts_renewed(estimates, data, space, basis, q_entries, generators, run, rough)
            labels += [label for label, _ in more]
            estimates += [estimate for _, estimate in more]
        values = [estimate.objective for estimate in estimates]
        if renewing:
            # Most other ends are earlier versions of these.
            order = different_places([e.parameters for e in estimates], values)[:MOST_ENDS]
        else:
            order = sorted(order, key=lambda i: -values[i])[: -(-n_starts // 3)]
        for i in range(n_starts):
            seen = estimates[i]
            if i in order:
                further = run(i, (seen.parameters, seen.probabilities), schedule)
                estimates[i] = continued(seen, further)
            else:
                estimates[i] = replace(seen, converged=False)
    else:
        estimates = [run(i, first[i], schedule) for i in range(n_starts)]
    records = tuple(
        StartRecord(label, e.objective, e.log_likelihood, e.n_iter, e.converged)
        for label, e in zip(labels, estimates, strict=True)
    )
    fine = replace(schedule, tolerance=FINAL_TOLERANCE * schedule.tolerance)
    best = max(order, key=lambda i: estimates[i].objective)
    if method == "em" and known and begin is None:
        ends = order if renewing else [best]
        best, estimates[best] = best_with_law_begun_again(
            {i: estimates[i] for i in ends}, space, run, fine
        )
    top = estimates[best].objective
    near = SAME_OPTIMUM * min(data.n_counted, MOST_TOLERANT_ROWS)
    reached = sum(top - e.objective <= near for e in estimates)
    winner = estimates[best]
    if method == "em" and begin is None and levels_are_guessed(space, q_entries):
        coarse = replace(schedule, tolerance=ROUGH_TOLERANCE * schedule.tolerance)

        def begun(items: MeasurementParameters) -> Estimate:
            warm = on_own_support(items, data, space, basis, coarse, n_threads)
            return run(best, (warm.parameters, warm.probabilities), coarse)

        winner = with_better_levels(
            winner,
            lambda one: one.parameters,
            lambda one: one.objective,
            begun,
            lambda one: continued(one, run(best, (one.parameters, one.probabilities), schedule)),
        )
    if method == "em" and penalty.name is None:
        # With a given support nothing is left to choose: the likelihood itself is the answer.
        polished = run(best, (winner.parameters, winner.probabilities), fine)
        # What had settled stays settled, even when the finer tolerance was not reached.
        settled = winner.converged or polished.converged
        winner = replace(continued(winner, polished), converged=settled)
    if method == "em":
        winner, penalty = select_support(
            winner, data, basis, allowed, penalty, schedule, adapt=adapt, n_threads=n_threads
        )
    return StageOne(winner, records, reached, method, penalty)
