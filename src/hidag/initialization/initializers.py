"""Initializers of EM without a given Q: spectral scores, common factors, anchors; first steps.

Spectral scores follow Algorithm S.1: low-rank means, link, singular vectors, Varimax. Differences:

- the intercept retains the column mean, which a regression of centred predictors loses;
- coefficients come from each item's regression on the scores, not from masked least squares;
- binary items are too noisy for hard-assigned scores: their coefficients come from the loadings;
- missing cells are imputed iteratively from the low-rank approximation;
- tables with several families use standardised responses, because links stretch scales unequally.

Common factors need no list of joint states. Principal-axis factors of the standardised responses
are rotated to sparse rows (Varimax with Kaiser normalisation, then Geomin) or to anchor items.
Loadings are thresholded relative to the largest of their item, and converted to effects of balanced
binary latents, whose standard deviation is 1/2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.e_step import Statistics
from hidag.em.em import Estimate, LawStep, Problem, Schedule, normalise_counts, run_em
from hidag.em.m_step import Basis, coefficient_scales, run_m_step
from hidag.em.saem import run_saem
from hidag.initialization.rotations import geomin, leading_eigenvectors, rotate_to_anchors, varimax
from hidag.initialization.start_points import (
    StartPoint,
    discretise,
    from_loadings,
    match_levels,
    null_parameters,
    parameters_from_loadings,
    spread_law,
)
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import MeanFamily, family_named
from hidag.measurement.parameters import MeasurementParameters
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
    out = np.where(data.seen, x, means)
    for _ in range(CONFIG.initialization.fill_rounds):
        out = np.where(data.seen, x, _low_rank(out, rank, data))
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

    Links stretch scales so differently that a few counts near zero would dominate a joint fit.
    """
    out = np.empty((data.n_samples, data.n_items))
    for j in range(data.n_items):
        response = data.linear_response(j)
        mean, sd = data.mean_and_sd(response, j)
        out[:, j] = (response - mean) / max(sd, 1e-12)
    return _filled(out, data, np.zeros(data.n_items), min(n_latents + 1, data.n_items))


def predictors(data: WorkingData, n_latents: int) -> Array:
    """Return linear predictors on a common scale, centred by column (steps 1 to 5), (N, J)."""
    single = len(set(data.families)) == 1 and isinstance(family_named(data.families[0]), MeanFamily)
    out = _one_family(data, n_latents) if single else standardised_responses(data, n_latents)
    return np.asarray(out - np.average(out, axis=0, weights=data.weights))


def _match_q(loadings: Array, q_entries: NDArray[np.int8]) -> NDArray[np.intp] | None:
    """Return the column for each latent that fits its given entries best; None without entries."""
    if not (q_entries >= 0).any():
        return None
    known = np.where(q_entries >= 0, 2.0 * q_entries - 1.0, 0.0)
    return np.asarray(linear_sum_assignment(-(known.T @ loadings**2))[1])


@dataclass(frozen=True)
class Rotation:
    """Rotated and thresholded factors: loadings (J, K) and centred scores (N, K)."""

    loadings: Array
    scores: Array


def _rotate_scores(
    centred: Array,
    gram: Array,
    levels: tuple[int, ...],
    q_entries: NDArray[np.int8],
    rng: np.random.Generator | None,
    weights: Array | None,
) -> Rotation:
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
    order = _match_q(loadings, q_entries)
    if order is None:
        order = match_levels(centred @ loadings, levels, weights)
    loadings = loadings[:, order]
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
    square = sparse.T @ sparse + CONFIG.initialization.score_ridge * np.eye(n_latents)
    return Rotation(sparse, centred @ sparse @ np.linalg.inv(square))


