"""How items and latents hang together, written as flat arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.estimate.exact import log_probabilities
from hidag.estimate.local_terms import LocalTerms, local_terms
from hidag.latent import NetworkLaw, Parents, StateSpace
from hidag.measurement import (
    Columns,
    MeasurementParameters,
    Terms,
    columns_of,
    family_named,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: An item's table has an entry for each state of its latents: no more than this are tabulated.
MOST_SUB_STATES = 1 << 16


def _pointers(lists: list[NDArray[np.intp]]) -> Integers:
    return np.concatenate([[0], np.cumsum([len(part) for part in lists])]).astype(np.int64)


def _flat(lists: list[NDArray[np.intp]]) -> Integers:
    return np.concatenate([*lists, np.zeros(0, dtype=np.intp)]).astype(np.int64)


@dataclass(frozen=True)
class ItemLayout:
    """Which latents load on which items, and where each item's table of sub-states lies.

    Kernels know columns only: an item with several has as many tables of one size, one after the
    other, as if each were an item of its own (D in all, J if every item has one).

    Attributes
    ----------
    support : ndarray of bool, shape (J, K)
    families : tuple of str, length J
    terms : Terms
    columns : Columns
    levels : ndarray of int64, shape (K,)
    item_ptr, item_parents, item_strides : ndarray of int64, shapes (D + 1,), (nnz,), (nnz,)
        Latents of column j: ``item_parents[item_ptr[j] : item_ptr[j + 1]]``, and what a level of
        each adds to the number of the item's sub-state: 1 for the first, its levels for the next...
    table_ptr : ndarray of int64, shape (D + 1,)
    latent_ptr, latent_items, latent_strides : ndarray of int64, shapes (K + 1,), (nnz,), (nnz,)
        Columns of latent k with its stride in their sub-states.
    """

    support: NDArray[np.bool_]
    families: tuple[str, ...]
    terms: Terms
    columns: Columns
    levels: Integers
    item_ptr: Integers
    item_parents: Integers
    item_strides: Integers
    table_ptr: Integers
    latent_ptr: Integers
    latent_items: Integers
    latent_strides: Integers

    @classmethod
    def of(cls, parameters: MeasurementParameters) -> ItemLayout:
        """Return the layout of the items' supports."""
        return cls.over(parameters.support, parameters.terms, parameters.families)

    @classmethod
    def over(cls, items: NDArray[np.bool_], terms: Terms, families: tuple[str, ...]) -> ItemLayout:
        """Return the layout of items' supports, shape (J, K)."""
        columns = columns_of(families)
        support = items if columns.single else items[columns.item]
        counts = np.array(terms.levels, dtype=np.int64)
        # What a level of each latent adds, were it one of the item's: levels of those before it.
        growth = np.where(support, counts, 1)
        sizes = np.prod(growth.astype(np.float64), axis=1)
        if sizes.max(initial=0) > MOST_SUB_STATES:
            j = int(sizes.argmax())
            raise SettingError(
                f"item {columns.item[j]} loads on {support[j].sum()} latents with {sizes[j]:.0f} "
                "joint states; "
                f"at most {MOST_SUB_STATES} can be tabulated: set some entries of its row of Q to 0"
            )
        strides = np.cumprod(np.hstack([np.ones((len(support), 1), int), growth[:, :-1]]), axis=1)
        of_item = [np.flatnonzero(row) for row in support]
        of_latent = [np.flatnonzero(column) for column in support.T]
        return cls(
            np.array(items),
            families,
            terms,
            columns,
            counts,
            _pointers(of_item),
            _flat(of_item),
            _flat([strides[j, latents] for j, latents in enumerate(of_item)]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            _pointers(of_latent),
            _flat(of_latent),
            _flat([strides[items, k] for k, items in enumerate(of_latent)]),
        )

    def is_of(self, parameters: MeasurementParameters) -> bool:
        """Return whether this is the layout of these parameters' supports."""
        return (
            self.terms == parameters.terms
            and self.families == parameters.families
            and np.array_equal(self.support, parameters.support)
        )

    @property
    def size(self) -> int:
        """Number of entries of all items' tables."""
        return int(self.table_ptr[-1])

    @cached_property
    def alike(self) -> list[LocalTerms]:
        """Items by the look of their tables, with the cells of their first columns."""
        shapes: dict[tuple[int, ...], list[int]] = {}
        for j, first in enumerate(self.columns.starts[:-1]):
            latents = self.item_parents[self.item_ptr[first] : self.item_ptr[first + 1]]
            shapes.setdefault(tuple(self.levels[latents].tolist()), []).append(j)
        out = []
        for shape in sorted(shapes):
            items = np.array(shapes[shape], dtype=np.intp)
            first = self.columns.starts[items]
            parents = self.item_parents[self.item_ptr[first][:, None] + np.arange(len(shape))]
            out.extend(local_terms(self.terms, shape, items, parents, self.table_ptr[first]))
        return out

    def predictors(self, parameters: MeasurementParameters) -> Array:
        """Return each item's linear predictor in each of its sub-states, flat.

        Where an item has several columns, in the cells of the first one.
        """
        eta = np.zeros(self.size)
        for local in self.alike:
            slopes = parameters.loadings[local.items[:, None], local.columns]
            eta[local.cells] = parameters.intercept[local.items, None] + slopes @ local.features.T
        return eta

    def tables(self, parameters: MeasurementParameters) -> tuple[Array, Array]:
        """Return theta and A of each column in each of its sub-states, flat.

        A is the item's: it stands at the item's first column, the others have zero.
        """
        return self._by_family(parameters, slopes=False)

    def slope_tables(self, parameters: MeasurementParameters) -> tuple[Array, Array]:
        """Return theta' and A' of each column in each of its sub-states, flat."""
        return self._by_family(parameters, slopes=True)

    @cached_property
    def _of_families(self) -> list[tuple[str, Integers, Integers, Integers]]:
        """Each family with the cells of its items' first columns, their items and table sizes."""
        sizes = np.diff(self.table_ptr)
        first = np.zeros(self.columns.n_columns, dtype=bool)
        first[self.columns.starts[:-1]] = True
        item, leads = np.repeat(self.columns.item, sizes), np.repeat(first, sizes)
        names = np.array(self.families)[item]
        out = []
        for name in sorted(set(self.families)):
            cells = np.flatnonzero(leads & (names == name))
            of_cells = item[cells]
            out.append((name, cells, of_cells, sizes[self.columns.starts[of_cells]]))
        return out

    def _by_family(self, parameters: MeasurementParameters, *, slopes: bool) -> tuple[Array, Array]:
        eta = self.predictors(parameters)
        first, second = np.empty(self.size), np.zeros(self.size)
        for name, cells, item, size in self._of_families:
            family = family_named(name)
            find = family.slopes if slopes else family.natural
            found = find(eta[cells], parameters.auxiliary(family, item))
            second[cells] = found[1]
            if family.n_columns == 1:
                first[cells] = found[0]
                continue
            for d, part in enumerate(found[0]):
                first[cells + d * size] = part
        return first, second


@dataclass(frozen=True)
class FamilyLayout:
    """Parents and children of every latent, and where its conditional table lies.

    Attributes
    ----------
    parents_of : tuple of tuples of int
    levels : tuple of int, length K
    parent_ptr, parents, parent_strides : ndarray of int64
        Parents of each latent with what their levels add to the position in its C-ordered table,
        whose last axis is the latent's own level.
    table_ptr : ndarray of int64, shape (K + 1,)
    child_ptr, children, child_strides : ndarray of int64
        Children of each latent with its stride in their tables.
    """

    parents_of: Parents
    levels: tuple[int, ...]
    parent_ptr: Integers
    parents: Integers
    parent_strides: Integers
    table_ptr: Integers
    child_ptr: Integers
    children: Integers
    child_strides: Integers

    @classmethod
    def of(cls, parents_of: Parents, levels: tuple[int, ...]) -> FamilyLayout:
        """Return the layout of a network given by its parent sets and the latents' levels."""
        of_latent = [np.array(pa, dtype=np.intp) for pa in parents_of]
        of_children: list[list[int]] = [[] for _ in parents_of]
        strides_there: list[list[int]] = [[] for _ in parents_of]
        strides, sizes = [], []
        for child, pa in enumerate(parents_of):
            size, own = levels[child], []
            for parent in reversed(pa):
                own.append(size)
                size *= levels[parent]
            strides.append(np.array(own[::-1], dtype=np.intp))
            sizes.append(size)
            for parent, stride in zip(pa, own[::-1], strict=True):
                of_children[parent].append(child)
                strides_there[parent].append(stride)
        children = [np.array(part, dtype=np.intp) for part in of_children]
        return cls(
            parents_of,
            levels,
            _pointers(of_latent),
            _flat(of_latent),
            _flat(strides),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            _pointers(children),
            _flat(children),
            _flat([np.array(part, dtype=np.intp) for part in strides_there]),
        )

    @classmethod
    def of_law(cls, law: NetworkLaw) -> FamilyLayout:
        """Return the layout of a law's tables."""
        return cls.of(law.parents, law.space.levels)

    @property
    def size(self) -> int:
        """Number of entries of all latents' tables."""
        return int(self.table_ptr[-1])

    def log_tables(self, law: NetworkLaw) -> Array:
        """Return the logarithms of a law's tables, flat."""
        return log_probabilities(np.concatenate([table.ravel() for table in law.tables]))

    def law_from(self, counts: Array, mass: float) -> NetworkLaw:
        """Return the law with the conditional frequencies of flat counts.

        ``mass`` rows, spread evenly over each latent's table, keep everything possible.
        """
        tables = []
        for k, pa in enumerate(self.parents_of):
            part = counts[self.table_ptr[k] : self.table_ptr[k + 1]]
            shape = (*(self.levels[a] for a in pa), self.levels[k])
            table = (part + mass / len(part)).reshape(shape)
            tables.append(table / table.sum(axis=-1, keepdims=True))
        return NetworkLaw(StateSpace(self.levels), self.parents_of, tuple(tables))
