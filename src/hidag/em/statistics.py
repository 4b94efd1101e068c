"""Sufficient statistics of Stage I: sums over rows, by latent state. Row blocks add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Expected (or sampled) complete-data sums.

    Attributes
    ----------
    count : ndarray, shape (S,)
        Rows in each latent state.
    sum_x : ndarray, shape (D, S)
        Sums of the items' columns by state, over observed cells.
    gap_count : ndarray, shape (M, S)
        Rows in each state that observed the item, for the M items with missing cells.
    """

    count: Array
    sum_x: Array
    gap_count: Array

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.count + other.count, self.sum_x + other.sum_x, self.gap_count + other.gap_count
        )

    def blend(self, fresh: Statistics, step: float) -> Statistics:
        """Return ``(1 - step) * self + step * fresh``, the Robbins-Monro average."""
        keep = 1.0 - step
        return Statistics(
            keep * self.count + step * fresh.count,
            keep * self.sum_x + step * fresh.sum_x,
            keep * self.gap_count + step * fresh.gap_count,
        )

    def item_counts(self, items: NDArray[np.intp], gappy: NDArray[np.intp]) -> Array:
        """Return the rows that observed each item by state, shape (len(items), S)."""
        out = np.broadcast_to(self.count, (len(items), len(self.count)))
        if len(gappy) == 0:
            return out
        out = out.copy()
        place = {int(j): m for m, j in enumerate(gappy)}
        for row, j in enumerate(items):
            if int(j) in place:
                out[row] = self.gap_count[place[int(j)]]
        return out


# --- Sums over the rows of a table's columns: moments, and what other columns leave

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
