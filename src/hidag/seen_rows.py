"""Which cells the rows of a fit had, in a few patterns: what a fit knows of its table later on.

How surely a model is known depends on what was seen together and on how unequal rows count, not on
the share of missing cells: where two latents' items were answered by different people, few rows
tell how the two go together, however many there are. So a result keeps the patterns of its rows.
Which ones, where there are too many, goes by what the table holds: the order of its rows and
columns has no say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.canonical import canonical_order

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
        counts = np.ones(len(values)) if weights is None else weights
        seen = ~np.isnan(values)
        if seen.all():
            # The least first, so that the order of rows has no say in how their sum rounds.
            ranked = np.sort(counts)
            sums = [np.array([float(w.sum())]) for w in (ranked, ranked**2)]
            return cls(np.packbits(seen[:1], axis=1), seen.shape[1], sums[0], sums[1])
        every = cls._of_cells(seen, counts)
        if len(every.bits) <= MOST_PATTERNS:
            return every
        _, columns = canonical_order(values, ("",) * seen.shape[1])
        chosen = cls._of_cells(seen[:, columns], counts)._evenly_chosen()
        return chosen.with_items_in_order(np.argsort(columns))

    @classmethod
    def _of_cells(cls, seen: NDArray[np.bool_], counts: Floats) -> SeenRows:
        """Return the patterns of observed cells (N, J) in their own order, rows counted (N,)."""
        bits, place = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
        place = place.ravel()
        ranked = np.lexsort((counts, place))
        counted, squares = (
            np.bincount(place[ranked], w, minlength=len(bits)).astype(np.float64)
            for w in (counts[ranked], counts[ranked] ** 2)
        )
        return cls(bits, seen.shape[1], counted, squares)

    def _evenly_chosen(self) -> SeenRows:
        """Return so many of the patterns as are kept, each for as many rows."""
        # Patterns lie in the order of their cells, so that an even choice has all kinds of them.
        each = float(self.counted.sum()) / MOST_PATTERNS
        at = (np.arange(MOST_PATTERNS) + 0.5) * each
        chosen = np.minimum(np.searchsorted(np.cumsum(self.counted), at), len(self.bits) - 1)
        unequal = (self.squares / self.counted)[chosen]
        unequal *= float(self.squares.sum()) / float(unequal.sum())
        return SeenRows(self.bits[chosen], self.n_items, np.full(MOST_PATTERNS, each), unequal)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which cells were observed in each pattern, shape (M, J)."""
        return np.unpackbits(self.bits, axis=1, count=self.n_items).astype(bool)

    def with_items_in_order(self, order: NDArray[np.intp]) -> SeenRows:
        """Return the patterns with items in an order (J,), sorted by their cells in that order."""
        bits = np.packbits(self.seen[:, order], axis=1)
        ranked = np.lexsort((self.squares, self.counted, *bits.T[::-1]))
        return SeenRows(bits[ranked], self.n_items, self.counted[ranked], self.squares[ranked])
