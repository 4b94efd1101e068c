"""Sums of the moments of all pairs of items, with z scores and p-values.

The moment of a pair in a row is x_a x_b minus its expectation. Its products with any column (a
direction of the scores, or itself) are sums of x_a x_b times that column, so that one matrix
product serves all pairs: no moments of single pairs are stored, and a thousand items take seconds.

For two kinds of pairs the normal approximation fails. Where items almost never deviate from the
expectation of their state, the sum depends on a handful of rows. And where the parameters fit the
pair almost exactly, the residual variance cannot be estimated. Such pairs have a z score only if
their sum is extreme, as for two copies of one item; its p-value is then bounded by Bennett's
inequality, which holds for any distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from hidag.data.rows import weighted_mean_std
from hidag.information.free_parameters import FreeParameters
from hidag.information.moment_tests import LocalScores, ScoredColumns
from hidag.information.posterior_tables import StateFunctions

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

BLOCK_SIZE = 1 << 23  # Array elements of a block of pairs and directions
#: Pairs of which the regression on the scores leaves a smaller share have no variance left.
MIN_RELATIVE_VARIANCE = 1e-8
#: Expected number of rows in which both items deviate from the expectation of their state, as is
#: customary for the cells of a contingency table.
MIN_DEVIATIONS = 5.0
#: Bounds on p-values above this are not reported; under a correct model hardly one in the pairs of
#: fifty items is below.
MAX_BOUND = 1e-4
MIN_P_VALUE = 1e-300  # Smaller p-values would have an infinite z score
#: The regression must leave this multiple of the share that it removes by chance. With less, the
#: residual variance is underestimated in a few hundred rows, and correct models are rejected.
MIN_RESIDUAL_RATIO = 4.0
RIDGE = 1e-9  # Regularises directions that two items share
#: Whole numbers have a central fourth moment of at least this share of their variance, the value
#: of a Bernoulli variable with probability one half.
MIN_FOURTH_MOMENT = 0.25


def _conditional_variances(
    free: FreeParameters, columns: ScoredColumns, spread: Array
) -> tuple[Array, Array]:
    """Return variances of pair moments given the latents, and shares of rows behind them (G, G)."""
    variance, fourth = _moments_given_state(free, columns, spread)
    conditional, heavy = variance.mean_products(), fourth.mean_products()
    support = np.where(heavy > 0, conditional**2 / np.where(heavy > 0, heavy, 1.0), 0.0)
    return conditional * np.outer(spread, spread) ** 2, support


def _moments_given_state(
    free: FreeParameters, columns: ScoredColumns, spread: Array
) -> tuple[StateFunctions, StateFunctions]:
    """Return second and fourth central moments in each state, in units of ``spread`` (G,)."""
    expected = columns.expected
    seen = ~np.isnan(columns.values)
    # Centred first against cancellation.
    centre = expected.means()
    x = np.where(seen, columns.values - centre, 0.0) / spread
    sums = {table: np.zeros((5, *part.shape)) for table, part in expected.parts.items()}
    for block in free.row_blocks():
        power = free.data.row_weights[block.rows, None] * seen[block.rows]
        for degree in range(5):
            for table, total in sums.items():
                total[degree] += block.posteriors[table].T @ power[:, expected.columns(table)]
            power = power * x[block.rows]
    integer = (np.where(seen, columns.values, 0.0) % 1.0 == 0.0).all(axis=0)
    least = np.where(integer, MIN_FOURTH_MOMENT / spread**2, 0.0)
    variances, fourths = {}, {}
    for table, total in sums.items():
        own = expected.columns(table)
        shift = (centre[own] - expected.parts[table]) / spread[own]
        total /= np.maximum(total[0], 1e-12)
        variance = np.maximum(total[2] + 2.0 * shift * total[1] + shift**2, 0.0)
        fourth = (
            total[4] + 4.0 * shift * total[3] + 6.0 * shift**2 * total[2]
            + 4.0 * shift**3 * total[1] + shift**4
        )  # fmt: skip
        variances[table] = variance
        fourths[table] = np.maximum(np.maximum(fourth, variance**2), least[own] * variance)
    return expected.like(variances), expected.like(fourths)


@dataclass(frozen=True)
class PairRows:
    """Counts of the rows that observed both columns, and sums over their weights, (A, G) each."""

    number: Array
    total: Array  # of weights
    squares: Array  # of squared weights
    fourth: Array  # of fourth powers

    @cached_property
    def effective(self) -> Array:
        """Effective sample sizes of means."""
        return np.asarray(self.total**2 / np.where(self.squares > 0, self.squares, 1.0))

    @cached_property
    def for_variance(self) -> Array:
        """Effective sample sizes of variances."""
        return np.asarray(self.squares**2 / np.where(self.fourth > 0, self.fourth, 1.0))


@dataclass(frozen=True)
class PairSums:
    """Sums of moments over rows for pairs of columns."""

    x: Array  # (N, G), columns minus expectation, times the root of the weights; 0 where missing
    seen: Array  # (N, G), root of the weights; zero where missing
    expected: Array  # (G, G), covariances under the model
    conditional: Array  # (G, G), variance of a pair's moment given the latents
    support: Array  # (G, G), share of rows behind this variance
    item: Indices
    scores: LocalScores
    spread: Array  # (G,), observed standard deviations

    @classmethod
    def of(cls, free: FreeParameters, columns: ScoredColumns, scores: LocalScores) -> PairSums:
        """Return the sums for the columns of a table, with ``scores`` of the same rows."""
        means = columns.expected.means()
        seen = ~np.isnan(columns.values)
        weights = free.data.row_weights
        root = np.sqrt(weights)[:, None]
        x = np.where(seen, root * (columns.values - means), 0.0)
        cells = zip(columns.values.T, seen.T, strict=True)
        found = [weighted_mean_std(own[here], weights[here])[1] for own, here in cells]
        spread = np.nan_to_num(found)
        moments = _conditional_variances(free, columns, np.where(spread > 0, spread, 1.0))
        expected = columns.expected.mean_products(means)
        return cls(x, root * seen, expected, *moments, columns.item, scores, spread)

    def blocks(self) -> Iterator[tuple[slice, PairRows, Array, Array, Array, Array]]:
        """Yield column ranges with sums, residuals, z scores and p-values of pairs, (A, G) each."""
        n_columns = self.x.shape[1]
        deepest = len(self._directions)
        step = max(1, BLOCK_SIZE // (n_columns * (4 + 2 * deepest + deepest**2)))
        for begin in range(0, n_columns, step):
            first = slice(begin, min(begin + step, n_columns))
            yield first, *self._block(first)

    @cached_property
    def _has_missing(self) -> bool:
        return not bool(self.seen.all())

    @cached_property
    def _weights(self) -> Array:
        """Weights of the rows, shape (N,), if no cell is missing."""
        return np.asarray(self.seen[:, 0] ** 2)

    @cached_property
    def _by_weight(self) -> Array:
        """Columns times the weights, shape (N, G)."""
        return self.x * self.seen

    def _rows(self, first: slice) -> PairRows:
        """Return the counts and weights of the rows that observed both columns."""
        roots = ((self.seen > 0).astype(np.float64), self.seen, self.seen**2, self.seen**4)
        return PairRows(*(one[:, first].T @ one for one in roots))

    @cached_property
    def _directions(self) -> list[Array]:
        """First directions of all columns' items, then the second ones, and so on, (N, G) each."""
        depth = max((own.shape[1] for own in self.scores.own), default=0)
        out = [np.zeros_like(self.x) for _ in range(depth)]
        for g, j in enumerate(self.item):
            for d in range(self.scores.own[j].shape[1]):
                out[d][:, g] = self.scores.own[j][:, d]
        return out

    def _block(self, first: slice) -> tuple[PairRows, Array, Array, Array, Array]:
        x, expected, rows = self.x[:, first], self.expected[first], self._rows(first)
        sums = self._products(first, np.ones(len(self.x)))
        crossed = self._by_weight[:, first].T @ self._by_weight
        squares = (x**2).T @ self.x**2 - 2.0 * expected * crossed + rows.squares * expected**2
        left, rest = squares.copy(), sums.copy()
        for direction in self.scores.shared.T:
            product = self._products(first, direction)
            left -= product**2
            rest -= product * direction.sum()
        used = np.full(expected.shape, float(self.scores.shared.shape[1]))
        if self._directions:
            every = self._directions
            near = np.stack([self._products(first, own[:, first]) for own in every], axis=-1)
            far = np.stack([self._products(first, None, own) for own in every], axis=-1)
            products = ([a[:, first].T @ b for b in every] for a in every)
            crossed = np.stack([np.stack(part, axis=-1) for part in products], axis=-2)
            totals = np.stack([own.sum(axis=0) for own in every], axis=-1)
            here = totals[first][:, None, :]
            left -= (near**2).sum(axis=-1)
            rest -= (near * here).sum(axis=-1)
            # Second item's directions, orthogonal to those of the first.
            beyond = far - np.einsum("abpq,abp->abq", crossed, near)
            there = np.broadcast_to(here, near.shape)
            total = totals[None] - np.einsum("abpq,abp->abq", crossed, there)
            shared = np.einsum("abpq,abpr->abqr", crossed, crossed)
            inner = (1.0 + RIDGE) * np.eye(len(every)) - shared
            solved = np.linalg.solve(inner, beyond[..., None])[..., 0]
            left -= (beyond * solved).sum(axis=-1)
            rest -= (total * solved).sum(axis=-1)
            depth = np.array([self.scores.own[j].shape[1] for j in self.item], dtype=np.float64)
            used += depth[first][:, None] + depth[None]
        # Degrees of freedom of the regression.
        spare = rows.for_variance - used
        left *= rows.for_variance / np.maximum(spare, 1.0)
        good = (left > MIN_RELATIVE_VARIANCE * squares) & (spare > used)
        share_by_chance = used / np.maximum(rows.for_variance, 1.0)
        conditional = rows.squares * self.conditional[first]
        deviations = rows.for_variance * self.support[first]
        good &= left >= MIN_RESIDUAL_RATIO * share_by_chance * conditional
        good &= deviations >= MIN_DEVIATIONS
        z = np.where(good, rest / np.sqrt(np.where(good, left, 1.0)), np.nan)
        # t instead of normal: the variance is estimated from so many deviations.
        p_values = 2.0 * t.sf(np.abs(z), np.maximum(deviations, 1.0))
        # The bound does not use the regression, which is unreliable for few deviations.
        variance = np.maximum(squares, conditional)
        bound = bound_p_values(np.abs(rest), variance, conditional, deviations)
        p_values = np.where(good, p_values, bound)
        z = np.where(good, z, np.sign(rest) * norm.isf(np.maximum(bound, MIN_P_VALUE) / 2.0))
        return rows, sums, rest, z, p_values

    def _products(self, first: slice, near: Array | None, far: Array | None = None) -> Array:
        """Return sums of moments times a direction of rows (N,) or of each column, (A, G)."""
        x, seen, expected = self.x[:, first], self.seen[:, first], self.expected[first]
        missing = self._has_missing
        if near is not None:
            by = near[:, None] if near.ndim == 1 else near
            products = (x * by).T @ self.x
            counts = (seen * by).T @ self.seen if missing else (self._weights @ by)[:, None]
        else:
            assert far is not None
            products = x.T @ (self.x * far)
            counts = seen.T @ (self.seen * far) if missing else (self._weights @ far)[None]
        return np.asarray(products - expected * counts)


def bound_p_values(size: Array, variance: Array, conditional: Array, deviations: Array) -> Array:
    """Return upper bounds of the p-values of extreme sums; NaN for other sums, same shape.

    A sum is extreme if it needs ``MIN_DEVIATIONS`` more deviations than expected and its bound is
    below ``MAX_BOUND``; small bounds of other sums would bias the distribution of p-values.
    ``deviations`` are expected numbers of rows in which both items deviate from their state's mean.
    """
    known = (conditional > 0) & (deviations > 0)
    unit = np.sqrt(np.where(known, conditional, 1.0) / np.where(known, deviations, 1.0))
    beyond = size / unit
    # In units of one deviation the variance is a number of deviations, as for a Poisson variable.
    number = np.where(known, variance, 1.0) / unit**2
    ratio = beyond / number
    exponent = number * ((1.0 + ratio) * np.log1p(ratio) - ratio)
    bound = 2.0 * np.exp(-exponent)
    extreme = known & (beyond >= MIN_DEVIATIONS) & (bound < MAX_BOUND)
    return np.where(extreme, bound, np.nan)
