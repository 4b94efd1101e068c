"""Sums over rows for all pairs of items at once, and their z scores, from matrix products alone.

The number that a row has for a pair is x_a x_b less its expectation. Its products with anything
that rows have (a direction of the scores, itself) are sums of x_a x_b times that, so that one
matrix product serves all pairs: no pair's numbers are ever listed, and a thousand items take
seconds.

The sums of two kinds of pairs cannot be compared with a normal law. Where items hardly ever depart
from what their state says, a handful of rows make the sum, and it is nowhere near normal. And where
parameters were fitted to little else than the pair itself, next to nothing is left of it, and what
is left is mostly what the fit did not quite reach: an estimate of its variance cannot be trusted.
Such pairs have a z score only where their sum is overwhelming, as for two copies of one item: then
Bennett's inequality bounds its chance, whatever the law of the sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from hidag.data.sample_weights import weighted_mean_std
from hidag.diagnostics.moment_tests import LocalScores, ScoredColumns
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.posterior_tables import StateFunctions
from hidag.inference.result_tables import N_EFFECTIVE, Table

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Numbers of a block of pairs and directions.
BLOCK_NUMBERS = 1 << 23
#: A pair of which the scores leave less than this share has no spread to speak of.
NO_SPREAD = 1e-8
#: Rows in which both items depart from what their state says, that there should be: as many as are
#: customary in the cells of a table of counts.
FEWEST_DEPARTURES = 5.0
#: Chances below this are overwhelming: in fifty items that a true model fits there is hardly one.
OVERWHELMING = 1e-4
#: Chances are told down to here: z scores of smaller ones would be infinite.
SMALLEST_CHANCE = 1e-300
#: Of what a pair varies by given the latents, the scores take about their number over the number of
#: rows by chance alone. So many times that share has to be left: with less, the spread that is left
#: is told too small in a few hundred rows, and true models are rejected too often.
LEAST_LEFT = 4.0
#: Keeps directions that two items share from being divided by.
RIDGE = 1e-9


@dataclass(frozen=True)
class PairRows:
    """The rows that observed both of two columns, and sums of their weights, shape (A, G) each.

    Attributes
    ----------
    number : ndarray
    total, squares, fourth : ndarray
        Sums of weights, of their squares and of their fourth powers.
    """

    number: Array
    total: Array
    squares: Array
    fourth: Array

    @cached_property
    def effective(self) -> Array:
        """How many equal rows tell as much about a mean."""
        return np.asarray(self.total**2 / np.where(self.squares > 0, self.squares, 1.0))

    @cached_property
    def known(self) -> Array:
        """How many equal rows tell as much about a variance."""
        return np.asarray(self.squares**2 / np.where(self.fourth > 0, self.fourth, 1.0))


@dataclass(frozen=True)
class PairSums:
    """What rows add up to for pairs of columns.

    Attributes
    ----------
    x : ndarray, shape (N, G)
        Columns less their expectation, times the root of the rows' weights, so that products of
        two columns are weighted; zero where nothing was observed.
    seen : ndarray of float, shape (N, G)
        The root of the rows' weights where something was observed, ones without weights; else zero.
    expected : ndarray, shape (G, G)
        Covariances under the model.
    own : ndarray, shape (G, G)
        What a pair's number varies by in a row given the latents.
    counting : ndarray, shape (G, G)
        Share of rows that this rests on.
    item : ndarray of int, shape (G,)
    scores : LocalScores
    """

    x: Array
    seen: Array
    expected: Array
    own: Array
    counting: Array
    item: Indices
    scores: LocalScores

    def blocks(self) -> Iterator[tuple[slice, PairRows, Array, Array, Array, Array]]:
        """Yield ranges of columns with what pairs of them and any others have.

        Yields
        ------
        first : slice
        rows : PairRows
        sums, rest, z, chances : ndarray, shape (length of ``first``, G)
            Weighted sum of the rows' numbers, what the scores leave of it, its z score and the
            chance of one as large; both NaN where they cannot be told.
        """
        n_columns = self.x.shape[1]
        deepest = len(self._directions)
        step = max(1, BLOCK_NUMBERS // (n_columns * (4 + 2 * deepest + deepest**2)))
        for begin in range(0, n_columns, step):
            first = slice(begin, min(begin + step, n_columns))
            yield first, *self._block(first)

    @cached_property
    def _gappy(self) -> bool:
        return not bool(self.seen.all())

    @cached_property
    def _weights(self) -> Array:
        """The rows' weights where every cell was observed, shape (N,)."""
        return np.asarray(self.seen[:, 0] ** 2)

    @cached_property
    def _by_weight(self) -> Array:
        """The columns times the rows' weights, shape (N, G)."""
        return self.x * self.seen

    def _rows(self, first: slice) -> PairRows:
        """Return the rows that observed both of two columns."""
        if not self._gappy:
            shape, weights = self.expected[first].shape, self._weights
            sums = (len(weights), *(float((weights**power).sum()) for power in (1, 2, 4)))
            return PairRows(*(np.full(shape, float(total)) for total in sums))
        seen = (self.seen > 0).astype(np.float64)
        number = seen[:, first].T @ seen
        if (seen == self.seen).all():
            return PairRows(number, number, number, number)
        weights = self.seen**2
        return PairRows(
            number,
            self.seen[:, first].T @ self.seen,
            weights[:, first].T @ weights,
            (weights[:, first] ** 2).T @ weights**2,
        )

    @cached_property
    def _directions(self) -> list[Array]:
        """Own directions of the columns' items, the first of all columns, then the second, ..."""
        depth = max((own.shape[1] for own in self.scores.own), default=0)
        out = [np.zeros_like(self.x) for _ in range(depth)]
        for g, j in enumerate(self.item):
            for d in range(self.scores.own[j].shape[1]):
                out[d][:, g] = self.scores.own[j][:, d]
        return out

    def _block(self, first: slice) -> tuple[PairRows, Array, Array, Array, Array]:
        x, expected = self.x[:, first], self.expected[first]
        ones = np.ones(len(self.x))
        sums = self._products(first, ones)
        rows = self._rows(first)
        crossed = self._by_weight[:, first].T @ self._by_weight
        squares = (x**2).T @ self.x**2 - 2.0 * expected * crossed + rows.squares * expected**2
        left, rest = squares.copy(), sums.copy()
        for direction in self.scores.shared.T:
            product = self._products(first, direction)
            left -= product**2
            rest -= product * direction.sum()
        used = np.full(expected.shape, float(self.scores.shared.shape[1]))
        if self._directions:
            near = np.stack(
                [self._products(first, own[:, first]) for own in self._directions], axis=-1
            )
            far = np.stack([self._products(first, None, own) for own in self._directions], axis=-1)
            crossed = np.stack(
                [
                    np.stack([a[:, first].T @ b for b in self._directions], -1)
                    for a in self._directions
                ],
                -2,
            )
            totals = np.stack([own.sum(axis=0) for own in self._directions], axis=-1)
            here = totals[first][:, None, :]
            left -= (near**2).sum(axis=-1)
            rest -= (near * here).sum(axis=-1)
            # What the first item's directions leave of the second's.
            beyond = far - np.einsum("abpq,abp->abq", crossed, near)
            total = totals[None] - np.einsum(
                "abpq,abp->abq", crossed, np.broadcast_to(here, near.shape)
            )
            inner = (1.0 + RIDGE) * np.eye(len(self._directions)) - np.einsum(
                "abpq,abpr->abqr", crossed, crossed
            )
            solved = np.linalg.solve(inner, beyond[..., None])[..., 0]
            left -= (beyond * solved).sum(axis=-1)
            rest -= (total * solved).sum(axis=-1)
            depth = np.array([self.scores.own[j].shape[1] for j in self.item], dtype=np.float64)
            used += depth[first][:, None] + depth[None]
        # Regression takes as many rows' worth of spread away as it has directions.
        spare = rows.known - used
        left *= rows.known / np.maximum(spare, 1.0)
        good = (left > NO_SPREAD * squares) & (spare > used)
        share_by_chance = used / np.maximum(rows.known, 1.0)
        own = rows.squares * self.own[first]
        departures = rows.known * self.counting[first]
        good &= left >= LEAST_LEFT * share_by_chance * own
        good &= departures >= FEWEST_DEPARTURES
        z = np.where(good, rest / np.sqrt(np.where(good, left, 1.0)), np.nan)
        # The variance is not known but estimated, from so many rows.
        chances = 2.0 * t.sf(np.abs(z), np.maximum(departures, 1.0))
        # What scores take of a few rows that depart says little: the bound does without them.
        bound = bounded_chances(np.abs(rest), np.maximum(squares, own), own, departures)
        chances = np.where(good, chances, bound)
        z = np.where(good, z, np.sign(rest) * norm.isf(np.maximum(bound, SMALLEST_CHANCE) / 2.0))
        return rows, sums, rest, z, chances

    def _products(self, first: slice, near: Array | None, far: Array | None = None) -> Array:
        """Return sums over rows of the pairs' numbers times a direction, shape (A, G).

        ``near`` is one direction of all pairs (N,) or one for each first column (N, A); ``far`` is
        one for each second column (N, G).
        """
        x, seen, expected = self.x[:, first], self.seen[:, first], self.expected[first]
        if near is not None:
            by = near[:, None] if near.ndim == 1 else near
            products = (x * by).T @ self.x
            counts = (seen * by).T @ self.seen if self._gappy else (self._weights @ by)[:, None]
        else:
            assert far is not None
            products = x.T @ (self.x * far)
            counts = seen.T @ (self.seen * far) if self._gappy else (self._weights @ far)[None]
        return np.asarray(products - expected * counts)


