"""Missingness patterns of a table, and an order of rows and columns by their contents.

The precision of a fit depends on which items were observed together and on the row weights, not
only on the share of missing cells. A result therefore stores the patterns of observed cells of its
table. If there are too many, a sample is stored that does not depend on the order of the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Patterns that are stored; of more, so many are sampled evenly from all rows.
MAX_PATTERNS = 1024
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
    """Return orders of rows and columns that depend on the contents of a table only.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        NaN for missing cells.
    labels : sequence of str, length J
        Attributes of the columns besides their contents: the family, the given row of Q.
    weights : ndarray, shape (N,), or None
        Attributes of the rows.
    ties : ndarray of int, shape (J,), or None
        Order of columns that are otherwise equal.

    Returns
    -------
    rows : ndarray of int, shape (N,)
    columns : ndarray of int, shape (J,)

    Notes
    -----
    Colour refinement: rows and columns are coloured in turn, a row by the multiset of its cells
    with the colours of their columns, a column by that of its cells with the colours of their rows.
    Rows or columns with the same colour after three rounds are interchangeable here.

    Copies of a row are scattered, so that estimates from the first few thousand rows represent a
    table with few distinct rows.
    """
    seeds = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest()) for t in labels]
    column = np.array(seeds, dtype=np.uint64)
    row = np.zeros(len(values), dtype=np.uint64) if weights is None else _as_bits(weights)
    for _ in range(_ROUNDS):
        # Column by column, so that no array of the table's size is made.
        total = np.zeros(len(values), dtype=np.uint64)
        for j in range(len(column)):
            total += _mix(_mix(_as_bits(values[:, j]) ^ column[j]) ^ row)
        row = _mix(row ^ total)
        for j in range(len(column)):
            keyed = _mix(_mix(_as_bits(values[:, j]) ^ row) ^ column[j])
            column[j] = _mix(column[j : j + 1] ^ keyed.sum(dtype=np.uint64))[0]
    last = np.zeros(len(column), dtype=np.intp) if ties is None else ties
    return np.argsort(_scatter_copies(row), kind="stable"), np.lexsort((last, column))


def collapse_rows(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the distinct rows of a table and the sums of their weights.

    A row that occurs twice and a row of weight 2 become the same. Missing cells are equal. The
    table itself comes back if all rows are distinct.

    Parameters
    ----------
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), or None
    """
    rows = np.column_stack([_as_bits(column) for column in values.T])
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, first, place = np.unique(keys.ravel(), return_index=True, return_inverse=True)
    if len(first) == len(values):
        return values, weights
    totals = np.bincount(place.ravel(), weights, minlength=len(first))
    return values[first], totals.astype(np.float64)


def _scatter_copies(colours: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return colours in which every copy except the first has a colour of its own."""
    order = np.argsort(colours, kind="stable")
    arranged = colours[order]
    places = np.arange(len(colours))
    new = np.append(True, arranged[1:] != arranged[:-1])[: len(colours)]
    copy = (places - np.maximum.accumulate(np.where(new, places, 0))).astype(np.uint64)
    out = np.empty_like(colours)
    out[order] = np.where(copy > 0, _mix(arranged ^ _mix(copy)), arranged)
    return out


def _as_bits(cells: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the bits of the cells, the same for both zeros and for every missing cell."""
    bits = (np.ascontiguousarray(cells) + 0.0).view(np.uint64)
    return np.where(np.isnan(cells), np.uint64(0x7FF8000000000000), bits)


@dataclass(frozen=True)
class MissingnessPatterns:
    """Patterns of observed cells, M of them over J items, with the weights of their rows.

    Attributes
    ----------
    bits : ndarray of uint8, shape (M, ceil(J / 8))
        Observed cells, eight items in a byte.
    n_items : int
    counted : ndarray, shape (M,)
        Number of rows with the pattern, or the sum of their weights.
    squares : ndarray, shape (M,)
        Sum of the squared weights of these rows.
    """

    bits: NDArray[np.uint8]
    n_items: int
    counted: Floats
    squares: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> MissingnessPatterns:
        """Return the patterns of a table (N, J), NaN for missing cells, with weights (N,)."""
        counts = np.ones(len(values)) if weights is None else weights
        seen = ~np.isnan(values)
        if seen.all():
            # Sorted, so that the rounding of the sum does not depend on the order of rows.
            ranked = np.sort(counts)
            sums = [np.array([float(w.sum())]) for w in (ranked, ranked**2)]
            return cls(np.packbits(seen[:1], axis=1), seen.shape[1], sums[0], sums[1])
        every = cls._of_cells(seen, counts)
        if len(every.bits) <= MAX_PATTERNS:
            return every
        _, columns = canonical_order(values, ("",) * seen.shape[1])
        chosen = cls._of_cells(seen[:, columns], counts)._sample_evenly()
        return chosen.with_items_in_order(np.argsort(columns))

    @classmethod
    def _of_cells(cls, seen: NDArray[np.bool_], counts: Floats) -> MissingnessPatterns:
        """Return the sorted patterns of observed cells (N, J) with row weights (N,)."""
        bits, place = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
        place = place.ravel()
        ranked = np.lexsort((counts, place))
        counted, squares = (
            np.bincount(place[ranked], w, minlength=len(bits)).astype(np.float64)
            for w in (counts[ranked], counts[ranked] ** 2)
        )
        return cls(bits, seen.shape[1], counted, squares)

    def _sample_evenly(self) -> MissingnessPatterns:
        """Return `MAX_PATTERNS` patterns of equal weight."""
        # Patterns are sorted, so that an even sample represents all kinds of them.
        each = float(self.counted.sum()) / MAX_PATTERNS
        at = (np.arange(MAX_PATTERNS) + 0.5) * each
        chosen = np.minimum(np.searchsorted(np.cumsum(self.counted), at), len(self.bits) - 1)
        unequal = (self.squares / self.counted)[chosen]
        unequal *= float(self.squares.sum()) / float(unequal.sum())
        return MissingnessPatterns(
            self.bits[chosen], self.n_items, np.full(MAX_PATTERNS, each), unequal
        )

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Observed cells of each pattern, shape (M, J)."""
        return np.unpackbits(self.bits, axis=1, count=self.n_items).astype(bool)

    def with_items_in_order(self, order: NDArray[np.intp]) -> MissingnessPatterns:
        """Return the patterns with reordered items (J,), sorted again."""
        bits = np.packbits(self.seen[:, order], axis=1)
        ranked = np.lexsort((self.squares, self.counted, *bits.T[::-1]))
        return MissingnessPatterns(
            bits[ranked], self.n_items, self.counted[ranked], self.squares[ranked]
        )
