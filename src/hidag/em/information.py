"""What the observed data say about the items' coefficients: scores and empirical information."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from hidag.em.design_data import WorkingData
from hidag.em.m_step import Basis
from hidag.em.posterior import ROWS_FOR_AVERAGES, PosteriorBlocks
from hidag.em.statistics import Statistics
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]

#: A posterior probability below this counts for nothing.
NO_WEIGHT = 1e-15
#: Slopes that are a sum of terms up to this share of the largest are one.
LINEAR = 1e-9


@dataclass(frozen=True)
class SlopeMeans:
    """What turns posteriors into means of slopes times terms, for each of several slopes.

    A slope that is a sum of terms (of a Gaussian item, or of one with a single latent) needs only
    means of products of two terms, and these serve all such slopes.

    Attributes
    ----------
    products : ndarray of float32, shape (S, Q)
        Products of pairs of columns of the design, and slopes that are no sums times the design.
    pairs : ndarray of int, shape (P, P)
        Which of the products belongs to two columns of the design.
    linear, other : ndarray of int
        Which slopes are sums of terms and which are not.
    coefficients : ndarray, shape (P, number of linear slopes)
    """

    products: NDArray[np.float32]
    pairs: NDArray[np.intp]
    linear: NDArray[np.intp]
    other: NDArray[np.intp]
    coefficients: Array

    @classmethod
    def of(cls, slopes: Array, basis: Basis, order: NDArray[np.int64]) -> SlopeMeans:
        """Return them for slopes by state, shape (m, S); posteriors have states in ``order``."""
        design = basis.design
        size = design.shape[1]
        sums = np.zeros(len(slopes), dtype=bool)
        coefficients: Array = np.zeros((size, len(slopes)))
        if not basis.collinear:
            coefficients = np.asarray(np.linalg.solve(design.T @ design, design.T @ slopes.T))
            rest = np.abs(slopes - (design @ coefficients).T).max(axis=1)
            sums = rest <= LINEAR * np.abs(slopes).max(axis=1)
        if sums.sum() * size <= basis.products.shape[1]:
            sums[:] = False
        other = np.flatnonzero(~sums)
        columns = (slopes[other, None, :] * design.T).reshape(-1, len(design)).T
        if sums.any():
            columns = np.hstack([columns, basis.products])
        left, right = np.triu_indices(size)
        pairs = np.empty((size, size), dtype=np.intp)
        pairs[left, right] = pairs[right, left] = len(other) * size + np.arange(len(left))
        # Second moments over some thousands of rows need two digits: single precision has seven.
        products = np.ascontiguousarray(columns[order], dtype=np.float32)
        return cls(products, pairs, np.flatnonzero(sums), other, coefficients[:, sums])

    def under(self, posteriors: PosteriorBlocks) -> Iterator[tuple[slice, Array]]:
        """Yield row ranges and means of each slope times each term, shape (rows, m, P)."""
        if posteriors.add_up and len(self.other) == 0:
            for rows, moments in posteriors.second_moments():
                size = len(self.coefficients)
                by_term = moments.reshape(-1, size) @ self.coefficients
                yield rows, by_term.reshape(len(moments), size, -1).transpose(0, 2, 1)
            return
        for rows, posterior in posteriors:
            yield rows, self._of_block(posterior)

    def _of_block(self, posterior: Array) -> Array:
        """Return means under posteriors, shape (n, S)."""
        # A floor that weighs nothing: numbers too small for single precision would be slow.
        means = np.maximum(posterior, NO_WEIGHT).astype(np.float32) @ self.products
        n_rows, size = len(means), len(self.pairs)
        out = np.empty((n_rows, len(self.linear) + len(self.other), size))
        n_own = len(self.other) * size
        out[:, self.other] = means[:, :n_own].reshape(n_rows, -1, size)
        if len(self.linear):
            second = means[:, self.pairs].reshape(-1, size) @ self.coefficients
            out[:, self.linear] = second.reshape(n_rows, size, -1).transpose(0, 2, 1)
        return out


def observed_information(
    parameters: MeasurementParameters,
    probabilities: Array,
    statistics: Statistics,
    data: WorkingData,
    basis: Basis,
) -> tuple[Array, Array]:
    """Return the observed-data score (J, P) and empirical information (J, P, P) of each item.

    The score of coefficient a of item j in row i is ``E[phi_a(z) (x theta'(z) - A'(z)) | x_i]``,
    with a sum over columns in place of x for items that have several.
    ``statistics`` are those expected under the parameters and the law: they hold the scores' sums
    over all rows; the information is N times an average over some thousands.
    """
    n_counted = data.n_counted
    data = data.first_rows(ROWS_FOR_AVERAGES)
    size, n_items, columns = basis.design.shape[1], data.n_items, data.columns
    beta = parameters.coefficients
    slopes = np.empty((columns.n_columns + n_items, len(basis.design)))
    dtheta, dpartition = slopes[: columns.n_columns], slopes[columns.n_columns :]
    for family, items in parameters.groups():
        eta = beta[items] @ basis.design.T
        found = family.slopes(eta, parameters.auxiliary(family, items)[:, None])
        dtheta[columns.of(family, items)], dpartition[items] = found[0], found[1]
    counts = statistics.item_counts(np.arange(n_items), data.gappy)
    summed = columns.add_up(statistics.sum_x * dtheta)
    gradient = (summed - counts * dpartition) @ basis.design
    features = np.ascontiguousarray(basis.features)
    posteriors = PosteriorBlocks.of(parameters, probabilities, features, data)
    means = SlopeMeans.of(slopes, basis, posteriors.order)
    information = np.zeros((n_items, size, size))
    for rows, both in means.under(posteriors):
        rising, falling = both[:, : columns.n_columns], both[:, columns.n_columns :]
        score = columns.add_up(data.x[rows][:, :, None] * rising, axis=1) - falling
        if data.observed is not None:
            score *= data.observed[rows][:, :, None]
        by_item = np.ascontiguousarray(score.transpose(1, 0, 2))
        counted = by_item
        if data.weights is not None:
            counted = by_item * data.weights[rows][None, :, None]
        information += by_item.transpose(0, 2, 1) @ counted
    return gradient, information * (n_counted / data.n_counted)


# --- What a table's evidence asks of items: less for each loading where the table says little

#: The variance of loadings before any were seen, in units of their items' scales, and how many
#: loadings that guess is worth.
GUESSED_VARIANCE, WORTH_OF_GUESS = 0.25, 1.0
#: Steps in which the distribution of the loadings settles.
LEARNING_STEPS = 20
#: A variance of an estimate beyond this (in the same units) says that nothing is known.
LARGEST_ERROR = 9.0
#: What keeps information invertible where an item tells nothing.
LEAST_INFORMATION = 1e-3


def log_evidence(
    parameters: MeasurementParameters,
    information: Array,
    scales: Array,
    optional: NDArray[np.bool_],
) -> float:
    """Return the logarithm of what loadings and their choice take off the likelihood.

    Parameters
    ----------
    parameters : MeasurementParameters
        Main effects, at a maximum of the likelihood given which loadings are not zero.
    information : ndarray, shape (J, 1 + T, 1 + T)
        That the observed data carry about each item's intercept and loadings.
    scales : ndarray, shape (J,)
        Size of a typical coefficient of each item.
    optional : ndarray of bool, shape (J, T)
        Loadings that are a choice, not known to be there or not to be there.

    Returns
    -------
    float
        To be added to the log-likelihood.
    """
    loadings = parameters.loadings / scales[:, None]
    direction = np.where(loadings.sum(axis=0) < 0, -1.0, 1.0)
    values, left = [], []
    for j in range(len(loadings)):
        inside = np.flatnonzero(loadings[j])
        if len(inside):
            turn = direction[inside]
            values.append(loadings[j, inside] * turn)
            left.append(_left(information[j], inside) * scales[j] ** 2 * np.outer(turn, turn))
    chosen = optional & (loadings != 0)
    n_chosen, n_optional = int(chosen.sum()), int(optional.sum())
    # Each choice is as probable as its number of loadings, and these are all equally probable.
    choice = float(betaln(n_chosen + 1.0, n_optional - n_chosen + 1.0))
    if not values:
        return choice
    mean, variance = learned_distribution(values, left)
    return choice + sum(
        _integrated(value, block, mean, variance) for value, block in zip(values, left, strict=True)
    )


def learned_distribution(values: list[Array], left: list[Array]) -> tuple[float, float]:
    """Return mean and variance of the distribution that loadings were drawn from.

    Parameters
    ----------
    values : list of ndarray, shape (n,)
        The loadings of each item that has any.
    left : list of ndarray, shape (n, n)
        Information about them, the intercept unknown.
    """
    found = np.concatenate(values)
    errors = np.concatenate([np.diag(np.linalg.inv(block)) for block in left])
    errors = np.minimum(errors, LARGEST_ERROR)
    variance = max(float(found.var() - errors.mean()), GUESSED_VARIANCE / 2.0)
    mean = float(found.mean())
    for _ in range(LEARNING_STEPS):
        weights = 1.0 / (errors + variance)
        mean = float((weights * found).sum() / weights.sum())
        expected = (found * variance + mean * errors) * weights
        unsure = variance * errors * weights
        total = float(((expected - mean) ** 2 + unsure).sum())
        guess = WORTH_OF_GUESS * GUESSED_VARIANCE
        variance = (guess + total) / (WORTH_OF_GUESS + len(found))
    return mean, variance


def _left(information: Array, inside: NDArray[np.intp]) -> Array:
    """Return the information about some loadings when the intercept is not known either."""
    rows = inside + 1
    block = information[np.ix_(rows, rows)]
    cross = information[rows, 0]
    block = block - np.outer(cross, cross) / max(float(information[0, 0]), LEAST_INFORMATION)
    return np.asarray(block + LEAST_INFORMATION * np.eye(len(rows)))


def _integrated(value: Array, block: Array, mean: float, variance: float) -> float:
    """Return the log of the mean likelihood over loadings, relative to the maximum's."""
    spread = np.eye(len(value)) + variance * block
    off = (value - mean) / np.sqrt(variance)
    _, log_determinant = np.linalg.slogdet(spread)
    return float(-0.5 * log_determinant - 0.5 * (off @ off - off @ np.linalg.solve(spread, off)))
