"""Absolute fit of categorical items by means and products of pairs: M2, RMSEA2, SRMSR.

The full table of answers is too sparse for a chi-square test; its first and second moments are not
(Maydeu-Olivares and Joe 2006). Ordered grades and numbers of successes enter as numbers, which
keeps one moment per item and pair whatever the number of grades.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from hidag.data.sample_weights import describe_rows
from hidag.diagnostics.moment_tests import (
    ScoredColumns,
    item_means,
    item_second_moments,
    telling_columns,
)
from hidag.formatting import plural
from hidag.inference.fitted_rows import NOT_LISTED
from hidag.inference.information.free_parameters import FreeParameters, LawBlock
from hidag.inference.information.item_derivatives import STEP
from hidag.inference.information.observed_information import with_moved_shape

# --- How many equal rows do rows with weights make, for a statistic that is a sum of squares?

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Numbers of a block of rows and moments.
BLOCK_NUMBERS = 1 << 22


def effective_rows(
    values: Array,
    weights: Array,
    pairs: tuple[IntArray, IntArray],
    expected: Array,
    form: Array,
) -> float:
    """Return the number of equal rows that a quadratic form of means and pair products rests on.

    Parameters
    ----------
    values : ndarray, shape (N, G)
        Columns without missing cells.
    weights : ndarray, shape (N,)
    pairs : tuple of ndarray of int, shape (M - G,) each
        Columns whose products are the moments after the G means.
    expected : ndarray, shape (M,)
        Moments under the model.
    form : ndarray, shape (M, M)
        Of the statistic: what the moments' distances from their expectation are squared by.
    """
    if (weights == weights[0]).all():
        return float(len(weights))
    left, right = pairs
    squares = np.empty(len(values))
    step = max(1, BLOCK_NUMBERS // len(expected))
    for start in range(0, len(values), step):
        x = values[start : start + step]
        shown = np.hstack([x, x[:, left] * x[:, right]]) - expected
        squares[start : start + step] = ((shown @ form) * shown).sum(axis=1)
    return float(weights.sum() * (weights @ squares) / (weights**2 @ squares))


# --- Means and pair products of categorical items: what the model expects of them, and their

#: Entries that share an item are put right so many numbers at a time.
CHUNK_CELLS = 1 << 22


def expected_moments(
    free: FreeParameters, part: ScoredColumns, left: IntArray, right: IntArray
) -> tuple[Array, Array, Array]:
    """Return the moments, their covariance in one row, and expected squares of the columns (G,).

    Parameters
    ----------
    free : FreeParameters
    part : ScoredColumns
        G columns of categorical items.
    left, right : ndarray of int, shape (pairs,)
        The pairs; moments are the G means, then the pairs' products.
    """
    p, n_columns = free.probabilities, len(part.names)
    seconds = _Seconds(free, part)
    ones = np.full(n_columns, n_columns)
    first = np.concatenate([np.arange(n_columns), left])
    other = np.concatenate([ones, right])
    given = seconds.means[first] * seconds.means[other]
    moments = given @ p
    products = (given * p) @ given.T
    item = seconds.item
    shared = np.zeros(products.shape, dtype=bool)
    for a in (first, other):
        for b in (first, other):
            shared |= (item[a][:, None] == item[b][None, :]) & (item[a] >= 0)[:, None]
    rows, columns = np.nonzero(np.triu(shared))
    step = max(1, CHUNK_CELLS // len(p))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        # The first column of the one may be of the item of the second of the other.
        crossed = (item[first[i]] == item[other[j]]) | (item[other[i]] == item[first[j]])
        near = np.where(crossed, other[j], first[j])
        far = np.where(crossed, first[j], other[j])
        found = (seconds.of(first[i], near) * seconds.of(other[i], far)) @ p
        products[i, j] = products[j, i] = found
    places = np.arange(n_columns)
    return moments, products - np.outer(moments, moments), seconds.of(places, places) @ p


class _Seconds:
    """E[h_a h_b | state] for any two columns, the last of which is a column of ones."""

    def __init__(self, free: FreeParameters, part: ScoredColumns) -> None:
        eta = free.result.parameters.predictors(free.result.law.space.states())
        n_states = part.means.shape[0]
        self.means = np.vstack([part.means.T, np.ones((1, n_states))])
        self.item = np.append(part.item, -1)
        blocks, n_before = [], 0
        self._place = np.full((len(self.item),) * 2, -1, dtype=np.intp)
        for j in np.unique(part.item):
            own = np.flatnonzero(part.item == j)
            block = item_second_moments(free.result, int(j), eta)
            size = len(own) ** 2
            self._place[np.ix_(own, own)] = n_before + np.arange(size).reshape(len(own), -1)
            blocks.append(block.reshape(size, n_states))
            n_before += size
        self._within = np.vstack(blocks)

    def of(self, a: IntArray, b: IntArray) -> Array:
        """Return them for columns taken pairwise, shape (n, S)."""
        out = self.means[a] * self.means[b]
        place = self._place[a, b]
        same = place >= 0
        out[same] = self._within[place[same]]
        return np.asarray(out)


# ---

#: More moments than these are not compared at once: their covariances take too long.
MOST_MOMENTS = 3000
FEWEST_ROWS = 30
#: Directions of the moments' derivatives below this share of the largest are none.
NO_DIRECTION = 1e-7
#: States in which an item's means have less than this share of the largest slope are taken apart
#: from the others, and slopes below this are none.
AT_EDGE, NO_SLOPE = 1e-2, 1e-9
#: A probability below this is zero: dividing by it would overflow.
NOTHING = 1e-200
#: Chance that the interval of RMSEA2 holds the true value.
LEVEL = 0.9


@dataclass(frozen=True)
class LimitedInformation:
    """Absolute fit by first and second moments.

    Attributes
    ----------
    m2 : float
        Chi-square distributed with ``degrees`` degrees of freedom if the model holds.
    degrees : int
    p_value : float
    rmsea : float
        RMSEA2, root mean square error of approximation per degree of freedom.
    interval : tuple of float
        90 % interval of RMSEA2.
    srmsr : float
        Root mean square of observed less expected correlations.
    n_rows : int
        Rows without a missing cell among the categorical items.
    n_items : int
    n_effective : float
        Rows that M2 and RMSEA2 count: these, or as many equal ones as they are worth with weights.
    """

    m2: float
    degrees: int
    p_value: float
    rmsea: float
    interval: tuple[float, float]
    srmsr: float
    n_rows: int
    n_items: int
    n_effective: float

    def summary(self) -> str:
        """Return the numbers in a sentence."""
        low, high = self.interval
        rows = describe_rows(self.n_rows, self.n_effective)
        return (
            f"M2 {self.m2:.2f} on {plural(self.degrees, 'degree')} of freedom "
            f"(p {self.p_value:.3g}), RMSEA2 {self.rmsea:.4f} (90 % interval {low:.4f} to "
            f"{high:.4f}), SRMSR {self.srmsr:.4f}; {self.n_items} categorical items, {rows} "
            "without a missing cell"
        )


def limited_information(free: FreeParameters, columns: ScoredColumns) -> LimitedInformation | str:
    """Return the absolute fit of the categorical items, or a sentence on why there is none.

    With weights, observed moments are weighted, and M2 counts as many rows as it would take of
    equal ones to vary as much on average over its degrees of freedom.
    """
    if not free.is_listed:
        return (
            f"M2 takes {free.result.law.space.n_states_text()} joint states listed, and is "
            f"{NOT_LISTED}"
        )
    chosen = np.flatnonzero(columns.categorical)
    part = columns.selected(chosen)
    n_items = len(np.unique(part.item))
    if n_items < 3:
        there = "there is 1" if n_items == 1 else f"there are {n_items}"
        return f"M2 needs at least 3 categorical items, and {there}"
    left, right = part.pairs()
    n_moments = len(chosen) + len(left)
    if n_moments > MOST_MOMENTS:
        return (
            f"M2 of {n_items} items would compare {n_moments:,} moments at once, more than "
            f"{MOST_MOMENTS:,}"
        )
    whole = ~np.isnan(part.values).any(axis=1)
    complete, weights = part.values[whole], free.data.row_weights[whole]
    if len(complete) < FEWEST_ROWS:
        return (
            f"M2 needs at least {FEWEST_ROWS} rows without a missing cell, and this table has "
            f"{len(complete)}"
        )
    expected, covariance, second = expected_moments(free, part, left, right)
    counted, total = weights[:, None] * complete, weights.sum()
    observed = np.concatenate(
        [counted.sum(axis=0) / total, (counted.T @ complete)[left, right] / total]
    )
    residual = observed - expected
    telling = telling_columns(complete, part.item)
    kept = np.flatnonzero(np.concatenate([telling, telling[left] & telling[right]]))
    outside = _complement(_slopes(free, part, left, right)[kept])
    degrees = outside.shape[1]
    if degrees == 0:
        return f"M2 has no degree of freedom: {len(kept)} moments, and no fewer parameters"
    inner = outside.T @ covariance[np.ix_(kept, kept)] @ outside
    form = np.zeros_like(covariance)
    form[np.ix_(kept, kept)] = outside @ np.linalg.solve(inner, outside.T)
    n_effective = effective_rows(complete, weights, (left, right), expected, form)
    m2 = n_effective * float(residual @ form @ residual)
    return LimitedInformation(
        m2=m2,
        degrees=degrees,
        p_value=float(chi2.sf(m2, degrees)),
        rmsea=_rmsea(m2, degrees, n_effective),
        interval=_interval(m2, degrees, n_effective),
        srmsr=_srmsr(complete, weights, expected, second, left, right, telling),
        n_rows=len(complete),
        n_items=n_items,
        n_effective=n_effective,
    )


def _slopes(free: FreeParameters, part: ScoredColumns, left: IntArray, right: IntArray) -> Array:
    """Return derivatives of the moments by all parameters of items and law, shape (M, P)."""
    result, p = free.result, free.probabilities
    eta = result.parameters.predictors(result.law.space.states())
    out = []
    for c, one in enumerate(free.channels):
        item = int(result.responses.item[one.response])
        own = np.flatnonzero(part.item == item)
        if not len(own):
            continue
        if one.kind == "predictor":
            step = np.zeros_like(eta)
            step[one.response] = STEP
            up = item_means(result, result.parameters, item, eta + step)
            down = item_means(result, result.parameters, item, eta - step)
            design = free.designs[c]
        else:
            turned = [
                with_moved_shape(result.parameters, one.response, one.place, h)
                for h in (STEP, -STEP)
            ]
            up, down = (item_means(result, other, item, eta) for other in turned)
            design = np.ones((len(p), 1))
        slope = np.zeros_like(part.means)
        slope[:, own] = ((up - down) / (2 * STEP)).T
        for columns, own_slope in moving(design, slope, own):
            pair = own_slope[:, left] * part.means[:, right]
            pair += part.means[:, left] * own_slope[:, right]
            out += list((columns * p[:, None]).T @ np.hstack([own_slope, pair]))
    moments = np.hstack([part.means, part.means[:, left] * part.means[:, right]])
    for block in free.blocks:
        top = int(np.argmax(block.probabilities))
        # What prerequisites rule out has no direction: mass cannot move there.
        for m in np.flatnonzero(block.possible):
            if m != top:
                out.append((_towards(block, m, p) - _towards(block, top, p)) @ moments)
    return np.array(out).T


def moving(design: Array, slope: Array, own: IntArray) -> Iterator[tuple[Array, Array]]:
    """Yield what moves an item's means: columns (S, n) and the slopes (S, C) they multiply.

    A chance that was estimated as zero or one has no slope on the scale of the predictor, and moves
    all the same, as a share of zero does. So coefficients are taken in steps: those that states
    with a slope feel, then combinations that leave these where they are and move only states with
    less of it, in the end on the scale of chances.

    Parameters
    ----------
    design : ndarray, shape (S, n)
        What the item's coefficients add to its predictor in each state.
    slope : ndarray, shape (S, C)
        Of the means by that predictor.
    own : ndarray of int
        The item's columns.
    """
    steep = np.abs(slope[:, own]).max(axis=1)
    left = np.ones(len(design), dtype=bool)
    while design.shape[1] and left.any():
        top = float(steep[left].max())
        if top < NO_SLOPE:
            # Of two answers one is as good as the other; of more, nothing tells which would move.
            freed = np.zeros_like(slope)
            freed[:, own] = float(len(own) == 1)
            yield np.where(left[:, None], design, 0.0), freed
            return
        felt = left & (steep >= AT_EDGE * top)
        _, sizes, turned = svd(design[felt], full_matrices=True)
        rank = int((sizes > NO_DIRECTION * max(sizes[0], 1.0)).sum())
        yield np.where(left[:, None], design @ turned[:rank].T, 0.0), slope
        design, left = design @ turned[rank:].T, left & ~felt


def _towards(block: LawBlock, outcome: int | np.intp, p: Array) -> Array:
    """Return how the law moves when an outcome's probability grows, shape (S,)."""
    chosen = (block.outcome == outcome) & block.inside
    share = float(block.probabilities[outcome])
    if share > NOTHING:
        return np.where(chosen, p / share, 0.0)
    return np.asarray(chosen / max(int(chosen.sum()), 1), dtype=np.float64)


