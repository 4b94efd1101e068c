"""Several seeded starts of Stage I, the best by penalised likelihood kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, append_run, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.em.problem import Observer, Problem, Schedule
from hidag.em.saem import run_saem
from hidag.em.support import select_support
from hidag.initialization.initializers import (
    generators_of,
    levels_are_guessed,
    on_own_support,
    points_for_saturated,
    warm_start,
)
from hidag.initialization.levels import with_better_levels
from hidag.initialization.start_points import StartPoint, confirmatory_start, spread_law
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY, Penalty
from hidag.measurement.terms import Terms
from hidag.strategy.moves.recombination import MOST_ENDS, different_places, exchanged
from hidag.strategy.structural_em import GraphEstimate

# --- What Stage I tells while it runs and leaves when it ends: start by start, and the best

#: Told (start, n_starts, iteration, max_iter, objective) after every step.
StartProgress = Callable[[int, int, int, int, float], None]


@dataclass(frozen=True)
class StartRecord:
    """How one start fared; one that was given up after a rough look has not converged.

    ``n_rows`` says on how many rows starts were compared, 0 on all of them.
    """

    label: str
    objective: float
    log_likelihood: float
    n_iter: int
    converged: bool
    n_rows: int = 0


@dataclass(frozen=True)
class StageOne:
    """The best estimate and what became of every start.

    ``network`` is the same estimate taken further under a law over a graph, when that was asked
    for. ``hierarchy_loss`` is what the log-likelihood lost when states were ruled out; NaN if none
    were.
    """

    best: Estimate
    records: tuple[StartRecord, ...]
    n_reached: int
    method: str
    penalty: Penalty
    network: GraphEstimate | None = None
    hierarchy_loss: float = math.nan


def observer_of(progress: StartProgress | None, index: int, count: int) -> Observer:
    """Return what tells of the steps of one start of so many, if anybody listens."""

    def observer(iteration: int, last: int, value: float) -> None:
        if progress is not None:
            progress(index, count, iteration, last, value)

    return observer


# --- Better optima for a given Q: some latents begun again, and the law begun again

Array = NDArray[np.float64]
#: Runs EM: (number of the start, (items, law), schedule).
Run = Callable[[int, tuple[MeasurementParameters, Array], Schedule], Estimate]

#: Share of the starts that are wholly new: the first good end comes from these.
FRESH_SHARE = 0.25
#: Ends that are improved side by side.
MOST_HEADS = 3
#: Latents that a start begins again, at the least and at the most, as shares of all latents.
FEWEST_RENEWED, MOST_RENEWED = 0.25, 0.6


def fresh_starts(n_starts: int) -> int:
    """Return how many of the starts are wholly new."""
    return max(1, round(FRESH_SHARE * n_starts))


def starts_renewed(
    ends: Sequence[Estimate],
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    generators: Sequence[np.random.Generator],
    run: Run,
    plan: Schedule,
) -> list[tuple[str, Estimate]]:
    """Return what became of the starts after the fresh ones: labels and ends.

    Parameters
    ----------
    ends : sequence of Estimate
        Of the fresh starts, which have the first generators.
    data, space, basis : WorkingData, StateSpace, Basis
    q_entries : ndarray of int8, shape (J, K)
        1 or 0 throughout.
    generators : sequence of Generator
        One for each start, the fresh ones included.
    run, plan : callable, Schedule
        What a start is run with.
    """
    places = different_places([e.parameters for e in ends], [e.objective for e in ends])
    heads = [ends[i] for i in places[:MOST_HEADS]]
    fewest = max(1, int(FEWEST_RENEWED * space.n_latents + 0.5))
    most = max(fewest, int(MOST_RENEWED * space.n_latents + 0.5))
    out = []
    for index in range(len(ends), len(generators)):
        rng, place = generators[index], index % len(heads)
        best = heads[place]
        fresh = confirmatory_start(data, space, q_entries, rng=rng)
        count = int(rng.integers(fewest, most + 1))
        latents = rng.choice(space.n_latents, size=count, replace=False)
        law = law_without(best.probabilities, latents, space)
        items = exchanged(best, fresh.parameters, latents, basis, law)
        end = run(index, (items, law), plan)
        out.append((f"given Q, {count} of {space.n_latents} latents begun again", end))
        if end.objective > best.objective:
            heads[place] = end
    return out


def best_with_law_begun_again(
    ends: Mapping[int, Estimate], space: StateSpace, run: Run, plan: Schedule
) -> tuple[int, Estimate]:
    """Return the best estimate, and its start, after beginning each end's law again.

    Parameters
    ----------
    ends : mapping from int to Estimate
        By number of the start, in different places.
    plan : Schedule
        Fine enough to tell ends apart that differ by a fraction of a unit of log-likelihood.
    """
    found = {}
    for index, end in ends.items():
        others = [run(index, (end.parameters, law), plan) for law in _laws_again(end, space)]
        further = run(index, (end.parameters, end.probabilities), plan)
        found[index] = append_run(end, max([further, *others], key=lambda e: e.objective))
    best = max(found, key=lambda i: found[i].objective)
    return best, found[best]


def _laws_again(end: Estimate, space: StateSpace) -> Iterator[Array]:
    """Yield laws to begin with in place of an end's own, all states possible in each."""
    law = end.probabilities
    yield spread_law(law)
    cube = law.reshape(space.levels)
    axes = range(space.n_latents)
    margins = [cube.sum(axis=tuple(a for a in axes if a != k)) for k in axes]
    yield spread_law(reduce(np.multiply.outer, margins).ravel())


