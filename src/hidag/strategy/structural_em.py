"""Estimation under a law over a graph, the graph learned again as estimates improve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_law_e_step
from hidag.em.em import Estimate, LawEStep, append_run, run_em, update_law_unconstrained
from hidag.em.information import information_ratio
from hidag.em.m_step import Basis
from hidag.em.problem import Observer, Problem, Schedule
from hidag.em.support import select_support
from hidag.latent.conditional_tables import network_complexity
from hidag.latent.laws import Parents, SaturatedLaw, are_equivalent, factorise_counts
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, order_all_levels
from hidag.measurement.penalties import Penalty

Array = NDArray[np.float64]
#: The graph to restrict the law to, given the items, a law that is not restricted, the rows that
#: both were fitted to, and the number of steps since the law was set free.
LearnParents = Callable[[MeasurementParameters, Array, WorkingData, int], Parents]

#: A state that is expected in fewer rows than this is not one of a law's parameters.
OCCUPIED = 0.5
#: Times that the graph is learned and everything is fitted again under it.
MAX_ROUNDS = 4
#: Unrestricted steps of the law before its dependence is judged.
FREE_STEPS = 4
#: What they are worth in plain steps of EM: each is worth two.
STEPS_FREE = 2 * FREE_STEPS


@dataclass(frozen=True)
class GraphEstimate:
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


@dataclass(frozen=True)
class FirstLook:
    """A first estimate under a law over a graph, on all rows or some.

    Attributes
    ----------
    saturated : Estimate
        Under a saturated law: where it began.
    estimate : Estimate
        Its probabilities factorise over ``parents``.
    parents : tuple of tuples of int
    data : WorkingData
        The rows.
    criterion : float
        Penalised log-likelihood less half log n for each free probability of the law.
    """

    saturated: Estimate
    estimate: Estimate
    parents: Parents
    data: WorkingData
    criterion: float


def law_complexity(
    estimate: Estimate,
    parents: Parents,
    space: StateSpace,
    n_samples: float,
    per_number: float | None = None,
    possible: NDArray[np.bool_] | None = None,
) -> float:
    """Return what a law over a graph costs: half log n for each number that its tables need.

    With binary latents these are the free probabilities; with more levels lean tables need fewer
    (see :mod:`hidag.latent.conditional_tables`). ``per_number`` is another price than half log n;
    ``possible``, shape (S,), are the joint states that may occur, all unless given.
    """
    return network_complexity(
        estimate.probabilities * n_samples,
        parents,
        space,
        order_all_levels(estimate.parameters),
        float(0.5 * np.log(n_samples)) if per_number is None else per_number,
        possible,
    )


def initial_structure_step(
    saturated: Estimate,
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    learn_parents: LearnParents,
    *,
    n_steps: int,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> FirstLook:
    """Return the estimate under the law over the graph that a saturated law shows.

    Parameters
    ----------
    saturated : Estimate
        On the same rows.
    data, space, basis, allowed, penalty, schedule
        As in ``run_em``.
    learn_parents : callable
        Finds the graph; estimation itself knows nothing of searches.
    n_steps : int
        Steps that the saturated law has had.
    """
    parents = learn_parents(saturated.parameters, saturated.probabilities, data, n_steps)
    law_step = partial(factorise_counts, parents=parents, space=space)
    problem = Problem(data, space, basis, allowed, penalty, schedule, n_threads, observer)
    found = run_em(
        problem, saturated.parameters, law_step(saturated.probabilities), law_step=law_step
    )
    price = law_complexity(found, parents, space, data.n_counted)
    both = append_run(saturated, found)
    return FirstLook(saturated, both, parents, data, float(found.objective - price))


def _without_objectives(estimate: Estimate) -> Estimate:
    """Return the estimate with a trace of moves only: objectives on other rows do not compare."""
    trace = np.column_stack([np.full(len(estimate.trace), np.nan), estimate.trace[:, 1]])
    return replace(estimate, trace=trace)


def estimate_under_network(
    first: FirstLook,
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    learn_parents: LearnParents,
    *,
    adapt: bool = True,
    price: float | None = None,
    possible: NDArray[np.bool_] | None = None,
    max_rounds: int = MAX_ROUNDS,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> GraphEstimate:
    """Return the estimate under a law over a graph, which is learned again as items improve.

    Parameters
    ----------
    first : FirstLook
        Where it begins.
    data, space, basis, allowed, penalty, schedule, learn_parents
        As in :func:`look_under_network`.
    adapt : bool
        Whether the penalty's strength is learned from the table.
    price : float or None
        What a parameter costs when the law is held against the saturated one, in units of
        log-likelihood; None is the Bayesian information criterion's.
    possible : ndarray of bool, shape (S,), optional
        Joint states that laws have mass on; no other is paid for. All unless given.
    max_rounds : int
        Times that the graph is learned, the first time included.
    """
    features = np.ascontiguousarray(basis.features)
    estimate, parents = first.estimate, first.parents
    if first.data is not data:
        estimate = _without_objectives(estimate)
    law = estimate.probabilities
    for again in range(max_rounds):
        if again:
            found = learn_parents(estimate.parameters, law, data, STEPS_FREE)
            if are_equivalent(found, parents):
                break
            parents = found
        law_step = partial(factorise_counts, parents=parents, space=space)
        problem = Problem(data, space, basis, allowed, penalty, schedule, n_threads, observer)
        fitted = run_em(problem, estimate.parameters, law_step(law), law_step=law_step)
        fitted, penalty = select_support(problem, fitted, adapt=adapt, law_step=law_step)
        estimate = append_run(estimate, fitted)
        so_far = SaturatedLaw(space, estimate.probabilities / estimate.probabilities.sum())
        law = update_law_unconstrained(
            LawEStep(estimate.parameters, data, features, n_threads),
            estimate.probabilities,
            estimate.statistics.count,
            FREE_STEPS,
            ratio=information_ratio(estimate.parameters, so_far, data),
        )
    preferred = _preferred(
        first.saturated, first.data, estimate, parents, space, features, price, possible
    )
    return GraphEstimate(estimate, parents, law, penalty, preferred)


def _preferred(
    saturated: Estimate,
    data: WorkingData,
    network: Estimate,
    parents: Parents,
    space: StateSpace,
    features: Array,
    price: float | None,
    possible: NDArray[np.bool_] | None,
) -> bool:
    """Return whether the law over the graph has the better information criterion on these rows."""
    _, value = run_law_e_step(network.parameters, network.probabilities, data, features)
    half_log = 0.5 * np.log(data.n_counted) if price is None else price
    occupied = int((saturated.probabilities * data.n_counted >= OCCUPIED).sum())
    loadings = int((network.parameters.loadings != 0).sum())
    more = int((saturated.parameters.loadings != 0).sum()) - loadings
    full = saturated.log_likelihood - half_log * (occupied - 1 + more)
    paid = law_complexity(network, parents, space, data.n_counted, half_log, possible)
    return bool(value - paid >= full)
