"""Start points: items and a law to begin from, and how loadings become them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.m_step import coefficient_scales
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]

#: Share of the law that is spread evenly over all states: no state starts impossible.
SPREAD = 0.1
#: Largest total effect, in units of an item's scale, that a start may claim.
LARGEST_EFFECT = 4.0


@dataclass(frozen=True)
class StartPoint:
    """Where Stage I begins.

    Attributes
    ----------
    parameters : MeasurementParameters
    probabilities : ndarray, shape (S,)
    label : str
        How it was made.
    """

    parameters: MeasurementParameters
    probabilities: Array
    label: str


def spread_law(probabilities: Array) -> Array:
    """Return the law with a share spread evenly over all states."""
    return (1.0 - SPREAD) * probabilities + SPREAD / len(probabilities)


def main_effects_only(items: MeasurementParameters, law: Array) -> MeasurementParameters:
    """Return items without interactions whose predictors come nearest to those they had.

    Dropping products alone would leave an item that needs several latents at once with none.

    Parameters
    ----------
    items : MeasurementParameters
    law : ndarray, shape (S,)
        How much each joint state matters.
    """
    if not items.terms.interactions:
        return items
    terms = Terms.main(items.terms.levels)
    states = StateSpace(terms.levels).states()
    features = np.hstack([np.ones((len(states), 1)), terms.features(states)])
    weight = np.sqrt(law)[:, None]
    wanted = weight * items.predictors(states).T
    own = np.hstack([np.ones((items.n_items, 1), dtype=bool), terms.support(items.support)])
    found = np.zeros((items.n_items, 1 + terms.n_terms))
    for j, used in enumerate(own):
        # The cut is said: without it numpy 1 has another one than numpy 2.
        found[j, used] = np.linalg.lstsq(weight * features[:, used], wanted[:, j], rcond=None)[0]
    out = replace(items, intercept=found[:, 0], loadings=found[:, 1:], terms=terms)
    floor = np.array([family_named(name).lowest_predictor for name in items.families])
    lowest, middle = out.lowest_predictors(), law @ features @ found.T / law.sum()
    # Sums of main effects may leave the range that the predictors were in: shrink these effects.
    below = lowest < floor
    share = np.ones(items.n_items)
    share[below] = 0.5 * (middle - floor)[below] / (middle - lowest)[below]
    return replace(
        out,
        intercept=middle + share * (out.intercept - middle),
        loadings=share[:, None] * out.loadings,
    )


def null_parameters(data: WorkingData, terms: Terms) -> MeasurementParameters:
    """Return parameters under which no latent matters: column means and variances."""
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
    """Return the steps of latents whose items vary as with two levels one apart, and their sums.

    Both have shape (K,).
    """
    # Even levels 0, ..., M - 1 have variance (M^2 - 1) / 12: a quarter for two of them.
    counts = np.array(levels, dtype=np.float64)
    step = 0.5 / np.sqrt((counts**2 - 1.0) / 12.0)
    return step, step * (counts - 1.0)


def parameters_from_loadings(
    data: WorkingData, loadings: Array, levels: tuple[int, ...]
) -> MeasurementParameters:
    """Return parameters with the given loadings (J, K), in units of the items' scales.

    A loading is what two levels would be apart; more levels go up by steps of one size that give
    the same variance. Intercepts make every item's mean come out under independent, even latents.
    """
    terms = Terms.main(levels)
    step, reach = steps_of_levels(levels)
    scale = coefficient_scales(data)
    total = np.abs(loadings).sum(axis=1)
    loadings = loadings * np.minimum(1.0, LARGEST_EFFECT / np.maximum(total, 1e-12))[:, None]
    slopes = loadings * scale[:, None]
    null = null_parameters(data, terms)
    intercept = null.intercept - 0.5 * (slopes * reach).sum(axis=1)
    for j, name in enumerate(data.families):
        floor = family_named(name).lowest_predictor
        if np.isfinite(floor):
            # Keep every state's mean positive: shrink effects that would take it below zero.
            room = 0.5 * max(null.intercept[j], 2.0 * floor)
            asked = 0.5 * float((np.abs(slopes[j]) * reach).sum())
            if asked > room:
                slopes[j] *= room / asked
            intercept[j] = max(
                null.intercept[j] - 0.5 * float((slopes[j] * reach).sum()),
                floor - float((np.minimum(slopes[j], 0.0) * reach).sum()),
            )
    explained = 0.25 * (slopes**2).sum(axis=1)
    dispersion = np.where(
        [family_named(f).is_location_scale for f in data.families],
        np.maximum(null.dispersion - explained, 0.2 * null.dispersion),
        null.dispersion,
    )
    spread_out = (slopes * step)[:, terms.main_latents]
    return replace(null, intercept=intercept, loadings=spread_out, dispersion=dispersion)


def from_loadings(data: WorkingData, space: StateSpace, loadings: Array, label: str) -> StartPoint:
    """Return a start with the given loadings (J, K), in units of the items' scales.

    Intercepts make every item's mean come out under independent, even latents, and the law is even.
    """
    probabilities = np.full(space.n_states, 1.0 / space.n_states)
    parameters = parameters_from_loadings(data, loadings, space.levels)
    return StartPoint(parameters, probabilities, label)


# --- Starts for a given Q: every item begins with effects of one size on its own latents

#: Effect of an item's latents together, in units of its scale: items say something, not all.
TOTAL_EFFECT = 1.5
#: Dirichlet weight per state of a random law; below 1 some states are rare.
UNEVENNESS = 0.3


def confirmatory_start(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    *,
    rng: np.random.Generator | None = None,
) -> StartPoint:
    """Return a start with the given support; with ``rng``, uneven effects and an uneven law.

    Random starts do not take for granted that an item's latents pull the same way: half of them
    give each latent a sign of its own, a quarter each effect, a quarter none.

    Parameters
    ----------
    data : WorkingData
    space : StateSpace
    q_entries : ndarray of int8, shape (J, K)
        1 or 0 throughout.
    """
    q = (q_entries == 1).astype(np.float64)
    size = TOTAL_EFFECT / np.sqrt(np.maximum(q.sum(axis=1, keepdims=True), 1.0))
    if rng is None:
        return from_loadings(data, space, q * size, "given Q")
    effects = q * size * rng.uniform(0.3, 1.7, q.shape)
    kind = int(rng.integers(4))
    if kind < 2:
        effects *= rng.choice([-1.0, 1.0], size=q.shape[1])
    elif kind == 2:
        effects = q * size * rng.standard_normal(q.shape)
    point = from_loadings(data, space, effects, "given Q, random")
    uneven = rng.dirichlet(np.full(space.n_states, UNEVENNESS))
    return replace(point, probabilities=spread_law(uneven))