def law_without(law: Array, latents: NDArray[np.integer], space: StateSpace) -> Array:
    """Return the law in which some latents depend on nothing, their levels even, shape (S,)."""
    cube = law.reshape(space.levels)
    even = cube.mean(axis=tuple(int(k) for k in latents), keepdims=True)
    return spread_law(np.broadcast_to(even, cube.shape).ravel())


# ---

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
    basis, allowed = Basis.over(space, terms), allowed_coefficients(q_entries, terms)
    known = bool((q_entries >= 0).all())
    if known:
        penalty = NO_SPARSITY
    problem = Problem(data, space, basis, allowed, penalty, schedule, n_threads)
    generators = generators_of(seed, n_starts)
    renewing = known and begin is None and method == "em" and n_starts >= SCREENED_FROM
    n_fresh = fresh_starts(n_starts) if renewing else n_starts
    if begin is None:
        points = points_for_saturated(data, space, basis, q_entries, generators[:n_fresh])
    else:
        # Other rows may have states that were empty where the law is from: EM would keep them so.
        points = [replace(begin, probabilities=spread_law(begin.probabilities))] * n_starts

    def run(index: int, begin: tuple[MeasurementParameters, Array], plan: Schedule) -> Estimate:
        observer = observer_of(progress, index, n_starts)
        planned = replace(problem, schedule=plan, observer=observer)
        if method == "em":
            return run_em(planned, *begin)
        return run_saem(planned, *begin, generators[index])

    first = [(point.parameters, point.probabilities) for point in points]
    if method == "em" and penalty.name is not None:
        first = [
            warm_start(point, data, space, basis, rng, n_threads)
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
                estimates[i] = append_run(seen, further)
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
    near = SAME_OPTIMUM * min(data.n_counted, CONFIG.em.max_tolerance_rows)
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
            lambda one: append_run(one, run(best, (one.parameters, one.probabilities), schedule)),
        )
    if method == "em" and penalty.name is None:
        # With a given support nothing is left to choose: the likelihood itself is the answer.
        polished = run(best, (winner.parameters, winner.probabilities), fine)
        # What had settled stays settled, even when the finer tolerance was not reached.
        settled = winner.converged or polished.converged
        winner = replace(append_run(winner, polished), converged=settled)
    if method == "em":
        winner, penalty = select_support(problem, winner, adapt=adapt)
    return StageOne(winner, records, reached, method, penalty)
