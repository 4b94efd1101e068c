"""Rotation by anchors: items that measure one latent only point where the others cannot reach.

When no item loads negatively, the rows of the common factors lie in a cone whose edges are the
directions of the latents; items of a single latent lie on the edges, all others between them. So
the items furthest out are sought, one after the other, and the factors turned towards them. A
rotation to simple structure can be misled where many items share the same two latents (their sum
looks simpler than either); this one cannot, but it needs an item of its own for every latent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.utils.extmath import randomized_range_finder

# --- Leading eigenvectors of a symmetric matrix: all of it when small, by random projection

Array = NDArray[np.float64]

#: Up to this many rows all eigenvectors cost little.
SMALL = 600
#: Directions beyond those wanted, and multiplications that sharpen them.
SPARE, SHARPENINGS = 20, 6


def leading_eigenvectors(matrix: Array, size: int) -> tuple[Array, Array]:
    """Return the ``size`` largest eigenvalues, largest first, and their vectors, (J, size).

    Large matrices are projected on the range of a few more random directions, sharpened by
    repeated multiplication; the directions are always the same ones, so the answer is too.

    Parameters
    ----------
    matrix : ndarray, shape (J, J)
        Symmetric.
    size : int
        At most J.
    """
    n = len(matrix)
    if n <= SMALL or size + SPARE >= n // 2:
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][:size], vectors[:, ::-1][:, :size]
    basis = randomized_range_finder(
        matrix,
        size=size + SPARE,
        n_iter=SHARPENINGS,
        power_iteration_normalizer="QR",
        random_state=0,
    )
    values, turned = np.linalg.eigh(basis.T @ matrix @ basis)
    return values[::-1][:size], (basis @ turned)[:, ::-1][:, :size]


# --- Varimax: the rotation that makes loadings sparse


def varimax(loadings: Array, *, max_iter: int = 500, tolerance: float = 1e-10) -> Array:
    """Return the rotation R (K, K) that maximises the Varimax criterion of ``loadings @ R``.

    Parameters
    ----------
    loadings : ndarray, shape (J, K)
    max_iter, tolerance : int, float
        Iterations of the singular-value form end when the criterion grows by less than
        ``tolerance`` of itself.
    """
    n_items, size = loadings.shape
    rotation = np.eye(size)
    value = 0.0
    for _ in range(max_iter):
        rotated = loadings @ rotation
        target = rotated**3 - rotated * ((rotated**2).sum(axis=0) / n_items)
        left, singular, right = np.linalg.svd(loadings.T @ target)
        rotation = left @ right
        new = float(singular.sum())
        if new <= value * (1.0 + tolerance):
            break
        value = new
    return rotation


# --- Geomin: the oblique rotation that lets each item depend on few of several dependent

#: Added to squared loadings, so that one zero in a row does not hide the others.
OFFSET = 0.01
#: Directions closer to dependent than this are not gone to.
WORST_CONDITION = 1e6
#: Halvings of a step before it is given up.
MAX_HALVINGS = 12


def _criterion(loadings: Array) -> tuple[float, Array]:
    """Return the sum over items of geometric means of squared loadings, and its gradient."""
    size = loadings.shape[1]
    squares = loadings**2 + OFFSET
    means = np.exp(np.log(squares).sum(axis=1) / size)
    return float(means.sum()), (2.0 / size) * (loadings / squares) * means[:, None]


def geomin(loadings: Array, begin: Array, *, max_iter: int = 500, tolerance: float = 1e-3) -> Array:
    """Return loadings on oblique factors with a small Geomin criterion, shape (J, K).

    Parameters
    ----------
    loadings : ndarray, shape (J, K)
        On uncorrelated factors.
    begin : ndarray, shape (K, K)
        Directions to begin with, one per column, for instance Varimax's rotation.
    max_iter, tolerance : int, float
        Steps end when the gradient along the directions is shorter than ``tolerance``.
    """
    directions = begin
    inverse = np.linalg.inv(directions)
    rotated = loadings @ inverse.T
    value, slope = _criterion(rotated)
    gradient = -(rotated.T @ slope @ inverse).T
    step = 1.0
    for _ in range(max_iter):
        along = gradient - directions * (directions * gradient).sum(axis=0)
        length = float(np.sqrt((along**2).sum()))
        if length < tolerance:
            break
        step *= 2.0
        for _ in range(MAX_HALVINGS):
            moved = directions - step * along
            moved = moved / np.maximum(np.sqrt((moved**2).sum(axis=0)), 1e-12)
            # Directions that fall together have no inverse: the step was too long.
            if np.linalg.cond(moved) < WORST_CONDITION:
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


# ---

#: Items whose directions have at least this cosine with an anchor's are of the same latent.
SAME_EDGE = 0.97
#: Items with less than this share of the median length say too little about their direction.
SHORTEST = 0.3
#: Smallest cosine with its axis that a vector of a cone may have.
FLATTEST = 0.02
#: Anchors closer together than this make no basis.
SMALLEST_ANGLE = 1e-3


def turn_to_anchors(factors: Array) -> Array | None:
    """Return loadings on oblique factors that point at anchors, shape (J, K), or None.

    Items that are keyed the other way round are turned when the rest leaves no cone.

    Parameters
    ----------
    factors : ndarray, shape (J, K)
        Correlations of the items with any basis of the common factors.
    """
    found = _turned(factors)
    if found is None:
        lead = np.linalg.svd(factors, full_matrices=False)[2][0]
        signs = np.where(factors @ lead < 0, -1.0, 1.0)[:, None]
        turned = _turned(signs * factors)
        found = None if turned is None else signs * turned
    return found


def _turned(factors: Array) -> Array | None:
    lengths = np.linalg.norm(factors, axis=1)
    said = lengths >= SHORTEST * np.median(lengths)
    if said.sum() < factors.shape[1]:
        return None
    units = factors[said] / lengths[said, None]
    axis = _axis(units)
    if axis is None:
        return None
    # Cut across its axis the cone is a simplex, and no corner of a simplex is nearer to any point
    # than all of the others: the longest vector is one, and so is the longest that is left over
    # when the corners that were found are taken out.
    left = units / (units @ axis)[:, None]
    anchors: list[int] = []
    for _ in range(factors.shape[1]):
        chosen = int(np.argmax((left**2).sum(axis=1)))
        anchors.append(chosen)
        direction = left[chosen] / max(float(np.linalg.norm(left[chosen])), 1e-12)
        left = left - np.outer(left @ direction, direction)
    edges = np.stack([_edge(units, units[a]) for a in anchors])
    singular = np.linalg.svd(edges, compute_uv=False)
    if singular[-1] < SMALLEST_ANGLE:
        return None
    return np.asarray(factors @ np.linalg.inv(edges))


def _axis(units: Array) -> Array | None:
    """Return a direction that all unit vectors (n, K) lean towards, or None if there is none.

    The point of their convex hull that is nearest to zero has no negative product with any.
    """
    system = np.vstack([units.T, np.ones(len(units))])
    weights, _ = nnls(system, np.append(np.zeros(units.shape[1]), 1.0))
    axis = units.T @ weights
    length = float(np.linalg.norm(axis))
    if length < 1e-9 or (units @ axis).min() < FLATTEST * length:
        return None
    return np.asarray(axis / length)


def _edge(units: Array, anchor: Array) -> Array:
    """Return the mean direction of the items that point the same way as an anchor."""
    mean = units[units @ anchor >= SAME_EDGE].mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))
