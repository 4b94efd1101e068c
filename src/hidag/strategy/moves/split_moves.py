"""Split moves for many latents: one estimated latent that stands for two is split in two.

The single start of a sampled fit may miss a latent that is strongly correlated with its neighbours:
its items load on those, and another latent is fitted to noise, an optimum that sampling does not
leave. Correlations of the items beyond those of the fit reveal it. The least used latent is
restarted as one part of the latent that stands for two; if two latents have the same items, these
are divided between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.m_step import coefficient_scales, is_penalised
from hidag.measurement.parameters import MeasurementParameters
from hidag.strategy.moves.optima import replace_loadings

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """A latent that may be two."""

    latent: int
    leaving: NDArray[np.intp]  # Items that go to the other part.
    excess: float  # Leading eigenvalue of its items' residual correlations.


def split_sides(residual: Array, own: NDArray[np.intp]) -> tuple[NDArray[np.intp], float]:
    """Return which of a latent's items would go to its other part, and the evidence for a split.

    Parameters
    ----------
    residual : ndarray, shape (J, J)
        Residual correlations of the items.
    own : ndarray of int
        The latent's items.

    Returns
    -------
    ndarray of int, float
        The items, and the leading eigenvalue of the residual correlations.
    """
    values, vectors = np.linalg.eigh(residual[np.ix_(own, own)])
    main = vectors[:, -1]
    # An eigenvector's sign is arbitrary: the first item stays.
    apart = main * main[0] < 0
    if not apart.any():
        apart = np.abs(main) < np.median(np.abs(main))
    return own[apart], float(values[-1])


def residual_correlation(
    x: Array, seen: Array, weights: Array | None, means: Array, law: Array
) -> Array:
    """Return correlations of responses minus those under a law, shape (R, R).

    Parameters
    ----------
    x : ndarray, shape (N, R)
        Responses; anything where they are missing.
    seen : ndarray, shape (N, R)
        1 where responses are observed.
    weights : ndarray, shape (N,), or None
    means : ndarray, shape (R, S)
        Of the responses in each state.
    law : ndarray, shape (S,)

    Returns
    -------
    ndarray
        Zero on the diagonal.
    """
    middle = means @ law
    means, x = means - middle[:, None], np.where(seen > 0, x - middle, 0.0)
    counted = np.ones(len(x)) if weights is None else weights
    rows = np.maximum((seen * counted[:, None]).T @ seen, 1e-12)
    total = (x * counted[:, None]).T @ x / rows
    spread = np.sqrt(np.maximum(np.diag(total), 1e-12))
    out: Array = (total - (means * law) @ means.T) / np.outer(spread, spread)
    np.fill_diagonal(out, 0.0)
    return out


def least_used_and_splits(
    items: MeasurementParameters, data: WorkingData, residual: Array, free: NDArray[np.bool_]
) -> tuple[int, list[Split]]:
    """Return the least used latent and the splits of the others, the largest excess first.

    The least used latent has the smallest sum of loadings, in units of the items' scales.

    Parameters
    ----------
    residual : ndarray, shape (J, J)
        Residual correlations of the items.
    free : ndarray of bool, shape (K,)
        Latents without given entries of Q; others are not split.
    """
    sizes = (np.abs(items.loadings) / coefficient_scales(data)[:, None]).sum(axis=0)
    idle = int(np.argmin(np.where(free, sizes, np.inf)))
    if not free[idle]:
        return idle, []
    judged = ~np.isnan(np.diag(residual))
    out = []
    for latent in np.flatnonzero(free):
        own = np.flatnonzero((items.loadings[:, latent] != 0) & judged)
        if latent == idle or len(own) < CONFIG.split_moves.fewest_items:
            continue
        leaving, excess = split_sides(residual, own)
        out.append(Split(int(latent), leaving, excess))
    return idle, sorted(out, key=lambda one: -one.excess)


def split_loadings(loadings: Array, split: Split, idle: int) -> Array:
    """Return loadings (J, K) with the idle latent as one part of another one."""
    out = loadings.copy()
    out[:, idle] = 0.0
    out[split.leaving, idle] = loadings[split.leaving, split.latent]
    out[split.leaving, split.latent] = 0.0
    return out


def support_criterion(
    correlations: Array, rows: Array, loadings: Array, factors: Array, cost: float
) -> float:
    """Return the least-squares criterion of a support; smaller is better.

    It is the sum of squared residual correlations, each times its number of rows, plus a cost per
    loading. With the right support each pair contributes about one.

    Parameters
    ----------
    correlations : ndarray, shape (J, J)
        Of the items.
    rows : ndarray, shape (J, J)
        Number of rows of each; zero for pairs that are excluded and on the diagonal.
    loadings : ndarray, shape (J, K)
        Initial correlations of items and factors, zero outside the support.
    factors : ndarray, shape (K, K)
        Initial correlations of the factors.
    cost : float
        Cost per loading.
    """
    support = loadings != 0
    places = np.nonzero(support)
    above = np.triu_indices(support.shape[1], 1)

    def unpack(numbers: Array) -> tuple[Array, Array]:
        slopes = np.zeros(support.shape)
        slopes[places] = numbers[: len(places[0])]
        among = np.eye(support.shape[1])
        among[above] = numbers[len(places[0]) :]
        return slopes, among + np.triu(among, 1).T

    def squares(numbers: Array) -> tuple[float, Array]:
        slopes, among = unpack(numbers)
        rest = slopes @ among @ slopes.T - correlations
        weighted = rows * rest
        pulled = weighted @ slopes
        to_slopes = 2.0 * (pulled @ among)[places]
        to_factors = 2.0 * (slopes.T @ pulled)[above]
        return 0.5 * float((weighted * rest).sum()), np.concatenate([to_slopes, to_factors])

    first = np.concatenate([loadings[places], factors[above]])
    largest = np.repeat(
        [1.0, CONFIG.split_moves.largest_correlation], [len(places[0]), len(above[0])]
    )
    found = minimize(
        squares,
        np.clip(first, -largest, largest),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-largest, largest),
        options={"maxiter": CONFIG.split_moves.most_steps},
    )
    return float(found.fun) + cost * len(places[0])


@dataclass(frozen=True)
class Agreement:
    """Agreement of the items' correlations with a fit."""

    criterion: float  # From :func:`support_criterion`; smaller is better.
    # Items with one latent split, the largest excess first.
    start_points: tuple[MeasurementParameters, ...]


