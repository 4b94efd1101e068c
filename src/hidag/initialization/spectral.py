"""The spectral start (Algorithm S.1): low-rank means, inverse link, singular vectors, Varimax.

Differences from the printed algorithm, each for a reason:

- the intercept keeps the column mean (regressing centred predictors would lose it);
- coefficients come from the items' own regressions on the scores, not from a masked least squares;
- binary items are too noisy for hard-assigned scores: their coefficients start from the loadings;
- missing cells are filled from the low-rank fit, a few rounds over;
- a table of several families starts from standardised responses: links would tear scales apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.e_step import Statistics
from hidag.em.m_step import Basis, coefficient_scales, run_m_step
from hidag.initialization.levels import cut, match_levels
from hidag.initialization.rotations import varimax
from hidag.initialization.start_points import StartPoint, from_loadings, null_parameters, spread_law
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import MeanFamily
from hidag.measurement.families.registry import family_named
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]

#: Means are kept this far inside the range of the responses before the inverse link.
TRUNCATION = 1e-4
#: Rounds of filling missing cells from the low-rank fit.
FILL_ROUNDS = 4
#: Rotated loadings below 1 / (this * sqrt(J)) start at zero.
THRESHOLD_FACTOR = 2.5


def _eigen(gram: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(gram)
    order = np.argsort(values)[::-1]
    return np.maximum(values[order], 0.0), vectors[:, order]


def _low_rank(filled: Array, rank: int, data: WorkingData) -> Array:
    """Return the best approximation of that rank, shape (N, J)."""
    _, vectors = _eigen(filled.T @ data.weighted(filled))
    return (filled @ vectors[:, :rank]) @ vectors[:, :rank].T


def _filled(x: Array, data: WorkingData, means: Array, rank: int) -> Array:
    """Return responses with missing cells filled from a low-rank fit, a few rounds over."""
    if data.observed is None:
        return x
    seen = data.observed == 1
    out = np.where(seen, x, means)
    for _ in range(FILL_ROUNDS):
        out = np.where(seen, x, _low_rank(out, rank, data))
    return out


def _one_family(data: WorkingData, n_latents: int) -> Array:
    """Return predictors of a table whose items share a family (steps 1 to 4)."""
    family = family_named(data.families[0])
    assert isinstance(family, MeanFamily)
    rank = min(n_latents + 1, data.n_items)
    filled = _filled(data.x, data, data.mean, rank)
    if not family.is_location_scale:
        # Gaussian responses need no truncation and no link: their own values are the predictors.
        singular = np.sqrt(_eigen(filled.T @ data.weighted(filled))[0])
        strong = int((singular >= 1.01 * np.sqrt(data.n_counted)).sum())
        filled = _low_rank(filled, min(max(rank, strong), data.n_items), data)
        filled = family.predictor(family.clip_mean(filled, TRUNCATION))
    return filled / coefficient_scales(data)


def standardised_looks(data: WorkingData, n_latents: int) -> Array:
    """Return a first look at the predictors, (N, J), every observed column with variance one.

    Inverse links of a joint low-rank fit stretch scales so differently that a few counts near zero
    would rule the table; standardised responses keep what matters, who goes with whom.
    """
    shape = (data.n_samples, data.n_items)
    seen = np.ones(shape, bool) if data.observed is None else data.observed == 1
    out = np.empty(shape)
    for j in range(data.n_items):
        look = data.linear_response(j)
        cells = look[seen[:, j]]
        counts = None if data.weights is None else data.weights[seen[:, j]]
        mean, spread = weighted_mean_and_sd(cells, counts)
        out[:, j] = (look - mean) / max(spread, 1e-12)
    return _filled(out, data, np.zeros(data.n_items), min(n_latents + 1, data.n_items))


def predictors(data: WorkingData, n_latents: int) -> Array:
    """Return linear predictors on a common scale, centred by column (steps 1 to 5), (N, J)."""
    single = len(set(data.families)) == 1 and isinstance(family_named(data.families[0]), MeanFamily)
    out = _one_family(data, n_latents) if single else standardised_looks(data, n_latents)
    return np.asarray(out - np.average(out, axis=0, weights=data.weights))


@dataclass(frozen=True)
class _Rotation:
    loadings: Array  # (J, K), orthonormal columns rotated towards sparsity, signs settled
    scores: Array  # (N, K), centred


def _rotate(
    centred: Array,
    gram: Array,
    levels: tuple[int, ...],
    q_entries: NDArray[np.int8],
    rng: np.random.Generator | None,
    weights: Array | None,
) -> _Rotation:
    """Return rotated loadings and scores (steps 6 to 9); ``rng`` turns the basis first."""
    n_latents = len(levels)
    _, vectors = _eigen(gram)
    basis = vectors[:, :n_latents]
    if basis.shape[1] < n_latents:
        basis = np.hstack([basis, np.zeros((len(basis), n_latents - basis.shape[1]))])
    if rng is not None:
        turn, _ = np.linalg.qr(rng.standard_normal((n_latents, n_latents)))
        basis = basis @ turn
    loadings = basis @ varimax(basis)
    if (q_entries >= 0).any():
        # Part of Q is given: rotated columns go to the latents whose known entries they fit best.
        known = np.where(q_entries >= 0, 2.0 * q_entries - 1.0, 0.0)
        fit = known.T @ (loadings**2)
        _, order = linear_sum_assignment(-fit)
        loadings = loadings[:, order]
    else:
        loadings = loadings[:, match_levels(centred @ loadings, levels, rng, weights)]
    least = 1.0 / (THRESHOLD_FACTOR * np.sqrt(len(loadings)))
    sparse = np.where(np.abs(loadings) >= least, loadings, 0.0)
    # A column that thresholding would empty keeps its strongest entry.
    for k in range(n_latents):
        if not sparse[:, k].any():
            j = int(np.argmax(np.abs(loadings[:, k])))
            sparse[j, k] = loadings[j, k] if loadings[j, k] else 1.0
    sparse = np.where(q_entries == 0, 0.0, sparse)
    # A loading that is known to be there starts at no less than the threshold.
    missing = (q_entries == 1) & (sparse == 0.0)
    sparse = np.where(missing, np.where(loadings < 0, -least, least), sparse)
    sparse *= np.where(sparse.sum(axis=0) < 0, -1.0, 1.0)
    square = sparse.T @ sparse + 1e-8 * np.eye(n_latents)
    return _Rotation(sparse, centred @ sparse @ np.linalg.inv(square))


def _from_scores(
    data: WorkingData, space: StateSpace, basis: Basis, rotation: _Rotation, label: str
) -> StartPoint:
    """Return the start from hard-assigned scores (steps 9 to 11)."""
    terms = Terms.main(space.levels)
    states = space.number(
        np.stack([cut(rotation.scores[:, k], m) for k, m in enumerate(space.levels)], axis=1)
    )
    n_states = space.n_states
    count = np.bincount(states, data.weights, minlength=n_states).astype(np.float64)
    sum_x: Array = np.stack(
        [np.bincount(states, column, minlength=n_states) for column in data.weighted(data.x).T]
    )
    incomplete_count = np.zeros((len(data.incomplete), n_states))
    for m in range(len(data.incomplete)):
        incomplete_count[m] = np.bincount(
            states, data.weighted(data.observed_incomplete[:, m]), minlength=n_states
        )
    wanted = rotation.loadings[:, terms.main_latents] != 0
    allowed = np.hstack([np.ones((data.n_items, 1)), wanted]).astype(np.uint8)
    parameters = run_m_step(
        null_parameters(data, terms),
        Statistics(count, sum_x, incomplete_count),
        data,
        basis,
        allowed,
        NO_SPARSITY,
        n_newton=8,
    )
    return StartPoint(parameters, spread_law(count / data.n_counted), label)


def mostly_binary(data: WorkingData) -> bool:
    """Return whether more than half of the items are binary: hard-assigned scores are noisy."""
    families = [family_named(name) for name in data.families]
    logits = sum(family.is_binary and family.canonical_below == np.inf for family in families)
    return 2 * logits > data.n_items


def spectral_start(
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    centred: Array,
    *,
    rng: np.random.Generator | None = None,
) -> StartPoint:
    """Return the spectral start; with ``rng``, one whose rotation was looked for from elsewhere.

    Parameters
    ----------
    data : WorkingData
    space, basis : StateSpace, Basis
    q_entries : ndarray of int8, shape (J, K)
        1, 0, or -1 for entries to be estimated.
    centred : ndarray, shape (N, J)
        What ``predictors`` returned: it does not depend on the rotation.
    """
    gram = centred.T @ data.weighted(centred)
    rotation = _rotate(centred, gram, space.levels, q_entries, rng, data.weights)
    label = "spectral" if rng is None else "spectral, rotated"
    if not mostly_binary(data):
        return _from_scores(data, space, basis, rotation, label)
    spread = np.array([weighted_mean_and_sd(s, data.weights)[1] for s in rotation.scores.T])
    # A latent with even odds has standard deviation 1/2: that turns scores into effects.
    return from_loadings(data, space, rotation.loadings * (2.0 * spread), label)
