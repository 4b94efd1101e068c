"""Moves that change the meaning of the levels of a latent with more than two of them.

EM rarely moves a level across another one: two of three levels may stand for the same part of the
population while the third stands for two parts. A split and merge move merges two neighbouring
levels of a latent and splits another one.

Joint states of two latents may also be labelled by other levels: the fit finds Z2 - Z1 instead of
Z2, or which half of the four levels of Z2 a row is in, and items then load on both. Relabelling is
only tried if items need fewer loadings, so that it costs nothing where levels are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.em import Estimate, append_run, run_em
from hidag.initialization.start_points import spread_law
from hidag.latent.laws import Parents, factorise_counts
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, order_all_levels
from hidag.strategy.problem import NetworkEstimate, SearchProblem
from hidag.strategy.structural_em import Candidate, structural_em

Array = NDArray[np.float64]


def move_levels(
    items: MeasurementParameters, law: Array
) -> Iterator[tuple[MeasurementParameters, Array]]:
    """Yield main-effect items and laws (S,) with two levels merged and another one split."""
    terms = items.terms
    orders = order_all_levels(items)
    ordered = items.relevelled(orders)
    cube = law.reshape(terms.levels)[np.ix_(*orders)]
    for k, n_levels in enumerate(terms.levels):
        if k in terms.linear:
            continue
        columns = np.flatnonzero(terms.main_latents == k)
        steps = ordered.loadings[:, columns]
        values = np.hstack([np.zeros((items.n_items, 1)), np.cumsum(steps, axis=1)])
        shares = np.moveaxis(cube, k, 0)
        mass = shares.reshape(n_levels, -1).sum(axis=1)
        reach = CONFIG.levels.split_reach * values[:, -1] / (n_levels - 1)
        for merged in range(n_levels - 1):
            pair = [merged, merged + 1]
            weight = mass[pair] / max(mass[pair].sum(), 1e-300)
            for split in set(range(n_levels)) - set(pair):
                fresh: list[tuple[Array, Array]] = []
                for level in range(n_levels):
                    if level == merged:
                        fresh.append((values[:, pair] @ weight, shares[pair].sum(axis=0)))
                    elif level == split:
                        half = 0.5 * shares[level]
                        fresh.append((values[:, level] - reach, half))
                        fresh.append((values[:, level] + reach, half))
                    elif level != merged + 1:
                        fresh.append((values[:, level], shares[level]))
                effects = np.stack([value for value, _ in fresh], axis=1)
                loadings = ordered.loadings.copy()
                loadings[:, columns] = np.diff(effects, axis=1)
                moved = replace(
                    ordered, intercept=ordered.intercept + effects[:, 0], loadings=loadings
                )
                if moved.in_range().all():
                    joint = np.moveaxis(np.stack([part for _, part in fresh]), 0, k)
                    yield moved, spread_law(joint.ravel())


def with_level_moves(
    network: NetworkEstimate, first: Candidate, problem: SearchProblem
) -> NetworkEstimate:
    """Return the estimate after the level moves that raise its objective.

    Parameters
    ----------
    network : NetworkEstimate
        On all rows; unchanged with two levels or with interactions.
    first : Candidate
        The candidate that it started from.
    """
    config, space = CONFIG.levels, problem.space
    for _ in range(config.max_rounds):
        now = network.estimate
        if max(space.levels) == 2 or now.parameters.terms.interactions:
            break
        law_step = partial(factorise_counts, parents=network.parents, space=space)
        same = replace(problem, penalty=network.penalty)
        tried = short_runs_after_moves(now, network.parents, same)
        if not tried:
            break
        ahead = tried[0]
        found = run_em(same, ahead.parameters, ahead.probabilities, law_step=law_step)
        if found.objective <= now.objective + config.min_gain:
            break
        moved = append_run(append_run(now, ahead), found)
        network = structural_em(problem, replace(first, estimate=moved, parents=network.parents))
    return network


def short_runs_after_moves(
    now: Estimate, parents: Parents, problem: SearchProblem
) -> list[Estimate]:
    """Return the ends of short runs under a graph after each move of levels, the best first."""
    law_step = partial(factorise_counts, parents=parents, space=problem.space)
    schedule = replace(problem.schedule, max_iter=CONFIG.levels.steps_of_move, tolerance=0.0)
    brief = replace(problem, schedule=schedule, observer=None)
    tried = [
        run_em(brief, items, law_step(law), law_step=law_step)
        for items, law in move_levels(now.parameters, now.probabilities)
    ]
    return sorted(tried, key=lambda one: -one.objective)


def relabel_levels(
    items: MeasurementParameters, law: Array, space: StateSpace, features: Array
) -> list[tuple[MeasurementParameters, Array]]:
    """Return items and laws (S,) with other levels that need fewer loadings, the fewest first.

    Levels of two latents are those of the effects that both have together on two items.

    Parameters
    ----------
    items : MeasurementParameters
        With main effects only.
    law : ndarray, shape (S,)
    features : ndarray, shape (S, T)
        Values of the terms in all joint states.
    """
    orders = order_all_levels(items)
    items = items.relevelled(orders)
    cube = law.reshape(space.levels)[np.ix_(*orders)]
    law = np.ascontiguousarray(cube).ravel() / cube.sum()
    states, support = space.states(), items.support
    values = items.predictors(states)
    found = []
    for a, b in combinations(range(space.n_latents), 2):
        own = support[:, a] | support[:, b]
        if not (support[:, a] & support[:, b]).any():
            continue
        others = [k for k in range(space.n_latents) if k not in (a, b)]
        mass = cube.sum(axis=tuple(others)).ravel() / cube.sum()
        effects = items.heights(a)[own, :, None] + items.heights(b)[own, None, :]
        cells = states[:, a] * space.levels[b] + states[:, b]
        kinds = [
            {tuple(_cluster(row, mass, space.levels[k])) for row in effects.reshape(own.sum(), -1)}
            for k in (a, b)
        ]
        for pair in product(*(sorted(kind) for kind in kinds)):
            moved = states.copy()
            moved[:, [a, b]] = np.array(pair).T[cells]
            place = space.number(moved)
            fewer = _sparse_effects(items, values, law, features[place], (a, b))
            gain = int(support.sum() - fewer.support.sum())
            if gain > 0 and fewer.in_range().all():
                joint: Array = np.bincount(place, law, space.n_states).astype(np.float64)
                found.append((gain, (fewer, spread_law(joint))))
    found.sort(key=lambda one: -one[0])
    return [move for _, move in found]


def _cluster(values: Array, mass: Array, n_levels: int) -> NDArray[np.intp]:
    """Return the level of each value by Ward's clustering of values with a mass."""
    order = np.argsort(values, kind="stable")
    weight, mean = list(np.maximum(mass[order], 1e-12)), list(values[order])
    size = [1] * len(mean)
    while len(mean) > n_levels:
        w, m = np.array(weight), np.array(mean)
        i = int(np.argmin(np.diff(m) ** 2 * w[1:] * w[:-1] / (w[1:] + w[:-1])))
        mean[i : i + 2] = [float(w[i : i + 2] @ m[i : i + 2]) / float(w[i : i + 2].sum())]
        weight[i : i + 2] = [weight[i] + weight[i + 1]]
        size[i : i + 2] = [size[i] + size[i + 1]]
    out = np.empty(len(values), dtype=np.intp)
    out[order] = np.repeat(np.arange(n_levels), size)
    return out


