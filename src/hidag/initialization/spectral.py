"""Spectral initialization (Algorithm S.1): low-rank means, link, singular vectors, Varimax.

Differences from the published algorithm:

- the intercept retains the column mean, which a regression of centred predictors loses;
- coefficients come from each item's regression on the scores, not from masked least squares;
- binary items are too noisy for hard-assigned scores: their coefficients come from the loadings;
- missing cells are imputed iteratively from the low-rank approximation;
- tables with several families use standardised responses, because links stretch scales unequally.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.e_step import Statistics
from hidag.em.m_step import Basis, coefficient_scales, run_m_step
from hidag.initialization.levels import discretise, match_levels
from hidag.initialization.rotations import varimax
from hidag.initialization.start_points import StartPoint, from_loadings, null_parameters, spread_law
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import MeanFamily, family_named
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]


def _eigen(gram: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(gram)
    order = np.argsort(values)[::-1]
    return np.maximum(values[order], 0.0), vectors[:, order]


def _low_rank(filled: Array, rank: int, data: WorkingData) -> Array:
    """Return the best low-rank approximation, shape (N, J)."""
    _, vectors = _eigen(filled.T @ data.weighted(filled))
    return (filled @ vectors[:, :rank]) @ vectors[:, :rank].T


def _filled(x: Array, data: WorkingData, means: Array, rank: int) -> Array:
    """Return responses with missing cells imputed from low-rank approximations."""
    if data.observed is None:
        return x
    seen = data.observed == 1
    out = np.where(seen, x, means)
    for _ in range(CONFIG.initialization.fill_rounds):
        out = np.where(seen, x, _low_rank(out, rank, data))
    return out


def _one_family(data: WorkingData, n_latents: int) -> Array:
    """Return predictors of a table with a single family (steps 1 to 4)."""
    family, config = family_named(data.families[0]), CONFIG.initialization
    assert isinstance(family, MeanFamily)
    rank = min(n_latents + 1, data.n_items)
    filled = _filled(data.x, data, data.mean, rank)
    if not family.is_location_scale:
        # Gaussian responses need neither truncation nor link: they are the predictors.
        singular = np.sqrt(_eigen(filled.T @ data.weighted(filled))[0])
        least = config.singular_value_factor * np.sqrt(data.n_counted)
        strong = int((singular >= least).sum())
        filled = _low_rank(filled, min(max(rank, strong), data.n_items), data)
        filled = family.predictor(family.clip_mean(filled, config.truncation))
    return filled / coefficient_scales(data)


def standardised_responses(data: WorkingData, n_latents: int) -> Array:
    """Return standardised linearised responses, (N, J), with missing cells imputed.

    Links of a joint low-rank approximation stretch scales so differently that a few counts near
    zero would dominate the table.
    """
    shape = (data.n_samples, data.n_items)
    seen = np.ones(shape, bool) if data.observed is None else data.observed == 1
    out = np.empty(shape)
    for j in range(data.n_items):
        response = data.linear_response(j)
        counts = None if data.weights is None else data.weights[seen[:, j]]
        mean, sd = weighted_mean_and_sd(response[seen[:, j]], counts)
        out[:, j] = (response - mean) / max(sd, 1e-12)
    return _filled(out, data, np.zeros(data.n_items), min(n_latents + 1, data.n_items))


def predictors(data: WorkingData, n_latents: int) -> Array:
    """Return linear predictors on a common scale, centred by column (steps 1 to 5), (N, J)."""
    single = len(set(data.families)) == 1 and isinstance(family_named(data.families[0]), MeanFamily)
    out = _one_family(data, n_latents) if single else standardised_responses(data, n_latents)
    return np.asarray(out - np.average(out, axis=0, weights=data.weights))


@dataclass(frozen=True)
class _Rotation:
    loadings: Array  # (J, K), rotated and thresholded, column sums >= 0
    scores: Array  # (N, K), centred


def _rotate(
    centred: Array,
    gram: Array,
    levels: tuple[int, ...],
    q_entries: NDArray[np.int8],
    rng: np.random.Generator | None,
    weights: Array | None,
) -> _Rotation:
    """Return rotated loadings and scores (steps 6 to 9); ``rng`` rotates the basis first."""
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
        # Rotated columns are assigned to the latents whose given entries they fit best.
        known = np.where(q_entries >= 0, 2.0 * q_entries - 1.0, 0.0)
        _, order = linear_sum_assignment(-(known.T @ (loadings**2)))
        loadings = loadings[:, order]
    else:
        loadings = loadings[:, match_levels(centred @ loadings, levels, rng, weights)]
    least = 1.0 / (CONFIG.initialization.threshold_factor * np.sqrt(len(loadings)))
    sparse = np.where(np.abs(loadings) >= least, loadings, 0.0)
    # A column that thresholding would empty retains its largest entry.
    for k in range(n_latents):
        if not sparse[:, k].any():
            j = int(np.argmax(np.abs(loadings[:, k])))
            sparse[j, k] = loadings[j, k] if loadings[j, k] else 1.0
    sparse = np.where(q_entries == 0, 0.0, sparse)
    # A loading that Q requires starts at the threshold or above.
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
        np.stack([discretise(rotation.scores[:, k], m) for k, m in enumerate(space.levels)], axis=1)
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
        n_newton=CONFIG.initialization.n_newton,
    )
    return StartPoint(parameters, spread_law(count / data.n_counted), label)


def mostly_binary(data: WorkingData) -> bool:
    """Return whether most items are binary, so that hard-assigned scores are too noisy."""
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
    """Return the spectral start; ``rng`` rotates the initial basis of Varimax at random.

    Parameters
    ----------
    data : WorkingData
    space, basis : StateSpace, Basis
    q_entries : ndarray of int8, shape (J, K)
        1, 0, or -1 for entries to be estimated.
    centred : ndarray, shape (N, J)
        Result of `predictors`, which does not depend on the rotation.
    rng : numpy.random.Generator, optional
    """
    gram = centred.T @ data.weighted(centred)
    rotation = _rotate(centred, gram, space.levels, q_entries, rng, data.weights)
    label = "spectral" if rng is None else "spectral, rotated"
    if not mostly_binary(data):
        return _from_scores(data, space, basis, rotation, label)
    sd = np.array([weighted_mean_and_sd(s, data.weights)[1] for s in rotation.scores.T])
    # A balanced binary latent has standard deviation 1/2, which converts scores to effects.
    return from_loadings(data, space, rotation.loadings * (2.0 * sd), label)
