"""Two latents that were found as one, taken apart.

Where latents cause each other their items go together, and one latent for the items of both may be
what starts lead to; the latent that is left over then has no items, or takes those of a third. No
step of EM leads out: nothing draws items to an idle latent. But the merged one leaves a trace:
items of the same true latent have more in common than the fit says, items of different ones less.
So the idlest latent begins again as one half of a latent whose items look like that. The penalty is
lifted until items have found their side, and hops go on from there. As with hops, what is found is
judged where it ends.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.law_rounds import FirstLook
from hidag.estimate.loading_costs import at_a_cost
from hidag.estimate.loop import Estimate, Observer, continued, run_em
from hidag.measurement import NO_SPARSITY, MeasurementParameters
from hidag.start.crossing import LEAST_GAIN, Problem, taken_to_its_end, with_loadings
from hidag.start.hops import KEPT_SHARES, after_hops, on_largest_loadings, so_many_steps
from hidag.start.points import spread_law
from hidag.start.two_in_one import (
    HALVES_AGREE,
    Split,
    halved_loadings,
    idlest_and_splits,
    residual_correlations,
)

Array = NDArray[np.float64]

#: Latents that are taken apart from one end, those first whose items say so most.
MOST_SPLITS = 3
#: Times that the best of them is kept and others are tried from there.
MOST_ROUNDS = 3
#: EM steps without penalty, in which items find their side.
STEPS_APART = 40


def better_when_split(end: FirstLook, problem: Problem, observer: Observer) -> FirstLook:
    """Return the best end that splits of latents lead to, or the end as it was.

    Parameters
    ----------
    end : FirstLook
        On all rows, with the criterion that ends are compared by.
    problem : Problem
        With more than two levels, or a penalty that is off, nothing is tried.
    observer : callable
        Told of the steps.
    """
    if max(problem.space.levels) > 2 or problem.penalty.name is None:
        return end
    for _ in range(MOST_ROUNDS):
        idle, splits = promising_splits(end.estimate, problem)
        found = [_taken_apart(end, s, idle, problem, observer) for s in splits[:MOST_SPLITS]]
        if not found:
            break
        # Hops cost several times what a split does: only the best of them goes on.
        best = after_hops(max(found, key=lambda one: one.criterion), problem, observer)
        if best.criterion <= end.criterion + LEAST_GAIN:
            break
        end = best
    return end


def promising_splits(estimate: Estimate, problem: Problem) -> tuple[int, list[Split]]:
    """Return the idlest latent, and how each other one would come apart, the most excess first.

    Latents whose items are known in part stay as they are.
    """
    items, law = estimate.parameters, estimate.probabilities / estimate.probabilities.sum()
    free: NDArray[np.bool_] = np.asarray(at_a_cost(problem.allowed[:, 1:]).all(axis=0))
    residual = residual_correlations(items, problem.data, problem.basis.design, law)
    return idlest_and_splits(items, problem.data, residual, free)


def begun_as_half(
    estimate: Estimate, split: Split, idle: int, problem: Problem
) -> tuple[MeasurementParameters, Array]:
    """Return items and law in which the idle latent is one half of another one.

    The idle latent's own items lose it, their predictors' means as they were.
    """
    items, law = estimate.parameters, estimate.probabilities / estimate.probabilities.sum()
    loadings = halved_loadings(items.loadings, split, idle)
    cube = law.reshape(problem.space.levels)
    shape = [1] * cube.ndim
    shape[idle] = shape[split.latent] = 2
    alike = np.where(np.eye(2, dtype=bool), HALVES_AGREE, 1.0 - HALVES_AGREE).reshape(shape)
    halves = np.ascontiguousarray(cube.sum(axis=idle, keepdims=True) * alike).ravel()
    before, after = (one @ problem.basis.features for one in (law, halves))
    return with_loadings(items, loadings, before, after), spread_law(halves)


def _taken_apart(
    end: FirstLook, split: Split, idle: int, problem: Problem, observer: Observer
) -> FirstLook:
    """Return where it leads to take a latent apart."""
    items, law = begun_as_half(end.estimate, split, idle, problem)
    run = partial(run_em, n_threads=problem.n_threads, observer=observer)
    plan = so_many_steps(problem.schedule, STEPS_APART)
    lifted = run(items, law, problem.data, problem.basis, problem.allowed, NO_SPARSITY, plan)
    settled = on_largest_loadings(lifted, KEPT_SHARES[0], problem, run)
    steps = continued(lifted, settled)
    parents = problem.learn_parents(
        steps.parameters, steps.probabilities, problem.data, max(steps.n_iter, 1)
    )
    begun = replace(end, estimate=continued(end.estimate, steps), parents=parents)
    return taken_to_its_end(begun, problem, observer)
