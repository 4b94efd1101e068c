"""Initial values from common factors, for any number of latents: joint states are not listed.

Principal-axis factors of the standardised responses are rotated to sparse rows (Varimax with Kaiser
normalisation, then Geomin). Loadings are thresholded relative to the largest of their item, and
converted to effects of balanced binary latents, whose standard deviation is 1/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.m_step import coefficient_scales
from hidag.initialization.levels import match_levels
from hidag.initialization.rotations import geomin, leading_eigenvectors, rotate_to_anchors, varimax
from hidag.initialization.spectral import standardised_responses
from hidag.initialization.start_points import parameters_from_loadings
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]

#: Read by other initializers and moves.
KEPT_SHARE = CONFIG.initialization.loading_share
MOST_START_PARENTS = CONFIG.initialization.max_item_latents


def independent_law(levels: tuple[int, ...]) -> NetworkLaw:
    """Return the distribution of independent latents with uniform levels."""
    tables = tuple(np.full(m, 1.0 / m) for m in levels)
    return NetworkLaw(StateSpace(levels), ((),) * len(levels), tables)


def _principal_axes(correlations: Array, n_latents: int) -> Array:
    """Return loadings on the leading common factors (J, K) by iterated principal axes.

    Unlike principal components, they do not follow single noisy items.
    """
    config = CONFIG.initialization
    size = min(n_latents, len(correlations))
    np.fill_diagonal(correlations, 0.0)
    communality = np.abs(correlations).max(axis=0)
    for _ in range(config.communality_rounds):
        np.fill_diagonal(correlations, np.clip(communality, *config.communality_bounds))
        values, vectors = leading_eigenvectors(correlations, size)
        factors = vectors * np.sqrt(np.maximum(values, 0.0))
        communality = (factors**2).sum(axis=1)
    return np.hstack([factors, np.zeros((len(factors), n_latents - size))])


def _rotate(factors: Array, rng: np.random.Generator | None) -> Array:
    """Return Geomin loadings, from Varimax or, to find other local optima, from random axes."""
    if rng is not None:
        axes, _ = np.linalg.qr(rng.standard_normal((factors.shape[1],) * 2))
        return geomin(factors, axes)
    lengths = np.sqrt((factors**2).sum(axis=1, keepdims=True))
    return geomin(factors, varimax(factors / np.maximum(lengths, 1e-12)))


def _rotate_to_q(factors: Array, known: NDArray[np.bool_]) -> Array:
    """Return loadings on factors that, one latent at a time, vanish outside a given Q."""
    config, size = CONFIG.initialization, factors.shape[1]
    out = np.zeros_like(factors)
    total = factors.T @ factors
    total += config.gram_ridge * max(float(np.trace(total)) / size, 1e-12) * np.eye(size)
    for k in range(size):
        outside = factors[~known[:, k]]
        _, vectors = eigh(outside.T @ outside, total)
        found = factors @ vectors
        lengths = np.sqrt((found**2).sum(axis=0))
        same_items = [m for m in range(k) if np.array_equal(known[:, m], known[:, k])]
        for c in range(size):
            direction = found[:, c] / max(lengths[c], 1e-12)
            cosines = [abs(direction @ out[:, m]) for m in same_items]
            if max(cosines, default=0.0) <= config.same_direction:
                out[:, k] = direction
                break
    # Unit directions are rescaled to the communalities.
    weight = (factors**2).sum(axis=1)
    squares = np.where(known, out, 0.0) ** 2
    share = np.sqrt(weight / np.maximum(squares.sum(axis=1), 1e-12))
    return np.asarray(np.where(known, out, 0.0) * share[:, None])


def _sparse(loadings: Array, q_entries: NDArray[np.int8], share: float) -> Array:
    """Return thresholded loadings that agree with Q, with nonnegative column sums."""
    size = np.abs(loadings)
    top = size.max(axis=1, keepdims=True)
    rank = np.argsort(np.argsort(-size, axis=1), axis=1)
    keep = (size >= share * top) & (rank < CONFIG.initialization.max_item_latents)
    for k in np.flatnonzero(~keep.any(axis=0)):
        # Every latent starts with at least one item.
        keep[np.argmax(size[:, k] / np.maximum(top[:, 0], 1e-12)), k] = True
    keep = (keep & (q_entries != 0)) | (q_entries == 1)
    floor = 0.5 * share * top
    weak = keep & (size < floor)
    out = np.where(weak, np.where(loadings < 0, -floor, floor), loadings) * keep
    return np.asarray(out * np.where(out.sum(axis=0) < 0, -1.0, 1.0))


def _effects(correlations: Array, data: WorkingData) -> Array:
    """Return effects in units of the items' scales from correlations with balanced latents."""
    slopes = 2.0 * correlations
    scale = coefficient_scales(data)
    for j, name in enumerate(data.families):
        seen = slice(None) if data.observed is None else data.observed[:, j] == 1
        counts = None if data.weights is None else data.weights[seen]
        _, sd = weighted_mean_and_sd(data.linear_response(j)[seen], counts)
        family = family_named(name)
        mean = data.mean[data.columns.of(family, np.array([j]))[..., 0]]
        slopes[j] = family.predictor_effects(slopes[j], sd, max(float(scale[j]), 1e-12), mean)
    return slopes