def start_from_scores(
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    scores: Array,
    support: NDArray[np.bool_],
    label: str,
) -> StartPoint:
    """Return the start from hard-assigned scores (N, K), with a support (J, K) (steps 9 to 11)."""
    terms = Terms.main(space.levels)
    levels = [discretise(scores[:, k], m) for k, m in enumerate(space.levels)]
    states = space.number(np.stack(levels, axis=1))

    def by_state(columns: Array) -> Array:
        sums = [np.bincount(states, x, minlength=space.n_states) for x in data.weighted(columns).T]
        return np.array(sums, dtype=np.float64).reshape(-1, space.n_states)

    count = np.bincount(states, data.weights, minlength=space.n_states).astype(np.float64)
    statistics = Statistics(count, by_state(data.x), by_state(data.observed_incomplete))
    wanted = support[:, terms.main_latents]
    allowed = np.hstack([np.ones((data.n_items, 1)), wanted]).astype(np.uint8)
    null, n_newton = null_parameters(data, terms), CONFIG.initialization.n_newton
    parameters = run_m_step(null, statistics, data, basis, allowed, NO_SPARSITY, n_newton=n_newton)
    return StartPoint(parameters, spread_law(count / data.n_counted), label)


def mostly_binary(data: WorkingData) -> bool:
    """Return whether most items are binary, so that hard-assigned scores are too noisy."""
    return 2 * sum(family_named(name).is_logistic for name in data.families) > data.n_items


def spectral_start(
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    centred: Array,
    *,
    rng: np.random.Generator | None = None,
) -> StartPoint:
    """Return the spectral start from `predictors` (N, J); ``rng`` first rotates the basis."""
    gram = centred.T @ data.weighted(centred)
    rotation = _rotate_scores(centred, gram, space.levels, q_entries, rng, data.weights)
    label = "spectral" if rng is None else "spectral, rotated"
    if not mostly_binary(data):
        return start_from_scores(data, space, basis, rotation.scores, rotation.loadings != 0, label)
    sd = np.array([weighted_mean_and_sd(s, data.weights)[1] for s in rotation.scores.T])
    # A balanced binary latent has standard deviation 1/2, which converts scores to effects.
    return from_loadings(data, space, rotation.loadings * (2.0 * sd), label)


def independent_law(levels: tuple[int, ...]) -> NetworkLaw:
    """Return the distribution of independent latents with uniform levels."""
    tables = tuple(np.full(m, 1.0 / m) for m in levels)
    return NetworkLaw(StateSpace(levels), ((),) * len(levels), tables)


def _principal_axes(correlations: Array, n_latents: int) -> Array:
    """Return loadings on the leading common factors (J, K) by iterated principal axes."""
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


def _rotate_sparse(factors: Array, rng: np.random.Generator | None) -> Array:
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
        _, sd = data.mean_and_sd(data.linear_response(j), j)
        family = family_named(name)
        mean = data.mean[data.columns.of(family, np.array([j]))[..., 0]]
        slopes[j] = family.predictor_effects(slopes[j], sd, max(float(scale[j]), 1e-12), mean)
    return slopes


def rotated_factors(
    data: WorkingData,
    q_entries: NDArray[np.int8],
    levels: tuple[int, ...],
    *,
    rng: np.random.Generator | None = None,
    kept_share: float | None = None,
    to_anchors: bool = False,
) -> Rotation | None:
    """Return common factors rotated to a simple structure or to anchor items (None without any).

    Entries of Q (J, K) to estimate are -1. ``rng`` starts from random axes; ``kept_share`` is the
    threshold of loadings as a share of the largest of their item, default as in ``CONFIG``.
    """
    responses, factors = _common_factors(data, q_entries.shape[1])
    if (q_entries >= 0).all():
        rotated = _rotate_to_q(factors, q_entries == 1)
    else:
        turned = rotate_to_anchors(factors) if to_anchors else _rotate_sparse(factors, rng)
        if turned is None:
            return None
        rotated = _assign(turned, responses, data, q_entries, levels)
    share = CONFIG.initialization.loading_shares[0] if kept_share is None else kept_share
    loadings = _sparse(rotated, q_entries, share)
    return Rotation(loadings, responses @ loadings @ np.linalg.pinv(loadings.T @ loadings))


def network_start(
    data: WorkingData, q_entries: NDArray[np.int8], levels: tuple[int, ...]
) -> MeasurementParameters:
    """Return item parameters from common factors, whose effects reproduce their correlations."""
    found = rotated_factors(data, q_entries, levels)
    assert found is not None
    return parameters_from_loadings(data, _effects(found.loadings, data), levels)