def bounded_chances(size: Array, variance: Array, own: Array, departures: Array) -> Array:
    """Return upper bounds of the chance of overwhelming sums; NaN for others, same shape.

    A sum is overwhelming if it takes ``FEWEST_DEPARTURES`` beyond those that are expected, and its
    chance is below ``OVERWHELMING``. Others are better left without a test: of a handful of
    departures more or less the bound says nothing, and chances that are told only where they are
    smallish would be smallish too often.

    Parameters
    ----------
    size : ndarray
        Absolute values of sums.
    variance : ndarray
        Of the sums: the larger one of what is expected and seen.
    own : ndarray
        What the sums vary by given the latents.
    departures : ndarray
        Rows in which both items are expected to depart from what their state says.
    """
    known = (own > 0) & (departures > 0)
    unit = np.sqrt(np.where(known, own, 1.0) / np.where(known, departures, 1.0))
    beyond = size / unit
    # In units of one departure a sum's variance is a number of departures, as Poisson's law has it.
    number = np.where(known, variance, 1.0) / unit**2
    ratio = beyond / number
    exponent = number * ((1.0 + ratio) * np.log1p(ratio) - ratio)
    bound = 2.0 * np.exp(-exponent)
    overwhelming = known & (beyond >= FEWEST_DEPARTURES) & (bound < OVERWHELMING)
    return np.where(overwhelming, bound, np.nan)


