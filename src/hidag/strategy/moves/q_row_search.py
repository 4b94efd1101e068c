"""Search of each item's row of Q over sets of latents, with all their interactions.

Main effects select an item's latents one at a time. They miss a latent that mainly changes the
effect of another one, and two latents that have an effect only together. At convergence, each item
is therefore excluded in turn, and every small set of latents is compared by how well it explains
the item given the posterior from the *other* items. With one mean per combination of levels that is
a mixture with known weights, whose observed-data likelihood a few EM steps maximise.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb, prod
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import StateScores, iterate_posteriors
from hidag.em.em import Estimate
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import Family, MeanFamily, family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Effects

Array = NDArray[np.float64]


def improve_rows(
    estimate: Estimate,
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    effects: Effects,
    cost: float,
) -> MeasurementParameters | None:
    """Return parameters in which items have the sets of latents that explain them best, or None.

    Parameters
    ----------
    estimate : Estimate
        Converged, with interactions.
    q_entries : ndarray of int8, shape (J, K)
        1, 0, or -1 for entries to be estimated.
    cost : float
        Cost per term, in units of log-likelihood.

    Returns
    -------
    MeasurementParameters or None
        None if no item would change, or if there are too many joint states.
    """
    if space.n_states > CONFIG.q_row_search.most_states:
        return None
    chosen = np.array(estimate.parameters.support, dtype=np.int8)
    tables: dict[int, tuple[tuple[int, ...], Array, float]] = {}
    for j, family in enumerate(map(family_named, data.families)):
        if not (q_entries[j] < 0).any() or not _has_simple_mean(family):
            continue
        now = tuple(int(k) for k in np.flatnonzero(chosen[j]))
        sets = _possible_sets(q_entries[j], now, space, effects)
        weights = _posterior_without_item(estimate, data, space, j, sets)
        bounds = np.cumsum([0, *(_n_combinations(latents, space) for latents in sets)])
        best = max(
            (
                (*_fit_means(weights[:, a:b], data, j, family, cost), latents)
                for latents, a, b in zip(sets, bounds, bounds[1:], strict=False)
            ),
            key=lambda trial: trial[0],
        )
        if best[3] != now:
            tables[j] = (best[3], best[1], best[2])
            chosen[j] = np.isin(np.arange(space.n_latents), best[3])
    if not tables:
        return None
    return _with_tables(estimate.parameters, tables, chosen, space, effects)


def _has_simple_mean(family: Family) -> TypeGuard[MeanFamily]:
    """Return whether the mean of a family's single column determines its predictor."""
    by_mean = isinstance(family, MeanFamily) and family.n_columns == 1 and not family.n_cutpoints
    return by_mean and (family.is_location_scale or not family.has_dispersion)


def _n_combinations(latents: tuple[int, ...], space: StateSpace) -> int:
    return prod(space.levels[k] for k in latents)


def _posterior_without_item(
    estimate: Estimate, data: WorkingData, space: StateSpace, item: int, sets: list[tuple[int, ...]]
) -> NDArray[np.float32]:
    """Return posteriors of the sets' level combinations given all other items, shape (N, C)."""
    parameters = estimate.parameters
    states = space.states()
    features = parameters.terms.features(states)
    scores = StateScores.of(parameters.tables(features), estimate.probabilities, data.incomplete)
    theta, partition = parameters.tables(features)
    column = int(data.columns.of(family_named(data.families[item]), np.array([item]))[0])
    indicators = []
    for latents in sets:
        shape = [space.levels[k] for k in latents]
        code = np.ravel_multi_index(tuple(states[:, k] for k in latents), shape) if latents else 0
        indicator = np.zeros((space.n_states, prod(shape)))
        indicator[np.arange(space.n_states), code] = 1.0
        indicators.append(indicator)
    every = np.hstack(indicators)
    out = np.empty((data.n_samples, every.shape[1]), dtype=np.float32)
    for rows, posterior, _ in iterate_posteriors(scores, data):
        own = data.x[rows, column][:, None] * theta[column] - partition[item]
        if data.observed is not None:
            own *= data.observed[rows, item][:, None]
        # Relative to the most probable state, to avoid overflow and underflow.
        rest = np.take_along_axis(own, posterior.argmax(axis=1)[:, None], axis=1) - own
        np.exp(np.minimum(rest, CONFIG.q_row_search.largest_exponent, out=rest), out=rest)
        rest *= posterior
        out[rows] = (rest @ every) / rest.sum(axis=1, keepdims=True)
    return out