class CorrelationCheck:
    """Correlations of the items, for comparison with fits.

    Responses of any family are first transformed such that latents act on them about linearly.
    """

    def __init__(self, data: WorkingData) -> None:
        self.data = data.first_rows(CONFIG.split_moves.most_rows)
        shape = (self.data.n_samples, self.data.n_items)
        observed = self.data.observed
        self.seen = np.ones(shape, dtype=bool) if observed is None else observed == 1
        self.responses = np.zeros(shape)
        for j in range(shape[1]):
            seen = self.seen[:, j]
            cells = self.data.linear_response(j)[seen]
            if len(cells):
                counts = None if self.data.weights is None else self.data.weights[seen]
                mean, spread = weighted_mean_and_sd(cells, counts)
                self.responses[seen, j] = (cells - mean) / max(spread, 1e-12)
        self.correlations, self.rows = _pairwise(self.responses, self.seen, self.data.row_weights)

    def slopes(self, states: Array, law: Array, support: NDArray[np.bool_]) -> Array:
        """Return least-squares slopes of the items on their latents, shape (J, K).

        Parameters
        ----------
        states : ndarray, shape (R N, K)
            Centred draws of the latents.
        law : ndarray, shape (R N,)
            Weights of the draws, with sum one.
        support : ndarray of bool, shape (J, K)
        """
        n_draws = len(states) // len(self.responses)
        out = np.zeros(support.shape)
        for j in np.flatnonzero(support.any(axis=1)):
            seen = np.tile(self.seen[:, j], n_draws)
            own = np.flatnonzero(support[j])
            z = states[np.ix_(seen, own)]
            weighted = z * law[seen, None]
            response = np.tile(self.responses[self.seen[:, j], j], n_draws)
            out[j, own] = np.linalg.pinv(weighted.T @ z) @ (weighted.T @ response)
        return out

    def agreement(
        self, items: MeasurementParameters, draws: NDArray[np.uint8], allowed: NDArray[np.uint8]
    ) -> Agreement:
        """Return the agreement of a fit with binary latents, and start points of splits.

        Parameters
        ----------
        items : MeasurementParameters
            Of the fit.
        draws : ndarray of uint8, shape (R, N, K)
            Draws of the latents given the data.
        allowed : ndarray of uint8, shape (J, 1 + K)
            Codes of the coefficients: zero, free or penalised.
        """
        states = draws[:, : len(self.responses)].reshape(-1, draws.shape[-1]).astype(np.float64)
        law = np.tile(self.data.row_weights, len(draws))
        law /= law.sum()
        means = law @ states
        states -= means
        support = items.loadings != 0
        slopes = self.slopes(states, law, support)
        among = (states * law[:, None]).T @ states
        residual = np.where(self.rows > 0, self.correlations - slopes @ among @ slopes.T, 0.0)
        free: NDArray[np.bool_] = np.asarray(is_penalised(allowed[:, 1:]).all(axis=0))
        idle, splits = least_used_and_splits(items, self.data, residual, free)
        clear = [one for one in splits if one.excess > self._smallest_excess(support, one)]
        points = []
        for split in clear[: CONFIG.split_moves.most_start_points]:
            other = _most_similar_latent(support, split.latent, free)
            if other is None:
                loadings, other = split_loadings(items.loadings, split, idle), idle
            else:
                loadings = self._separate(items.loadings, split.latent, other)
            after = means.copy()
            after[other] = means[split.latent]
            points.append(replace_loadings(items, loadings, means, after))
        spread = np.sqrt(np.maximum(np.diag(among), 1e-12))
        # Items without a latent get the one with the largest correlation: otherwise items that the
        # penalty excludes so far would decide.
        correlation = np.tile(self.responses, (len(draws), 1)).T @ (states * law[:, None]) / spread
        alone = np.flatnonzero(~support.any(axis=1))
        support[alone, np.argmax(np.abs(correlation[alone]), axis=1)] = True
        slopes = self.slopes(states, law, support)
        criterion = support_criterion(
            self.correlations,
            self.rows,
            np.where(support, slopes * spread, 0.0),
            among / np.outer(spread, spread),
            float(np.log(self.data.n_counted)),
        )
        return Agreement(criterion, tuple(points))

    def _smallest_excess(self, support: NDArray[np.bool_], split: Split) -> float:
        """Return the smallest excess at which a latent is split."""
        n_items = int(support[:, split.latent].sum())
        chance = 2.0 * float(np.sqrt(n_items / self.data.n_counted))
        return max(CONFIG.split_moves.beyond_chance * chance, CONFIG.split_moves.smallest_excess)

    def _separate(self, loadings: Array, one: int, other: int) -> Array:
        """Return loadings (J, K) in which the items of two latents are divided between them.

        Signs in the second eigenvector of the items' correlations define the two groups.
        """
        inside = np.flatnonzero((loadings[:, [one, other]] != 0).any(axis=1))
        side = np.linalg.eigh(self.correlations[np.ix_(inside, inside)])[1][:, -2]
        out = loadings.copy()
        out[inside, one] = out[inside, other] = 0.0
        total = loadings[:, [one, other]].sum(axis=1)
        # An eigenvector's sign is arbitrary: the first item stays.
        leaving = side * side[0] < 0
        for latent, own in ((one, inside[~leaving]), (other, inside[leaving])):
            out[own, latent] = total[own]
        return out