# --- What pairs of items have in common beyond the model: observed less expected correlations

COLUMNS = (
    "first", "second", "observed", "expected", "residual", "tested", "z", "p_value", "n_rows",
)  # fmt: skip
#: Whole numbers cannot be off by a little: their mean fourth power about the mean is at least this
#: share of their variance, as it is for yes and no at one half.
LEAST_FOURTH = 0.25


def pair_residuals(free: FreeParameters, columns: ScoredColumns, scores: LocalScores) -> Table:
    """Return the residual correlation of every pair of items, with its z score.

    Covariances are about the model's means and divided by the observed standard deviations, so
    that a residual is in units of a correlation for every family. Rows that lack one of the two
    are left out of the pair. *tested* is the part of the residual that no small change of the
    parameters would mend, and what *z* is about: the same where the likelihood is at its maximum,
    not quite after a penalised fit or in a table that was not fitted. Where *z* cannot be told it
    is NaN. Rows count by their weights, if ``free`` has some, and the spread of a weighted sum is
    that of its rows' weighted numbers, as weights that go with the answers need it.

    Parameters
    ----------
    free : FreeParameters
    columns : ScoredColumns
    scores : LocalScores
        Of the same rows.
    """
    means = columns.expected.means()
    expected = columns.expected.mean_products(means)
    seen = ~np.isnan(columns.values)
    weights = free.data.row_weights
    root = np.sqrt(weights)[:, None]
    x = np.where(seen, root * (columns.values - means), 0.0)
    spread = np.nan_to_num(
        [
            weighted_mean_std(columns.values[here, g], weights[here])[1]
            for g, here in enumerate(seen.T)
        ]
    )
    own, counting = _own_share(free, columns, np.where(spread > 0, spread, 1.0))
    sums = PairSums(x, root * seen, expected, own, counting, columns.item, scores)
    names = np.array(columns.names, dtype=object)
    rows: list[tuple[object, ...]] = []
    worth: list[float] = []
    for first, both, total, rest, z, chances in sums.blocks():
        inside = np.arange(first.start, first.stop)
        a, b = np.nonzero(columns.item[inside][:, None] < columns.item[None])
        count = both.total[a, b]
        scale = spread[inside[a]] * spread[b]
        safe = np.where((scale > 0) & (count > 0), scale, np.nan)
        residual, tested = (
            part[a, b] / np.where(count > 0, count, 1.0) / safe for part in (total, rest)
        )
        model = expected[inside[a], b] / safe
        moments = (residual + model, model, residual, tested)
        numbers = (*moments, z[a, b], chances[a, b], both.number[a, b].astype(np.intp))
        rows.extend(
            zip(names[inside[a]], names[b], *(part.tolist() for part in numbers), strict=True)
        )
        worth += both.effective[a, b].tolist()
    found = Table(COLUMNS, tuple(rows))
    return found if free.data.weights is None else found.with_column(N_EFFECTIVE, worth)


