"""Rotations of factor loadings: Varimax, Geomin and rotation to anchor items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.utils.extmath import randomized_range_finder

from hidag.config import CONFIG

Array = NDArray[np.float64]


def leading_eigenvectors(matrix: Array, size: int) -> tuple[Array, Array]:
    """Return the ``size`` largest eigenvalues, largest first, and their vectors, (J, size)."""
    n, config = len(matrix), CONFIG.initialization
    n_directions = size + config.extra_directions
    if n <= config.max_dense_items or n_directions >= n // 2:
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][:size], vectors[:, ::-1][:, :size]
    options = {"n_iter": config.power_iterations, "power_iteration_normalizer": "QR"}
    basis = randomized_range_finder(matrix, size=n_directions, random_state=0, **options)
    values, turned = np.linalg.eigh(basis.T @ matrix @ basis)
    return values[::-1][:size], (basis @ turned)[:, ::-1][:, :size]


def varimax(loadings: Array) -> Array:
    """Return the rotation R (K, K) that maximises the Varimax criterion of ``loadings @ R``."""
    config = CONFIG.initialization
    n_items, size = loadings.shape
    rotation = np.eye(size)
    value = 0.0
    for _ in range(config.rotation_steps):
        rotated = loadings @ rotation
        target = rotated**3 - rotated * ((rotated**2).sum(axis=0) / n_items)
        left, singular, right = np.linalg.svd(loadings.T @ target)
        rotation = left @ right
        new = float(singular.sum())
        if new <= value * (1.0 + config.varimax_tolerance):
            break
        value = new
    return rotation


def _criterion(loadings: Array) -> tuple[float, Array]:
    """Return the sum over items of geometric means of squared loadings, and its gradient."""
    size = loadings.shape[1]
    squares = loadings**2 + CONFIG.initialization.geomin_offset
    means = np.exp(np.log(squares).sum(axis=1) / size)
    return float(means.sum()), (2.0 / size) * (loadings / squares) * means[:, None]


def geomin(loadings: Array, start: Array) -> Array:
    """Return loadings (J, K) on oblique factors that minimise Geomin, from directions ``start``."""
    config, directions = CONFIG.initialization, start
    inverse = np.linalg.inv(directions)
    rotated = loadings @ inverse.T
    value, slope = _criterion(rotated)
    gradient = -(rotated.T @ slope @ inverse).T
    step = 1.0
    for _ in range(config.rotation_steps):
        along = gradient - directions * (directions * gradient).sum(axis=0)
        length = float(np.sqrt((along**2).sum()))
        if length < config.geomin_tolerance:
            break
        step *= 2.0
        for _ in range(config.max_step_halvings):
            moved = directions - step * along
            moved = moved / np.maximum(np.sqrt((moved**2).sum(axis=0)), 1e-12)
            # Nearly dependent directions have no stable inverse: the step is too long.
            if np.linalg.cond(moved) < config.max_condition:
                inverse = np.linalg.inv(moved)
                rotated = loadings @ inverse.T
                new, slope = _criterion(rotated)
                if new < value - 0.5 * step * length**2:
                    break
            step /= 2.0
        else:
            break
        directions, value = moved, new
        gradient = -(rotated.T @ slope @ inverse).T
    return np.asarray(loadings @ np.linalg.inv(directions).T)


def rotate_to_anchors(factors: Array) -> Array | None:
    """Return loadings on oblique factors that point at anchor items, shape (J, K), or None.

    Without negative loadings rows of ``factors`` (J, K) are in a cone with anchors, the items of a
    single latent, on its edges. Unlike simple structure this does not fail when many items share
    two latents. If the rows form no cone, negatively keyed items are reversed first.
    """
    found = _to_cone_edges(factors)
    if found is None:
        lead = np.linalg.svd(factors, full_matrices=False)[2][0]
        signs = np.where(factors @ lead < 0, -1.0, 1.0)[:, None]
        reversed_ = _to_cone_edges(signs * factors)
        found = None if reversed_ is None else signs * reversed_
    return found


def _to_cone_edges(factors: Array) -> Array | None:
    config = CONFIG.initialization
    lengths = np.linalg.norm(factors, axis=1)
    long = lengths >= config.min_length_share * np.median(lengths)
    if long.sum() < factors.shape[1]:
        return None
    units = factors[long] / lengths[long, None]
    axis = _cone_axis(units)
    if axis is None:
        return None
    # A section of the cone across its axis is a simplex. The longest vector is a vertex, and so is
    # the longest residual after projecting out the vertices found before (successive projection).
    left = units / (units @ axis)[:, None]
    anchors: list[int] = []
    for _ in range(factors.shape[1]):
        chosen = int(np.argmax((left**2).sum(axis=1)))
        anchors.append(chosen)
        direction = left[chosen] / max(float(np.linalg.norm(left[chosen])), 1e-12)
        left = left - np.outer(left @ direction, direction)
    edges = np.stack(
        [units[units @ units[a] >= config.anchor_cosine].mean(axis=0) for a in anchors]
    )
    edges = np.stack([np.asarray(edge / np.linalg.norm(edge)) for edge in edges])
    if np.linalg.svd(edges, compute_uv=False)[-1] < config.min_anchor_singular_value:
        return None
    return np.asarray(factors @ np.linalg.inv(edges))


def _cone_axis(units: Array) -> Array | None:
    """Return a direction with positive products with all unit vectors (n, K), or None."""
    system = np.vstack([units.T, np.ones(len(units))])
    weights, _ = nnls(system, np.append(np.zeros(units.shape[1]), 1.0))
    axis = units.T @ weights
    length = float(np.linalg.norm(axis))
    if length < 1e-9 or (units @ axis).min() < CONFIG.initialization.min_axis_cosine * length:
        return None
    return np.asarray(axis / length)
