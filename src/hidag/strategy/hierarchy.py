"""Stage I's answer under a hierarchy: nobody has a skill without its prerequisites.

The answer without the hierarchy is where it begins: levels are put in order, so that having a
skill means the same for law and items, states that the hierarchy rules out lose their mass, and
everything is fitted again. EM never gives mass to a state that has none. Whether the law is one
over a graph is decided again too: without the hierarchy a graph's law pays for states that do not
occur, and the saturated law does not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, append_run, normalise_counts, run_em
from hidag.em.m_step import Basis
from hidag.em.problem import Problem, Schedule
from hidag.exceptions import DataError
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.latent.laws import Parents, is_saturated
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import MAIN_EFFECTS, Effects
from hidag.strategy.labels import all_turned, latest, levels_rising
from hidag.strategy.multistart import FINAL_TOLERANCE, StageOne
from hidag.strategy.structural_em import FirstLook, LearnParents, estimate_under_network

Array = NDArray[np.float64]


def under_hierarchy(
    stage_one: StageOne,
    data: WorkingData,
    space: StateSpace,
    possible: NDArray[np.bool_],
    schedule: Schedule,
    *,
    law: str,
    learn_parents: LearnParents,
    price: float | None = None,
    effects: Effects = MAIN_EFFECTS,
    n_threads: int = 1,
) -> StageOne:
    """Return Stage I's answer with no mass on states that cannot be; the support of Q stays.

    Parameters
    ----------
    stage_one : StageOne
        Without the hierarchy.
    data, space, schedule
        As in ``estimate_with_law``.
    possible : ndarray of bool, shape (S,)
        The states that the hierarchy allows, levels going up with the items.
    law : {"auto", "network", "saturated"}
        "auto" compares information criteria.
    learn_parents : callable
        Finds a graph that has the hierarchy's edges.
    price : float or None
        What a parameter of the law costs there, as in ``estimate_under_network``.
    effects : Effects
        What items' latents do together. Levels are put in order first unless items are conjunctive,
        which mean something by theirs. Items of which any latent is enough are fitted with levels
        reversed, as ``with_interactions`` does: only there have they one coefficient, and with
        levels as they are nothing would tie the coefficients that stand for it.
    n_threads : int

    Raises
    ------
    DataError
        If the answer without the hierarchy has no mass at all on the states that can be.
    """
    if effects.reversed:
        held = under_hierarchy(
            all_turned(stage_one, space),
            data,
            space,
            possible[::-1],
            schedule,
            law=law,
            learn_parents=_levels_back(learn_parents, space),
            price=price,
            effects=replace(effects, reversed=False),
            n_threads=n_threads,
        )
        return all_turned(held, space)
    begin = stage_one
    if not effects.conjunctive:
        begin = levels_rising(stage_one, data, space)
    plan = replace(schedule, tolerance=FINAL_TOLERANCE * schedule.tolerance)

    def only_possible(counts: Array) -> Array:
        kept = np.where(possible, counts, 0.0)
        if not kept.sum() > 0:
            raise DataError(
                "no row can be explained under the hierarchy; check which latent is the "
                "prerequisite of which"
            )
        return normalise_counts(kept)

    def fitted(now: Estimate) -> Estimate:
        basis, allowed = _held(now.parameters, space, effects)
        problem = Problem(data, space, basis, allowed, NO_SPARSITY, plan, n_threads)
        found = run_em(
            problem, now.parameters, only_possible(now.probabilities), law_step=only_possible
        )
        return append_run(now, found)

    best = fitted(begin.best)
    if law == "saturated":
        return replace(begin, best=best)
    begun = best if begin.network is None else fitted(latest(begin))
    basis, allowed = _held(begun.parameters, space, effects)
    parents = learn_parents(begun.parameters, begun.probabilities, data, max(begun.n_iter, 1))
    network = estimate_under_network(
        FirstLook(best, begun, parents, data, 0.0),
        data,
        space,
        basis,
        allowed,
        NO_SPARSITY,
        plan,
        learn_parents,
        adapt=False,
        price=price,
        possible=possible,
        n_threads=n_threads,
    )
    if law == "auto" and (not network.preferred or is_saturated(network.parents, space, possible)):
        return replace(begin, best=best, network=None)
    return replace(begin, best=best, network=replace(network, penalty=begin.penalty))


def lost_by_hierarchy(free: StageOne, held: StageOne) -> float:
    """Return what the log-likelihood loses by a hierarchy, or less than that.

    Like with like: a law that was over no graph before is compared with one over no graph.
    """
    after = held.best if free.network is None else latest(held)
    return latest(free).log_likelihood - after.log_likelihood


def _levels_back(learn_parents: LearnParents, space: StateSpace) -> LearnParents:
    """Return the search for those who have all levels reversed: a hierarchy means them as named."""

    def learn(
        parameters: MeasurementParameters, probabilities: Array, data: WorkingData, n_steps: int
    ) -> Parents:
        every = np.ones(space.n_latents, dtype=bool)
        law = np.ascontiguousarray(probabilities[::-1])
        return learn_parents(parameters.flipped(every), law, data, n_steps)

    return learn


def _held(
    parameters: MeasurementParameters, space: StateSpace, effects: Effects
) -> tuple[Basis, NDArray[np.uint8]]:
    """Return the items' terms over all states, and leave to fit what is not zero.

    Of conjunctive items that is the product of all their latents, once they have it: levels that
    were reversed and back may leave rounding errors in the products below it.
    """
    terms = parameters.terms
    wanted = parameters.loadings != 0
    if effects.conjunctive:
        product = effects.support(terms, parameters.q_matrix)
        wanted = np.where(product.any(axis=1, keepdims=True), product, wanted)
    allowed = np.full((parameters.n_items, 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][wanted] = FREE
    return Basis.over(space, terms), allowed
