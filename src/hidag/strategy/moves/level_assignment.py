"""Which latent has which number of levels, when the data alone say so.

A model that gives every latent the largest number of levels is the root of a search, because false
loadings imitate levels that a latent lacks. One latent after the other gets a smaller number, the
smallest first, and short EM runs in which all loadings may enter decide which. The best assignments
of all starts compete on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, Problem, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.initialization.start_points import StartPoint, shrink_into_range, spread_law
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, order_all_levels
from hidag.measurement.penalties import NO_SPARSITY
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
    root = (_root_levels(wanted),) * len(wanted)
    some = replace(problem, data=data)
    evens = [
        _fit(some, change_levels(one.parameters, one.probabilities, root), own=True)
        for one in points
    ]
    first = distinct_optima(
        [one.parameters for one in evens], [one.log_likelihood for one in evens]
    )
    assigned = [(_assign_from_root(some, evens[i]), points[i].label) for i in first]
    assigned.sort(key=lambda one: -one[0].objective)
    ends = [
        (end, label)
        for one, label in assigned[: config.max_climbs]
        for end in _exchange_levels(some, one)
    ]
    best = distinct_optima(
        [end.parameters for end, _ in ends], [end.objective for end, _ in ends], config.max_points
    )
    return [_in_order(*ends[i], wanted) for i in best]


def other_assignments(problem: Problem, data: WorkingData, now: Estimate) -> list[StartPoint]:
    """Return starting points in which two latents of an estimate exchange levels, best first.

    Only the items' own loadings are compared, without a penalty: others would take the place of
    the missing levels.
    """
    own = replace(problem, data=data, penalty=NO_SPARSITY)
    tried = exchanged_levels(now.parameters.terms.levels)
    found = _best_first(own, now, tried, own=True)
    return [_in_order(one, "other levels", problem.space.levels) for one in found]


def exchanged_levels(levels: Levels) -> list[Levels]:
    """Return the assignments after an exchange of two latents' numbers of levels."""
    out = []
    for a, b in combinations(range(len(levels)), 2):
        if levels[a] != levels[b]:
            other = list(levels)
            other[a], other[b] = levels[b], levels[a]
            out.append(tuple(other))
    return out


def _root_levels(wanted: Levels) -> int:
    """Return the largest number of levels that all latents can have with few enough states."""
    few = (
        m for m in set(wanted) if m ** len(wanted) <= max(CONFIG.levels.root_states, prod(wanted))
    )
    return max(few, default=min(wanted))


def _assign_from_root(problem: Problem, now: Estimate) -> Estimate:
    """Return the estimate with the wanted levels, from one with the same number for all latents.

    One latent after the other gets its number, the largest and then the smallest ones first: gains
    and losses of latents with common items are not additive.
    """
    wanted, root = problem.space.levels, now.parameters.terms.levels[0]
    order = sorted((m for m in wanted if m > root), reverse=True)
    for other in order + sorted(m for m in wanted if m < root):
        levels = now.parameters.terms.levels
        tried = [
            (*levels[:k], other, *levels[k + 1 :]) for k in range(len(levels)) if levels[k] == root
        ]
        now = _best_first(problem, now, tried)[0]
    return now


def _exchange_levels(problem: Problem, now: Estimate) -> list[Estimate]:
    """Return the estimates, best first, of an assignment that no exchange of two latents improves.

    The others are those after an exchange.
    """
    while True:
        levels = now.parameters.terms.levels
        tried = [levels, *exchanged_levels(levels)]
        found = _best_first(problem, now, tried)
        if found[0].parameters.terms.levels == levels:
            return found
        now = found[0]


def _best_first(
    problem: Problem, now: Estimate, tried: list[Levels], *, own: bool = False
) -> list[Estimate]:
    """Return estimates after short runs from other numbers of levels, best first."""
    items, law = now.parameters, now.probabilities
    found = [_fit(problem, change_levels(items, law, levels), own=own) for levels in tried]
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
