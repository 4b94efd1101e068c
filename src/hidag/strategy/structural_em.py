"""Structural EM: EM under a network law whose graph is learned again as estimates improve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_law_e_step
from hidag.em.em import (
    Estimate,
    LawEStep,
    append_run,
    fit_law,
    run_em,
    update_law_unconstrained,
)
from hidag.em.information import effective_sample_ratio, information_ratio
from hidag.em.support import select_support
from hidag.latent.counts import expected_counts
from hidag.latent.laws import (
    Parents,
    SaturatedLaw,
    are_equivalent,
    factorise_counts,
    markov_class,
    network_complexity,
)
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, order_all_levels
from hidag.strategy.observed_likelihood.likelihood_search import (
    LikelihoodSearch,
    ObservedFit,
    SingleChanges,
    edges_of,
    use_likelihood_search,
)
from hidag.strategy.problem import LearnParents, NetworkEstimate, SearchProblem
from hidag.structure.graph_search import search_graph
from hidag.structure.knowledge import Knowledge
from hidag.structure.scores import choose_score

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A point of the search: an estimate under a network law, on all rows or on a sample."""

    saturated: Estimate  # The estimate under a saturated law that it started from.
    estimate: Estimate  # Its probabilities factorise over ``parents``.
    parents: Parents
    data: WorkingData  # The rows.
    criterion: float  # Penalised log-likelihood minus the complexity of the law; larger is better.


def parents_by_search(
    space: StateSpace,
    knowledge: Knowledge | None = None,
    possible: NDArray[np.bool_] | None = None,
) -> LearnParents:
    """Return the structure learning step of structural EM.

    ``knowledge`` refers to latents by number. ``possible``, shape (S,), are the joint states that a
    hierarchy allows; all by default.
    """
    names = tuple(f"{k}" for k in range(space.n_latents))

    def learn(
        parameters: MeasurementParameters, probabilities: Array, data: WorkingData, n_steps: int
    ) -> Parents:
        if space.n_latents == 1:
            return ((),)
        wide = space.widened(parameters.terms.levels)
        probabilities = wide.without_nuisances(probabilities)
        if max(space.levels) > 2:
            # The score depends on the order of levels, which estimation does not maintain.
            orders = order_all_levels(parameters)[: space.n_latents]
            nuisances = tuple(np.arange(m) for m in wide.levels[space.n_latents :])
            parameters = parameters.relevelled((*orders, *nuisances))
            probabilities = probabilities.reshape(space.levels)[np.ix_(*orders)].ravel()
        law = SaturatedLaw(space, probabilities / probabilities.sum())
        ratio = information_ratio(parameters, law, data)
        counts = expected_counts(
            law, max(effective_sample_ratio(ratio, n_steps) * data.n_counted, 1.0), names
        )
        found = search_graph(counts, score=choose_score(space.levels), knowledge=knowledge)
        observed = ObservedFit(
            data, parameters, space, np.asarray(law.probabilities), possible=possible
        )
        if not use_likelihood_search(observed, ratio):
            return found.dag.parents
        rules = None if knowledge is None else knowledge.constraints(names)
        return LikelihoodSearch(observed, SingleChanges(rules)).best_from(found.dag.parents).parents

    return learn


def law_complexity(
    estimate: Estimate,
    parents: Parents,
    space: StateSpace,
    n_samples: float,
    possible: NDArray[np.bool_] | None = None,
) -> float:
    """Return the complexity of a network law: half log n per parameter of its tables.

    Binary latents have one parameter per free probability; tables of more levels may need fewer
    (:mod:`hidag.latent.laws`). ``possible``, shape (S,), are the joint states that
    may occur, all by default.
    """
    return network_complexity(
        space.without_nuisances(estimate.probabilities) * n_samples,
        parents,
        space.real,
        order_all_levels(estimate.parameters)[: space.real.n_latents],
        float(0.5 * np.log(n_samples)),
        possible,
    )


def initial_structure_step(
    problem: SearchProblem, saturated: Estimate, *, n_steps: int
) -> Candidate:
    """Return the estimate under the network law whose graph a saturated law suggests.

    ``n_steps`` is the number of EM steps that the saturated law has had.
    """
    parents = problem.learn_parents(
        saturated.parameters, saturated.probabilities, problem.data, n_steps
    )
    law_step = partial(factorise_counts, parents=parents, space=problem.space)
    found = run_em(
        problem, saturated.parameters, law_step(saturated.probabilities), law_step=law_step
    )
    complexity = law_complexity(found, parents, problem.space, problem.data.n_counted)
    both = append_run(saturated, found)
    return Candidate(saturated, both, parents, problem.data, float(found.objective - complexity))


