"""Conditional tables that few numbers describe: what a table costs when levels have an order.

A free table of a latent with M levels has (M - 1) numbers for every combination of its parents'
levels: with four levels and three parents 192. Latents whose levels mean more and less of
something seldom need them. Two leaner tables are held against the free one, both log-linear:

- *additive*: each parent shifts the log-odds of each level on its own, whatever the others do;
- *linear*: each parent shifts all adjacent-category log-odds by one number per step of its own.

Of the three the one counts that describes the counts most briefly (the loss of log-likelihood
against the free table, plus a price per number).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.latent.laws import Parents, n_free_in_table, n_free_probabilities, possible_cells
from hidag.latent.state_space import StateSpace

Array = NDArray[np.float64]

#: Tables with more cells than this are taken as they are: fitting them would cost too much.
MOST_CELLS = 4096
#: Newton steps at the most, and the gain in log-likelihood at which they end.
NEWTON_STEPS, SMALLEST_GAIN = 25, 1e-6
#: Keeps the curvature invertible where counts are empty; a share of its mean.
RIDGE = 1e-9
#: Log-weight of a cell that cannot be: its share is zero, and so is zero times it.
NEVER = -1e300


def free_log_likelihood(table: Array) -> float:
    """Return the log-likelihood of counts (q, M) under their own shares in each row."""
    total = table.sum(axis=1, keepdims=True)
    positive = table > 0
    shares = np.where(positive, table, 1.0) / np.where(total > 0, total, 1.0)
    return float((table * np.log(np.where(positive, shares, 1.0))).sum())


def table_price(
    table: Array,
    parent_levels: Sequence[int],
    per_number: float,
    possible: NDArray[np.bool_] | None = None,
) -> float:
    """Return what describing a table costs: numbers at their price, and what leanness loses.

    Parameters
    ----------
    table : ndarray, shape (q, M)
        Counts of a latent's M levels for each combination of its parents' levels, the last parent
        changing fastest.
    parent_levels : sequence of int
        Numbers of the parents' levels; their product is q.
    per_number : float
        Price of a number, in units of log-likelihood.
    possible : ndarray of bool, shape (q, M), optional
        Cells that can be, all unless given; a number that is about no others is not paid for.
    """
    n_levels = table.shape[1]
    price = float(per_number * len(table) * (n_levels - 1))
    if possible is not None:
        price = float(per_number * n_free_in_table(possible))
    if len(parent_levels) == 0 or table.size > MOST_CELLS:
        return price
    occurs = table.sum(axis=1) > 0
    counts = table[occurs]
    best = free_log_likelihood(counts)
    places = np.indices(tuple(parent_levels)).reshape(len(parent_levels), -1).T
    makers = [_linear]
    if len(parent_levels) > 1:
        # With one parent the additive table is the free one.
        makers.append(_additive)
    for make in makers:
        features = _with_own(make(places, parent_levels, n_levels), n_levels)
        n_numbers = features.shape[2] if possible is None else _told_apart(features, possible)
        numbers = per_number * n_numbers
        if numbers < price:
            cells = None if possible is None else possible[occurs]
            reached = _log_likelihood(counts, features[occurs], cells)
            price = min(price, float(best - reached + numbers))
    return price


def law_price(
    counts: Array,
    parents: Parents,
    space: StateSpace,
    orders: Sequence[NDArray[np.intp]],
    per_number: float,
    possible: NDArray[np.bool_] | None = None,
) -> float:
    """Return what describing a law over a graph costs, in units of log-likelihood.

    Binary latents have free tables only: a price for each free probability.

    Parameters
    ----------
    counts : ndarray, shape (S,)
        Expected counts of joint states under the law.
    parents : tuple of tuples of int
    space : StateSpace
    orders : sequence of ndarray of int
        For each latent, its levels from low to high.
    per_number : float
        Price of a number.
    possible : ndarray of bool, shape (S,), optional
        Joint states that may occur; all unless given.
    """
    if max(space.levels) == 2:
        return float(per_number * n_free_probabilities(parents, space, possible))
    if possible is not None:
        possible = possible.reshape(space.levels)[np.ix_(*orders)].ravel()
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)[np.ix_(*orders)]
    total = 0.0
    for k, causes in enumerate(parents):
        others = tuple(a for a in range(cube.ndim) if a != k and a not in causes)
        kept = sorted((*causes, k))
        small = np.transpose(cube.sum(axis=others), [kept.index(a) for a in (*causes, k)])
        of_parents = [space.levels[a] for a in causes]
        cells = None if possible is None else possible_cells(possible, space, k, causes)
        table = small.reshape(-1, space.levels[k])
        total += table_price(table, of_parents, per_number, cells)
    return total


def _linear(places: NDArray[np.intp], parent_levels: Sequence[int], n_levels: int) -> Array:
    """Return what each number adds to the log-odds of each level, shape (q, M, n)."""
    along = places / (np.array(parent_levels) - 1.0)
    return np.asarray(along[:, None, :] * np.linspace(0.0, 1.0, n_levels)[None, :, None])


def _additive(places: NDArray[np.intp], parent_levels: Sequence[int], n_levels: int) -> Array:
    reached = [places[:, [a]] == np.arange(1, m) for a, m in enumerate(parent_levels)]
    of_parents = np.hstack(reached).astype(np.float64)
    each = of_parents[:, None, :, None] * np.eye(n_levels)[None, :, None, 1:]
    return np.asarray(each.reshape(len(places), n_levels, -1))


def _with_own(design: Array, n_levels: int) -> Array:
    """Return the features of a log-linear table, shape (q, M, n): its levels' own come first."""
    own = np.broadcast_to(np.eye(n_levels)[None, :, 1:], (len(design), n_levels, n_levels - 1))
    return np.concatenate([own, design], axis=2)


