"""Basin hopping: leave a local optimum by a restart of the law or a few unpenalised steps.

If few items have a single latent, the best optimum may be a local one for two reasons, and each
kind of move removes one of them.

*The penalty.* Three latents A, B and C may be found as A + B, B + C and A + C: items of two latents
then have one loading each, which is sparse, and an item of A alone has three, one of them negative.
The span of the loadings is right, their axes are not. The likelihood of binary latents identifies
the axes, but a penalty per loading keeps out loadings that raise the objective only together.
EM without penalty moves towards the right axes. Each item then keeps its largest loadings and is
fitted with the penalty again.

*The law.* A graph learned while latents were confused explains their dependence, and counts
expected under it confirm it. The law restarts from the uniform one without a graph, and items are
updated with it for a few steps before the next graph is learned.

A move is compared after support and graph have been selected again: even a move to the true latents
lowers the criterion at first. No move is random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.em import Estimate, LawStep, Observer, append_run, normalise_counts, run_em
from hidag.initialization.start_points import spread_law
from hidag.kernels.coordinate_descent import FREE
from hidag.latent.laws import factorise_counts
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.strategy.moves.optima import (
    loading_similarity,
    replace_loadings,
    run_to_convergence,
)
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import Candidate

#: From a candidate to the one that a move leads to.
Move = Callable[[Candidate, SearchProblem, Observer], Candidate]


def hop_between_optima(
    ends: Sequence[Candidate], problem: SearchProblem, observer: Observer
) -> Candidate:
    """Return the best candidate that moves from several ends lead to.

    Further ends are skipped once two of them lead to the best optimum.

    Parameters
    ----------
    ends : sequence of Candidate
        The best first.
    problem, observer : SearchProblem, callable
        As in :func:`hop_from`.
    """
    found: list[Candidate] = []
    for end in ends[: CONFIG.basin_hopping.most_hopping_starts]:
        found.append(hop_from(end, problem, observer))
        best = max(found, key=lambda one: one.criterion)
        same = [one for one in found if _same_optimum(one, best)]
        if len(same) > 1:
            break
    return best


def hop_from(end: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return the candidate after the moves that raise the criterion.

    The two kinds of moves alternate until neither gains.

    Parameters
    ----------
    end : Candidate
        On all rows, with the criterion of :func:`criterion_of`.
    observer : callable
        Called after every EM step.
    """
    moves: tuple[Move, ...] = (restart_law, lift_penalty)
    if problem.penalty.name is None:
        moves = moves[:1]
    failed = 0
    for number in range(CONFIG.basin_hopping.most_moves):
        found = moves[number % len(moves)](end, problem, observer)
        if found.criterion > end.criterion + CONFIG.optima.least_gain:
            end, failed = found, 0
        else:
            failed += 1
        if failed == len(moves):
            break
    return end


def restart_law(end: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return the candidate from the end's items and a uniform law."""
    brief = problem.tolerating(0.0, CONFIG.basin_hopping.law_steps)
    free = run_em(
        replace(problem, schedule=brief, observer=observer),
        end.estimate.parameters,
        problem.space.uniform(),
    )
    parents = problem.learn_parents(
        free.parameters, free.probabilities, problem.data, max(free.n_iter, 1)
    )
    first = replace(end, estimate=append_run(end.estimate, free), parents=parents)
    return run_to_convergence(first, problem, observer)


def lift_penalty(end: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return the candidate after EM steps without penalty, under the end's graph.

    If that gains nothing, more loadings stay, and then the law restarts too: it was learned for
    other latents.
    """
    law_step = partial(factorise_counts, parents=end.parents, space=problem.space)
    unpenalised = replace(problem, penalty=NO_SPARSITY, observer=observer)
    lifted = run_em(
        replace(
            unpenalised,
            schedule=problem.tolerating(0.0, CONFIG.basin_hopping.unpenalised_steps),
        ),
        end.estimate.parameters,
        law_step(spread_law(end.estimate.probabilities)),
        law_step=law_step,
    )
    found: list[Candidate] = []
    for share in CONFIG.basin_hopping.loading_shares:
        refitted = refit_largest_loadings(lifted, share, unpenalised, law_step)
        steps = append_run(append_run(end.estimate, lifted), refitted)
        found.append(run_to_convergence(replace(end, estimate=steps), problem, observer))
        if found[-1].criterion > end.criterion + CONFIG.optima.least_gain:
            return found[-1]
    best = max(found, key=lambda one: one.criterion)
    again = restart_law(best, problem, observer)
    return max(best, again, key=lambda one: one.criterion)


def refit_largest_loadings(
    lifted: Estimate, share: float, problem: SearchProblem, law_step: LawStep = normalise_counts
) -> Estimate:
    """Return the estimate after a few steps with only the largest loadings of each item.

    Parameters
    ----------
    lifted : Estimate
        Without penalty.
    share : float
        Smallest share of its item's largest loading.
    problem : SearchProblem
        Without penalty.
    law_step : callable
        As in ``run_em``.
    """
    items = lifted.parameters
    means = lifted.probabilities @ problem.basis.features
    loadings = np.where(largest_loadings(items, problem.allowed, share), items.loadings, 0.0)
    items = replace_loadings(items, loadings, means, means)
    own = problem.allowed.copy()
    own[:, 1:] *= items.loadings != 0
    brief = problem.tolerating(1.0, CONFIG.basin_hopping.steps_on_support)
    return run_em(
        replace(problem, allowed=own, schedule=brief),
        items,
        lifted.probabilities,
        law_step=law_step,
    )


def largest_loadings(
    items: MeasurementParameters, allowed: NDArray[np.uint8], share: float
) -> NDArray[np.bool_]:
    """Return each item's largest loadings and those that Q requires, shape (J, T).

    The terms of a latent are selected together.
    """
    terms = items.terms
    sizes = np.zeros((terms.n_latents, len(items.loadings)))
    np.maximum.at(sizes, terms.main_latents, np.abs(items.loadings[:, : terms.n_main]).T)
    rank = np.argsort(np.argsort(-sizes, axis=0, kind="stable"), axis=0, kind="stable")
    most = CONFIG.initialization.max_item_latents
    keep = (sizes >= share * sizes.max(axis=0)) & (rank < most)
    for k in np.flatnonzero(~keep.any(axis=1)):
        # Every latent has at least one item.
        keep[k, np.argmax(sizes[k])] = True
    return np.asarray(keep.T[:, terms.main_latents] | (allowed[:, 1:] == FREE))


def _same_optimum(one: Candidate, other: Candidate) -> bool:
    return (
        loading_similarity(one.estimate.parameters, other.estimate.parameters)
        >= CONFIG.optima.same_optimum_cosine
    )
