"""Latents with several levels: discretise scores, and assign numbers of levels to latents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.config import CONFIG
from hidag.initialization.start_points import steps_of_levels
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]
Candidate = TypeVar("Candidate")


def discretise(scores: Array, n_levels: int) -> NDArray[np.int64]:
    """Return the level of each centred score, shape (N,).

    Two levels are separated at zero, more by one-dimensional k-means from equal group sizes.
    """
    if n_levels == 2:
        return np.asarray(scores > 0, dtype=np.int64)
    ordered = np.sort(scores)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    edges = np.linspace(0, len(ordered), n_levels + 1).astype(np.intp)
    cuts = np.zeros(n_levels - 1)
    for _ in range(CONFIG.levels.kmeans_rounds):
        means = np.diff(sums[edges]) / np.maximum(np.diff(edges), 1)
        fresh = 0.5 * (means[1:] + means[:-1])
        if np.array_equal(fresh, cuts):
            break
        cuts = fresh
        edges[1:-1] = np.searchsorted(ordered, cuts)
    return np.asarray(np.searchsorted(cuts, scores), dtype=np.int64)


def _mixture_likelihood(scores: Array, n_levels: int, weights: Array) -> float:
    """Return the weighted log-likelihood of a normal mixture with one variance."""
    least, total = CONFIG.levels.min_level_sd**2, float(weights.sum())
    level = discretise(scores, n_levels)
    counts = np.maximum(np.bincount(level, weights, minlength=n_levels), 1.0)
    means = np.bincount(level, weights * scores, minlength=n_levels) / counts
    shares = counts / counts.sum()
    variance = max(float(weights @ (scores - means[level]) ** 2) / total, least)
    value = -np.inf
    for _ in range(CONFIG.levels.mixture_steps):
        logs = np.log(shares) - 0.5 * (scores[:, None] - means) ** 2 / variance
        top = logs.max(axis=1, keepdims=True)
        posterior = np.exp(logs - top)
        mass = posterior.sum(axis=1, keepdims=True)
        value = float(weights @ (top + np.log(mass))[:, 0] - 0.5 * total * np.log(variance))
        posterior *= weights[:, None] / mass
        counts = np.maximum(posterior.sum(axis=0), 1e-9)
        means = posterior.T @ scores / counts
        shares = counts / counts.sum()
        spread = float((posterior * (scores[:, None] - means) ** 2).sum() / total)
        variance = max(spread, least)
    return value


def match_levels(
    scores: Array,
    levels: tuple[int, ...],
    rng: np.random.Generator | None = None,
    weights: Array | None = None,
) -> NDArray[np.intp]:
    """Return the column of the scores for each latent, shape (K,).

    Normal mixtures with each possible number of levels are fitted to each column, and the
    assignment with the largest sum of information criteria is selected. Latents with equal numbers
    of levels retain the order of the columns.

    Parameters
    ----------
    scores : ndarray, shape (N, K)
    levels : tuple of int, length K
    rng : numpy.random.Generator, optional
        Adds noise to the criterion, for further starts.
    weights : ndarray, shape (N,), optional
    """
    n_latents, n_rows = len(levels), CONFIG.levels.n_rows
    if len(set(levels)) == 1:
        return np.arange(n_latents)
    some = scores[:n_rows]
    counted = np.ones(len(some)) if weights is None else weights[:n_rows]
    some = some - np.average(some, axis=0, weights=counted)
    spread = np.sqrt(np.average(some**2, axis=0, weights=counted))
    some = some / np.maximum(spread, 1e-12)
    penalty = np.log(counted.sum())
    kinds = sorted(set(levels))
    criterion = np.array(
        [
            [_mixture_likelihood(some[:, c], m, counted) - m * penalty for m in kinds]
            for c in range(n_latents)
        ]
    )
    if rng is not None:
        noise = rng.standard_normal(criterion.shape)
        criterion = criterion + CONFIG.levels.jitter * criterion.std() * noise
    of_latent = criterion[:, [kinds.index(m) for m in levels]]
    rows, columns = linear_sum_assignment(of_latent.T, maximize=True)
    chosen = columns[np.argsort(rows)]
    for m in kinds:
        same = np.flatnonzero(np.array(levels) == m)
        chosen[same] = np.sort(chosen[same])
    return np.asarray(chosen, dtype=np.intp)


def exchanges(parameters: MeasurementParameters) -> Iterator[MeasurementParameters]:
    """Yield main-effects parameters with the items of two latents exchanged.

    Only latents with different numbers of levels are exchanged. Their steps have equal sizes that
    retain the items' variances.
    """
    levels = parameters.terms.levels
    pairs = [(a, b) for a, b in combinations(range(len(levels)), 2) if levels[a] != levels[b]]
    for a, b in pairs[: CONFIG.levels.max_exchanges]:
        yield _exchanged(parameters, a, b)


def _exchanged(parameters: MeasurementParameters, a: int, b: int) -> MeasurementParameters:
    terms = Terms.main(parameters.terms.levels)
    plain = parameters if parameters.terms == terms else parameters.with_terms(terms)
    step, reach = steps_of_levels(terms.levels)
    before = parameters.strengths
    loadings, intercept = plain.loadings.copy(), plain.intercept.copy()
    for own, other in ((a, b), (b, a)):
        effect = before[:, other] / reach[other]
        loadings[:, terms.main_latents == own] = (effect * step[own])[:, None]
        # The means of the predictors under uniform levels do not change.
        intercept += 0.5 * (before[:, own] - effect * reach[own])
    moved = replace(plain, intercept=intercept, loadings=loadings)
    inside = moved.in_range()
    return replace(
        plain,
        intercept=np.where(inside, intercept, plain.intercept),
        loadings=np.where(inside[:, None], loadings, plain.loadings),
    )


def with_better_levels(
    now: Candidate,
    parameters_of: Callable[[Candidate], MeasurementParameters],
    value_of: Callable[[Candidate], float],
    rough: Callable[[MeasurementParameters], Candidate],
    finish: Callable[[Candidate], Candidate],
) -> Candidate:
    """Return the estimate after exchanges of levels that increase its objective.

    Parameters
    ----------
    now : estimate of any kind
    parameters_of, value_of : callable
        Item parameters of an estimate, and its objective in units of log-likelihood.
    rough : callable
        Short EM run from new items, to rank the exchanges of a round.
    finish : callable
        EM run to convergence from the best exchange.
    """
    for _ in range(CONFIG.levels.max_rounds):
        tried = [rough(items) for items in exchanges(parameters_of(now))]
        if not tried:
            break
        found = finish(max(tried, key=value_of))
        if value_of(found) <= value_of(now) + CONFIG.levels.min_gain:
            break
        now = found
    return now
