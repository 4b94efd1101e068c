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