def network_start(
    data: WorkingData,
    q_entries: NDArray[np.int8],
    levels: tuple[int, ...],
    *,
    rng: np.random.Generator | None = None,
    kept_share: float | None = None,
) -> MeasurementParameters:
    """Return item parameters from rotated common factors.

    Parameters
    ----------
    data : WorkingData
    q_entries : ndarray of int8, shape (J, K)
        1, 0, or -1 for entries to be estimated.
    levels : tuple of int, length K
    rng : numpy.random.Generator, optional
        Starts the rotation from random axes.
    kept_share : float, optional
        Threshold of loadings as a share of the largest of their item.
    """
    responses, factors = _common_factors(data, q_entries.shape[1])
    if (q_entries >= 0).all():
        rotated = _rotate_to_q(factors, q_entries == 1)
    else:
        rotated = _assign(_rotate(factors, rng), responses, data, q_entries, levels, rng)
    share = CONFIG.initialization.loading_share if kept_share is None else kept_share
    return parameters_from_loadings(
        data, _effects(_sparse(rotated, q_entries, share), data), levels
    )


def anchored_start(
    data: WorkingData,
    q_entries: NDArray[np.int8],
    levels: tuple[int, ...],
    *,
    rng: np.random.Generator | None = None,
) -> MeasurementParameters | None:
    """Return item parameters from factors rotated to anchor items, or None without anchors.

    Parameters are those of `network_start`, with some entries of Q to be estimated; ``rng`` only
    affects the assignment of numbers of levels.
    """
    responses, factors = _common_factors(data, q_entries.shape[1])
    rotated = rotate_to_anchors(factors)
    if rotated is None:
        return None
    assigned = _assign(rotated, responses, data, q_entries, levels, rng)
    sparse = _sparse(assigned, q_entries, CONFIG.initialization.loading_share)
    return parameters_from_loadings(data, _effects(sparse, data), levels)


def _common_factors(data: WorkingData, n_latents: int) -> tuple[Array, Array]:
    """Return standardised responses (N, J) and their loadings on common factors (J, K)."""
    x = standardised_responses(data, n_latents)
    return x, _principal_axes(x.T @ data.weighted(x) / data.n_counted, n_latents)


def _assign(
    rotated: Array,
    responses: Array,
    data: WorkingData,
    q_entries: NDArray[np.int8],
    levels: tuple[int, ...],
    rng: np.random.Generator | None,
) -> Array:
    """Return rotated loadings with columns in the order of the latents, shape (J, K)."""
    if (q_entries >= 0).any():
        known = np.where(q_entries >= 0, 2.0 * q_entries - 1.0, 0.0)
        _, order = linear_sum_assignment(-known.T @ rotated**2)
        return rotated[:, order]
    scores = responses @ rotated @ np.linalg.pinv(rotated.T @ rotated)
    return rotated[:, match_levels(scores, levels, rng, data.weights)]
