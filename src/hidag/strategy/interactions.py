"""Interactions when Q is estimated: entered within an item's latents, selected like loadings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.em.em import Estimate, LawStep, append_run, normalise_counts, run_em
from hidag.em.m_step import coefficient_scales, total_penalty
from hidag.em.support import select_support
from hidag.initialization.initializers import generators_of, start_points
from hidag.initialization.start_points import StartPoint, spread_law, with_better_levels
from hidag.latent.laws import factorise_counts
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.strategy.exploratory import BRIEF_TOLERANCE
from hidag.strategy.item_terms import least_strength, open_terms, started_in
from hidag.strategy.labels import orient_levels, reverse_levels
from hidag.strategy.moves.q_row_search import improve_rows
from hidag.strategy.problem import SearchProblem, StageOne
from hidag.strategy.structural_em import Candidate, structural_em

Array = NDArray[np.float64]

#: Times that items' latents may change under interactions.
MAX_ROUNDS = 3
#: Rows on which starts with interactions are compared.
ROWS_FOR_STARTS = 4000
#: Starts with interactions, unless the user sets n_starts.
STARTS_WITH_INTERACTIONS = 6
#: Tolerance and length of the final run of conjunctive items, relative to the schedule.
FINAL_TOLERANCE, FINAL_STEPS = 1e-6, 10


def add_interactions(
    problem: SearchProblem, main: StageOne, start: StartPoint | None = None
) -> StageOne:
    """Return the estimate with interactions within the items' latents, from main effects.

    Main effects select which latents an item has. Each interaction has to gain the penalty's
    strength in observed-data likelihood; a latent that leaves takes its interactions along.

    Parameters
    ----------
    problem : SearchProblem
        With main effects.
    main : StageOne
        Its estimate.
    start : StartPoint or None
        Starting point with interactions, instead of the main effects and all other starts.
        Conjunctive items start at the main effects all the same, which select their latents.
    """
    effects, space, data = problem.effects, problem.space, problem.data
    problem = replace(problem, penalty=main.penalty)
    found = main
    if start is not None and not effects.conjunctive:
        if start.parameters.terms.interactions:
            place = replace(
                main.estimate, parameters=start.parameters, probabilities=start.probabilities
            )
            found = _moved_to(problem, main, place)
    elif start is None and not effects.conjunctive:
        found = _best_of_starts(problem, main)
    if effects.conjunctive:
        found = orient_levels(found, data, space)
    if effects.reversed:
        found = reverse_levels(found, space)
    if effects.conjunctive:
        # The support is fixed: the likelihood itself is maximised.
        problem = replace(
            problem,
            schedule=replace(
                problem.schedule,
                tolerance=FINAL_TOLERANCE * problem.schedule.tolerance,
                max_iter=FINAL_STEPS * problem.schedule.max_iter,
            ),
        )
    for _ in range(MAX_ROUNDS):
        before = found.estimate
        opened = replace(open_terms(problem, before.parameters), adapt=False)
        if found.network is None:
            found = replace(found, best=_fit(opened, before, normalise_counts))
        else:
            parents = found.network.parents
            law_step = partial(factorise_counts, parents=parents, space=space)
            fitted = _fit(opened, before, law_step)
            network = structural_em(opened, Candidate(found.best, fitted, parents, data, 0.0))
            found = replace(found, network=replace(network, penalty=found.penalty))
        if opened.penalty.name is None or np.array_equal(
            found.estimate.parameters.support, before.parameters.support
        ):
            break
    if not effects.conjunctive:
        found = _search_rows(problem, found)
    return reverse_levels(found, space) if effects.reversed else found


def _fit(problem: SearchProblem, now: Estimate, law_step: LawStep) -> Estimate:
    """Return the estimate with the problem's terms: EM, then support selection.

    Without a penalty the support is fixed, and EM also starts from a law in which every state is
    possible: states that lost their mass under main effects may be needed, and EM gives none back.
    """
    items, laws = started_in(problem, now.parameters), [now.probabilities]
    if problem.penalty.name is None:
        laws.append(law_step(spread_law(now.probabilities)))
    found = [run_em(problem, items, law, law_step=law_step) for law in laws]
    best = max(found, key=lambda one: one.objective)
    chosen, _ = select_support(problem, best, adapt=False, law_step=law_step)
    return append_run(now, chosen)


def _search_rows(problem: SearchProblem, found: StageOne) -> StageOne:
    """Return the estimate with items' sets of latents searched again, while each round gains."""
    scale = coefficient_scales(problem.data)
    for _ in range(MAX_ROUNDS):
        now = found.estimate
        # The size of main effects says nothing about that of interactions.
        strength = least_strength(now.parameters.terms, problem.data.n_counted)
        priced = replace(problem, penalty=replace(problem.penalty, strength=strength))
        wider = improve_rows(
            now, problem.data, problem.space, problem.q_entries, problem.effects, strength
        )
        if wider is None:
            break
        law_step: LawStep = normalise_counts
        if found.network is not None:
            law_step = partial(factorise_counts, parents=found.network.parents, space=problem.space)
        opened = open_terms(priced, wider)
        fitted = _fit(opened, replace(now, parameters=wider), law_step)
        # Both under the penalty of the larger model.
        cost = partial(total_penalty, penalty=opened.penalty, scale=scale, allowed=opened.allowed)
        before = now.log_likelihood - cost(now.parameters.with_terms(opened.terms))
        if fitted.log_likelihood - cost(fitted.parameters) <= before:
            break
        if found.network is None:
            found = replace(found, best=fitted)
        else:
            found = replace(found, network=replace(found.network, estimate=fitted))
    return found


