"""Hops from an end of Stage I: the law begun again, and the penalty lifted for a while.

Where few items are pure the best end may be an optimum that no step leaves. Two things hold it
there, and a hop takes one of them away.

*The penalty.* Three latents A, B and C may be found as A + B, B + C and A + C: items of two latents
then have one loading each, which is sparse, and an item of A alone has three, one of them negative.
The span of the loadings is right, their axes are not. Binary latents tell which axes fit, but
loadings that are zero cannot say so: a price for each keeps out a crowd that would pay together
and not one by one. So the penalty is lifted. EM without it moves towards the axes that fit. Then
each item keeps its largest loadings, as in a start, and settles under the penalty again.

*The law.* A graph that was learned while latents were confused explains their dependence, and
counts expected under it confirm it. So the law begins again from even, without a graph, and items
move along with it for a few steps before the next graph is learned.

A hop is judged where it ends, after support and graph have been chosen again: even a hop to the
true latents lowers the criterion at first. None of this depends on chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.em.em import Estimate, LawStep, append_run, normalise_counts, run_em
from hidag.em.problem import Observer, Schedule
from hidag.initialization.common_factors import MOST_START_PARENTS
from hidag.initialization.start_points import spread_law
from hidag.kernels.coordinate_descent import FREE
from hidag.latent.laws import factorise_counts
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.strategy.moves.recombination import (
    LEAST_GAIN,
    SAME_OPTIMUM_COSINE,
    loading_similarity,
    replace_loadings,
    run_to_convergence,
)
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import Candidate

#: Where a hop from an end leads.
Hop = Callable[[Candidate, SearchProblem, Observer], Candidate]

#: EM steps without penalty: it creeps, and with fewer latents are still on their way.
UNPENALISED_STEPS = 60
#: Loadings that are kept after them have at least this share of their item's largest; if the first
#: gains nothing the next is tried.
LOADING_SHARES = (0.45, 0.3)
#: EM steps on just these loadings before others may come and go.
STEPS_ON_SUPPORT = 8
#: EM steps of a law that began again, before a graph is learned from it.
LAW_STEPS = 16
#: Hops from an end at the most.
MOST_HOPS = 10
#: Ends that hops begin from, until two of them lead to the same place.
MOST_HOPPING_STARTS = 4


def hop_between_optima(
    ends: Sequence[Candidate], problem: SearchProblem, observer: Observer
) -> Candidate:
    """Return the best end that hops lead to from several ends.

    Where hops from two ends lead to one place, and it is the best, others would lead there too.

    Parameters
    ----------
    ends : sequence of Candidate
        The best first.
    problem, observer : SearchProblem, callable
        As in :func:`hop_from`.
    """
    found: list[Candidate] = []
    for end in ends[:MOST_HOPPING_STARTS]:
        found.append(hop_from(end, problem, observer))
        best = max(found, key=lambda one: one.criterion)
        places = [one for one in found if _same_place(one, best)]
        if len(places) > 1:
            break
    return best


def hop_from(end: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return the end that hops lead to, each from the best end so far, or the end as it was.

    The two kinds take turns until neither gains anything.

    Parameters
    ----------
    end : Candidate
        On all rows, with the criterion that ends are compared by.
    problem : SearchProblem
    observer : callable
        Told of the steps.
    """
    kinds: tuple[Hop, ...] = (restart_law, lift_penalty)
    if problem.penalty.name is None:
        kinds = kinds[:1]
    failed = 0
    for number in range(MOST_HOPS):
        found = kinds[number % len(kinds)](end, problem, observer)
        if found.criterion > end.criterion + LEAST_GAIN:
            end, failed = found, 0
        else:
            failed += 1
        if failed == len(kinds):
            break
    return end


