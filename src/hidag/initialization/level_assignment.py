"""Which latent has which number of levels, when the data alone say so.

A model that gives every latent the smallest number of levels shows which latents want more of them:
each latent in turn gets each larger number, and a short EM run with only its own loadings gives the
gain in log-likelihood. The assignment with the largest sum of gains and its neighbours are fitted
in the same way, and those near the best become starting points. Loadings are selected later.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, Problem, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.initialization.initializers import start_from_scores
from hidag.initialization.start_points import StartPoint, shrink_into_range, spread_law
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, order_all_levels
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]
Levels = tuple[int, ...]


def change_levels(
    items: MeasurementParameters, law: Array, levels: Levels
) -> tuple[MeasurementParameters, Array]:
    """Return main-effects items and a law (S,) whose latents have other numbers of levels.

    New levels are equally spaced, with the mean and the variance of the old ones under the law.
    """
    orders = order_all_levels(items)
    cube = law.reshape(items.terms.levels)[np.ix_(*orders)] / law.sum()
    items = items.relevelled(orders)
    terms = Terms.main(levels)
    intercept, loadings = items.intercept.copy(), np.zeros((items.n_items, terms.n_terms))
    middle = intercept.copy()
    for k, (old, new) in enumerate(zip(items.terms.levels, levels, strict=True)):
        shares = np.moveaxis(cube, k, 0)
        mass, heights = shares.reshape(len(shares), -1).sum(axis=1), items.heights(k)
        centre = heights @ mass
        middle += centre
        columns = terms.main_latents == k
        if new == old:
            loadings[:, columns] = np.diff(heights, axis=1)
            continue
        # Positions of the old levels on the direction along which items vary most.
        apart = (heights - centre[:, None]) / items.deviations[:, None]
        axis = np.linalg.svd(apart * np.sqrt(mass), full_matrices=False)[0][:, 0]
        place = axis @ apart
        place *= np.sign(place[-1] - place[0]) / max(np.sqrt(mass @ place**2), 1e-12)
        grid = np.arange(new) - 0.5 * (new - 1)
        grid /= np.sqrt((grid**2).mean())
        slopes = (heights - centre[:, None]) @ (mass * place)
        loadings[:, columns] = (slopes * (grid[1] - grid[0]))[:, None]
        intercept += centre + slopes * grid[0]
        near = np.exp(-0.5 * (grid[:, None] - place) ** 2)
        cube = np.moveaxis(np.tensordot(near / near.sum(axis=0), shares, axes=1), 0, k)
    found = replace(items, intercept=intercept, loadings=loadings, terms=terms)
    return shrink_into_range(found, middle), spread_law(np.ascontiguousarray(cube).ravel())


def assign_levels(problem: Problem, data: WorkingData, point: StartPoint) -> list[StartPoint]:
    """Return starting points with the best assignments of levels to latents, best first.

    Parameters
    ----------
    problem : Problem
        Its state space has the numbers of levels that the latents have in some order.
    data : WorkingData
        The rows on which assignments are compared.
    point : StartPoint
        Main effects of latents with any numbers of levels; only their own loadings are fitted.
        Scores are assigned to levels again: they show where levels are.
    """
    config, wanted = CONFIG.levels, problem.space.levels
    fewest = (min(wanted),) * len(wanted)
    some = replace(problem, data=data)
    start = change_levels(point.parameters, point.probabilities, fewest)
    even = _fit(some, *start, config.steps_of_gain)
    # The gains are those over as many further steps.
    before = _fit(some, even.parameters, even.probabilities, config.steps_of_gain)
    kinds = sorted(set(wanted))
    gains = np.zeros((len(wanted), len(kinds)))
    for k in range(len(wanted)):
        for column, more in enumerate(kinds[1:], start=1):
            levels = (*fewest[:k], more, *fewest[k + 1 :])
            found = _changed(some, even, levels)
            gains[k, column] = found.log_likelihood - before.log_likelihood
    ends = [_changed(some, even, levels) for levels in _likely_assignments(gains, wanted)]
    ends.sort(key=lambda one: -one.log_likelihood)
    least = ends[0].log_likelihood - config.near_tie
    near = [one for one in ends if one.log_likelihood >= least]
    return [_in_order(one, point, problem) for one in near[: config.max_points]]


def _changed(problem: Problem, even: Estimate, levels: Levels) -> Estimate:
    """Return the estimate after a short run from other numbers of levels."""
    start = change_levels(even.parameters, even.probabilities, levels)
    return _fit(problem, *start, CONFIG.levels.steps_of_gain)


def _fit(problem: Problem, items: MeasurementParameters, law: Array, n_steps: int) -> Estimate:
    """Return the estimate after EM steps with the items' own loadings, under a saturated law."""
    own = np.where(items.support, 1, 0).astype(np.int8)
    model = replace(
        problem,
        space=StateSpace(items.terms.levels),
        basis=Basis.over(StateSpace(items.terms.levels), items.terms),
        allowed=allowed_coefficients(own, items.terms),
        penalty=NO_SPARSITY,
        schedule=replace(problem.schedule, max_iter=n_steps, tolerance=0.0),
        observer=None,
    )
    return run_em(model, items, law)


def _likely_assignments(gains: Array, levels: Levels) -> list[Levels]:
    """Return the assignment with the largest sum of gains (K, kinds), and its best neighbours.

    Neighbours differ by an exchange of two latents. Gains of latents are not quite additive: they
    count as likely if they gain nearly as much.
    """
    config, kinds = CONFIG.levels, sorted(set(levels))
    columns = np.array([kinds.index(m) for m in levels])
    chosen = columns[linear_sum_assignment(gains[:, columns], maximize=True)[1]]
    totals: dict[Levels, float] = {}
    for a, b in [(0, 0), *combinations(range(len(levels)), 2)]:
        other = chosen.copy()
        other[[a, b]] = chosen[[b, a]]
        total = float(gains[np.arange(len(other)), other].sum())
        totals[tuple(kinds[c] for c in other)] = total
    best = max(totals.values())
    least = best - max(config.near_tie, config.near_share * best)
    ranked = sorted(totals, key=lambda one: -totals[one])
    return [one for one in ranked if totals[one] >= least][: config.max_assignments]


def _in_order(estimate: Estimate, point: StartPoint, problem: Problem) -> StartPoint:
    """Return the start with latents reordered, so that they have the problem's levels."""
    own, levels = estimate.parameters.terms.levels, problem.space.levels
    order = np.empty(len(levels), dtype=np.intp)
    order[np.argsort(levels, kind="stable")] = np.argsort(own, kind="stable")
    items = estimate.parameters.reordered(latents=order)
    if point.scores is None:
        law = np.ascontiguousarray(estimate.probabilities.reshape(own).transpose(order))
        return StartPoint(items, spread_law(law.ravel()), point.label)
    return start_from_scores(
        problem.data,
        problem.space,
        problem.basis,
        point.scores[:, order],
        items.support,
        point.label,
    )
