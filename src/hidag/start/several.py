"""Several seeded starts of Stage I, the best by penalised likelihood kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.estimate.law_rounds import GraphEstimate
from hidag.estimate.loop import (
    MOST_TOLERANT_ROWS,
    Estimate,
    Schedule,
    continued,
    run_em,
    run_saem,
)
from hidag.estimate.maximise import Basis, permissions
from hidag.estimate.support import select_support
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Penalty, Terms
from hidag.start.confirmatory import confirmatory_start
from hidag.start.crossing import MOST_ENDS, different_places
from hidag.start.exchange_levels import with_better_levels
from hidag.start.network_start import anchored_start
from hidag.start.renewal import best_with_law_begun_again, fresh_starts, starts_renewed
from hidag.start.spectral import StartPoint, predictors, spectral_start, spread_law

Array = NDArray[np.float64]
#: Told (start, n_starts, iteration, max_iter, objective) after every step.
StartProgress = Callable[[int, int, int, int, float], None]

#: Exact E-steps cost about N * J * 2^K; past this many multiplications sampling is cheaper.
LARGEST_EXACT_WORK = 4e9
#: More joint states than this are not listed by the exact E-step on its own choice.
LARGEST_EXACT_STATES = 1 << 13
#: Neither method lists more joint states than this.
LARGEST_STATES = 1 << 16
#: Starts whose objective is this close to the best, per row, are said to have reached it.
SAME_OPTIMUM = 1e-3


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
    for.
    """

    best: Estimate
    records: tuple[StartRecord, ...]
    n_reached: int
    method: str
    penalty: Penalty
    network: GraphEstimate | None = None


def choose_method(
    method: str, n_samples: int, n_items: int, space: StateSpace, *, saturated: bool
) -> str:
    """Return "em" or "saem"; "auto" goes by the cost of listing all states."""
    if method not in ("auto", "em", "saem"):
        raise SettingError(f"method must be 'auto', 'em' or 'saem', got {method!r}")
    if space.n_states > LARGEST_STATES and (saturated or method == "em"):
        given = "a saturated latent law" if saturated else "method='em'"
        most = LARGEST_STATES.bit_length() - 1
        raise SettingError(
            f"n_latents={space.n_latents} means {space.count_in_words()} latent states; {given} is "
            f"limited to 2^{most}: use law='auto' and method='auto', or ask for fewer latents"
        )
    if method != "auto":
        return method
    work = float(n_samples) * n_items * space.n_states
    small = space.n_states <= LARGEST_EXACT_STATES and work <= LARGEST_EXACT_WORK
    return "em" if small else "saem"


#: Multiplications that all starts' E-steps together may take per step, when the user does not say.
WORK_FOR_STARTS = 3e8
#: Bounds on the number of starts: a given Q has more local optima, and cheaper fits.
FEWEST_STARTS, MOST_STARTS = {True: 4, False: 1}, {True: 90, False: 4}
#: Starts at least when latents differ in their numbers of levels.
FEWEST_WHEN_UNEVEN = 8
#: From this many starts on, all get a rough look first: so many steps, so much more tolerance.
SCREENED_FROM = 9
ROUGH_STEPS = 40
ROUGH_TOLERANCE = 30.0
#: Sampled steps that settle a start before loadings may come and go.
WARM_UP = Schedule(max_iter=10, burn_in=3, decay=0.6)
#: How much finer the last steps of a fit without penalty are.
FINAL_TOLERANCE = 0.01


def choose_n_starts(n_samples: int, n_items: int, space: StateSpace, *, known: bool) -> int:
    """Return how many starts are worth their cost; ``known`` says whether Q is given in full."""
    work = float(n_samples) * n_items * space.n_states
    count = int(np.clip(WORK_FOR_STARTS // work, FEWEST_STARTS[known], MOST_STARTS[known]))
    # Which latent has how many levels is one more thing to go wrong.
    uneven = not known and len(set(space.levels)) > 1
    return max(count, FEWEST_WHEN_UNEVEN) if uneven else count


def generators_of(seed: int, n_starts: int) -> list[np.random.Generator]:
    """Return a generator for each start; it depends on the seed and the start's number alone."""
    return [
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,))) for i in range(n_starts)
    ]


def further_anchored(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    index: int,
    generator: np.random.Generator,
) -> MeasurementParameters | None:
    """Return the start by anchors if it is the turn of one: the second start is.

    Where latents differ in their numbers of levels so is every other one after it, each with
    another guess which factor has how many.
    """
    uneven = len(set(space.levels)) > 1
    if index == 1 or (uneven and index % 2 == 1):
        rng = None if index == 1 else generator
        return anchored_start(data, q_entries, space.levels, rng=rng)
    return None


def _start_points(
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    generators: list[np.random.Generator],
) -> list[StartPoint]:
    known = bool((q_entries >= 0).all())
    centred = None if known else predictors(data, space.n_latents)
    points = []
    for index, generator in enumerate(generators):
        rng = None if index == 0 else generator
        if centred is None:
            points.append(confirmatory_start(data, space, q_entries, rng=rng))
            continue
        anchored = further_anchored(data, space, q_entries, index, generator)
        if anchored is not None:
            even = np.full(space.n_states, 1.0 / space.n_states)
            points.append(StartPoint(anchored, even, "factors, by anchors"))
        else:
            points.append(spectral_start(data, space, basis, q_entries, centred, rng=rng))
    return points


def warmed_up(
    point: StartPoint,
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    rng: np.random.Generator,
    n_threads: int,
) -> tuple[MeasurementParameters, Array]:
    """Return a start whose coefficients a few SAEM steps have settled on its own support.

    While posteriors are still poor they make false loadings look useful, and a loading once let in
    is slow to leave. So no loading is let in before the given ones have found their size. A few
    sampled steps do that at a fraction of the cost of exact ones, and leave the law less sharp.
    """
    support = np.hstack([np.ones((data.n_items, 1)), point.parameters.loadings != 0])
    found = run_saem(
        point.parameters,
        point.probabilities,
        data,
        basis,
        support.astype(np.uint8),
        NO_SPARSITY,
        WARM_UP,
        space=space,
        rng=rng,
        n_threads=n_threads,
    )
    return found.parameters, spread_law(found.probabilities)


def levels_are_guessed(space: StateSpace, q_entries: NDArray[np.int8]) -> bool:
    """Return whether nothing but the table says which latent has how many levels."""
    return len(set(space.levels)) > 1 and bool((q_entries < 0).all())


def on_own_support(
    items: MeasurementParameters,
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    schedule: Schedule,
    n_threads: int,
) -> Estimate:
    """Return EM's estimate from an even law with just the loadings that the items have.

    As in :func:`warmed_up` coefficients find their sizes before loadings may come and go.
    """
    own = np.hstack([np.ones((data.n_items, 1)), items.loadings != 0]).astype(np.uint8)
    even = np.full(space.n_states, 1.0 / space.n_states)
    return run_em(items, even, data, basis, own, NO_SPARSITY, schedule, n_threads=n_threads)


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
        Where every start begins; None makes starts from the data.
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
    points = (
        [begin] * n_starts
        if begin is not None
        else _start_points(data, space, basis, q_entries, generators[:n_fresh])
    )

    def run(index: int, begin: tuple[MeasurementParameters, Array], plan: Schedule) -> Estimate:
        def observer(iteration: int, last: int, value: float) -> None:
            if progress is not None:
                progress(index, n_starts, iteration, last, value)

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
                observer=observer,
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
            observer=observer,
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
