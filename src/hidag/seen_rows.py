"""Which cells the rows of a fit had, in a few patterns: what a fit knows of its table later on.

How surely a model is known depends on what was seen together and on how unequal rows count, not on
the share of missing cells: where two latents' items were answered by different people, few rows
tell how the two go together, however many there are. So a result keeps the patterns of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Patterns that are kept; of more, so many are taken evenly from all rows.
MOST_PATTERNS = 1024


@dataclass(frozen=True)
class SeenRows:
    """Patterns of observed cells, M of them over J items, and how much their rows count.

    Attributes
    ----------
    bits : ndarray of uint8, shape (M, ceil(J / 8))
        Which cells were observed, eight items in a number.
    n_items : int
    counted : ndarray, shape (M,)
        How many rows have the pattern, or the sum of their weights.
    squares : ndarray, shape (M,)
        Sum of the rows' squared weights.
    """

    bits: NDArray[np.uint8]
    n_items: int
    counted: Floats
    squares: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> SeenRows:
        """Return the patterns of a table (N, J), NaN where a cell is missing, with weights (N,)."""
        n_rows, n_items = values.shape
        counts = np.ones(n_rows) if weights is None else weights
        seen = ~np.isnan(values)
        if seen.all():
            whole = np.packbits(seen[:1], axis=1)
            sums = [np.array([float(w.sum())]) for w in (counts, counts**2)]
            return cls(whole, n_items, sums[0], sums[1])
        packed = np.packbits(seen, axis=1)
        bits, place = np.unique(packed, axis=0, return_inverse=True)
        counted, squares = (
            np.bincount(place.ravel(), w, minlength=len(bits)).astype(np.float64)
            for w in (counts, counts**2)
        )
        if len(bits) <= MOST_PATTERNS:
            return cls(bits, n_items, counted, squares)
        # Patterns lie in the order of their cells, so that an even choice has all kinds of them.
        each = float(counted.sum()) / MOST_PATTERNS
        at = (np.arange(MOST_PATTERNS) + 0.5) * each
        chosen = np.minimum(np.searchsorted(np.cumsum(counted), at), len(bits) - 1)
        unequal = (squares / counted)[chosen]
        unequal *= float(squares.sum()) / float(unequal.sum())
        return cls(bits[chosen], n_items, np.full(MOST_PATTERNS, each), unequal)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which cells were observed in each pattern, shape (M, J)."""
        return np.unpackbits(self.bits, axis=1, count=self.n_items).astype(bool)
