"""Leave a local optimum by EM steps without penalty.

If few items have a single latent, or the table does not follow the model, penalised EM may stop
at a poor optimum. Three latents A, B and C may be found as A + B, B + C and A + C: items of two
then have one loading each, which is sparse, and an item of A alone has three, one of them negative.
The span of the loadings is right, their axes are not. The likelihood identifies the axes, but a
penalty per loading keeps out loadings that raise the objective only together. EM without penalty
moves towards the right axes. Each item then keeps its largest loadings and is fitted with the
penalty again. A move is compared after support and graph have been selected again. It draws no
random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.em import Estimate, LawStep, Observer, append_run, run_em
from hidag.initialization.start_points import spread_law
from hidag.kernels.coordinate_descent import FREE
from hidag.latent.laws import factorise_counts
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.strategy.moves.optima import replace_loadings, run_to_convergence
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import Candidate


def try_unpenalised_steps(
    optima: Sequence[Candidate], problem: SearchProblem, observer: Observer
) -> Candidate:
    """Return the best candidate that unpenalised steps from several optima lead to.

    One move from each optimum, then further ones from the best while they raise the criterion.
    """
    if problem.penalty.name is None or CONFIG.unpenalised_steps.most_moves == 0:
        return optima[0]
    best = max(
        (leave_penalty(one, problem, observer) for one in optima), key=lambda one: one.criterion
    )
    for _ in range(CONFIG.unpenalised_steps.most_moves):
        found = leave_penalty(best, problem, observer)
        if found.criterion <= best.criterion + CONFIG.unpenalised_steps.least_gain:
            break
        best = found
    return best


def leave_penalty(one: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return the candidate after EM steps without penalty, under its graph, if they raise it.

    If that gains nothing, more of the loadings stay.
    """
    law_step = partial(factorise_counts, parents=one.parents, space=problem.space)
    unpenalised = replace(problem, penalty=NO_SPARSITY, observer=observer)
    steps = problem.tolerating(0.0, CONFIG.unpenalised_steps.n_steps)
    dense = run_em(
        replace(unpenalised, schedule=steps),
        one.estimate.parameters,
        law_step(spread_law(one.estimate.probabilities)),
        law_step=law_step,
    )
    for share in CONFIG.unpenalised_steps.loading_shares:
        refitted = _refit_largest_loadings(dense, share, unpenalised, law_step)
        both = append_run(append_run(one.estimate, dense), refitted)
        found = run_to_convergence(replace(one, estimate=both), problem, observer)
        if found.criterion > one.criterion + CONFIG.unpenalised_steps.least_gain:
            return found
    return one


def _refit_largest_loadings(
    dense: Estimate, share: float, problem: SearchProblem, law_step: LawStep
) -> Estimate:
    """Return the estimate after a few steps with only the largest loadings of each item.

    ``share`` is the smallest share of its item's largest loading.
    """
    items = dense.parameters
    means = dense.probabilities @ problem.basis.features
    loadings = np.where(largest_loadings(items, problem.allowed, share), items.loadings, 0.0)
    items = replace_loadings(items, loadings, means, means)
    own = problem.allowed.copy()
    own[:, 1:] *= items.loadings != 0
    brief = problem.tolerating(1.0, CONFIG.unpenalised_steps.steps_on_support)
    return run_em(
        replace(problem, allowed=own, schedule=brief), items, dense.probabilities, law_step=law_step
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
