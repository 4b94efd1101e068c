"""Interactions: let in where main effects found an item's latents, and judged like loadings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, LawStep, append_run, normalise_counts, run_em
from hidag.em.m_step import Basis, coefficient_scales, total_penalty
from hidag.em.problem import Problem, Schedule
from hidag.em.support import select_support
from hidag.initialization.initializers import generators_of, levels_are_guessed, points_under_graph
from hidag.initialization.levels import with_better_levels
from hidag.initialization.start_points import StartPoint, confirmatory_start, spread_law
from hidag.kernels.coordinate_descent import FREE, PENALISED, ZERO
from hidag.latent.laws import factorise_counts
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY, Penalty
from hidag.measurement.terms import Effects, Terms
from hidag.strategy.algorithm_choice import PRICE_WITH_GIVEN_Q
from hidag.strategy.labels import all_turned, latest, levels_rising
from hidag.strategy.moves.q_row_search import with_better_rows
from hidag.strategy.multistart import StageOne
from hidag.strategy.structural_em import FirstLook, LearnParents, estimate_under_network
from hidag.strategy.structural_multistart import BRIEF_TOLERANCE

# --- Terms that items may have beyond their latents' main effects, and estimation with them


@dataclass(frozen=True)
class Room:
    """Terms, what they may be, the basis they make, and what they cost."""

    terms: Terms
    basis: Basis
    allowed: NDArray[np.uint8]
    penalty: Penalty
    conjunctive: bool


def room_for(
    parameters: MeasurementParameters,
    q_entries: NDArray[np.int8],
    space: StateSpace,
    effects: Effects,
    penalty: Penalty,
    n_samples: float,
) -> Room:
    """Return the room that items get whose latents are those of the parameters."""
    known = bool((q_entries >= 0).all())
    q = np.asarray(q_entries == 1 if known else parameters.support, dtype=np.int8)
    terms = effects.terms(q, space.levels)
    wanted = effects.support(terms, q)
    free = known or effects.conjunctive
    allowed = np.full((len(q), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][wanted] = FREE if free else PENALISED
    if not free:
        # Latents may still come and go; only their products have to wait for them.
        of_latent = np.choose(q_entries + 1, [PENALISED, ZERO, FREE])
        allowed[:, 1 : 1 + terms.n_main] = of_latent[:, terms.main_latents]
    # One of so many terms that might be there has to be worth more than one of K loadings.
    dearer = replace(penalty, strength=max(penalty.strength, least_price(terms, n_samples)))
    return Room(
        terms,
        Basis.over(space, terms),
        allowed,
        NO_SPARSITY if free else dearer,
        effects.conjunctive,
    )


def least_price(terms: Terms, n_samples: float) -> float:
    """Return what one of so many terms has to be worth at least, whatever loadings look like."""
    return 0.5 * float(np.log(n_samples * terms.n_terms))


def fitted_in(
    now: Estimate,
    room: Room,
    data: WorkingData,
    schedule: Schedule,
    law_step: LawStep,
    n_threads: int,
) -> Estimate:
    """Return the estimate with the room's terms, the kind of law as it is."""
    space = StateSpace(room.terms.levels)
    problem = Problem(data, space, room.basis, room.allowed, room.penalty, schedule, n_threads)
    started = _started(now.parameters, room)
    found = run_em(problem, started, now.probabilities, law_step=law_step)
    chosen, _ = select_support(problem, found, adapt=False, law_step=law_step)
    return append_run(now, chosen)


def _started(parameters: MeasurementParameters, room: Room) -> MeasurementParameters:
    """Return where estimation with the room's terms begins, given an estimate of any terms."""
    if not room.conjunctive:
        return parameters.with_terms(room.terms)
    if parameters.terms == room.terms:
        return parameters
    wanted = room.allowed[:, 1:] != ZERO
    rewritten = parameters.with_terms(room.terms)
    if parameters.terms.interactions and not rewritten.loadings[~wanted].any():
        # Its products are those of the room already.
        return rewritten
    # All of an item's effect goes to its one product.
    total = parameters.strengths.sum(axis=1, keepdims=True)
    return replace(rewritten, loadings=np.where(wanted, total, 0.0))


# ---

Array = NDArray[np.float64]

#: Times that an item's latents may change under interactions, and new products be let in.
MAX_ROUNDS = 3
#: Rows on which starts with interactions are compared.
ROWS_FOR_STARTS = 4000
#: How much finer the steps are, and how many more there may be, when nothing is left to choose.
LAST_DIGITS, MORE_STEPS = 1e-6, 10


