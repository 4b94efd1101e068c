"""Which latent has which number of levels, when the data alone say so.

A model that gives every latent the smallest number of levels is the root of a search: latents get
the larger numbers one after the other, the largest first, and short EM runs in which all loadings
may enter decide which. The best assignments of all starts compete on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, Problem, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.initialization.start_points import StartPoint, shrink_into_range, spread_law
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, order_all_levels
from hidag.measurement.terms import Terms
from hidag.strategy.moves.optima import distinct_optima

Array = NDArray[np.float64]
Levels = tuple[int, ...]


def change_levels(
    items: MeasurementParameters, law: Array, levels: Levels, linear: tuple[int, ...] = ()
) -> tuple[MeasurementParameters, Array]:
    """Return main-effects items and a law (S,) with other numbers of levels, or ``linear`` steps.

    New levels are equally spaced, with the mean and the variance of the old ones under the law.
    """
    orders = order_all_levels(items)
    cube = law.reshape(items.terms.levels)[np.ix_(*orders)] / law.sum()
    items = items.relevelled(orders)
    terms = Terms.main(levels, linear)
    intercept, loadings = items.intercept.copy(), np.zeros((items.n_items, terms.n_terms))
    middle = intercept.copy()
    for k, (old, new) in enumerate(zip(items.terms.levels, levels, strict=True)):
        shares = np.moveaxis(cube, k, 0)
        mass, heights = shares.reshape(len(shares), -1).sum(axis=1), items.heights(k)
        centre = heights @ mass
        middle += centre
        columns = terms.main_latents == k
        even = k in terms.linear
        if new == old and (k in items.terms.linear or not even):
            loadings[:, columns] = heights[:, [-1]] if even else np.diff(heights, axis=1)
            continue
        # Positions of the old levels on the direction along which items vary most.
        apart = (heights - centre[:, None]) / items.deviations[:, None]
        axis = np.linalg.svd(apart * np.sqrt(mass), full_matrices=False)[0][:, 0]
        place = axis @ apart
        place *= np.sign(place[-1] - place[0]) / max(np.sqrt(mass @ place**2), 1e-12)
        grid = np.arange(new) - 0.5 * (new - 1)
        grid /= np.sqrt((grid**2).mean())
        slopes = (heights - centre[:, None]) @ (mass * place)
        loadings[:, columns] = (slopes * (grid[-1 if even else 1] - grid[0]))[:, None]
        intercept += centre + slopes * grid[0]
        near = np.exp(-0.5 * (grid[:, None] - place) ** 2)
        cube = np.moveaxis(np.tensordot(near / near.sum(axis=0), shares, axes=1), 0, k)
    found = replace(items, intercept=intercept, loadings=loadings, terms=terms)
    return shrink_into_range(found, middle), spread_law(np.ascontiguousarray(cube).ravel())


def assign_levels(
    problem: Problem, data: WorkingData, points: Sequence[StartPoint]
) -> list[StartPoint]:
    """Return starting points with the best assignments of levels to latents, best first.

    Parameters
    ----------
    problem : Problem
        Its state space has the numbers of levels that the latents have in some order.
    data : WorkingData
        The rows on which assignments are compared.
    points : sequence of StartPoint
        Main effects of latents with any numbers of levels.
    """
    config, wanted = CONFIG.levels, problem.space.levels
    fewest = (min(wanted),) * len(wanted)
    some = replace(problem, data=data)
    evens = [
        _fit(some, change_levels(one.parameters, one.probabilities, fewest), own=True)
        for one in points
    ]
    first = distinct_optima(
        [one.parameters for one in evens], [one.log_likelihood for one in evens]
    )
    raised = [(_raise_levels(some, evens[i]), points[i].label) for i in first]
    raised.sort(key=lambda one: -one[0].objective)
    ends = [
        (end, label)
        for one, label in raised[: config.max_climbs]
        for end in _exchange_levels(some, one)
    ]
    best = distinct_optima(
        [end.parameters for end, _ in ends], [end.objective for end, _ in ends], config.max_points
    )
    return [_in_order(*ends[i], wanted) for i in best]


def other_assignments(problem: Problem, data: WorkingData, now: Estimate) -> list[StartPoint]:
    """Return starting points with other likely assignments than the estimate's, best first."""
    found = _exchange_levels(replace(problem, data=data), now)
    least = found[0].objective - CONFIG.levels.near_tie
    return [
        _in_order(one, "other levels", problem.space.levels)
        for one in found
        if one.objective >= least and one.parameters.terms.levels != problem.space.levels
    ]


def _raise_levels(problem: Problem, now: Estimate) -> Estimate:
    """Return the estimate with the wanted levels, from one with the smallest number for all.

    One latent after the other gets more levels, the largest number first: gains of latents with
    common items are not additive.
    """
    wanted = problem.space.levels
    for more in sorted((m for m in wanted if m > min(wanted)), reverse=True):
        levels = now.parameters.terms.levels
        tried = [
            (*levels[:k], more, *levels[k + 1 :])
            for k in range(len(levels))
            if levels[k] == min(wanted)
        ]
        now = _best_first(problem, now, tried)[0]
    return now


def _exchange_levels(problem: Problem, now: Estimate) -> list[Estimate]:
    """Return the estimates, best first, of an assignment that no exchange of two latents improves.

    The others are those after an exchange.
    """
    while True:
        levels = now.parameters.terms.levels
        tried = [levels]
        for a, b in combinations(range(len(levels)), 2):
            if levels[a] != levels[b]:
                other = list(levels)
                other[a], other[b] = levels[b], levels[a]
                tried.append(tuple(other))
        found = _best_first(problem, now, tried)
        if found[0].parameters.terms.levels == levels:
            return found
        now = found[0]


def _best_first(problem: Problem, now: Estimate, tried: list[Levels]) -> list[Estimate]:
    """Return estimates after short runs from other numbers of levels, best first."""
    items, law = now.parameters, now.probabilities
    found = [_fit(problem, change_levels(items, law, levels)) for levels in tried]
    return sorted(found, key=lambda one: -one.objective)


def _fit(
    problem: Problem, start: tuple[MeasurementParameters, Array], *, own: bool = False
) -> Estimate:
    """Return the estimate after a few EM steps under a saturated law.

    All loadings may enter unless only the items' ``own`` are wanted.
    """
    items, law = start
    entries = np.where(items.support, 1, 0) if own else np.full(items.support.shape, -1)
    space = StateSpace(items.terms.levels)
    model = replace(
        problem,
        space=space,
        basis=Basis.over(space, items.terms),
        allowed=allowed_coefficients(entries.astype(np.int8), items.terms),
        schedule=replace(problem.schedule, max_iter=CONFIG.levels.steps_of_gain, tolerance=0.0),
        observer=None,
    )
    return run_em(model, items, law)


def _in_order(estimate: Estimate, label: str, levels: Levels) -> StartPoint:
    """Return the start with latents reordered, so that they have these levels."""
    own = estimate.parameters.terms.levels
    order = np.empty(len(levels), dtype=np.intp)
    order[np.argsort(levels, kind="stable")] = np.argsort(own, kind="stable")
    law = np.ascontiguousarray(estimate.probabilities.reshape(own).transpose(order))
    items = estimate.parameters.reordered(latents=order)
    return StartPoint(items, spread_law(law.ravel()), label)