def _possible_sets(
    entries: NDArray[np.int8], now: tuple[int, ...], space: StateSpace, effects: Effects
) -> list[tuple[int, ...]]:
    """Return the sets of latents that an item may have, its present one first."""
    must = [int(k) for k in np.flatnonzero(entries == 1)]
    may = [int(k) for k in np.flatnonzero(entries < 0)]
    most = min(CONFIG.q_row_search.most_latents, space.n_latents)
    while (
        most > 1
        and comb(len(may), most) * max(space.levels) ** most > CONFIG.q_row_search.most_combinations
    ):
        most -= 1
    found = [
        tuple(sorted((*must, *more)))
        for size in range(max(0, most - len(must)) + 1)
        for more in combinations(may, size)
    ]
    return [now, *(one for one in found if one != now)]


def _fit_means(
    weights: NDArray[np.float32], data: WorkingData, item: int, family: MeanFamily, cost: float
) -> tuple[float, Array, float]:
    """Return the penalised likelihood of an item with one mean per combination of levels.

    Parameters
    ----------
    weights : ndarray, shape (N, C)
        Posteriors of the combinations given the other items.
    cost : float
        Cost of each mean beyond the first.

    Returns
    -------
    value : float
    predictors : ndarray, shape (C,)
    noise : float
        Variance around the means, for families that have one.
    """
    column = data.columns.of(family, np.array([item]))[0]
    seen = np.ones(data.n_samples, dtype=bool)
    if data.observed is not None:
        seen = data.observed[:, item] == 1
    x, counted = data.x[seen, column], data.row_weights[seen]
    known = weights[seen].astype(np.float64)
    centre = float(counted @ x / counted.sum())
    spread = float(counted @ (x - centre) ** 2 / counted.sum())
    share = counted @ known
    means = (counted * x) @ known / np.maximum(share, 1e-9)
    noise, config = spread, CONFIG.q_row_search
    value = -np.inf
    for _ in range(config.steps):
        inside = family.clip_mean(means, config.inside)
        predictor = family.predictor(inside)
        theta, partition = family.natural(predictor, np.full(len(predictor), noise))
        log_density = np.outer(x, theta) - partition
        if family.is_location_scale:
            log_density -= 0.5 * (x[:, None] ** 2 / noise + np.log(noise))
        top = log_density.max(axis=1, keepdims=True)
        joint = known * np.exp(log_density - top)
        mass = np.maximum(joint.sum(axis=1), 1e-300)
        last, value = value, float(counted @ (np.log(mass) + top[:, 0]))
        joint *= (counted / mass)[:, None]
        share = joint.sum(axis=0)
        means = np.where(share > config.smallest_share, x @ joint / np.maximum(share, 1e-9), centre)
        if family.is_location_scale:
            squares = float((joint * (x[:, None] - means) ** 2).sum())
            noise = max(squares / float(counted.sum()), config.smallest_noise * spread)
        if value - last < config.tolerance:
            break
    predictors = np.asarray(family.predictor(family.clip_mean(means, config.inside)))
    return value - cost * (len(predictors) - 1), predictors, noise


def _with_tables(
    parameters: MeasurementParameters,
    tables: dict[int, tuple[tuple[int, ...], Array, float]],
    q: NDArray[np.int8],
    space: StateSpace,
    effects: Effects,
) -> MeasurementParameters:
    """Return the parameters with tables of predictors expressed as terms."""
    terms = effects.terms(q, space.levels, parameters.terms.linear)
    wide = parameters.with_terms(terms)
    intercept, loadings = wide.intercept.copy(), wide.loadings.copy()
    dispersion = wide.dispersion.copy()
    states = space.states()
    features = terms.features(states)
    for j, (latents, table, noise) in tables.items():
        others = [k for k in range(space.n_latents) if k not in latents]
        rows = np.flatnonzero((states[:, others] == 0).all(axis=1))
        use = np.flatnonzero(~terms.involved[:, others].any(axis=1))
        design = np.hstack([np.ones((len(rows), 1)), features[np.ix_(rows, use)]])
        # Rows come in the order of the table: the last latent changes fastest in both.
        solution = np.linalg.lstsq(design, table, rcond=None)[0]
        intercept[j], loadings[j] = solution[0], 0.0
        loadings[j, use] = solution[1:]
        if family_named(parameters.families[j]).is_location_scale:
            dispersion[j] = noise
    return replace(wide, intercept=intercept, loadings=loadings, dispersion=dispersion)
