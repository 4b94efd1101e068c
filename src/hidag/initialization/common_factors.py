"""The spectral start for many latents: nothing in it lists joint states.

Common factors of the standardised responses, rotated to sparse rows (Varimax with Kaiser's row
scaling, then Geomin), are correlations of items with latents. A latent with even odds has standard
deviation 1/2, which turns correlations into effects. Compared with the start for few latents, the
threshold does not depend on the number of items: an item's loadings are held against its largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.m_step import coefficient_scales
from hidag.initialization.levels import match_levels
from hidag.initialization.rotations import geomin, leading_eigenvectors, turn_to_anchors, varimax
from hidag.initialization.spectral import standardised_looks
from hidag.initialization.start_points import parameters_from_loadings
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]

#: A start keeps the loadings that are at least this share of their item's largest. Too few is
#: better than too many: what is missing is found later, what is false holds itself up.
KEPT_SHARE = 0.45
#: No item starts with more latents than this.
MOST_START_PARENTS = 4
#: Rounds of finding what items share with the others, and the range of that share.
COMMUNALITY_ROUNDS, SHARED_VARIANCE = 10, (0.02, 0.98)
#: Whitens directions that no item's residual fills; a share of the mean eigenvalue.
RIDGE = 1e-6
#: Two latents whose items are the same take different directions when closer than this cosine.
SAME_DIRECTION = 0.9


def independent_law(levels: tuple[int, ...]) -> NetworkLaw:
    """Return the law of independent latents with even odds."""
    tables = tuple(np.full(m, 1.0 / m) for m in levels)
    return NetworkLaw(StateSpace(levels), ((),) * len(levels), tables)


def _components(correlations: Array, n_latents: int) -> Array:
    """Return correlations of items with the leading common factors, shape (J, K).

    Principal axes: the diagonal of the correlations holds what an item shares with the others,
    found by a few rounds. Components of the full correlations follow single noisy items when
    items say little; these do not. ``correlations`` are those of the items, shape (J, J).
    """
    size = min(n_latents, len(correlations))
    np.fill_diagonal(correlations, 0.0)
    shared = np.abs(correlations).max(axis=0)
    for _ in range(COMMUNALITY_ROUNDS):
        np.fill_diagonal(correlations, np.clip(shared, *SHARED_VARIANCE))
        values, vectors = leading_eigenvectors(correlations, size)
        factors = vectors * np.sqrt(np.maximum(values, 0.0))
        shared = (factors**2).sum(axis=1)
    return np.hstack([factors, np.zeros((len(factors), n_latents - size))])


def _rotated(components: Array, rng: np.random.Generator | None) -> Array:
    """Return loadings on oblique factors with sparse rows; ``rng`` begins from elsewhere.

    Varimax with Kaiser's row scaling comes first, then Geomin: latents need not be uncorrelated.
    Geomin has local optima; from axes turned at random it is left to find another one.
    """
    if rng is not None:
        turn, _ = np.linalg.qr(rng.standard_normal((components.shape[1],) * 2))
        return geomin(components, turn)
    lengths = np.sqrt((components**2).sum(axis=1, keepdims=True))
    return geomin(components, varimax(components / np.maximum(lengths, 1e-12)))


def _towards(components: Array, known: NDArray[np.bool_]) -> Array:
    """Return the components turned, one latent at a time, to vanish outside a given Q."""
    size = components.shape[1]
    out = np.zeros_like(components)
    total = components.T @ components
    total += RIDGE * max(float(np.trace(total)) / size, 1e-12) * np.eye(size)
    for k in range(size):
        outside = components[~known[:, k]]
        _, vectors = eigh(outside.T @ outside, total)
        found = components @ vectors
        lengths = np.sqrt((found**2).sum(axis=0))
        twins = [m for m in range(k) if np.array_equal(known[:, m], known[:, k])]
        for c in range(size):
            direction = found[:, c] / max(lengths[c], 1e-12)
            taken = [abs(direction @ out[:, m]) > SAME_DIRECTION for m in twins]
            if not any(taken):
                out[:, k] = direction
                break
    # Directions of length one become correlations of the size the components have.
    weight = (components**2).sum(axis=1)
    squares = np.where(known, out, 0.0) ** 2
    share = np.sqrt(weight / np.maximum(squares.sum(axis=1), 1e-12))
    return np.asarray(np.where(known, out, 0.0) * share[:, None])


def _sparse(loadings: Array, q_entries: NDArray[np.int8], share: float) -> Array:
    """Return the loadings that a start keeps, signs of columns settled."""
    size = np.abs(loadings)
    top = size.max(axis=1, keepdims=True)
    rank = np.argsort(np.argsort(-size, axis=1), axis=1)
    keep = (size >= share * top) & (rank < MOST_START_PARENTS)
    for k in np.flatnonzero(~keep.any(axis=0)):
        # A latent must have something to begin with.
        keep[np.argmax(size[:, k] / np.maximum(top[:, 0], 1e-12)), k] = True
    keep = (keep & (q_entries != 0)) | (q_entries == 1)
    floor = 0.5 * share * top
    weak = keep & (size < floor)
    out = np.where(weak, np.where(loadings < 0, -floor, floor), loadings) * keep
    return np.asarray(out * np.where(out.sum(axis=0) < 0, -1.0, 1.0))


def _effects(correlations: Array, data: WorkingData) -> Array:
    """Return loadings in units of the items' scales from correlations with even latents."""
    slopes = 2.0 * correlations
    scale = coefficient_scales(data)
    for j, name in enumerate(data.families):
        seen = slice(None) if data.observed is None else data.observed[:, j] == 1
        counts = None if data.weights is None else data.weights[seen]
        _, spread = weighted_mean_and_sd(data.linear_response(j)[seen], counts)
        family = family_named(name)
        mean = data.mean[data.columns.of(family, np.array([j]))[..., 0]]
        slopes[j] = family.predictor_effects(slopes[j], spread, max(float(scale[j]), 1e-12), mean)
    return slopes