def without_needless_edges(problem: SearchProblem, estimate: Estimate, parents: Parents) -> Parents:
    """Return the graph without edges whose removal raises the criterion, items fixed.

    Counts expected under an edge confirm it. Graphs of binary latents are compared by the observed
    data's likelihood while they are learned; with more levels this is where it is done.
    """
    space, data = problem.space, problem.data
    if max(space.real.levels) == 2:
        return parents
    e_step = LawEStep(
        estimate.parameters, data, np.ascontiguousarray(problem.basis.features), problem.n_threads
    )

    def criterion(graph: Parents, law: Array, log_likelihood: float) -> float:
        fitted = replace(estimate, probabilities=law)
        return log_likelihood - law_complexity(fitted, graph, space, data.n_counted)

    best = criterion(parents, estimate.probabilities, estimate.log_likelihood)
    changes = SingleChanges()
    while True:
        # Without an edge, two members of a class may be of different classes.
        smaller = {
            markov_class(fewer): fewer
            for member in reversed(changes.members(parents))
            for fewer in (changes.parted(member, *edge) for edge in edges_of(member))
            if fewer is not None
        }
        found: list[tuple[float, Parents]] = []
        for fewer in smaller.values():
            law_step = partial(factorise_counts, parents=fewer, space=space)
            law, value = fit_law(
                e_step.run,
                law_step(estimate.probabilities),
                law_step,
                tolerance=CONFIG.structural_em.edge_tolerance,
                max_steps=CONFIG.structural_em.edge_steps,
            )
            found.append((criterion(fewer, law, value), fewer))
        top = max(found, default=(-np.inf, parents), key=lambda one: one[0])
        if top[0] <= best:
            return parents
        best, parents = top


def structural_em(
    problem: SearchProblem,
    first: Candidate,
    *,
    possible: NDArray[np.bool_] | None = None,
    max_rounds: int | None = None,
) -> NetworkEstimate:
    """Return the estimate under a network law: EM, support selection and graph, in turns.

    Parameters
    ----------
    first : Candidate
        Starting point.
    possible : ndarray of bool, shape (S,), optional
        Joint states that may occur; all by default.
    max_rounds : int
        Times that the graph is learned, including the first; default as in ``CONFIG``.
    """
    config = CONFIG.structural_em
    space, data = problem.space, problem.data
    features = np.ascontiguousarray(problem.basis.features)
    estimate, parents, penalty = first.estimate, first.parents, problem.penalty
    if first.data is not data:
        # Objectives on other rows are not comparable.
        moves = estimate.trace[:, 1]
        trace = np.column_stack([np.full(len(moves), np.nan), moves])
        estimate = replace(estimate, trace=trace)
    law = estimate.probabilities
    for again in range(config.max_rounds if max_rounds is None else max_rounds):
        if again:
            steps = config.unconstrained_steps
            found = problem.learn_parents(estimate.parameters, law, data, steps)
            if are_equivalent(found, parents):
                break
            parents = found
        law_step = partial(factorise_counts, parents=parents, space=space)
        current = replace(problem, penalty=penalty)
        fitted = run_em(current, estimate.parameters, law_step(law), law_step=law_step)
        chosen, penalty = select_support(current, fitted, adapt=problem.adapt, law_step=law_step)
        if problem.adapt and (chosen.parameters.support != fitted.parameters.support).any():
            # The strength was estimated from loadings that have left since.
            current = replace(problem, penalty=penalty)
            chosen, penalty = select_support(current, chosen, law_step=law_step)
        estimate = append_run(estimate, chosen)
        fewer = without_needless_edges(current, estimate, parents)
        if fewer != parents:
            parents, law_step = fewer, partial(factorise_counts, parents=fewer, space=space)
            law = law_step(estimate.probabilities)
            refitted = run_em(current, estimate.parameters, law, law_step=law_step)
            estimate = append_run(estimate, refitted)
        # Counts expected under a network law confirm its graph: unconstrained updates let other
        # dependence appear.
        now = space.without_nuisances(estimate.probabilities)
        so_far = SaturatedLaw(space.real, now / now.sum())
        law = update_law_unconstrained(
            LawEStep(estimate.parameters, data, features, problem.n_threads),
            estimate.probabilities,
            estimate.statistics.count,
            config.unconstrained_updates,
            ratio=information_ratio(estimate.parameters, so_far, data),
        )
    _, value = run_law_e_step(estimate.parameters, estimate.probabilities, first.data, features)
    n_counted = first.data.n_counted
    cost = 0.5 * np.log(n_counted)
    occupied = int((first.saturated.probabilities * n_counted >= config.occupied).sum())
    loadings = int((estimate.parameters.loadings != 0).sum())
    more = int((first.saturated.parameters.loadings != 0).sum()) - loadings
    full = first.saturated.log_likelihood - cost * (occupied - 1 + more)
    paid = law_complexity(estimate, parents, space, n_counted, possible)
    return NetworkEstimate(estimate, parents, law, penalty, bool(value - paid >= full))