def _from_factors(
    data: WorkingData, space: StateSpace, basis: Basis, found: Rotation, label: str
) -> StartPoint:
    """Return the start from common factors.

    Effects come from the loadings if most items are binary, else from regressions on the states:
    scores of binary items are too noisy, and correlations do not show the size of large effects.
    """
    if not mostly_binary(data):
        return start_from_scores(data, space, basis, found.scores, found.loadings != 0, label)
    items = parameters_from_loadings(data, _effects(found.loadings, data), space.levels)
    return StartPoint(items, space.uniform(), label)


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
) -> Array:
    """Return rotated loadings with columns in the order of the latents, shape (J, K)."""
    order = _match_q(rotated, q_entries)
    if order is None:
        scores = responses @ rotated @ np.linalg.pinv(rotated.T @ rotated)
        order = match_levels(scores, levels, data.weights)
    return rotated[:, order]


def generators_of(seed: int, n_starts: int) -> list[np.random.Generator]:
    """Return a generator for each start; it depends on the seed and the start's number alone."""
    return [
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,))) for i in range(n_starts)
    ]


def start_points(
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    generators: list[np.random.Generator],
    *,
    with_factors: bool = True,
) -> Iterator[StartPoint]:
    """Yield start points: spectral scores, anchor items, and rotated common factors.

    Scores come first unless most items are binary; the second start is by anchors, of another kind.
    """
    binary = mostly_binary(data)
    centred = predictors(data, space.n_latents)
    n_factors = 0
    for index, generator in enumerate(generators):
        if index == 1:
            found = rotated_factors(data, q_entries, space.levels, to_anchors=True)
            if found is not None:
                yield _from_factors(data, space, basis, found, "factors, by anchors")
                continue
        rng = generator if index > (2 if with_factors else 0) else None
        # Scores of binary items are noisy, but differ in kind from the other starts.
        if not with_factors or (index == 2 if binary else index % 2 == 0):
            yield spectral_start(data, space, basis, q_entries, centred, rng=rng)
        else:
            # Starts differ in the initial rotation and in the share of loadings.
            shares = CONFIG.initialization.loading_shares
            share = shares[n_factors % len(shares)]
            n_factors += 1
            found = rotated_factors(data, q_entries, space.levels, rng=rng, kept_share=share)
            assert found is not None
            label = f"factors, loadings from {share:g} of the largest"
            yield _from_factors(data, space, basis, found, label + ", rotated" * (rng is not None))


def _restricted(problem: Problem, items: MeasurementParameters) -> Problem:
    """Return the problem with only the loadings that the items have, not penalised."""
    own = np.hstack([np.ones((problem.data.n_items, 1)), items.loadings != 0]).astype(np.uint8)
    return replace(problem, allowed=own, penalty=NO_SPARSITY)


def warm_up_schedule() -> Schedule:
    """Return the SAEM steps on a start's own support, before loadings may enter or leave."""
    config = CONFIG.initialization
    return Schedule(
        max_iter=config.warm_up_steps, burn_in=config.warm_up_burn_in, decay=config.warm_up_decay
    )


def warm_start(
    problem: Problem, point: StartPoint, rng: np.random.Generator
) -> tuple[MeasurementParameters, Array]:
    """Return a start whose coefficients a few SAEM steps have adjusted on its own support.

    Poor posteriors make false loadings look useful, so none enters before the given ones are right.
    """
    own = replace(
        _restricted(problem, point.parameters), schedule=warm_up_schedule(), observer=None
    )
    found = run_saem(own, point.parameters, point.probabilities, rng, final_e_step=False)
    return found.parameters, spread_law(found.probabilities)


def fit_own_support(
    problem: Problem, items: MeasurementParameters, *, law_step: LawStep = normalise_counts
) -> Estimate:
    """Return the EM estimate from an even law with only the loadings that the items have."""
    even = problem.space.uniform()
    return run_em(_restricted(problem, items), items, even, law_step=law_step)
