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

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.law_rounds import FirstLook
from hidag.estimate.loop import Estimate, Observer, continued, run_em
from hidag.estimate.maximise import at_a_cost, coefficient_scales
from hidag.measurement import NO_SPARSITY, MeasurementParameters
from hidag.measurement.families.base import MeanFamily
from hidag.start.crossing import LEAST_GAIN, Problem, taken_to_its_end, with_loadings
from hidag.start.hops import KEPT_SHARES, after_hops, on_largest_loadings, so_many_steps
from hidag.start.points import spread_law

Array = NDArray[np.float64]

#: Latents that are taken apart from one end, those first whose items say so most.
MOST_SPLITS = 3
#: Times that the best of them is kept and others are tried from there.
MOST_ROUNDS = 3
#: A latent with fewer items than this has nothing to take apart.
FEWEST_ITEMS = 3
#: How often the halves of a latent are in the same state at first.
HALVES_AGREE = 0.7
#: EM steps without penalty, in which items find their side.
STEPS_APART = 40


@dataclass(frozen=True)
class Split:
    """A latent that may be two.

    Attributes
    ----------
    latent : int
    leaving : ndarray of int
        Items that go to the other half.
    excess : float
        What its items have in common beyond the fit along the direction that parts them (the
        leading eigenvalue of their residual correlations).
    """

    latent: int
    leaving: NDArray[np.intp]
    excess: float


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

    The idlest has the smallest loadings in sum, in units of the items' scales. Latents whose items
    are known in part stay as they are.
    """
    loadings = estimate.parameters.loadings
    free: NDArray[np.bool_] = np.asarray(at_a_cost(problem.allowed[:, 1:]).all(axis=0))
    sizes = (np.abs(loadings) / coefficient_scales(problem.data)[:, None]).sum(axis=0)
    idle = int(np.argmin(np.where(free, sizes, np.inf)))
    if not free[idle]:
        return idle, []
    residual = residual_correlations(estimate, problem)
    judged = ~np.isnan(np.diag(residual))
    out = []
    for latent in np.flatnonzero(free):
        own = np.flatnonzero((loadings[:, latent] != 0) & judged)
        if latent == idle or len(own) < FEWEST_ITEMS:
            continue
        leaving, excess = two_sides(residual, own)
        out.append(Split(int(latent), leaving, excess))
    return idle, sorted(out, key=lambda one: -one.excess)


def two_sides(residual: Array, own: NDArray[np.intp]) -> tuple[NDArray[np.intp], float]:
    """Return which of a latent's items would go to its other half, and what speaks for two halves.

    Parameters
    ----------
    residual : ndarray, shape (J, J)
        What items' correlations are beyond the fit's.
    own : ndarray of int
        The latent's items.

    Returns
    -------
    ndarray of int, float
        The items, and the leading eigenvalue of the residual correlations.
    """
    values, vectors = np.linalg.eigh(residual[np.ix_(own, own)])
    main = vectors[:, -1]
    # An eigenvector's sign is arbitrary: the first item stays.
    apart = main * main[0] < 0
    if not apart.any():
        apart = np.abs(main) < np.median(np.abs(main))
    return own[apart], float(values[-1])


def beyond_the_fit(x: Array, seen: Array, weights: Array | None, means: Array, law: Array) -> Array:
    """Return what responses' correlations are beyond those that a law gives them, shape (R, R).

    Parameters
    ----------
    x : ndarray, shape (N, R)
        Responses; anything where they are missing.
    seen : ndarray, shape (N, R)
        1 where they are not.
    weights : ndarray, shape (N,), or None
    means : ndarray, shape (R, S)
        Of the responses in each state.
    law : ndarray, shape (S,)

    Returns
    -------
    ndarray
        Zero on the diagonal.
    """
    middle = means @ law
    means, x = means - middle[:, None], np.where(seen > 0, x - middle, 0.0)
    counted = np.ones(len(x)) if weights is None else weights
    rows = np.maximum((seen * counted[:, None]).T @ seen, 1e-12)
    total = (x * counted[:, None]).T @ x / rows
    spread = np.sqrt(np.maximum(np.diag(total), 1e-12))
    out: Array = (total - (means * law) @ means.T) / np.outer(spread, spread)
    np.fill_diagonal(out, 0.0)
    return out


def residual_correlations(estimate: Estimate, problem: Problem) -> Array:
    """Return what items' correlations are beyond the fit's, shape (J, J), zero on the diagonal.

    Items whose response has no mean that goes with their latents alone are not judged: their rows
    and columns are zero, and NaN on the diagonal.
    """
    data, items = problem.data, estimate.parameters
    law = estimate.probabilities / estimate.probabilities.sum()
    means = np.zeros((data.n_items, len(law)))
    judged = np.zeros(data.n_items, dtype=bool)
    x = np.zeros((data.n_samples, data.n_items))
    for family, members in items.groups():
        if isinstance(family, MeanFamily):
            means[members] = family.mean(items.coefficients[members] @ problem.basis.design.T)
            x[:, members] = data.x[:, data.columns.of(family, members)]
            judged[members] = True
    seen = np.ones(x.shape) if data.observed is None else data.observed.astype(np.float64)
    out = beyond_the_fit(x, seen, data.weights, means, law)
    out[~judged] = out[:, ~judged] = 0.0
    np.fill_diagonal(out, np.where(judged, 0.0, np.nan))
    return out


def begun_as_half(
    estimate: Estimate, split: Split, idle: int, problem: Problem
) -> tuple[MeasurementParameters, Array]:
    """Return items and law in which the idle latent is one half of another one.

    The idle latent's own items lose it, their predictors' means as they were.
    """
    items, law = estimate.parameters, estimate.probabilities / estimate.probabilities.sum()
    loadings = items.loadings.copy()
    loadings[:, idle] = 0.0
    loadings[split.leaving, idle] = loadings[split.leaving, split.latent]
    loadings[split.leaving, split.latent] = 0.0
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