def _pairwise(x: Array, seen: NDArray[np.bool_], weights: Array) -> tuple[Array, Array]:
    """Return correlations of columns (N, J) and their numbers of rows, both of shape (J, J).

    Missing cells of ``x`` are zero. Pairs of which one is constant where both are observed, such as
    follow-up questions, have zero rows, and so has the diagonal.
    """
    counted, known = weights[:, None], seen.astype(np.float64)
    rows = (counted * known).T @ known
    safe = np.maximum(rows, 1e-12)
    mean = (counted * x).T @ known / safe
    spread = (counted * x * x).T @ known / safe - mean**2
    together = (counted * x).T @ x / safe - mean * mean.T
    useful = (spread > CONFIG.split_moves.smallest_spread) & (
        CONFIG.split_moves.smallest_spread < spread.T
    )
    np.fill_diagonal(useful, False)
    scale = np.sqrt(np.where(useful, spread * spread.T, 1.0))
    return np.where(useful, together / scale, 0.0), np.where(useful, rows, 0.0)


def _most_similar_latent(
    support: NDArray[np.bool_], latent: int, free: NDArray[np.bool_]
) -> int | None:
    """Return the latent that shares most items with this one, None if it shares too few."""
    own = support[:, [latent]]
    shared = (support & own).sum(axis=0) / np.maximum((support | own).sum(axis=0), 1)
    shared[~free] = shared[latent] = 0.0
    best = int(np.argmax(shared))
    return best if shared[best] > CONFIG.split_moves.shared_items else None
