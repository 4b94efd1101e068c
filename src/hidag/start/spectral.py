"""The spectral start (Algorithm S.1): low-rank means, inverse link, singular vectors, Varimax.

Differences from the printed algorithm, each for a reason:

- the intercept keeps the column mean (regressing centred predictors would lose it);
- coefficients come from the items' own regressions on the scores, not from a masked least squares;
- binary items are too noisy for hard-assigned scores: their coefficients start from the loadings;
- missing cells are filled from the low-rank fit, a few rounds over;
- a table of several families starts from standardised responses: links would tear scales apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.estimate.maximise import Basis, coefficient_scales, maximise
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData, mean_and_spread
from hidag.latent import StateSpace
from hidag.measurement import (
    NO_SPARSITY,
    MeanFamily,
    MeasurementParameters,
    Terms,
    family_named,
)
from hidag.start.levels import cut, match_levels
from hidag.start.varimax import varimax

Array = NDArray[np.float64]

#: Means are kept this far inside the range of the responses before the inverse link.
TRUNCATION = 1e-4
#: Share of the law that is spread evenly over all states: no state starts impossible.
SPREAD = 0.1
#: Rounds of filling missing cells from the low-rank fit.
FILL_ROUNDS = 4
#: Rotated loadings below 1 / (this * sqrt(J)) start at zero.
THRESHOLD_FACTOR = 2.5
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
        look = data.look(j)
        cells = look[seen[:, j]]
        counts = None if data.weights is None else data.weights[seen[:, j]]
        mean, spread = mean_and_spread(cells, counts)
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


def spread_law(probabilities: Array) -> Array:
    """Return the law with a share spread evenly over all states."""
    return (1.0 - SPREAD) * probabilities + SPREAD / len(probabilities)


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
    gap_count = np.zeros((len(data.gappy), n_states))
    for m in range(len(data.gappy)):
        gap_count[m] = np.bincount(states, data.weighted(data.gaps[:, m]), minlength=n_states)
    wanted = rotation.loadings[:, terms.main_latents] != 0
    allowed = np.hstack([np.ones((data.n_items, 1)), wanted]).astype(np.uint8)
    parameters = maximise(
        null_parameters(data, terms),
        Statistics(count, sum_x, gap_count),
        data,
        basis,
        allowed,
        NO_SPARSITY,
        n_newton=8,
    )
    return StartPoint(parameters, spread_law(count / data.n_counted), label)


def null_parameters(data: WorkingData, terms: Terms) -> MeasurementParameters:
    """Return parameters under which no latent matters: column means and variances."""
    intercept, dispersion = np.empty(data.n_items), np.ones(data.n_items)
    kinds = [family_named(name) for name in data.families]
    cutpoints = np.full((data.n_items, max(kind.n_cutpoints for kind in kinds)), np.nan)
    for j, family in enumerate(kinds):
        columns = data.columns.of(family, np.array([j]))
        predictor, auxiliary = family.null(data.mean[columns], data.variance[columns])
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
    n_binary = sum(name == "bernoulli" for name in data.families)
    if 2 * n_binary <= data.n_items:
        return _from_scores(data, space, basis, rotation, label)
    spread = np.array([mean_and_spread(s, data.weights)[1] for s in rotation.scores.T])
    # A latent with even odds has standard deviation 1/2: that turns scores into effects.
    return from_loadings(data, space, rotation.loadings * (2.0 * spread), label)
