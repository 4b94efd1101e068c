"""Initial values of Stage I, from loadings; and numbers of levels assigned to latents."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.m_step import coefficient_scales
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StartPoint:
    """Initial values of Stage I."""

    parameters: MeasurementParameters
    probabilities: Array  # (S,)
    label: str  # the method that produced them


def spread_law(probabilities: Array) -> Array:
    """Return a mixture of a latent distribution and the uniform one, so that no state is zero."""
    share = CONFIG.initialization.uniform_share
    return (1.0 - share) * probabilities + share / len(probabilities)


def main_effects_only(items: MeasurementParameters, law: Array) -> MeasurementParameters:
    """Return least-squares main effects of items with interactions, states weighted by law (S,)."""
    if not items.terms.interactions:
        return items
    terms = items.terms.main_only
    states = StateSpace(terms.levels).states()
    features = np.hstack([np.ones((len(states), 1)), terms.features(states)])
    weight = np.sqrt(law)[:, None]
    target = weight * items.predictors(states).T
    used = np.hstack([np.ones((items.n_items, 1), dtype=bool), terms.support(items.support)])
    found = np.zeros((items.n_items, 1 + terms.n_terms))
    for j, own in enumerate(used):
        # An explicit rcond, because the defaults of numpy 1 and numpy 2 differ.
        found[j, own] = np.linalg.lstsq(weight * features[:, own], target[:, j], rcond=None)[0]
    out = replace(items, intercept=found[:, 0], loadings=found[:, 1:], terms=terms)
    return shrink_into_range(out, law @ features @ found.T / law.sum())


def shrink_into_range(items: MeasurementParameters, middle: Array) -> MeasurementParameters:
    """Return items with main effects shrunk into their range around mean predictors (J,)."""
    floor = np.array([family_named(name).lowest_predictor for name in items.families])
    lowest = items.lowest_predictors()
    below = lowest < floor
    share = np.ones(items.n_items)
    share[below] = 0.5 * (middle - floor)[below] / (middle - lowest)[below]
    return replace(
        items,
        intercept=middle + share * (items.intercept - middle),
        loadings=share[:, None] * items.loadings,
    )


def null_parameters(data: WorkingData, terms: Terms) -> MeasurementParameters:
    """Return parameters without effects of the latents: column means and variances."""
    intercept, dispersion = np.empty(data.n_items), np.ones(data.n_items)
    kinds = [family_named(name) for name in data.families]
    cutpoints = np.full((data.n_items, max(kind.n_cutpoints for kind in kinds)), np.nan)
    for j, family in enumerate(kinds):
        columns = data.columns.of(family, np.array([j]))
        predictor, auxiliary = family.fit_null(data.mean[columns], data.variance[columns])
        intercept[j] = predictor[0]
        if family.n_cutpoints:
            cutpoints[j, : family.n_cutpoints] = auxiliary[0]
        else:
            dispersion[j] = auxiliary[0]
    loadings = np.zeros((data.n_items, terms.n_terms))
    return MeasurementParameters(data.families, intercept, loadings, dispersion, terms, cutpoints)


def steps_of_levels(levels: tuple[int, ...]) -> tuple[Array, Array]:
    """Return step sizes with the variance of a binary latent, and their sums, shapes (K,)."""
    # Uniform levels 0, ..., M - 1 have variance (M^2 - 1) / 12, which is 1/4 for M = 2.
    counts = np.array(levels, dtype=np.float64)
    step = 0.5 / np.sqrt((counts**2 - 1.0) / 12.0)
    return step, step * (counts - 1.0)


def parameters_from_loadings(
    data: WorkingData, loadings: Array, levels: tuple[int, ...]
) -> MeasurementParameters:
    """Return parameters with the given loadings (J, K), in units of the items' scales.

    Loadings are effects of binary latents (equal steps with the same variance for more levels).
    """
    config, terms = CONFIG.initialization, Terms.main(levels)
    step, reach = steps_of_levels(levels)
    scale = coefficient_scales(data)
    total = np.abs(loadings).sum(axis=1)
    loadings = loadings * np.minimum(1.0, config.max_effect / np.maximum(total, 1e-12))[:, None]
    slopes = loadings * scale[:, None]
    null = null_parameters(data, terms)
    intercept = null.intercept - 0.5 * (slopes * reach).sum(axis=1)
    for j, name in enumerate(data.families):
        floor = family_named(name).lowest_predictor
        if np.isfinite(floor):
            # Effects are shrunk until the mean is positive in every state.
            allowed = 0.5 * max(null.intercept[j], 2.0 * floor)
            wanted = 0.5 * float((np.abs(slopes[j]) * reach).sum())
            if wanted > allowed:
                slopes[j] *= allowed / wanted
            intercept[j] = max(
                null.intercept[j] - 0.5 * float((slopes[j] * reach).sum()),
                floor - float((np.minimum(slopes[j], 0.0) * reach).sum()),
            )
    explained = 0.25 * (slopes**2).sum(axis=1)
    dispersion = np.where(
        [family_named(f).is_location_scale for f in data.families],
        np.maximum(null.dispersion - explained, config.min_dispersion_share * null.dispersion),
        null.dispersion,
    )
    per_step = (slopes * step)[:, terms.main_latents]
    return replace(null, intercept=intercept, loadings=per_step, dispersion=dispersion)


def from_loadings(data: WorkingData, space: StateSpace, loadings: Array, label: str) -> StartPoint:
    """Return a start with a uniform latent distribution; see `parameters_from_loadings`."""
    parameters = parameters_from_loadings(data, loadings, space.levels)
    return StartPoint(parameters, space.uniform(), label)


def confirmatory_start(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    *,
    rng: np.random.Generator | None = None,
) -> StartPoint:
    """Return a start with the given support; with ``rng``, random effects and distribution.

    Signs vary by latent in half of the random starts, by effect or not at all in a quarter each.
    """
    config = CONFIG.initialization
    q = (q_entries == 1).astype(np.float64)
    size = config.total_effect / np.sqrt(np.maximum(q.sum(axis=1, keepdims=True), 1.0))
    if rng is None:
        return from_loadings(data, space, q * size, "given Q")
    effects = q * size * rng.uniform(*config.effect_factors, q.shape)
    kind = int(rng.integers(4))
    if kind < 2:
        effects *= rng.choice([-1.0, 1.0], size=q.shape[1])
    elif kind == 2:
        effects = q * size * rng.standard_normal(q.shape)
    point = from_loadings(data, space, effects, "given Q, random")
    uneven = rng.dirichlet(np.full(space.n_states, config.dirichlet_weight))
    return replace(point, probabilities=spread_law(uneven))


def discretise(scores: Array, n_levels: int) -> NDArray[np.int64]:
    """Return the level of each centred score, (N,): cut at zero, or k-means for more than two."""
    if n_levels == 2:
        return np.asarray(scores > 0, dtype=np.int64)
    ordered = np.sort(scores)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    edges = np.linspace(0, len(ordered), n_levels + 1).astype(np.intp)
    cuts = np.zeros(n_levels - 1)
    for _ in range(CONFIG.levels.kmeans_rounds):
        means = np.diff(sums[edges]) / np.maximum(np.diff(edges), 1)
        fresh = 0.5 * (means[1:] + means[:-1])
        if np.array_equal(fresh, cuts):
            break
        cuts = fresh
        edges[1:-1] = np.searchsorted(ordered, cuts)
    return np.asarray(np.searchsorted(cuts, scores), dtype=np.int64)


def _mixture_likelihood(scores: Array, n_levels: int, weights: Array) -> float:
    """Return the weighted log-likelihood of a normal mixture with one variance."""
    least, total = CONFIG.levels.min_level_sd**2, float(weights.sum())
    level = discretise(scores, n_levels)
    counts = np.maximum(np.bincount(level, weights, minlength=n_levels), 1.0)
    means = np.bincount(level, weights * scores, minlength=n_levels) / counts
    shares = counts / counts.sum()
    variance = max(float(weights @ (scores - means[level]) ** 2) / total, least)
    value = -np.inf
    for _ in range(CONFIG.levels.mixture_steps):
        logs = np.log(shares) - 0.5 * (scores[:, None] - means) ** 2 / variance
        top = logs.max(axis=1, keepdims=True)
        posterior = np.exp(logs - top)
        mass = posterior.sum(axis=1, keepdims=True)
        value = float(weights @ (top + np.log(mass))[:, 0] - 0.5 * total * np.log(variance))
        posterior *= weights[:, None] / mass
        counts = np.maximum(posterior.sum(axis=0), 1e-9)
        means = posterior.T @ scores / counts
        shares = counts / counts.sum()
        spread = float((posterior * (scores[:, None] - means) ** 2).sum() / total)
        variance = max(spread, least)
    return value


def match_levels(
    scores: Array, levels: tuple[int, ...], weights: Array | None = None
) -> NDArray[np.intp]:
    """Return the column of the scores for each latent, (K,), by BIC of normal mixtures."""
    n_latents, n_rows = len(levels), CONFIG.levels.n_rows
    if len(set(levels)) == 1:
        return np.arange(n_latents)
    some = scores[:n_rows]
    counted = np.ones(len(some)) if weights is None else weights[:n_rows]
    some = some - np.average(some, axis=0, weights=counted)
    spread = np.sqrt(np.average(some**2, axis=0, weights=counted))
    some = some / np.maximum(spread, 1e-12)
    penalty = np.log(counted.sum())
    kinds = sorted(set(levels))
    criterion = np.array(
        [
            [_mixture_likelihood(some[:, c], m, counted) - m * penalty for m in kinds]
            for c in range(n_latents)
        ]
    )
    of_latent = criterion[:, [kinds.index(m) for m in levels]]
    rows, columns = linear_sum_assignment(of_latent.T, maximize=True)
    chosen = columns[np.argsort(rows)]
    for m in kinds:
        same = np.flatnonzero(np.array(levels) == m)
        chosen[same] = np.sort(chosen[same])
    return np.asarray(chosen, dtype=np.intp)
