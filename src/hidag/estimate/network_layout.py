"""How items and latents hang together, written as flat arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.estimate.exact import log_probabilities
from hidag.latent import NetworkLaw, Parents, StateSpace
from hidag.measurement import MeasurementParameters, family_named

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: An item's table has 2^parents entries: more parents than this are not tabulated.
MOST_ITEM_PARENTS = 16


def _pointers(lists: list[NDArray[np.intp]]) -> Integers:
    return np.concatenate([[0], np.cumsum([len(part) for part in lists])]).astype(np.int64)


def _flat(lists: list[NDArray[np.intp]]) -> Integers:
    return np.concatenate([*lists, np.zeros(0, dtype=np.intp)]).astype(np.int64)


@dataclass(frozen=True)
class ItemLayout:
    """Which latents load on which items, and where each item's table of sub-states lies.

    Attributes
    ----------
    support : ndarray of bool, shape (J, K)
    item_ptr, item_parents : ndarray of int64, shapes (J + 1,) and (nnz,)
        Latents of item j: ``item_parents[item_ptr[j] : item_ptr[j + 1]]``; the first has bit 1 in
        the item's sub-state, the next bit 2, and so on.
    table_ptr : ndarray of int64, shape (J + 1,)
    latent_ptr, latent_items, latent_bits : ndarray of int64, shapes (K + 1,), (nnz,), (nnz,)
        Items of latent k with its bit in their sub-states.
    """

    support: NDArray[np.bool_]
    item_ptr: Integers
    item_parents: Integers
    table_ptr: Integers
    latent_ptr: Integers
    latent_items: Integers
    latent_bits: Integers

    @classmethod
    def of(cls, support: NDArray[np.bool_]) -> ItemLayout:
        """Return the layout of a support, shape (J, K)."""
        widths = support.sum(axis=1)
        if widths.max(initial=0) > MOST_ITEM_PARENTS:
            j = int(widths.argmax())
            raise SettingError(
                f"item {j} loads on {widths[j]} latents; at most {MOST_ITEM_PARENTS} can be "
                f"tabulated: set some entries of its row of Q to 0"
            )
        of_item = [np.flatnonzero(row) for row in support]
        of_latent = [np.flatnonzero(column) for column in support.T]
        place = np.cumsum(support, axis=1) - 1
        bits = [1 << place[items, k] for k, items in enumerate(of_latent)]
        tables = np.concatenate([[0], np.cumsum(1 << widths)]).astype(np.int64)
        return cls(
            np.array(support),
            _pointers(of_item),
            _flat(of_item),
            tables,
            _pointers(of_latent),
            _flat(of_latent),
            _flat(bits),
        )

    @property
    def size(self) -> int:
        """Number of entries of all items' tables."""
        return int(self.table_ptr[-1])

    def by_width(self) -> list[tuple[int, NDArray[np.intp], Integers, Integers]]:
        """Return, per number of parents p that occurs, items (n,), parents (n, p), cells (n, 2^p).

        Cells are positions in the flat tables.
        """
        widths = np.diff(self.item_ptr)
        out = []
        for width in np.unique(widths):
            items = np.flatnonzero(widths == width)
            parents = self.item_parents[self.item_ptr[items][:, None] + np.arange(width)]
            cells = self.table_ptr[items][:, None] + np.arange(1 << int(width))
            out.append((int(width), items, parents, cells))
        return out

    def predictors(self, parameters: MeasurementParameters) -> Array:
        """Return each item's linear predictor in each of its sub-states, flat."""
        eta = np.empty(self.size)
        for width, items, parents, cells in self.by_width():
            slopes = parameters.loadings[items[:, None], parents]
            eta[cells] = parameters.intercept[items, None] + slopes @ sub_states(width).T
        return eta

    def tables(self, parameters: MeasurementParameters) -> tuple[Array, Array]:
        """Return theta and A of each item in each of its sub-states, flat."""
        return self._by_family(parameters, slopes=False)

    def slope_tables(self, parameters: MeasurementParameters) -> tuple[Array, Array]:
        """Return theta' and A' of each item in each of its sub-states, flat."""
        return self._by_family(parameters, slopes=True)

    def _by_family(self, parameters: MeasurementParameters, *, slopes: bool) -> tuple[Array, Array]:
        eta = self.predictors(parameters)
        item = np.repeat(np.arange(len(self.support)), np.diff(self.table_ptr))
        dispersion = parameters.dispersion[item]
        names = np.array(parameters.families)[item]
        first, second = np.empty(self.size), np.empty(self.size)
        for name in sorted(set(parameters.families)):
            cells = names == name
            family = family_named(name)
            found = (family.slopes if slopes else family.natural)(eta[cells], dispersion[cells])
            first[cells], second[cells] = found[0], found[1]
        return first, second


def sub_states(width: int) -> Array:
    """Return all sub-states of ``width`` latents, (2^width, width); the first changes fastest."""
    return np.asarray((np.arange(1 << width)[:, None] >> np.arange(width)) & 1, dtype=np.float64)


@dataclass(frozen=True)
class FamilyLayout:
    """Parents and children of every latent, and where its conditional table lies.

    Attributes
    ----------
    parents_of : tuple of tuples of int
    parent_ptr, parents, parent_bits : ndarray of int64
        Parents of each latent with their bits in its configuration: as in a C-ordered table, the
        last parent has bit 1.
    table_ptr : ndarray of int64, shape (K + 1,)
        Entry ``2 * configuration + level`` of a latent's table.
    child_ptr, children, child_bits : ndarray of int64
        Children of each latent with its bit in their configurations.
    """

    parents_of: Parents
    parent_ptr: Integers
    parents: Integers
    parent_bits: Integers
    table_ptr: Integers
    child_ptr: Integers
    children: Integers
    child_bits: Integers

    @classmethod
    def of(cls, parents_of: Parents) -> FamilyLayout:
        """Return the layout of a network given by its parent sets."""
        of_latent = [np.array(pa, dtype=np.intp) for pa in parents_of]
        bits = [1 << np.arange(len(pa))[::-1] for pa in of_latent]
        of_children: list[list[int]] = [[] for _ in parents_of]
        bits_there: list[list[int]] = [[] for _ in parents_of]
        for child, pa in enumerate(parents_of):
            for place, parent in enumerate(pa):
                of_children[parent].append(child)
                bits_there[parent].append(1 << (len(pa) - 1 - place))
        children = [np.array(part, dtype=np.intp) for part in of_children]
        sizes = [2 << len(pa) for pa in parents_of]
        return cls(
            parents_of,
            _pointers(of_latent),
            _flat(of_latent),
            _flat(bits),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            _pointers(children),
            _flat(children),
            _flat([np.array(part, dtype=np.intp) for part in bits_there]),
        )

    @property
    def size(self) -> int:
        """Number of entries of all latents' tables."""
        return int(self.table_ptr[-1])

    def log_tables(self, law: NetworkLaw) -> Array:
        """Return the logarithms of a law's tables, flat."""
        return log_probabilities(np.concatenate([table.ravel() for table in law.tables]))

    def law_from(self, counts: Array, space: StateSpace, mass: float) -> NetworkLaw:
        """Return the law with the conditional frequencies of flat counts.

        ``mass`` rows, spread evenly over each latent's table, keep everything possible.
        """
        tables = []
        for k, pa in enumerate(self.parents_of):
            part = counts[self.table_ptr[k] : self.table_ptr[k + 1]]
            table = (part + mass / len(part)).reshape((2,) * (len(pa) + 1))
            tables.append(table / table.sum(axis=-1, keepdims=True))
        return NetworkLaw(space, self.parents_of, tuple(tables))
