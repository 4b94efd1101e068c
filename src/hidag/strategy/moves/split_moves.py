"""Latents that were found as one, where joint states are too many to list.

The spectral start may miss a latent whose causes and effects are close to it: its items go to
those, and a factor made of noise is left over. Sampling does not find the way back. What shows it
are the items' correlations, as in :mod:`hidag.strategy.moves.split_moves`; what a fit says of them
is known
from draws of the latents, so that it does not matter how well the law is known yet. The idlest
latent then begins again as one half of the latent that stands for two, or, where two latents have
the same items, these are dealt out among both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.em import Estimate, append_run, run_em
from hidag.em.m_step import coefficient_scales, is_penalised
from hidag.em.problem import Observer
from hidag.initialization.start_points import spread_law
from hidag.measurement.families.base import MeanFamily
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.strategy.moves.basin_hopping import (
    LOADING_SHARES,
    fixed_steps,
    hop_from,
    refit_largest_loadings,
)
from hidag.strategy.moves.recombination import (
    LEAST_GAIN,
    replace_loadings,
    run_to_convergence,
)
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import Candidate

# --- What shows that one latent stands for two: items that have more in common than a fit says

Array = NDArray[np.float64]

#: A latent with fewer items than this has nothing to take apart.
FEWEST_ITEMS = 3
#: How often the halves of a latent are in the same state at first.
SPLIT_AGREEMENT = 0.7


@dataclass(frozen=True)
class Split:
    """A latent that may be two.

    Attributes
    ----------
    latent : int
    leaving : ndarray of int
        Items that go to the other half.
    excess : float
        What its items have in common beyond the fit along the direction that parts them (the
        leading eigenvalue of their residual correlations).
    """

    latent: int
    leaving: NDArray[np.intp]
    excess: float


def split_sides(residual: Array, own: NDArray[np.intp]) -> tuple[NDArray[np.intp], float]:
    """Return which of a latent's items would go to its other half, and what speaks for two halves.

    Parameters
    ----------
    residual : ndarray, shape (J, J)
        What items' correlations are beyond the fit's.
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
    """Return what responses' correlations are beyond those that a law gives them, shape (R, R).

    Parameters
    ----------
    x : ndarray, shape (N, R)
        Responses; anything where they are missing.
    seen : ndarray, shape (N, R)
        1 where they are not.
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


def residual_correlations(
    items: MeasurementParameters, data: WorkingData, design: Array, law: Array
) -> Array:
    """Return what items' correlations are beyond a fit's, shape (J, J), zero on the diagonal.

    Items whose response has no mean that goes with their latents alone are not judged: their rows
    and columns are zero, and NaN on the diagonal.

    Parameters
    ----------
    items : MeasurementParameters
    data : WorkingData
    design : ndarray, shape (S, 1 + T)
        A one and the terms' values in each state.
    law : ndarray, shape (S,)
        Probabilities of the states.
    """
    means = np.zeros((data.n_items, len(law)))
    judged = np.zeros(data.n_items, dtype=bool)
    x = np.zeros((data.n_samples, data.n_items))
    for family, members in items.groups():
        if isinstance(family, MeanFamily):
            means[members] = family.mean(items.coefficients[members] @ design.T)
            x[:, members] = data.x[:, data.columns.of(family, members)]
            judged[members] = True
    seen = np.ones(x.shape) if data.observed is None else data.observed.astype(np.float64)
    out = residual_correlation(x, seen, data.weights, means, law)
    out[~judged] = out[:, ~judged] = 0.0
    np.fill_diagonal(out, np.where(judged, 0.0, np.nan))
    return out


def least_used_and_splits(
    items: MeasurementParameters, data: WorkingData, residual: Array, free: NDArray[np.bool_]
) -> tuple[int, list[Split]]:
    """Return the idlest latent, and how each other one would come apart, the most excess first.

    The idlest has the smallest loadings in sum, in units of the items' scales.

    Parameters
    ----------
    items : MeasurementParameters
    data : WorkingData
    residual : ndarray, shape (J, J)
        As of :func:`residual_correlations`.
    free : ndarray of bool, shape (K,)
        Latents none of whose items are known: others stay as they are.
    """
    sizes = (np.abs(items.loadings) / coefficient_scales(data)[:, None]).sum(axis=0)
    idle = int(np.argmin(np.where(free, sizes, np.inf)))
    if not free[idle]:
        return idle, []
    judged = ~np.isnan(np.diag(residual))
    out = []
    for latent in np.flatnonzero(free):
        own = np.flatnonzero((items.loadings[:, latent] != 0) & judged)
        if latent == idle or len(own) < FEWEST_ITEMS:
            continue
        leaving, excess = split_sides(residual, own)
        out.append(Split(int(latent), leaving, excess))
    return idle, sorted(out, key=lambda one: -one.excess)


def split_loadings(loadings: Array, split: Split, idle: int) -> Array:
    """Return loadings (J, K) of binary latents with the idle latent as one half of another one."""
    out = loadings.copy()
    out[:, idle] = 0.0
    out[split.leaving, idle] = loadings[split.leaving, split.latent]
    out[split.leaving, split.latent] = 0.0
    return out


# --- Two latents that were found as one, taken apart

#: Latents that are taken apart from one end, those first whose items say so most.
MOST_SPLITS = 3
#: Times that the best of them is kept and others are tried from there.
MOST_ROUNDS = 3
#: EM steps without penalty, in which items find their side.
SPLIT_STEPS = 40


def try_splits(end: Candidate, problem: SearchProblem, observer: Observer) -> Candidate:
    """Return the best end that splits of latents lead to, or the end as it was.

    Parameters
    ----------
    end : Candidate
        On all rows, with the criterion that ends are compared by.
    problem : SearchProblem
        With more than two levels, or a penalty that is off, nothing is tried.
    observer : callable
        Told of the steps.
    """
    if max(problem.space.levels) > 2 or problem.penalty.name is None:
        return end
    for _ in range(MOST_ROUNDS):
        idle, splits = promising_splits(end.estimate, problem)
        found = [_split(end, s, idle, problem, observer) for s in splits[:MOST_SPLITS]]
        if not found:
            break
        # Hops cost several times what a split does: only the best of them goes on.
        best = hop_from(max(found, key=lambda one: one.criterion), problem, observer)
        if best.criterion <= end.criterion + LEAST_GAIN:
            break
        end = best
    return end


def promising_splits(estimate: Estimate, problem: SearchProblem) -> tuple[int, list[Split]]:
    """Return the idlest latent, and how each other one would come apart, the most excess first.

    Latents whose items are known in part stay as they are.
    """
    items, law = estimate.parameters, estimate.probabilities / estimate.probabilities.sum()
    free: NDArray[np.bool_] = np.asarray(is_penalised(problem.allowed[:, 1:]).all(axis=0))
    residual = residual_correlations(items, problem.data, problem.basis.design, law)
    return least_used_and_splits(items, problem.data, residual, free)


def start_of_split(
    estimate: Estimate, split: Split, idle: int, problem: SearchProblem
) -> tuple[MeasurementParameters, Array]:
    """Return items and law in which the idle latent is one half of another one.

    The idle latent's own items lose it, their predictors' means as they were.
    """
    items, law = estimate.parameters, estimate.probabilities / estimate.probabilities.sum()
    loadings = split_loadings(items.loadings, split, idle)
    cube = law.reshape(problem.space.levels)
    shape = [1] * cube.ndim
    shape[idle] = shape[split.latent] = 2
    alike = np.where(np.eye(2, dtype=bool), SPLIT_AGREEMENT, 1.0 - SPLIT_AGREEMENT).reshape(shape)
    halves = np.ascontiguousarray(cube.sum(axis=idle, keepdims=True) * alike).ravel()
    before, after = (one @ problem.basis.features for one in (law, halves))
    return replace_loadings(items, loadings, before, after), spread_law(halves)


def _split(
    end: Candidate, split: Split, idle: int, problem: SearchProblem, observer: Observer
) -> Candidate:
    """Return where it leads to take a latent apart."""
    items, law = start_of_split(end.estimate, split, idle, problem)
    unpenalised = replace(problem, penalty=NO_SPARSITY, observer=observer)
    plan = fixed_steps(problem.schedule, SPLIT_STEPS)
    lifted = run_em(replace(unpenalised, schedule=plan), items, law)
    settled = refit_largest_loadings(lifted, LOADING_SHARES[0], unpenalised)
    steps = append_run(lifted, settled)
    parents = problem.learn_parents(
        steps.parameters, steps.probabilities, problem.data, max(steps.n_iter, 1)
    )
    begun = replace(end, estimate=append_run(end.estimate, steps), parents=parents)
    return run_to_convergence(begun, problem, observer)


# --- How well a support explains the items' correlations, whatever the latents' law is

#: Steps of the minimiser: supports differ by far more than the last of them bring.
MOST_STEPS = 100
#: Correlations of factors stay inside this: two that are one have one column too many.
LARGEST_CORRELATION = 0.98


def support_criterion(
    correlations: Array, rows: Array, loadings: Array, factors: Array, price: float
) -> float:
    """Return the criterion of a support, smaller being better.

    It is the sum of the squares that are left, each times the rows it is from, which has a mean of
    about one for each pair when the support is right, and a price for each loading.

    Parameters
    ----------
    correlations : ndarray, shape (J, J)
        Of the items.
    rows : ndarray, shape (J, J)
        Rows that each is from; zero for pairs that are not looked at, as on the diagonal.
    loadings : ndarray, shape (J, K)
        Correlations of the items with the factors to begin with, zero outside the support.
    factors : ndarray, shape (K, K)
        Correlations of the factors to begin with.
    price : float
        Of a loading.
    """
    support = loadings != 0
    places = np.nonzero(support)
    above = np.triu_indices(support.shape[1], 1)

    def parted(numbers: Array) -> tuple[Array, Array]:
        slopes = np.zeros(support.shape)
        slopes[places] = numbers[: len(places[0])]
        among = np.eye(support.shape[1])
        among[above] = numbers[len(places[0]) :]
        return slopes, among + np.triu(among, 1).T

    def squares(numbers: Array) -> tuple[float, Array]:
        slopes, among = parted(numbers)
        rest = slopes @ among @ slopes.T - correlations
        weighted = rows * rest
        pulled = weighted @ slopes
        to_slopes = 2.0 * (pulled @ among)[places]
        to_factors = 2.0 * (slopes.T @ pulled)[above]
        return 0.5 * float((weighted * rest).sum()), np.concatenate([to_slopes, to_factors])

    first = np.concatenate([loadings[places], factors[above]])
    largest = np.repeat([1.0, LARGEST_CORRELATION], [len(places[0]), len(above[0])])
    found = minimize(
        squares,
        np.clip(first, -largest, largest),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-largest, largest),
        options={"maxiter": MOST_STEPS},
    )
    return float(found.fun) + price * len(places[0])


# ---

#: Rows at the most that correlations are taken from.
MOST_ROWS = 5000
#: What m items of one latent have in common beyond the fit has to be this share of 2 sqrt(m / N),
#: which chance reaches before anything is fitted, and no less than this: many rows show any trifle.
BEYOND_CHANCE, SMALLEST_EXCESS = 0.7, 0.1
#: Places at the most to begin again from one fit.
MOST_PLACES = 2
#: Two latents with more than this share of their items in common are mixtures of one another.
SHARED_ITEMS = 0.5
#: Variances of standardised columns below this are none.
SMALLEST_SPREAD = 1e-9


@dataclass(frozen=True)
class Agreement:
    """How items' correlations agree with a fit.

    Attributes
    ----------
    criterion : float
        Of the support, smaller being better; see :mod:`hidag.strategy.moves.split_moves`.
    places : tuple of MeasurementParameters
        Where to begin with a latent apart that seems to stand for two, the clearest first.
    """

    criterion: float
    places: tuple[MeasurementParameters, ...]


class CorrelationCheck:
    """Items' correlations, which fits are held against.

    Items of any family have a part: each has a number per response in which latents act about
    linearly.

    Parameters
    ----------
    data : WorkingData
    """

    def __init__(self, data: WorkingData) -> None:
        self.data = data.first_rows(MOST_ROWS)
        shape = (self.data.n_samples, self.data.n_items)
        observed = self.data.observed
        self.seen = np.ones(shape, dtype=bool) if observed is None else observed == 1
        self.looks = np.zeros(shape)
        for j in range(shape[1]):
            seen = self.seen[:, j]
            cells = self.data.linear_response(j)[seen]
            if len(cells):
                counts = None if self.data.weights is None else self.data.weights[seen]
                mean, spread = weighted_mean_and_sd(cells, counts)
                self.looks[seen, j] = (cells - mean) / max(spread, 1e-12)
        self.correlations, self.rows = _pairwise(self.looks, self.seen, self.data.row_weights)

    def slopes(self, states: Array, law: Array, support: NDArray[np.bool_]) -> Array:
        """Return how items go with the latents that they have, by least squares, shape (J, K).

        Parameters
        ----------
        states : ndarray, shape (R N, K)
            Draws of the latents, one after another, less their means.
        law : ndarray, shape (R N,)
            What each counts for; adds up to one.
        support : ndarray of bool, shape (J, K)
        """
        n_draws = len(states) // len(self.looks)
        out = np.zeros(support.shape)
        for j in np.flatnonzero(support.any(axis=1)):
            seen = np.tile(self.seen[:, j], n_draws)
            own = np.flatnonzero(support[j])
            z = states[np.ix_(seen, own)]
            weighted = z * law[seen, None]
            look = np.tile(self.looks[self.seen[:, j], j], n_draws)
            out[j, own] = np.linalg.pinv(weighted.T @ z) @ (weighted.T @ look)
        return out

    def agreement(
        self, items: MeasurementParameters, draws: NDArray[np.uint8], allowed: NDArray[np.uint8]
    ) -> Agreement:
        """Return how a fit with binary latents agrees, and where to begin with latents apart.

        Parameters
        ----------
        items : MeasurementParameters
            Of the fit.
        draws : ndarray of uint8, shape (R, N, K)
            Of the latents, given the data.
        allowed : ndarray of uint8, shape (J, 1 + K)
            Which coefficients may be there, and at a cost.
        """
        states = draws[:, : len(self.looks)].reshape(-1, draws.shape[-1]).astype(np.float64)
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
        clear = [one for one in splits if one.excess > self._by_chance(support, one)]
        places = []
        for split in clear[:MOST_PLACES]:
            other = _most_similar_latent(support, split.latent, free)
            if other is None:
                loadings, other = split_loadings(items.loadings, split, idle), idle
            else:
                loadings = self._separate(items.loadings, split.latent, other)
            after = means.copy()
            after[other] = means[split.latent]
            places.append(replace_loadings(items, loadings, means, after))
        spread = np.sqrt(np.maximum(np.diag(among), 1e-12))
        # Items without a latent are judged with the one they go with most: otherwise an item more
        # or less that the penalty has not let in yet would decide.
        goes_with = np.tile(self.looks, (len(draws), 1)).T @ (states * law[:, None]) / spread
        alone = np.flatnonzero(~support.any(axis=1))
        support[alone, np.argmax(np.abs(goes_with[alone]), axis=1)] = True
        slopes = self.slopes(states, law, support)
        criterion = support_criterion(
            self.correlations,
            self.rows,
            np.where(support, slopes * spread, 0.0),
            among / np.outer(spread, spread),
            float(np.log(self.data.n_counted)),
        )
        return Agreement(criterion, tuple(places))

    def _by_chance(self, support: NDArray[np.bool_], split: Split) -> float:
        """Return what the items of a latent may have in common beyond the fit."""
        n_items = int(support[:, split.latent].sum())
        chance = 2.0 * float(np.sqrt(n_items / self.data.n_counted))
        return max(BEYOND_CHANCE * chance, SMALLEST_EXCESS)

    def _separate(self, loadings: Array, one: int, other: int) -> Array:
        """Return loadings (J, K) in which two latents with the same items have different ones.

        Their items' correlations have two large directions; signs in the second tell the sides.
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
    """Return correlations of columns (N, J), zeros where not seen, and the rows they are from.

    Columns one of which is constant where both are seen, as answers are that are asked for only
    after another, have none: zero rows, like the diagonal.
    """
    counted, known = weights[:, None], seen.astype(np.float64)
    rows = (counted * known).T @ known
    safe = np.maximum(rows, 1e-12)
    mean = (counted * x).T @ known / safe
    spread = (counted * x * x).T @ known / safe - mean**2
    together = (counted * x).T @ x / safe - mean * mean.T
    useful = (spread > SMALLEST_SPREAD) & (spread.T > SMALLEST_SPREAD)
    np.fill_diagonal(useful, False)
    scale = np.sqrt(np.where(useful, spread * spread.T, 1.0))
    return np.where(useful, together / scale, 0.0), np.where(useful, rows, 0.0)


def _most_similar_latent(
    support: NDArray[np.bool_], latent: int, free: NDArray[np.bool_]
) -> int | None:
    """Return the latent that has most of its items in common with this one, if there is one."""
    own = support[:, [latent]]
    alike = (support & own).sum(axis=0) / np.maximum((support | own).sum(axis=0), 1)
    alike[~free] = alike[latent] = 0.0
    best = int(np.argmax(alike))
    return best if alike[best] > SHARED_ITEMS else None