def _told_apart(features: Array, possible: NDArray[np.bool_]) -> int:
    """Return how many of a table's numbers its possible cells (q, M) tell apart."""
    first = possible.argmax(axis=1)
    # What is alike in all of a row's cells makes no difference to its shares.
    against = features - features[np.arange(len(features)), first][:, None, :]
    return int(np.linalg.matrix_rank(against[possible]))


def _log_likelihood(
    counts: Array, features: Array, possible: NDArray[np.bool_] | None = None
) -> float:
    """Return the largest log-likelihood of a log-linear table, by Newton's method.

    Parameters
    ----------
    counts : ndarray, shape (q, M)
    features : ndarray, shape (q, M, n)
    possible : ndarray of bool, shape (q, M), optional
        Cells that can be, all unless given.
    """
    n_rows, n_levels, _ = features.shape
    features = features.reshape(n_rows * n_levels, -1)
    totals = counts.sum(axis=1)
    wanted = counts.ravel() @ features
    coefficients = np.zeros(features.shape[1])
    margin = np.log(np.maximum(counts.sum(axis=0), 0.5))
    coefficients[: n_levels - 1] = margin[1:] - margin[0]

    def shares(at: Array) -> tuple[Array, float]:
        logs = (features @ at).reshape(n_rows, n_levels)
        if possible is not None:
            logs = np.where(possible, logs, NEVER)
        logs -= logs.max(axis=1, keepdims=True)
        weights = np.exp(logs)
        mass = weights.sum(axis=1, keepdims=True)
        value = float((counts * logs).sum() - totals @ np.log(mass[:, 0]))
        return weights / mass, value

    expected, value = shares(coefficients)
    for _ in range(NEWTON_STEPS):
        weights = totals[:, None] * expected
        gradient = wanted - weights.ravel() @ features
        means = (expected[:, :, None] * features.reshape(n_rows, n_levels, -1)).sum(axis=1)
        curvature = features.T @ (weights.ravel()[:, None] * features)
        curvature -= means.T @ (totals[:, None] * means)
        diagonal = np.arange(len(curvature))
        curvature[diagonal, diagonal] += RIDGE * max(float(np.trace(curvature)), 1.0)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        moved, found = shares(coefficients + step)
        while found < value and size > 1e-3:
            size *= 0.5
            moved, found = shares(coefficients + size * step)
        gain = found - value
        if gain <= 0:
            break
        coefficients = coefficients + size * step
        expected, value = moved, found
        if gain < SMALLEST_GAIN:
            break
    return value