def network_start(
    data: WorkingData,
    q_entries: NDArray[np.int8],
    levels: tuple[int, ...],
    *,
    rng: np.random.Generator | None = None,
    kept_share: float = KEPT_SHARE,
) -> MeasurementParameters:
    """Return the spectral start's parameters; with ``rng``, from another first rotation.

    Parameters
    ----------
    data : WorkingData
    q_entries : ndarray of int8, shape (J, K)
        1, 0, or -1 for entries to be estimated.
    levels : tuple of int, length K
    kept_share : float
        Loadings are kept that are at least this share of their item's largest.
    """
    looks, components = _common_factors(data, q_entries.shape[1])
    if (q_entries >= 0).all():
        turned = _towards(components, q_entries == 1)
    else:
        turned = _assigned(_rotated(components, rng), looks, data, q_entries, levels, rng)
    kept = _sparse(turned, q_entries, kept_share)
    return parameters_from_loadings(data, _effects(kept, data), levels)


def anchored_start(
    data: WorkingData,
    q_entries: NDArray[np.int8],
    levels: tuple[int, ...],
    *,
    rng: np.random.Generator | None = None,
) -> MeasurementParameters | None:
    """Return a start whose factors point at anchors, or None where there are none to be found.

    Parameters as of :func:`network_start`; some of Q is to be estimated. ``rng`` lets chance take
    part in which factor has how many levels, and in nothing else.
    """
    looks, components = _common_factors(data, q_entries.shape[1])
    turned = turn_to_anchors(components)
    if turned is None:
        return None
    placed = _assigned(turned, looks, data, q_entries, levels, rng)
    kept = _sparse(placed, q_entries, KEPT_SHARE)
    return parameters_from_loadings(data, _effects(kept, data), levels)


def _common_factors(data: WorkingData, n_latents: int) -> tuple[Array, Array]:
    """Return a first look at the rows (N, J), and the items' correlations with factors (J, K)."""
    looks = standardised_looks(data, n_latents)
    return looks, _components(looks.T @ data.weighted(looks) / data.n_counted, n_latents)


def _assigned(
    turned: Array,
    looks: Array,
    data: WorkingData,
    q_entries: NDArray[np.int8],
    levels: tuple[int, ...],
    rng: np.random.Generator | None,
) -> Array:
    """Return rotated loadings with each column at the latent that it is to be, shape (J, K)."""
    if (q_entries >= 0).any():
        known = np.where(q_entries >= 0, 2.0 * q_entries - 1.0, 0.0)
        _, order = linear_sum_assignment(-known.T @ turned**2)
        return turned[:, order]
    scores = looks @ turned @ np.linalg.pinv(turned.T @ turned)
    return turned[:, match_levels(scores, levels, rng, data.weights)]
