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

from hidag.errors import DataError
from hidag.estimate.law_rounds import FirstLook, LearnParents, estimate_under_network
from hidag.estimate.loop import Estimate, Schedule, any_law, continued, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import FREE, ZERO
from hidag.latent import StateSpace
from hidag.latent.factorise import is_any_law
from hidag.measurement import NO_SPARSITY, MeasurementParameters
from hidag.stage_one.way_round import latest, levels_rising
from hidag.start.records import StageOne
from hidag.start.several import FINAL_TOLERANCE

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
    relevel: bool = True,
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
    relevel : bool
        Whether levels have to be put in order first; conjunctive items mean something by theirs.
    n_threads : int

    Raises
    ------
    DataError
        If the answer without the hierarchy has no mass at all on the states that can be.
    """
    begin = stage_one
    if relevel:
        begin = levels_rising(stage_one, data, space)
    plan = replace(schedule, tolerance=FINAL_TOLERANCE * schedule.tolerance)

    def only_possible(counts: Array) -> Array:
        kept = np.where(possible, counts, 0.0)
        if not kept.sum() > 0:
            raise DataError(
                "no row can be explained under the hierarchy; check which latent is the "
                "prerequisite of which"
            )
        return any_law(kept)

    def fitted(now: Estimate) -> Estimate:
        basis, allowed = _held(now.parameters, space)
        found = run_em(
            now.parameters,
            only_possible(now.probabilities),
            data,
            basis,
            allowed,
            NO_SPARSITY,
            plan,
            law_step=only_possible,
            n_threads=n_threads,
        )
        return continued(now, found)

    best = fitted(begin.best)
    if law == "saturated":
        return replace(begin, best=best)
    begun = best if begin.network is None else fitted(latest(begin))
    basis, allowed = _held(begun.parameters, space)
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
    if law == "auto" and (not network.preferred or is_any_law(network.parents, space, possible)):
        return replace(begin, best=best, network=None)
    return replace(begin, best=best, network=replace(network, penalty=begin.penalty))


def _held(parameters: MeasurementParameters, space: StateSpace) -> tuple[Basis, NDArray[np.uint8]]:
    """Return the items' terms over all states, and leave to fit what is not zero."""
    allowed = np.where(parameters.coefficients != 0, FREE, ZERO).astype(np.uint8)
    allowed[:, 0] = FREE
    return Basis.over(space, parameters.terms), allowed
