"""Sums over the rows of a table's columns: moments, and what other columns leave unexplained."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: With fewer rows than this for each other item, a regression explains what it should not.
ROWS_PER_REGRESSOR = 5
#: Shares of noise below this are not told apart.
_SMALLEST_SHARE = 1e-4


def total_of(values: Array, counts: Array | None) -> float:
    """Return the sum of values (n,), each as often as it counts."""
    return float(values.sum() if counts is None else values @ counts)


def mean_and_spread(values: Array, counts: Array | None) -> tuple[float, float]:
    """Return mean and standard deviation of values (n,); a spread of zero comes back as one."""
    if counts is None:
        return float(values.mean()), float(values.std()) or 1.0
    mean = float(np.average(values, weights=counts))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=counts))) or 1.0


def moments_of(x: Array, n_observed: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return sums of squares, means and variances of columns (N, D) with zeros where missing."""
    safe = np.maximum(n_observed, 1.0 if weights is None else 1e-12)
    if weights is None:
        sum_squares, total = np.einsum("ij,ij->j", x, x), x.sum(axis=0)
    else:
        sum_squares, total = weights @ (x * x), weights @ x
    mean = total / safe
    return sum_squares, mean, np.maximum(sum_squares / safe - mean**2, 0.0)


def unexplained_shares(x: Array, weights: Array | None) -> Array:
    """Return the share of each column that no regression on the others explains, shape (D,).

    It is never below the share of noise. Missing cells make it larger, and so do few rows: then
    nothing tells, and all are 1.

    Parameters
    ----------
    x : ndarray, shape (N, D)
        With means of zero; zeros in missing cells.
    weights : ndarray, shape (N,), or None
    """
    n_rows = float(len(x) if weights is None else weights.sum())
    left = n_rows - x.shape[1]
    if x.shape[1] < 2 or left < ROWS_PER_REGRESSOR * x.shape[1]:
        return np.ones(x.shape[1])
    moments = (x if weights is None else x * weights[:, None]).T @ x / n_rows
    # Copies of an item explain it without rest: a little noise keeps the inverse finite.
    moments[np.diag_indices_from(moments)] *= 1.0 + _SMALLEST_SHARE
    rest = 1.0 / (np.diag(np.linalg.inv(moments)) * np.diag(moments))
    return np.asarray(np.clip(rest * n_rows / left, _SMALLEST_SHARE, 1.0))