def _complement(slopes: Array) -> Array:
    """Return a basis of the directions of moments that no parameter moves, shape (M, df)."""
    size = np.sqrt((slopes**2).sum(axis=0))
    left, values, _ = svd(slopes[:, size > 0] / size[size > 0], full_matrices=True)
    rank = int((values > NO_DIRECTION * values[0]).sum())
    return np.asarray(left[:, rank:])


def _rmsea(m2: float, degrees: int, n_rows: float) -> float:
    return float(np.sqrt(max(m2 - degrees, 0.0) / (n_rows * degrees)))


def _interval(m2: float, degrees: int, n_rows: float) -> tuple[float, float]:
    """Return the ends of RMSEA2's interval, from the non-central chi-square law."""

    def root(chance: float) -> float:
        if chi2.cdf(m2, degrees) <= chance:
            return 0.0
        top = m2 + 10.0 * np.sqrt(m2) + 100.0
        return float(brentq(lambda shift: ncx2.cdf(m2, degrees, shift) - chance, 1e-9, top))

    shifts = root(0.5 + 0.5 * LEVEL), root(0.5 - 0.5 * LEVEL)
    low, high = (float(np.sqrt(shift / (n_rows * degrees))) for shift in shifts)
    return low, high


def _srmsr(
    complete: Array,
    weights: Array,
    moments: Array,
    squares: Array,
    left: IntArray,
    right: IntArray,
    telling: NDArray[np.bool_],
) -> float:
    """Return the root mean square of observed less expected correlations of pairs."""
    means = moments[: len(squares)]
    pairs = moments[len(squares) :][telling[left] & telling[right]]
    left, right = (side[telling[left] & telling[right]] for side in (left, right))
    spread = np.sqrt(np.maximum(squares - means**2, 1e-300))
    expected = (pairs - means[left] * means[right]) / (spread[left] * spread[right])
    centred = complete - weights @ complete / weights.sum()
    covariance = (weights[:, None] * centred).T @ centred / weights.sum()
    deviation = np.sqrt(np.diag(covariance))
    observed = covariance[left, right] / (deviation[left] * deviation[right])
    return float(np.sqrt(np.mean((observed - expected) ** 2)))
