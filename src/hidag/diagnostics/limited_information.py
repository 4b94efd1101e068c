"""Absolute fit of categorical items by limited information: M2, RMSEA2 and SRMSR.

The full contingency table is too sparse for a chi-square test; its first and second moments are not
(Maydeu-Olivares and Joe 2006). Ordinal and binomial items enter as numbers, so that there is one
moment per item and pair whatever the number of categories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from hidag.config import CONFIG
from hidag.data.rows import describe_rows
from hidag.exceptions import Message
from hidag.formatting import plural
from hidag.inference.fitted_rows import not_listed
from hidag.information import moment_tests
from hidag.information.free_parameters import FreeParameters, LawBlock
from hidag.information.observed_information import with_moved_shape

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]

BLOCK_SIZE = 1 << 22  # Array elements of a block of rows or of moments
MAX_MOMENTS = 3000  # With more moments their covariance matrix takes too long
MIN_ROWS = 30
RANK_TOLERANCE = 1e-7  # Relative singular values below this are zero
#: States in which the means of an item have less than this share of the steepest slope are treated
#: separately; slopes below the second number are zero.
BOUNDARY_SLOPE, ZERO_SLOPE = 1e-2, 1e-9
MIN_PROBABILITY = 1e-200  # Dividing by smaller probabilities would overflow
LEVEL = 0.9  # Confidence level of the interval of RMSEA2


@dataclass(frozen=True)
class LimitedInformation:
    """Absolute fit by first and second moments; M2 is chi-square distributed under the model."""

    m2: float
    degrees: int
    p_value: float
    rmsea: float  # RMSEA2, root mean square error of approximation per degree of freedom
    interval: tuple[float, float]  # 90 %, of RMSEA2
    srmsr: float  # root mean square of observed minus expected correlations
    n_rows: int  # without a missing cell among the categorical items
    n_items: int
    n_effective: float  # these rows, or with weights the effective sample size of M2 and RMSEA2

    def summary(self) -> str:
        """Return the statistics as one line."""
        low, high = self.interval
        rows = describe_rows(self.n_rows, self.n_effective)
        return (
            f"M2 {self.m2:.2f} on {plural(self.degrees, 'degree')} of freedom "
            f"(p {self.p_value:.3g}), RMSEA2 {self.rmsea:.4f} (90% interval {low:.4f} to "
            f"{high:.4f}), SRMSR {self.srmsr:.4f}; {self.n_items} categorical items, {rows} "
            "without a missing cell"
        )


def compute_limited_information(
    free: FreeParameters, columns: moment_tests.ScoredColumns
) -> LimitedInformation | Message:
    """Return the absolute fit of the categorical items, or the reason why there is none."""
    if not free.is_listed:
        n_states = free.result.law.space.n_states_text()
        text = "M2 enumerates {n_states} joint states, and is {limit}"
        return Message("m2-too-many-states", text, {"n_states": n_states, "limit": not_listed()})
    chosen = np.flatnonzero(columns.categorical)
    part = columns.selected(chosen)
    n_items = len(np.unique(part.item))
    if n_items < 3:
        problem = "M2 needs at least 3 categorical items, but the table has {n_items}"
        return Message("m2-too-few-items", problem, {"n_items": n_items})
    left, right = part.pairs()
    n_moments = len(chosen) + len(left)
    if n_moments > MAX_MOMENTS:
        text = "M2 of {n_items} items needs {n_moments:,} moments, more than the limit of {limit:,}"
        params = {"n_items": n_items, "n_moments": n_moments, "limit": MAX_MOMENTS}
        return Message("m2-too-many-moments", text, params)
    whole = ~np.isnan(part.values).any(axis=1)
    complete, weights = part.values[whole], free.data.row_weights[whole]
    if len(complete) < MIN_ROWS:
        text = "M2 needs at least {limit} rows without a missing cell, but the table has {n_rows}"
        return Message("m2-too-few-rows", text, {"limit": MIN_ROWS, "n_rows": len(complete)})
    expected, covariance, second = expected_moments(free, part, left, right)
    weighted, total = weights[:, None] * complete, weights.sum()
    products = (weighted.T @ complete)[left, right]
    residual = np.concatenate([weighted.sum(axis=0), products]) / total - expected
    used = moment_tests.informative_columns(complete, part.item)
    moments = np.flatnonzero(np.concatenate([used, used[left] & used[right]]))
    derivatives = _moment_derivatives(free, part, left, right)[moments]
    size = np.sqrt((derivatives**2).sum(axis=0))
    basis, values, _ = svd(derivatives[:, size > 0] / size[size > 0], full_matrices=True)
    # Directions of moments that no parameter moves, (M, df).
    complement = basis[:, int((values > RANK_TOLERANCE * values[0]).sum()) :]
    degrees = complement.shape[1]
    if degrees == 0:
        reason = "M2 has no degrees of freedom: {n_moments} moments and at least as many parameters"
        return Message("m2-no-degrees", reason, {"n_moments": len(moments)})
    inner = complement.T @ covariance[np.ix_(moments, moments)] @ complement
    form = np.zeros_like(covariance)
    form[np.ix_(moments, moments)] = complement @ np.linalg.solve(inner, complement.T)
    n_effective = effective_rows(complete, weights, (left, right), expected, form)
    m2 = n_effective * float(residual @ form @ residual)
    return LimitedInformation(
        m2=m2,
        degrees=degrees,
        p_value=float(chi2.sf(m2, degrees)),
        rmsea=float(np.sqrt(max(m2 - degrees, 0.0) / (n_effective * degrees))),
        interval=_rmsea_interval(m2, degrees, n_effective),
        srmsr=_srmsr(complete, weights, expected, second, (left, right), used),
        n_rows=len(complete),
        n_items=n_items,
        n_effective=n_effective,
    )


def effective_rows(
    values: Array, weights: Array, pairs: tuple[IntArray, IntArray], expected: Array, form: Array
) -> float:
    """Return the effective sample size of a form (M, M) in means and pair products of columns."""
    if (weights == weights[0]).all():
        return float(len(weights))
    left, right = pairs
    squares = np.empty(len(values))
    step = max(1, BLOCK_SIZE // len(expected))
    for start in range(0, len(values), step):
        x = values[start : start + step]
        deviations = np.hstack([x, x[:, left] * x[:, right]]) - expected
        squares[start : start + step] = ((deviations @ form) * deviations).sum(axis=1)
    return float(weights.sum() * (weights @ squares) / (weights**2 @ squares))


def expected_moments(
    free: FreeParameters, part: moment_tests.ScoredColumns, left: IntArray, right: IntArray
) -> tuple[Array, Array, Array]:
    """Return moments under the model (G means, then pairs), their covariance, and squares (G,)."""
    p, n_columns = free.probabilities, len(part.names)
    conditional = _ConditionalProducts(free, part)
    first = np.concatenate([np.arange(n_columns), left])
    other = np.concatenate([np.full(n_columns, n_columns), right])
    given = conditional.means[first] * conditional.means[other]
    moments = given @ p
    products = (given * p) @ given.T
    item = conditional.item
    shared = np.zeros(products.shape, dtype=bool)
    for a in (first, other):
        for b in (first, other):
            shared |= (item[a][:, None] == item[b]) & (item[a] >= 0)[:, None]
    # Moments that share an item are not independent given the state.
    rows, columns = np.nonzero(np.triu(shared))
    step = max(1, BLOCK_SIZE // len(p))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        # The first column of one may belong to the item of the second column of the other.
        crossed = (item[first[i]] == item[other[j]]) | (item[other[i]] == item[first[j]])
        near = np.where(crossed, other[j], first[j])
        far = np.where(crossed, first[j], other[j])
        found = (conditional.of(first[i], near) * conditional.of(other[i], far)) @ p
        products[i, j] = products[j, i] = found
    places = np.arange(n_columns)
    return moments, products - np.outer(moments, moments), conditional.of(places, places) @ p


class _ConditionalProducts:
    """E[h_a h_b | state] of any two columns; the last column is a column of ones."""

    def __init__(self, free: FreeParameters, part: moment_tests.ScoredColumns) -> None:
        eta = free.result.parameters.predictors(free.result.law.space.states())
        n_states = part.means.shape[0]
        self.means = np.vstack([part.means.T, np.ones((1, n_states))])
        self.item = np.append(part.item, -1)
        self._place = np.full((len(self.item),) * 2, -1, dtype=np.intp)
        self._within = np.zeros((0, n_states))
        for j in np.unique(part.item):
            own = np.flatnonzero(part.item == j)
            block = moment_tests.item_second_moments(free.result, int(j), eta).reshape(-1, n_states)
            places = len(self._within) + np.arange(len(block))
            self._place[np.ix_(own, own)] = places.reshape(len(own), -1)
            self._within = np.vstack([self._within, block])

    def of(self, a: IntArray, b: IntArray) -> Array:
        """Return the conditional products of columns taken pairwise, shape (n, S)."""
        out = self.means[a] * self.means[b]
        place = self._place[a, b]
        same = place >= 0
        out[same] = self._within[place[same]]
        return np.asarray(out)


def _moment_derivatives(
    free: FreeParameters, part: moment_tests.ScoredColumns, left: IntArray, right: IntArray
) -> Array:
    """Return derivatives of the moments by all parameters of items and law, shape (M, P)."""
    result, p = free.result, free.probabilities
    eta = result.parameters.predictors(result.law.space.states())
    out, by = [], CONFIG.derivatives.step
    for c, one in enumerate(free.channels):
        item = int(result.responses.item[one.response])
        own = np.flatnonzero(part.item == item)
        if not len(own):
            continue
        if one.kind == "predictor":
            step = np.zeros_like(eta)
            step[one.response] = by
            up = moment_tests.item_means(result, result.parameters, item, eta + step)
            down = moment_tests.item_means(result, result.parameters, item, eta - step)
            design = free.designs[c]
        else:
            shape = result.parameters, one.response, one.place
            moved = (with_moved_shape(*shape, size) for size in (by, -by))
            up, down = (moment_tests.item_means(result, other, item, eta) for other in moved)
            design = np.ones((len(p), 1))
        slope = np.zeros_like(part.means)
        slope[:, own] = ((up - down) / (2 * by)).T
        for directions, own_slope in movable_directions(design, slope, own):
            pair = own_slope[:, left] * part.means[:, right]
            pair += part.means[:, left] * own_slope[:, right]
            out += list((directions * p[:, None]).T @ np.hstack([own_slope, pair]))
    moments = np.hstack([part.means, part.means[:, left] * part.means[:, right]])
    for block in free.blocks:
        top = int(np.argmax(block.probabilities))
        # No mass can move to states that prerequisites rule out.
        others = np.flatnonzero(block.possible & (np.arange(len(block.possible)) != top))
        at_top = _law_slope(block, top, p)
        out += [(_law_slope(block, m, p) - at_top) @ moments for m in others]
    return np.array(out).T


def movable_directions(design: Array, slope: Array, own: IntArray) -> Iterator[tuple[Array, Array]]:
    """Yield directions (S, n) of an item's coefficients with the slopes (S, C) of its means.

    A probability estimated as 0 or 1 has no slope on the scale of the predictor, but is a free
    parameter. Coefficients are therefore taken in stages: first those that move states with a
    slope, then combinations that leave these unchanged and move states with smaller slopes, finally
    on the scale of probabilities. ``own`` are the item's columns.
    """
    steepness = np.abs(slope[:, own]).max(axis=1)
    left = np.ones(len(design), dtype=bool)
    while design.shape[1] and left.any():
        steepest = float(steepness[left].max())
        if steepest < ZERO_SLOPE:
            # With more than two categories it is unknown which of them would move.
            unit = np.zeros_like(slope)
            unit[:, own] = float(len(own) == 1)
            yield np.where(left[:, None], design, 0.0), unit
            return
        steep = left & (steepness >= BOUNDARY_SLOPE * steepest)
        _, sizes, rotation = svd(design[steep], full_matrices=True)
        rank = int((sizes > RANK_TOLERANCE * max(sizes[0], 1.0)).sum())
        yield np.where(left[:, None], design @ rotation[:rank].T, 0.0), slope
        design, left = design @ rotation[rank:].T, left & ~steep


def _law_slope(block: LawBlock, outcome: int | np.intp, p: Array) -> Array:
    """Return the derivative of the law by the probability of an outcome, shape (S,)."""
    chosen = (block.outcome == outcome) & block.inside
    share = float(block.probabilities[outcome])
    if share > MIN_PROBABILITY:
        return np.where(chosen, p / share, 0.0)
    return np.asarray(chosen / max(int(chosen.sum()), 1), dtype=np.float64)


def _rmsea_interval(m2: float, degrees: int, n_rows: float) -> tuple[float, float]:
    """Return the interval of RMSEA2 from the noncentral chi-square distribution."""

    def noncentrality(probability: float) -> float:
        if chi2.cdf(m2, degrees) <= probability:
            return 0.0
        top = m2 + 10.0 * np.sqrt(m2) + 100.0
        return float(brentq(lambda shift: ncx2.cdf(m2, degrees, shift) - probability, 1e-9, top))

    shifts = noncentrality(0.5 + 0.5 * LEVEL), noncentrality(0.5 - 0.5 * LEVEL)
    low, high = (float(np.sqrt(shift / (n_rows * degrees))) for shift in shifts)
    return low, high


def _srmsr(
    complete: Array,
    weights: Array,
    moments: Array,
    squares: Array,
    pairs: tuple[IntArray, IntArray],
    used: NDArray[np.bool_],
) -> float:
    """Return the root mean square of observed minus expected correlations of pairs."""
    means = moments[: len(squares)]
    both = used[pairs[0]] & used[pairs[1]]
    products = moments[len(squares) :][both]
    left, right = (side[both] for side in pairs)
    spread = np.sqrt(np.maximum(squares - means**2, 1e-300))
    expected = (products - means[left] * means[right]) / (spread[left] * spread[right])
    covariance = np.cov(complete, rowvar=False, ddof=0, aweights=weights)
    deviation = np.sqrt(np.diag(covariance))
    observed = covariance[left, right] / (deviation[left] * deviation[right])
    return float(np.sqrt(np.mean((observed - expected) ** 2)))