def with_interactions(
    stage_one: StageOne,
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    effects: Effects,
    schedule: Schedule,
    *,
    law: str,
    learn_parents: LearnParents,
    seed: int,
    n_starts: int,
    begin: StartPoint | None = None,
    n_threads: int = 1,
) -> StageOne:
    """Return Stage I's answer taken further with interactions inside the items' latents.

    Main effects say which latents an item has. With Q to be estimated each interaction, like each
    loading, has to be worth the penalty's strength on the observed data; a latent that goes takes
    its interactions along. With Q given in full all its interactions are fitted, and the two kinds
    of law are compared once more.

    Parameters
    ----------
    stage_one : StageOne
        With main effects.
    data, space, q_entries, schedule, law, learn_parents, n_threads
        As in ``estimate_with_law``.
    effects : Effects
        More than main effects.
    seed, n_starts : int
        So many starts in the model with interactions are tried beside the answer with main
        effects, whose maximum may lie elsewhere.
    begin : StartPoint or None
        Where to begin, interactions included, instead of at the answer with main effects or any
        start. Conjunctive items whose latents are to be estimated begin at that answer all the
        same: nothing else chooses their latents.
    """
    known = bool((q_entries >= 0).all())
    if begin is not None and (known or not effects.conjunctive):
        place = replace(
            latest(stage_one), parameters=begin.parameters, probabilities=begin.probabilities
        )
        stage_one = _moved_to(stage_one, place, data, space, learn_parents)
    elif not known and n_starts and not effects.conjunctive:
        stage_one = _best_of_starts(
            stage_one,
            data,
            space,
            q_entries,
            effects,
            schedule,
            learn_parents=learn_parents,
            generators=generators_of(seed, n_starts),
            n_threads=n_threads,
        )
    if effects.conjunctive:
        stage_one = levels_rising(stage_one, data, space)
    if effects.reversed:
        # Any latent is enough where no absence is.
        stage_one = all_turned(stage_one, space)
    if known and begin is None and n_starts:
        stage_one = _best_of_random_starts(
            stage_one,
            data,
            space,
            q_entries,
            effects,
            schedule,
            learn_parents=learn_parents,
            generators=generators_of(seed, n_starts),
            n_threads=n_threads,
        )
    plan = schedule
    if known or effects.conjunctive:
        # Nothing is left to choose: the likelihood itself is the answer, to its last digits.
        plan = replace(
            schedule,
            tolerance=LAST_DIGITS * schedule.tolerance,
            max_iter=MORE_STEPS * schedule.max_iter,
        )
    for _ in range(MAX_ROUNDS):
        before = latest(stage_one)
        room = room_for(
            before.parameters, q_entries, space, effects, stage_one.penalty, data.n_counted
        )
        if stage_one.network is None or known:
            fitted = _fitted_from_two_laws(
                stage_one.best, room, data, plan, normalise_counts, n_threads
            )
            stage_one = replace(stage_one, best=fitted)
        if stage_one.network is not None:
            parents = stage_one.network.parents
            law_step = partial(factorise_counts, parents=parents, space=space)
            fitted = _fitted_from_two_laws(before, room, data, plan, law_step, n_threads)
            again = estimate_under_network(
                FirstLook(stage_one.best, fitted, parents, data, 0.0),
                data,
                space,
                room.basis,
                room.allowed,
                room.penalty,
                plan,
                learn_parents,
                adapt=False,
                price=PRICE_WITH_GIVEN_Q if known else None,
                n_threads=n_threads,
            )
            stage_one = replace(stage_one, network=replace(again, penalty=stage_one.penalty))
        if room.penalty.name is None or np.array_equal(
            latest(stage_one).parameters.support, before.parameters.support
        ):
            break
    if not known and not effects.conjunctive:
        stage_one = _rows_chosen_anew(
            stage_one, data, space, q_entries, effects, plan, n_threads=n_threads
        )
    if stage_one.network is not None and known and law == "auto":
        kept = stage_one.network if stage_one.network.preferred else None
        stage_one = replace(stage_one, network=kept)
    return all_turned(stage_one, space) if effects.reversed else stage_one


def _fitted_from_two_laws(
    now: Estimate,
    room: Room,
    data: WorkingData,
    schedule: Schedule,
    law_step: LawStep,
    n_threads: int,
) -> Estimate:
    """Return the estimate with the room's terms, the better of two where all terms are free.

    Main effects may have left states without mass that items with interactions need, and EM gives
    none back: so it also begins with a law in which every state is possible.
    """
    found = fitted_in(now, room, data, schedule, law_step, n_threads)
    if room.penalty.name is not None:
        return found
    spread = replace(now, probabilities=spread_law(now.probabilities))
    again = fitted_in(spread, room, data, schedule, law_step, n_threads)
    return max(found, again, key=lambda one: one.objective)