def _sparse_effects(
    items: MeasurementParameters, values: Array, law: Array, features: Array, pair: tuple[int, int]
) -> MeasurementParameters:
    """Return items whose effects on shifted levels reproduce their predictors, shape (J, S).

    Of both latents of the pair, an item keeps those that it needs.
    """
    main, weight = items.terms.main_latents, np.sqrt(law)[:, None]
    out = np.hstack([items.intercept[:, None], items.loadings])
    for j, own in enumerate(items.support):
        if not own[list(pair)].any():
            continue
        others = [int(k) for k in np.flatnonzero(own) if k not in pair]
        target = weight[:, 0] * values[j]
        least = CONFIG.levels.relabelled_residual * (law @ (values[j] - law @ values[j]) ** 2)
        for kept in ((pair[1],), (pair[0],), pair):
            columns = np.flatnonzero(np.isin(main, [*others, *kept]))
            design = weight * np.hstack([np.ones((len(law), 1)), features[:, columns]])
            effects = np.linalg.lstsq(design, target, rcond=1e-9)[0]
            if ((target - design @ effects) ** 2).sum() <= least:
                break
        out[j] = 0.0
        out[j, [0, *(columns + 1)]] = effects
    return replace(items, intercept=out[:, 0], loadings=out[:, 1:])
