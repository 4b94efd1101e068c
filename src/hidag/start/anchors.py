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

Array = NDArray[np.float64]

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
