"""What a table's evidence asks of items: less for each loading where the table says little.

An information criterion charges half log N for a loading, as if every row told what its latents
were. Where items say little about latents the observed data carry a few hundredths of that
information, and half log N is far too much: several latents that share their items then beat the
true ones, because that saves loadings. So the loadings are integrated out instead (Laplace), with
the information that the observed data carry about each item's coefficients, under a normal
distribution of the loadings whose mean and variance are learned from this table. Loadings of one
size and direction, which true ones tend to be, cost less than a mixture of tiny and huge ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

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
