"""Initial values of Stage I, built from loadings: item parameters and a latent distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
    """Initial values of Stage I.

    Attributes
    ----------
    parameters : MeasurementParameters
    probabilities : ndarray, shape (S,)
    label : str
        The method that produced them.
    """

    parameters: MeasurementParameters
    probabilities: Array
    label: str


def spread_law(probabilities: Array) -> Array:
    """Return a mixture of a latent distribution and the uniform one, so that no state is zero."""
    share = CONFIG.initialization.uniform_share
    return (1.0 - share) * probabilities + share / len(probabilities)


def main_effects_only(items: MeasurementParameters, law: Array) -> MeasurementParameters:
    """Return the main-effects approximation of items with interactions, by least squares.

    Dropping the interactions alone would leave conjunctive items without any effect.

    Parameters
    ----------
    items : MeasurementParameters
    law : ndarray, shape (S,)
        Weights of the joint states.
    """
    if not items.terms.interactions:
        return items
    terms = Terms.main(items.terms.levels)
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
    floor = np.array([family_named(name).lowest_predictor for name in items.families])
    lowest, middle = out.lowest_predictors(), law @ features @ found.T / law.sum()
    # Sums of main effects may leave the range of the predictors; these effects are shrunk.
    below = lowest < floor
    share = np.ones(items.n_items)
    share[below] = 0.5 * (middle - floor)[below] / (middle - lowest)[below]
    return replace(
        out,
        intercept=middle + share * (out.intercept - middle),
        loadings=share[:, None] * out.loadings,
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

    A loading is the effect of a binary latent; latents with more levels get equal steps with the
    same variance. Intercepts reproduce the items' means under independent, uniform latents.
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
    probabilities = np.full(space.n_states, 1.0 / space.n_states)
    parameters = parameters_from_loadings(data, loadings, space.levels)
    return StartPoint(parameters, probabilities, label)


def confirmatory_start(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    *,
    rng: np.random.Generator | None = None,
) -> StartPoint:
    """Return a start with the given support; with ``rng``, random effects and distribution.

    Random starts vary the signs of effects: in one half of them each latent has its own sign, in
    one quarter each effect, in one quarter all are positive.

    Parameters
    ----------
    data : WorkingData
    space : StateSpace
    q_entries : ndarray of int8, shape (J, K)
        All entries 0 or 1.
    rng : numpy.random.Generator, optional
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