def restart_law(end: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return where it leads to begin with the end's items and a law in which all is possible."""
    n_states = problem.space.n_states
    brief = fixed_steps(problem.schedule, LAW_STEPS)
    free = run_em(
        replace(problem, schedule=brief, observer=observer),
        end.estimate.parameters,
        np.full(n_states, 1.0 / n_states),
    )
    parents = problem.learn_parents(
        free.parameters, free.probabilities, problem.data, max(free.n_iter, 1)
    )
    begun = replace(end, estimate=append_run(end.estimate, free), parents=parents)
    return run_to_convergence(begun, problem, observer)


def lift_penalty(end: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return where it leads to lift the penalty for a while, with the end's graph.

    Where that gains nothing more loadings are kept, and then the law is begun again as well: it was
    learned for other latents.
    """
    law_step = partial(factorise_counts, parents=end.parents, space=problem.space)
    unpenalised = replace(problem, penalty=NO_SPARSITY, observer=observer)
    lifted = run_em(
        replace(unpenalised, schedule=fixed_steps(problem.schedule, UNPENALISED_STEPS)),
        end.estimate.parameters,
        law_step(spread_law(end.estimate.probabilities)),
        law_step=law_step,
    )
    found: list[Candidate] = []
    for share in LOADING_SHARES:
        settled = refit_largest_loadings(lifted, share, unpenalised, law_step)
        steps = append_run(append_run(end.estimate, lifted), settled)
        found.append(run_to_convergence(replace(end, estimate=steps), problem, observer))
        if found[-1].criterion > end.criterion + LEAST_GAIN:
            return found[-1]
    best = max(found, key=lambda one: one.criterion)
    again = restart_law(best, problem, observer)
    return max(best, again, key=lambda one: one.criterion)


def refit_largest_loadings(
    lifted: Estimate, share: float, problem: SearchProblem, law_step: LawStep = normalise_counts
) -> Estimate:
    """Return a few steps later, with the largest loadings of each item only.

    Parameters
    ----------
    lifted : Estimate
        Without penalty.
    share : float
        What a loading has at least of its item's largest.
    problem : SearchProblem
        Without penalty.
    law_step : callable
        As in ``run_em``.
    """
    items = lifted.parameters
    means = lifted.probabilities @ problem.basis.features
    kept = np.where(largest_loadings(items, problem.allowed, share), items.loadings, 0.0)
    items = replace_loadings(items, kept, means, means)
    own = problem.allowed.copy()
    own[:, 1:] *= items.loadings != 0
    brief = min(STEPS_ON_SUPPORT, problem.schedule.max_iter)
    return run_em(
        replace(problem, allowed=own, schedule=replace(problem.schedule, max_iter=brief)),
        items,
        lifted.probabilities,
        law_step=law_step,
    )


def largest_loadings(
    items: MeasurementParameters, allowed: NDArray[np.uint8], share: float
) -> NDArray[np.bool_]:
    """Return which loadings each item keeps: its largest, and all that are known, shape (J, T).

    All terms of a latent stay or go together.
    """
    terms = items.terms
    sizes = np.zeros((terms.n_latents, len(items.loadings)))
    np.maximum.at(sizes, terms.main_latents, np.abs(items.loadings[:, : terms.n_main]).T)
    rank = np.argsort(np.argsort(-sizes, axis=0, kind="stable"), axis=0, kind="stable")
    keep = (sizes >= share * sizes.max(axis=0)) & (rank < MOST_START_PARENTS)
    for k in np.flatnonzero(~keep.any(axis=1)):
        # A latent must have something to begin with.
        keep[k, np.argmax(sizes[k])] = True
    return np.asarray(keep.T[:, terms.main_latents] | (allowed[:, 1:] == FREE))


def _same_place(one: Candidate, other: Candidate) -> bool:
    return (
        loading_similarity(one.estimate.parameters, other.estimate.parameters)
        >= SAME_OPTIMUM_COSINE
    )


def fixed_steps(schedule: Schedule, count: int) -> Schedule:
    """Return a plan of so many steps, however little they gain."""
    return replace(schedule, max_iter=min(count, schedule.max_iter), tolerance=0.0)