def _best_of_starts(problem: SearchProblem, main: StageOne) -> StageOne:
    """Return the best starting point: the main effects, or one from another initializer.

    All are fitted with interactions to a sample of rows under a saturated law, and compared by
    penalised likelihood there.
    """
    sample = replace(
        problem,
        data=problem.data.first_rows(ROWS_FOR_STARTS),
        schedule=problem.tolerating(BRIEF_TOLERANCE),
        observer=None,
    )
    n_starts = problem.n_starts
    count = STARTS_WITH_INTERACTIONS if isinstance(n_starts, str) else n_starts

    def fitted(now: Estimate) -> Estimate:
        for _ in range(2):
            # The penalty depends on all rows, not on those of the sample.
            opened = replace(open_terms(problem, now.parameters), data=sample.data,
                             schedule=sample.schedule, observer=None)  # fmt: skip
            now = _fit(opened, now, normalise_counts)
        return now

    def from_point(items: MeasurementParameters, law: Array) -> Estimate:
        own = replace(problem, q_entries=items.support.astype(np.int8))
        opened = replace(open_terms(own, items), data=sample.data, schedule=sample.schedule,
                         penalty=NO_SPARSITY, observer=None)  # fmt: skip
        return fitted(run_em(opened, items.with_terms(opened.terms), law))

    first = best = fitted(main.estimate)
    points = start_points(
        problem.data, problem.space, problem.basis, problem.q_entries,
        generators_of(problem.seed, count),
    )  # fmt: skip
    for point in points:
        found = from_point(point.parameters, point.probabilities)
        if found.objective > best.objective:
            best = found
    if problem.levels_unassigned:
        # More levels can imitate an interaction.
        even = np.full(problem.space.n_states, 1.0 / problem.space.n_states)
        best = with_better_levels(
            best,
            lambda one: one.parameters,
            lambda one: one.objective,
            lambda items: from_point(items, even),
            fitted,
        )
    return main if best is first else _moved_to(sample, main, best)


def _moved_to(problem: SearchProblem, main: StageOne, place: Estimate) -> StageOne:
    """Return the estimate at another place, under the network law that the place suggests."""
    if main.network is None:
        return replace(main, best=place)
    parents = problem.learn_parents(
        place.parameters, place.probabilities, problem.data, max(place.n_iter, 1)
    )
    law = factorise_counts(place.probabilities, parents=parents, space=problem.space)
    estimate = replace(place, probabilities=law)
    network = replace(main.network, estimate=estimate, parents=parents, unconstrained=law)
    return replace(main, best=place, network=network)
