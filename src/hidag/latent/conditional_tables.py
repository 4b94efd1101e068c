"""Complexity of conditional tables of latents with ordered levels.

A free table of a latent with M levels has (M - 1) parameters for every combination of its parents'
levels: 192 with four levels and three parents. Ordered levels seldom need them. Two log-linear
tables are compared with the free one:

- *additive*: each parent shifts the log odds of each level, without interaction;
- *linear*: each parent shifts all adjacent-category log odds by one parameter per step of its own.

The complexity is the smallest of the three description lengths: the loss of log-likelihood relative
to the free table plus a cost per parameter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.latent.laws import Parents, n_free_in_table, n_free_probabilities, possible_cells
from hidag.latent.state_space import StateSpace

Array = NDArray[np.float64]

#: Larger tables are always free: fitting log-linear ones would take too long.
MAX_CELLS = 4096
#: Largest number of Newton steps, and the gain in log-likelihood at which they end.
NEWTON_STEPS, SMALLEST_GAIN = 25, 1e-6
#: Relative ridge that keeps the curvature invertible where counts are zero.
RIDGE = 1e-9
#: Log weight of an impossible cell; finite, so that zero times it is zero.
IMPOSSIBLE = -1e300


def free_log_likelihood(table: Array) -> float:
    """Return the log-likelihood of counts (q, M) under the relative frequencies of each row."""
    total = table.sum(axis=1, keepdims=True)
    positive = table > 0
    shares = np.where(positive, table, 1.0) / np.where(total > 0, total, 1.0)
    return float((table * np.log(np.where(positive, shares, 1.0))).sum())


def table_complexity(
    table: Array,
    parent_levels: Sequence[int],
    cost: float,
    possible: NDArray[np.bool_] | None = None,
) -> float:
    """Return the description length of a conditional table, in units of log-likelihood.

    ``table`` (q, M) counts a latent's M levels for each combination of its parents' levels, the
    last parent changing fastest. ``cost`` is that of one parameter; parameters of cells that are
    not ``possible`` cost nothing.
    """
    n_levels = table.shape[1]
    cells = np.ones(table.shape, dtype=bool) if possible is None else possible
    length = float(cost * n_free_in_table(cells))
    if len(parent_levels) == 0 or table.size > MAX_CELLS:
        return length
    occurs = table.sum(axis=1) > 0
    counts = table[occurs]
    best = free_log_likelihood(counts)
    places = np.indices(tuple(parent_levels)).reshape(len(parent_levels), -1).T
    # With one parent the additive table is the free one.
    for make in (_linear_features, _additive_features)[: len(parent_levels)]:
        features = _with_main_effects(make(places, parent_levels, n_levels), n_levels)
        n_parameters = features.shape[2] if possible is None else _rank(features, possible)
        if cost * n_parameters < length:
            allowed = None if possible is None else possible[occurs]
            reached = _maximum_log_likelihood(counts, features[occurs], allowed)
            length = min(length, float(best - reached + cost * n_parameters))
    return length


def network_complexity(
    counts: Array,
    parents: Parents,
    space: StateSpace,
    orders: Sequence[NDArray[np.intp]],
    cost: float,
    possible: NDArray[np.bool_] | None = None,
) -> float:
    """Return the description length of a network, in units of log-likelihood.

    ``counts`` (S,) are those expected of joint states, and ``orders`` each latent's levels from low
    to high. Tables of binary latents are free: the cost of each free probability.
    """
    if max(space.levels) == 2:
        return float(cost * n_free_probabilities(parents, space, possible))
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
        total += table_complexity(table, of_parents, cost, cells)
    return total


def _linear_features(
    places: NDArray[np.intp], parent_levels: Sequence[int], n_levels: int
) -> Array:
    """Return the effect of each parameter on the log odds of each level, shape (q, M, n)."""
    along = places / (np.array(parent_levels) - 1.0)
    return np.asarray(along[:, None, :] * np.linspace(0.0, 1.0, n_levels)[None, :, None])


def _additive_features(
    places: NDArray[np.intp], parent_levels: Sequence[int], n_levels: int
) -> Array:
    reached = [places[:, [a]] == np.arange(1, m) for a, m in enumerate(parent_levels)]
    of_parents = np.hstack(reached).astype(np.float64)
    each = of_parents[:, None, :, None] * np.eye(n_levels)[None, :, None, 1:]
    return np.asarray(each.reshape(len(places), n_levels, -1))


def _with_main_effects(design: Array, n_levels: int) -> Array:
    """Return features (q, M, n) preceded by those of the latent's own levels."""
    own = np.broadcast_to(np.eye(n_levels)[None, :, 1:], (len(design), n_levels, n_levels - 1))
    return np.concatenate([own, design], axis=2)


def _rank(features: Array, possible: NDArray[np.bool_]) -> int:
    """Return the number of parameters that the possible cells (q, M) identify."""
    first = possible.argmax(axis=1)
    # A constant within a row does not change its probabilities.
    against = features - features[np.arange(len(features)), first][:, None, :]
    return int(np.linalg.matrix_rank(against[possible]))


def _maximum_log_likelihood(
    counts: Array, features: Array, possible: NDArray[np.bool_] | None = None
) -> float:
    """Return the maximum log-likelihood of counts (q, M) in a log-linear table by Newton's method.

    ``features`` have shape (q, M, n); ``possible`` cells, shape (q, M), are all by default.
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
            logs = np.where(possible, logs, IMPOSSIBLE)
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