def _rows_chosen_anew(
    stage_one: StageOne,
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    effects: Effects,
    schedule: Schedule,
    *,
    n_threads: int,
) -> StageOne:
    """Return the answer with items' latents chosen anew, as long as each round gains."""
    scale = coefficient_scales(data)
    for _ in range(MAX_ROUNDS):
        now = latest(stage_one)
        # What main loadings look like says nothing of how strong interactions are.
        price = replace(
            stage_one.penalty, strength=least_price(now.parameters.terms, data.n_counted)
        )
        wider = with_better_rows(now, data, space, q_entries, effects, price.strength)
        if wider is None:
            break
        law_step: LawStep = normalise_counts
        if stage_one.network is not None:
            law_step = partial(factorise_counts, parents=stage_one.network.parents, space=space)
        room = room_for(wider, q_entries, space, effects, price, data.n_counted)
        begin = replace(now, parameters=wider)
        found = fitted_in(begin, room, data, schedule, law_step, n_threads)
        # Both by the price of the wider room.
        cost = partial(total_penalty, penalty=room.penalty, scale=scale, allowed=room.allowed)
        before = now.log_likelihood - cost(now.parameters.with_terms(room.terms))
        if found.log_likelihood - cost(found.parameters) <= before:
            break
        if stage_one.network is None:
            stage_one = replace(stage_one, best=found)
        else:
            stage_one = replace(stage_one, network=replace(stage_one.network, estimate=found))
    return stage_one


def _best_of_starts(
    stage_one: StageOne,
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    effects: Effects,
    schedule: Schedule,
    *,
    learn_parents: LearnParents,
    generators: list[np.random.Generator],
    n_threads: int,
) -> StageOne:
    """Return the answer to begin with: that with main effects, or one that a start leads to.

    All are fitted with interactions to some of the rows under a saturated law, and compared by
    penalised likelihood there.
    """
    some = data.first_rows(ROWS_FOR_STARTS)
    brief = replace(schedule, tolerance=BRIEF_TOLERANCE * schedule.tolerance)
    penalty = stage_one.penalty
    now = latest(stage_one)

    def fitted(begin: Estimate) -> Estimate:
        found = begin
        for _ in range(2):
            room = room_for(found.parameters, q_entries, space, effects, penalty, data.n_counted)
            found = fitted_in(found, room, some, brief, normalise_counts, n_threads)
        return found

    main = Basis.over(space, Terms.main(space.levels))
    first = best = fitted(now)
    even = np.full(space.n_states, 1.0 / space.n_states)

    def begun(items: MeasurementParameters, law: Array) -> Estimate:
        room = room_for(
            items, items.support.astype(np.int8), space, effects, penalty, data.n_counted
        )
        problem = Problem(some, space, room.basis, room.allowed, NO_SPARSITY, brief, n_threads)
        warm = run_em(problem, items.with_terms(room.terms), law)
        return fitted(warm)

    for point in points_under_graph(data, space, main, q_entries, generators):
        found = begun(point.parameters, point.probabilities)
        if found.objective > best.objective:
            best = found
    if levels_are_guessed(space, q_entries):
        # What an interaction does, more levels may do for items with main effects only.
        best = with_better_levels(
            best,
            lambda one: one.parameters,
            lambda one: one.objective,
            lambda items: begun(items, even),
            fitted,
        )
    return stage_one if best is first else _moved_to(stage_one, best, some, space, learn_parents)


def _best_of_random_starts(
    stage_one: StageOne,
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    effects: Effects,
    schedule: Schedule,
    *,
    learn_parents: LearnParents,
    generators: list[np.random.Generator],
    n_threads: int,
) -> StageOne:
    """Return the answer to begin with when Q is given: with main effects, or from a random start.

    All starts are fitted with the interactions of the given Q under a saturated law and compared
    by likelihood: the maximum of the model with main effects may lie far from that of this model.
    """
    now = latest(stage_one)
    room = room_for(now.parameters, q_entries, space, effects, stage_one.penalty, data.n_counted)
    first = best = _fitted_from_two_laws(now, room, data, schedule, normalise_counts, n_threads)
    for rng in generators:
        point = confirmatory_start(data, space, q_entries, rng=rng)
        items = point.parameters
        if effects.conjunctive:
            # Its levels rise with the items, whichever way the latents are turned.
            slopes = np.abs(items.loadings) * (-1.0 if effects.reversed else 1.0)
            middle = items.intercept + 0.5 * items.loadings.sum(axis=1)
            items = replace(items, loadings=slopes, intercept=middle - 0.5 * slopes.sum(axis=1))
        begin = replace(now, parameters=items, probabilities=point.probabilities)
        found = fitted_in(begin, room, data, schedule, normalise_counts, n_threads)
        if found.objective > best.objective:
            best = found
    return stage_one if best is first else _moved_to(stage_one, best, data, space, learn_parents)


def _moved_to(
    stage_one: StageOne,
    place: Estimate,
    data: WorkingData,
    space: StateSpace,
    learn_parents: LearnParents,
) -> StageOne:
    """Return the answer at another place, its law over the graph that the place shows if any."""
    if stage_one.network is None:
        return replace(stage_one, best=place)
    parents = learn_parents(place.parameters, place.probabilities, data, max(place.n_iter, 1))
    law = factorise_counts(place.probabilities, parents=parents, space=space)
    estimate = replace(place, probabilities=law)
    network = replace(stage_one.network, estimate=estimate, parents=parents, freed=law)
    return replace(stage_one, best=place, network=network)
