"""Estimation under a hierarchy of latents: states without a prerequisite have probability zero.

The estimate without the hierarchy is the starting point: levels are oriented, so that having a
skill means the same in law and items, excluded states lose their mass, and the model is fitted
again. EM never gives mass to a state that has none. The kind of law is selected again, because a
network law without the hierarchy pays for states that do not occur and the saturated law does not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, append_run, normalise_counts, run_em
from hidag.em.m_step import Basis
from hidag.exceptions import DataError
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.latent.laws import Parents, is_saturated
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.strategy.labels import orient_levels, reverse_levels
from hidag.strategy.problem import LearnParents, SearchProblem, StageOne
from hidag.strategy.structural_em import Candidate, structural_em

Array = NDArray[np.float64]


def estimate_under_hierarchy(
    problem: SearchProblem, free: StageOne, possible: NDArray[np.bool_]
) -> StageOne:
    """Return the estimate with no mass on excluded states; the support of Q stays.

    Parameters
    ----------
    problem : SearchProblem
        Its structure learning obeys the hierarchy.
    free : StageOne
        Without the hierarchy.
    possible : ndarray of bool, shape (S,)
        The states that the hierarchy allows, items rising with the levels.
    """
    effects, space = problem.effects, problem.space
    if effects.reversed:
        # DINO items have a single coefficient only with their levels reversed.
        turned = replace(
            problem,
            effects=replace(effects, reversed=False),
            learn_parents=_reversed_levels(problem.learn_parents, space),
        )
        held = estimate_under_hierarchy(turned, reverse_levels(free, space), possible[::-1])
        return replace(reverse_levels(held, space), hierarchy_loss=held.hierarchy_loss)
    start = free if effects.conjunctive else orient_levels(free, problem.data, space)
    fine = replace(
        problem,
        penalty=NO_SPARSITY,
        schedule=problem.tolerating(CONFIG.confirmatory.final_tolerance),
    )

    def only_possible(counts: Array) -> Array:
        kept = np.where(possible, counts, 0.0)
        if not kept.sum() > 0:
            raise DataError(
                "hierarchy-without-rows",
                "no row can be explained under the hierarchy",
                advice="check which latent is the prerequisite of which",
            )
        return normalise_counts(kept)

    def fitted(now: Estimate) -> Estimate:
        fixed = _fixed_support(fine, now.parameters)
        found = run_em(
            fixed, now.parameters, only_possible(now.probabilities), law_step=only_possible
        )
        return append_run(now, found)

    best = fitted(start.best)
    held = replace(start, best=best, network=None)
    if problem.law != "saturated":
        first = best if start.network is None else fitted(start.estimate)
        parents = problem.learn_parents(
            first.parameters, first.probabilities, problem.data, max(first.n_iter, 1)
        )
        network = structural_em(
            replace(_fixed_support(fine, first.parameters), adapt=False),
            Candidate(best, first, parents, problem.data, 0.0),
            possible=possible,
        )
        complete = is_saturated(network.parents, space, possible)
        if problem.law == "network" or (network.preferred and not complete):
            held = replace(held, network=replace(network, penalty=start.penalty))
    # A saturated law is compared with a saturated law.
    after = held.best if free.network is None else held.estimate
    loss = free.estimate.log_likelihood - after.log_likelihood
    return replace(held, hierarchy_loss=loss)


def _reversed_levels(learn_parents: LearnParents, space: StateSpace) -> LearnParents:
    """Return the structure learning step for latents with all levels reversed."""

    def learn(
        parameters: MeasurementParameters, probabilities: Array, data: WorkingData, n_steps: int
    ) -> Parents:
        every = np.ones(space.n_latents, dtype=bool)
        law = np.ascontiguousarray(probabilities[::-1])
        return learn_parents(parameters.flipped(every), law, data, n_steps)

    return learn


def _fixed_support(problem: SearchProblem, parameters: MeasurementParameters) -> SearchProblem:
    """Return the problem with the items' present terms, all free.

    Of conjunctive items only the product of all their latents, once they have it: reversing levels
    twice may leave rounding errors in the products below it.
    """
    terms = parameters.terms
    wanted = parameters.loadings != 0
    if problem.effects.conjunctive:
        product = problem.effects.support(terms, parameters.q_matrix)
        wanted = np.where(product.any(axis=1, keepdims=True), product, wanted)
    allowed = np.full((parameters.n_items, 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][wanted] = FREE
    return replace(problem, terms=terms, basis=Basis.over(problem.space, terms), allowed=allowed)
