"""Latents with several levels from continuous scores: where to cut, which has how many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.initialization.start_points import steps_of_levels
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]

#: Rounds of moving the cuts half-way between the means of their neighbours.
CUT_ROUNDS = 30


def cut(scores: Array, n_levels: int) -> NDArray[np.int64]:
    """Return the level of each centred score, shape (N,): two levels are cut at zero.

    More levels are cut where the groups' means ask for it (k-means in one dimension, begun from
    equal shares).
    """
    if n_levels == 2:
        return np.asarray(scores > 0, dtype=np.int64)
    ordered = np.sort(scores)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    edges = np.linspace(0, len(ordered), n_levels + 1).astype(np.intp)
    cuts = np.zeros(n_levels - 1)
    for _ in range(CUT_ROUNDS):
        means = np.diff(sums[edges]) / np.maximum(np.diff(edges), 1)
        fresh = 0.5 * (means[1:] + means[:-1])
        if np.array_equal(fresh, cuts):
            break
        cuts = fresh
        edges[1:-1] = np.searchsorted(ordered, cuts)
    return np.asarray(np.searchsorted(cuts, scores), dtype=np.int64)


#: Rows that tell how many levels a score has, and EM steps of the mixtures that are compared.
ROWS_FOR_LEVELS, MIXTURE_STEPS = 3000, 60
#: Narrowest spread of a level, as a share of the score's own: scores of counts may pile up.
NARROWEST = 0.05
#: How much chance takes part in the choice for further starts, in standard deviations of it.
JITTER = 1.0


def _mixture_likelihood(scores: Array, n_levels: int, weights: Array) -> float:
    """Return the log-likelihood of a mixture of that many normals with one variance.

    ``weights`` says how many rows each score counts for.
    """
    level = cut(scores, n_levels)
    total = float(weights.sum())
    counts = np.maximum(np.bincount(level, weights, minlength=n_levels), 1.0)
    means = np.bincount(level, weights * scores, minlength=n_levels) / counts
    shares = counts / counts.sum()
    variance = max(float(weights @ (scores - means[level]) ** 2) / total, NARROWEST**2)
    value = -np.inf
    for _ in range(MIXTURE_STEPS):
        logs = np.log(shares) - 0.5 * (scores[:, None] - means) ** 2 / variance
        top = logs.max(axis=1, keepdims=True)
        belongs = np.exp(logs - top)
        mass = belongs.sum(axis=1, keepdims=True)
        value = float(weights @ (top + np.log(mass))[:, 0] - 0.5 * total * np.log(variance))
        belongs *= weights[:, None] / mass
        counts = np.maximum(belongs.sum(axis=0), 1e-9)
        means = belongs.T @ scores / counts
        shares = counts / counts.sum()
        spread = float((belongs * (scores[:, None] - means) ** 2).sum() / total)
        variance = max(spread, NARROWEST**2)
    return value


def match_levels(
    scores: Array,
    levels: tuple[int, ...],
    rng: np.random.Generator | None = None,
    weights: Array | None = None,
) -> NDArray[np.intp]:
    """Return which column of the scores (N, K) is to be the latent with ``levels[k]`` levels, (K,).

    Each column is held against mixtures with as many normals as there may be levels; the
    assignment with the highest sum of Bayesian information criteria wins. Latents with as many
    levels keep the columns' order. ``rng`` lets chance take part. ``weights`` (N,) says how many
    rows each row counts for, one if not given.
    """
    n_latents = len(levels)
    if len(set(levels)) == 1:
        return np.arange(n_latents)
    some = scores[:ROWS_FOR_LEVELS]
    counted = np.ones(len(some)) if weights is None else weights[:ROWS_FOR_LEVELS]
    some = some - np.average(some, axis=0, weights=counted)
    spread = np.sqrt(np.average(some**2, axis=0, weights=counted))
    some = some / np.maximum(spread, 1e-12)
    price = np.log(counted.sum())
    kinds = sorted(set(levels))
    worth = np.array(
        [
            [_mixture_likelihood(some[:, c], m, counted) - m * price for m in kinds]
            for c in range(n_latents)
        ]
    )
    if rng is not None:
        worth = worth + JITTER * worth.std() * rng.standard_normal(worth.shape)
    of_latent = worth[:, [kinds.index(m) for m in levels]]
    rows, columns = linear_sum_assignment(of_latent.T, maximize=True)
    chosen = columns[np.argsort(rows)]
    for m in kinds:
        alike = np.flatnonzero(np.array(levels) == m)
        chosen[alike] = np.sort(chosen[alike])
    return np.asarray(chosen, dtype=np.intp)


# --- Latents exchange their numbers of levels: who has how many, judged by the likelihood

Candidate = TypeVar("Candidate")

#: Exchanges tried in a round, and rounds.
MOST_EXCHANGES, MOST_ROUNDS = 12, 3
#: An exchange must gain this much, in units of log-likelihood: less is a step of EM.
LEAST_GAIN = 1.0


def exchanges(parameters: MeasurementParameters) -> Iterator[MeasurementParameters]:
    """Yield the parameters with the items of two latents exchanged, for latents that differ.

    Main effects only: interactions wait until latents are settled. A latent that comes to have
    other levels gets steps of one size that give its items the variance they had.
    """
    levels = parameters.terms.levels
    pairs = [(a, b) for a, b in combinations(range(len(levels)), 2) if levels[a] != levels[b]]
    for a, b in pairs[:MOST_EXCHANGES]:
        yield _exchanged(parameters, a, b)


def _exchanged(parameters: MeasurementParameters, a: int, b: int) -> MeasurementParameters:
    terms = Terms.main(parameters.terms.levels)
    plain = parameters if parameters.terms == terms else parameters.with_terms(terms)
    step, reach = steps_of_levels(terms.levels)
    before = parameters.strengths
    loadings, intercept = plain.loadings.copy(), plain.intercept.copy()
    for mine, other in ((a, b), (b, a)):
        apart = before[:, other] / reach[other]
        loadings[:, terms.main_latents == mine] = (apart * step[mine])[:, None]
        # Predictors keep their means under even levels.
        intercept += 0.5 * (before[:, mine] - apart * reach[mine])
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
    """Return the estimate after all exchanges of levels that make it better, or as it was.

    Parameters
    ----------
    now : estimate of any kind
    parameters_of, value_of : callable
        An estimate's items, and what it is worth, in units of log-likelihood.
    rough : callable
        Settles new items roughly: of the exchanges of a round the best goes on.
    finish : callable
        Settles an estimate as finely as ``now`` is.
    """
    for _ in range(MOST_ROUNDS):
        tried = [rough(items) for items in exchanges(parameters_of(now))]
        if not tried:
            break
        found = finish(max(tried, key=value_of))
        if value_of(found) <= value_of(now) + LEAST_GAIN:
            break
        now = found
    return now
