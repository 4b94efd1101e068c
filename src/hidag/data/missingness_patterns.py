"""Which cells the rows of a fit had, in a few patterns: what a fit knows of its table later on.

How surely a model is known depends on what was seen together and on how unequal rows count, not on
the share of missing cells: where two latents' items were answered by different people, few rows
tell how the two go together, however many there are. So a result keeps the patterns of its rows.
Which ones, where there are too many, goes by what the table holds: the order of its rows and
columns has no say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# --- An order of rows and columns that depends on their contents alone

_ROUNDS = 3


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def canonical_order(
    values: NDArray[np.float64],
    labels: Sequence[str],
    weights: NDArray[np.float64] | None = None,
    ties: NDArray[np.integer] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the orders of rows and of columns in which a table is worked on.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        NaN in missing cells.
    labels : sequence of str, length J
        What tells columns apart besides their contents: the family, the given row of Q.
    weights : ndarray, shape (N,), or None
        What tells rows apart besides theirs.
    ties : ndarray of int, shape (J,), or None
        What columns go by that nothing else tells apart, as all of a kind in a table of one row.

    Notes
    -----
    Rows and columns are coloured in turn: a row by the multiset of its cells with their columns'
    colours, a column by that of its cells with their rows' colours. Rows or columns that still
    share a colour after three rounds are interchangeable for every purpose here.

    Copies of a row are scattered: what is estimated from the first few thousand rows would
    otherwise see a handful of patterns of a table that has few, and most of its copies of those.
    """
    seeds = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest()) for t in labels]
    column = np.array(seeds, dtype=np.uint64)
    row = np.zeros(len(values), dtype=np.uint64) if weights is None else _words(weights)
    for _ in range(_ROUNDS):
        # Column by column, so that no array of the table's size is made.
        total = np.zeros(len(values), dtype=np.uint64)
        for j in range(len(column)):
            total += _mix(_mix(_words(values[:, j]) ^ column[j]) ^ row)
        row = _mix(row ^ total)
        for j in range(len(column)):
            keyed = _mix(_mix(_words(values[:, j]) ^ row) ^ column[j])
            column[j] = _mix(column[j : j + 1] ^ keyed.sum(dtype=np.uint64))[0]
    last = np.zeros(len(column), dtype=np.intp) if ties is None else ties
    return np.argsort(_scattered(row), kind="stable"), np.lexsort((last, column))


def _scattered(colours: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return colours in which every copy but the first has one of its own."""
    order = np.argsort(colours, kind="stable")
    arranged = colours[order]
    places = np.arange(len(colours))
    new = np.append(True, arranged[1:] != arranged[:-1])[: len(colours)]
    copy = (places - np.maximum.accumulate(np.where(new, places, 0))).astype(np.uint64)
    out = np.empty_like(colours)
    out[order] = np.where(copy > 0, _mix(arranged ^ _mix(copy)), arranged)
    return out


def _words(cells: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the bits of the cells; minus zero looks like zero, every missing cell alike."""
    bits = (np.ascontiguousarray(cells) + 0.0).view(np.uint64)
    return np.where(np.isnan(cells), np.uint64(0x7FF8000000000000), bits)


# ---

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
