"""Rows against the states of half of the latents: see :mod:`hidag.estimate.halves`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Exponents of a part that cannot be larger than this, either way, need no shift: exponentials of
#: three such parts have a product within the range of numbers.
BOUNDED = 150.0


@dataclass(frozen=True)
class Part:
    """What rows are multiplied with to meet the states of some of the latents.

    Attributes
    ----------
    terms : ndarray, shape (A, T')
        Values of these latents' terms: what items that add up have.
    columns : ndarray of int, shape (d,)
        Columns of extended rows that have a table.
    table : ndarray, shape (d, A)
        What a unit of each adds to the log density, less the middle of its range.
    bounded : bool
        Whether no row's exponents can be beyond ``BOUNDED``.
    """

    terms: Array
    columns: Indices
    table: Array
    bounded: bool

    def densities(self, rows: Array, pull: Array) -> tuple[Array, Array]:
        """Return densities up to a factor for each row, (n, A), and the factors' logarithms.

        ``rows`` are extended ones, ``pull`` (n, T') is what makes the terms more or less likely.
        """
        if len(self.columns) == 0:
            exponents = pull @ self.terms.T
        else:
            exponents = rows[:, self.columns] @ self.table
            if self.terms.shape[1]:
                exponents += pull @ self.terms.T
        if self.bounded:
            return np.exp(exponents, out=exponents), np.zeros(1)
        top = exponents.max(axis=1)
        exponents -= top[:, None]
        return np.exp(exponents, out=exponents), top


@dataclass(frozen=True)
class Densities:
    """Rows against the states of either half, whatever the law is.

    Attributes
    ----------
    left, right : ndarray, shape (n, A) and (n, B)
        Densities up to factors.
    log_factor : ndarray, shape (n,) or (1,)
        Logarithms of the factors of both.
    log_level : ndarray, shape (n,)
        Logarithms of what a row has in any state.
    """

    left: Array
    right: Array
    log_factor: Array
    log_level: Array

    def __getitem__(self, rows: NDArray[np.bool_]) -> Densities:
        factor = self.log_factor if len(self.log_factor) == 1 else self.log_factor[rows]
        return Densities(self.left[rows], self.right[rows], factor, self.log_level[rows])
