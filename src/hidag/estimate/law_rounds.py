"""Estimation under a law over a graph, the graph learned again as estimates improve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import expect_states
from hidag.estimate.fixed_items import freed_law
from hidag.estimate.loop import Estimate, Observer, Schedule, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.support import select_support
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.latent.factorise import Parents, factorised, n_free_probabilities
from hidag.measurement import Penalty

Array = NDArray[np.float64]
#: The graph to restrict the law to, given the estimate and a law that is not restricted.
LearnParents = Callable[[Estimate, Array], Parents]

#: A state that is expected in fewer rows than this is not one of a law's parameters.
OCCUPIED = 0.5
#: Times that the graph is learned and everything is fitted again under it.
MAX_ROUNDS = 2
#: Larger tables are fitted to some of their rows first: that costs less and ends close by.
ROWS_FOR_FIRST_STEPS = 2500
#: Unrestricted steps of the law before its dependence is judged.
FREE_STEPS = 4


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
    preferred : bool
        Whether its information criterion is better than that of the saturated law it began from.
    """

    estimate: Estimate
    parents: Parents
    freed: Array
    penalty: Penalty
    preferred: bool


def estimate_under_network(
    settled: Estimate,
    settled_on: WorkingData,
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
    settled_on : WorkingData
        The rows that it was fitted to: all of ``data`` or some.
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
    some = data.first_rows(ROWS_FOR_FIRST_STEPS)
    for _ in range(MAX_ROUNDS):
        found = learn_parents(estimate, freed)
        if parents is not None and found == parents:
            break

        def law_step(counts: Array, graph: Parents = found) -> Array:
            return factorised(counts, graph, space)

        begin = estimate.parameters, law_step(freed)
        if some is not data and parents is None:
            rough = run_em(*begin, some, basis, allowed, penalty, schedule, law_step=law_step)
            begin = rough.parameters, rough.probabilities
        parents = found
        again = run_em(
            *begin,
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
            estimate.statistics.count,
            data,
            features,
            FREE_STEPS,
            n_threads=n_threads,
        )
    assert parents is not None
    preferred = _preferred(settled, settled_on, estimate, parents, space, features)
    return NetworkEstimate(estimate, parents, freed, penalty, preferred)


def _preferred(
    saturated: Estimate,
    data: WorkingData,
    network: Estimate,
    parents: Parents,
    space: StateSpace,
    features: Array,
) -> bool:
    """Return whether the law over the graph has the better information criterion on these rows."""
    _, value = expect_states(network.parameters, network.probabilities, data, features)
    half_log = 0.5 * np.log(data.n_samples)
    occupied = int((saturated.probabilities * data.n_samples >= OCCUPIED).sum())
    loadings = int((network.parameters.loadings != 0).sum())
    more = int((saturated.parameters.loadings != 0).sum()) - loadings
    full = saturated.log_likelihood - half_log * (occupied - 1 + more)
    return bool(value - half_log * n_free_probabilities(parents, space) >= full)
