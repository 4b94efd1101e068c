"""Interactions when Q is estimated: entered within an item's latents, selected like loadings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hidag.config import CONFIG
from hidag.em.em import Estimate, LawStep, append_run, normalise_counts, run_em
from hidag.em.information import score_tests
from hidag.em.m_step import Basis, coefficient_scales, total_penalty
from hidag.em.support import select_support
from hidag.initialization.initializers import generators_of, start_points
from hidag.initialization.start_points import StartPoint, main_effects_only, spread_law
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.latent.laws import factorise_counts, n_free_probabilities
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Effects, Terms, interactions_within
from hidag.strategy.item_terms import fixed_terms, least_strength, open_terms, started_in
from hidag.strategy.labels import orient_levels, reverse_levels
from hidag.strategy.moves.level_assignment import assign_levels
from hidag.strategy.moves.q_row_search import improve_rows
from hidag.strategy.problem import SearchProblem, StageOne
from hidag.strategy.structural_em import Candidate, structural_em

Array = NDArray[np.float64]


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
                tolerance=CONFIG.interactions.final_tolerance * problem.schedule.tolerance,
                max_iter=CONFIG.interactions.final_steps * problem.schedule.max_iter,
            ),
        )
    for _ in range(CONFIG.interactions.max_rounds):
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
    for _ in range(CONFIG.interactions.max_rounds):
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
        data=problem.data.first_rows(CONFIG.interactions.rows_for_starts),
        schedule=problem.tolerating(CONFIG.exploratory.brief_tolerance),
        observer=None,
    )

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
        generators_of(problem.seed, problem.starts("interactions").most),
    )  # fmt: skip
    for point in points:
        found = from_point(point.parameters, point.probabilities)
        if found.objective > best.objective:
            best = found
    if problem.levels_unassigned:
        # More levels can imitate an interaction.
        plain = main_effects_only(best.parameters, best.probabilities)
        now = StartPoint(plain, best.probabilities, "main effects")
        for point in assign_levels(problem, sample.data, [now]):
            found = from_point(point.parameters, point.probabilities)
            best = max(best, found, key=lambda one: one.objective)
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


def interaction_scores(
    problem: SearchProblem, estimate: Estimate
) -> tuple[Terms, Array, NDArray[np.bool_]]:
    """Return score tests of products of two of an item's latents, added to an estimate.

    Returns
    -------
    terms : Terms
        Of the estimate, and all products of two latents of an item.
    z : ndarray, shape (J, T)
        Absolute score statistics, efficient with respect to the item's own coefficients.
    tested : ndarray of bool, shape (J, T)
        Products that the item does not have yet.
    """
    parameters, space = estimate.parameters, problem.space
    q = np.asarray(parameters.support)
    main = problem.terms.main_only
    products = interactions_within(q, main.levels, 2, main.linear)
    pairs = replace(main, interactions=products)
    terms = parameters.terms.joined([pairs])
    basis = Basis.over(space, terms)
    items = parameters.with_terms(terms)
    is_product = np.arange(terms.n_terms) >= terms.n_main
    order_two = terms.involved.sum(axis=1) == 2
    tested = terms.support(q.astype(np.int8)) & (is_product & order_two) & (items.loadings == 0)
    z = score_tests(
        items, estimate.probabilities, problem.data, basis, tested, n_threads=problem.n_threads
    )
    return terms, z, tested


def select_interactions(
    problem: SearchProblem, main: StageOne, start: StartPoint | None = None
) -> StageOne:
    """Return the estimate with the interactions that the data support, or the main effects.

    Products of two latents of an item are tested by scores, corrected for their number. If one is
    significant, interactions are estimated: those that are significant with a given Q, otherwise
    those that the penalty selects. The result replaces the main effects if its BIC is smaller.

    Parameters
    ----------
    problem : SearchProblem
        With main effects.
    main : StageOne
        Its estimate.
    start : StartPoint or None
        As in `add_interactions`.
    """
    if not interacting_items(problem, main.estimate):
        return main
    if problem.q_given:
        found = _add_significant(problem, main)
    else:
        found = add_interactions(replace(problem, effects=Effects.of("all")), main, start)
    return found if _bic(problem, found) < _bic(problem, main) else main


def interacting_items(problem: SearchProblem, estimate: Estimate) -> tuple[int, ...]:
    """Return the items with a significant product of two of their latents, beyond the estimate."""
    _, z, tested = interaction_scores(problem, estimate)
    return tuple(np.flatnonzero(_significant(z, tested).any(axis=1)).tolist())


def _significant(z: Array, tested: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the significant ones of some tests, at a familywise level (Bonferroni)."""
    level = CONFIG.interactions.level / max(int(tested.sum()), 1)
    return np.asarray(tested & (z > norm.isf(0.5 * level)))


def _add_significant(problem: SearchProblem, found: StageOne) -> StageOne:
    """Return the estimate for a given Q with significant interactions, while each round gains."""
    fixed = fixed_terms(problem)
    law_step: LawStep = normalise_counts
    if found.network is not None:
        law_step = partial(factorise_counts, parents=found.network.parents, space=problem.space)
    for _ in range(CONFIG.interactions.max_rounds):
        now = found.estimate
        every, z, tested = interaction_scores(problem, now)
        chosen = _significant(z, tested)
        if not chosen.any():
            break
        own = now.parameters.with_terms(every).loadings != 0
        used = (chosen | own).any(axis=0)[every.n_main :]
        chosen_products = (p for p, use in zip(every.interactions, used, strict=True) if use)
        terms = replace(every, interactions=tuple(chosen_products))
        allowed = np.full((len(z), 1 + terms.n_terms), ZERO, dtype=np.uint8)
        allowed[:, : 1 + terms.n_main] = fixed.allowed[:, : 1 + terms.n_main]
        kept = np.concatenate([np.full(every.n_main, False), used])
        allowed[:, 1 + terms.n_main :][(chosen | own)[:, kept]] = FREE
        opened = replace(
            fixed,
            terms=terms,
            basis=Basis.over(problem.space, terms),
            allowed=allowed,
            schedule=problem.tolerating(CONFIG.interactions.tolerance),
        )
        start = now.parameters.with_terms(terms)
        fitted = run_em(opened, start, now.probabilities, law_step=law_step)
        wider = _replaced(found, append_run(now, fitted))
        if _bic(problem, wider) >= _bic(problem, found):
            break
        found = wider
    return found


def _replaced(found: StageOne, estimate: Estimate) -> StageOne:
    """Return the result of Stage I with another estimate to report."""
    if found.network is None:
        return replace(found, best=estimate)
    return replace(found, network=replace(found.network, estimate=estimate))


def _bic(problem: SearchProblem, found: StageOne) -> float:
    """Return the observed-data BIC of the coefficients and the law, up to a constant."""
    now = found.estimate
    n_law = problem.space.n_states - 1
    if found.network is not None:
        n_law = n_free_probabilities(found.network.parents, problem.space)
    n_loadings = int(np.count_nonzero(now.parameters.loadings))
    cost = float(np.log(problem.data.n_counted)) * (n_loadings + n_law)
    return cost - 2.0 * now.log_likelihood
