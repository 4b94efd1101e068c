"""What a number of a row is rare among: rows drawn with the same cells missing, or nearly the same.

How a statistic of rows varies depends on what was seen of them: a few answers and many have other
distributions, and so have answers to other items. Each pattern of missing cells therefore has draws
of its own. Where patterns are too many for that, as where cells are missing here and there, those
of the patterns that differ in the fewest cells stand in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Draws that a row is compared with at least: a single row has to be called rare if it is, and the
#: smallest chance is one over their number.
FEWEST_ALIKE = 4_000
#: Draws in all that patterns get beyond their share, so that many patterns do not take for ever.
MOST_EXTRA = 80_000
#: Patterns that are drawn for at most; those of other rows are compared with the nearest of these.
MOST_PATTERNS = 2_000
#: Patterns whose distances from all that are drawn for are worked on at once.
BLOCK = 1_000


@dataclass(frozen=True)
class Patterns:
    """Patterns of missing cells that N rows of J items have, and how often each is drawn for.

    Attributes
    ----------
    all : ndarray of bool, shape (P, J)
        True where a cell is missing.
    of_row : ndarray of int, shape (N,)
    drawn : ndarray of int, shape (D,)
        Those that are drawn for.
    n_draws : ndarray of int, shape (D,)
        Rows of each in a drawn table.
    """

    all: NDArray[np.bool_]
    of_row: Counts
    drawn: Counts
    n_draws: Counts

    @classmethod
    def of(cls, missing: NDArray[np.bool_], columns: NDArray[np.intp], n_tables: int) -> Patterns:
        """Return the patterns of ``missing`` (N, J), in an order in which columns go by contents.

        ``columns`` (J,) is that order of the columns.
        """
        ordered, of_row, counts = np.unique(
            missing[:, columns], axis=0, return_inverse=True, return_counts=True
        )
        patterns = np.empty_like(ordered)
        patterns[:, columns] = ordered
        drawn = np.arange(len(counts))
        if len(counts) > MOST_PATTERNS:
            # Those of rows evenly apart: frequent patterns are there, of rare ones a selection.
            middles = (np.arange(MOST_PATTERNS) + 0.5) * len(missing) / MOST_PATTERNS
            drawn = np.unique(np.searchsorted(np.cumsum(counts), middles, side="right"))
        own = -(-min(FEWEST_ALIKE, MOST_EXTRA // len(drawn)) // n_tables)
        n_draws = np.maximum(counts[drawn], own)
        return cls(patterns, of_row.ravel().astype(np.int64), drawn, n_draws.astype(np.int64))

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Missing cells of the rows of a drawn table, pattern by pattern, shape (sum, J)."""
        return np.repeat(self.all[self.drawn], self.n_draws, axis=0)

    def shares_below(self, found: Array, tables: Sequence[Array]) -> Array:
        """Return the share of draws like each row whose number is no larger than the row's, (N,).

        The row itself is counted among them, so that no share is zero.

        Parameters
        ----------
        found : ndarray, shape (N,)
            Numbers of the rows.
        tables : sequence of ndarray, shape (sum of ``n_draws``,)
            Numbers of the rows of drawn tables; NaN where a row has none.
        """
        ends = np.cumsum(self.n_draws)[:-1]
        parts = zip(*(np.split(table, ends) for table in tables), strict=True)
        drawn = [np.sort(one[~np.isnan(one)]) for one in map(np.concatenate, parts)]
        sizes = np.array([len(one) for one in drawn], dtype=np.int64)
        below, total = np.ones((2, len(found)))
        order = np.argsort(self.of_row, kind="stable")
        begins = np.searchsorted(self.of_row[order], np.arange(0, len(self.all) + BLOCK, BLOCK))
        for block, (begin, end) in enumerate(pairwise(begins)):
            rows = order[begin:end]
            first = block * BLOCK
            alike = self._alike(self.all[first : first + BLOCK], sizes)
            for place, numbers in enumerate(drawn):
                mine = rows[alike[self.of_row[rows] - first, place]]
                below[mine] += np.searchsorted(numbers, found[mine], side="right")
                total[mine] += len(numbers)
        return np.asarray(np.where(np.isnan(found), np.nan, below / total))

    def _alike(self, patterns: NDArray[np.bool_], sizes: Counts) -> NDArray[np.bool_]:
        """Return which of the patterns drawn for are near enough to some (n, J), shape (n, D).

        The nearest, and all as near as the last that it takes for enough draws.
        """
        one, other = patterns.astype(np.float64), self.all[self.drawn].astype(np.float64)
        apart = one.sum(axis=1)[:, None] + other.sum(axis=1) - 2.0 * one @ other.T
        nearest = np.argsort(apart, axis=1, kind="stable")
        draws = np.cumsum(sizes[nearest], axis=1)
        last = np.minimum((draws < FEWEST_ALIKE).sum(axis=1), len(self.drawn) - 1)
        here = np.arange(len(patterns))
        return np.asarray(apart <= apart[here, nearest[here, last]][:, None])
