"""Numbers of columns over the states of tables, and their means under the law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.explain.state_tables import StateTables

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class OverStates:
    """Numbers of G columns, each over the states of a table of its own.

    Attributes
    ----------
    tables : StateTables
    table : ndarray of int, shape (G,)
    parts : dict of int to ndarray, shape (S_t, G_t)
        By table, the numbers of its columns in their order.
    """

    tables: StateTables
    table: Indices
    parts: dict[int, Array]

    def columns(self, table: int) -> Indices:
        """Return the columns of a table."""
        return np.flatnonzero(self.table == table)

    def selected(self, columns: Indices) -> OverStates:
        """Return some of the columns, in their order."""
        chosen = np.isin(np.arange(len(self.table)), columns)
        parts = {t: part[:, chosen[self.columns(t)]] for t, part in self.parts.items()}
        kept = {t: part for t, part in parts.items() if part.shape[1]}
        return OverStates(self.tables, self.table[columns], kept)

    def like(self, parts: dict[int, Array]) -> OverStates:
        """Return other numbers of the same columns."""
        return OverStates(self.tables, self.table, parts)

    def column(self, column: int) -> Array:
        """Return the numbers of one column, shape (S_t,)."""
        own = int(self.table[column])
        return np.asarray(self.parts[own][:, int((self.table[:column] == own).sum())])

    def means(self) -> Array:
        """Return the columns' means under the law, shape (G,)."""
        out = np.empty(len(self.table))
        for t, part in self.parts.items():
            out[self.columns(t)] = self.tables.shares(t) @ part
        return out

    def mean_products(self, shift: Array | None = None) -> Array:
        """Return means of products of two columns, less a shift (G,) each, shape (G, G)."""
        n = len(self.table)
        away = np.zeros(n) if shift is None else shift
        out = np.empty((n, n))
        parts = {t: part - away[self.columns(t)] for t, part in self.parts.items()}
        for t, part in parts.items():
            for u, other in parts.items():
                if u >= t:
                    found = self.tables.together(t, part.T, u) @ other
                    out[np.ix_(self.columns(t), self.columns(u))] = found
                    out[np.ix_(self.columns(u), self.columns(t))] = found.T
        return out
