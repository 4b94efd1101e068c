"""Estimation under a law over a graph, the graph learned again as estimates improve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.fixed_items import freed_law
from hidag.estimate.loop import Estimate, Observer, Schedule, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.support import select_support
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.latent.factorise import Parents, factorised
from hidag.measurement import Penalty

Array = NDArray[np.float64]
#: The graph to restrict the law to, given the estimate and a law that is not restricted.
LearnParents = Callable[[Estimate, Array], Parents]

#: Times that the graph is learned and everything is fitted again under it.
MAX_ROUNDS = 2
#: Unrestricted steps of the law before its dependence is judged.
FREE_STEPS = 5


@dataclass(frozen=True)
class NetworkEstimate:
    """An estimate under a law over a graph.

    Attributes
    ----------
    estimate : Estimate
        Its probabilities factorise over ``parents``.
    parents : tuple of tuples of int
    freed : ndarray, shape (S,)
        The law after a few unrestricted steps: what the graph search should look at.
    penalty : Penalty
    """

    estimate: Estimate
    parents: Parents
    freed: Array
    penalty: Penalty


def estimate_under_network(
    settled: Estimate,
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    learn_parents: LearnParents,
    *,
    adapt: bool = True,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> NetworkEstimate:
    """Return the estimate under a law over a graph, begun from one under a saturated law.

    Parameters
    ----------
    settled : Estimate
    data, space, basis, allowed, penalty, schedule
        As in ``run_em``.
    learn_parents : callable
        Finds the graph; estimation itself knows nothing of searches.
    adapt : bool
        Whether the penalty's strength is learned again.
    """
    features = np.ascontiguousarray(basis.features)
    estimate, freed = settled, settled.probabilities
    parents: Parents | None = None
    for _ in range(MAX_ROUNDS):
        found = learn_parents(estimate, freed)
        if parents is not None and found == parents:
            break
        parents = found

        def law_step(counts: Array, graph: Parents = found) -> Array:
            return factorised(counts, graph, space)

        again = run_em(
            estimate.parameters,
            law_step(freed),
            data,
            basis,
            allowed,
            penalty,
            schedule,
            law_step=law_step,
            n_threads=n_threads,
            observer=observer,
        )
        again, penalty = select_support(
            again,
            data,
            basis,
            allowed,
            penalty,
            schedule,
            adapt=adapt,
            law_step=law_step,
            n_threads=n_threads,
            observer=observer,
        )
        estimate = replace(
            again,
            n_iter=estimate.n_iter + again.n_iter,
            converged=estimate.converged and again.converged,
            trace=np.vstack([estimate.trace, again.trace]),
        )
        freed = freed_law(
            estimate.parameters,
            estimate.probabilities,
            data,
            features,
            FREE_STEPS,
            n_threads=n_threads,
        )
    assert parents is not None
    return NetworkEstimate(estimate, parents, freed, penalty)
