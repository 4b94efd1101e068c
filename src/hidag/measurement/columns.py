"""Which columns of working data belong to which item: most items have one, some several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hidag.measurement.families import Family, family_named

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Columns:
    """The columns of J items, item by item.

    Attributes
    ----------
    starts : ndarray of int, shape (J + 1,)
        Columns of item j: ``starts[j]`` to ``starts[j + 1] - 1``.
    item : ndarray of int, shape (number of columns,)
        Item of each column.
    """

    starts: Indices
    item: Indices

    @property
    def n_columns(self) -> int:
        """Number of columns of all items."""
        return len(self.item)

    @property
    def single(self) -> bool:
        """Whether every item has one column."""
        return len(self.item) == len(self.starts) - 1

    def of(self, family: Family, items: Indices) -> Indices:
        """Return the columns of items of one family, shape (n,), or (D, n) if it has several."""
        if family.n_columns == 1:
            return np.asarray(self.starts[items])
        return np.asarray(self.starts[items] + np.arange(family.n_columns)[:, None])

    def add_up(self, values: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
        """Return sums over the columns of each item, along an axis that runs over columns."""
        return values if self.single else np.add.reduceat(values, self.starts[:-1], axis=axis)

    def listed(self, items: Indices) -> tuple[Indices, Indices, Indices]:
        """Return all columns of some items one after the other.

        Returns
        -------
        columns, places, within : ndarray of int, shape (number of their columns,)
            The columns, the place of each one's item among ``items``, its place within the item.
        """
        if self.single:
            return items, np.arange(len(items)), np.zeros(len(items), dtype=np.intp)
        widths = np.diff(self.starts)[items]
        places = np.repeat(np.arange(len(items)), widths)
        within = np.arange(len(places)) - np.repeat(np.cumsum(widths) - widths, widths)
        return self.starts[items][places] + within, places, within


@lru_cache(maxsize=64)
def columns_of(families: tuple[str, ...]) -> Columns:
    """Return the columns of items with these families."""
    widths = np.array([family_named(name).n_columns for name in families], dtype=np.intp)
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
    item = np.repeat(np.arange(len(families)), widths)
    for array in (starts, item):
        array.setflags(write=False)
    return Columns(starts, item)