def _own_share(free: FreeParameters, columns: ScoredColumns, spread: Array) -> tuple[Array, Array]:
    """Return what products of two columns vary by given the latents, and the share that counts.

    Returns
    -------
    own : ndarray, shape (G, G)
        Mean over states of the product of two columns' variances.
    counting : ndarray, shape (G, G)
        The number of rows that would vary as much if all varied alike, for each row that there is:
        small where both columns are off their states' means in a few rows only. Zero if none is.
    """
    variance, fourth = _moments_given_state(free, columns, spread)
    own, heavy = variance.mean_products(), fourth.mean_products()
    counting = np.where(heavy > 0, own**2 / np.where(heavy > 0, heavy, 1.0), 0.0)
    return own * np.outer(spread, spread) ** 2, counting


def _moments_given_state(
    free: FreeParameters, columns: ScoredColumns, spread: Array
) -> tuple[StateFunctions, StateFunctions]:
    """Return mean second and fourth powers about the means of states.

    ``spread`` (G,) is the unit of each column.
    """
    expected = columns.expected
    seen = ~np.isnan(columns.values)
    # About the middle of a column, so that little is lost to cancellation.
    middle = expected.means()
    x = np.where(seen, columns.values - middle, 0.0) / spread
    sums = {table: np.zeros((5, *part.shape)) for table, part in expected.parts.items()}
    for block in free.row_blocks():
        power = free.data.row_weights[block.rows, None] * seen[block.rows]
        for degree in range(5):
            for table, total in sums.items():
                total[degree] += block.posteriors[table].T @ power[:, expected.columns(table)]
            power = power * x[block.rows]
    whole = (np.where(seen, columns.values, 0.0) % 1.0 == 0.0).all(axis=0)
    least = np.where(whole, LEAST_FOURTH / spread**2, 0.0)
    variances, fourths = {}, {}
    for table, total in sums.items():
        own = expected.columns(table)
        shift = (middle[own] - expected.parts[table]) / spread[own]
        total /= np.maximum(total[0], 1e-12)
        variance = np.maximum(total[2] + 2.0 * shift * total[1] + shift**2, 0.0)
        fourth = (
            total[4] + 4.0 * shift * total[3] + 6.0 * shift**2 * total[2]
            + 4.0 * shift**3 * total[1] + shift**4
        )  # fmt: skip
        variances[table] = variance
        fourths[table] = np.maximum(np.maximum(fourth, variance**2), least[own] * variance)
    return expected.like(variances), expected.like(fourths)
