"""Flat arrays for the kernels: items with their latents, latents with their parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.config import CONFIG
from hidag.em.e_step import log_probabilities
from hidag.em.m_step import Basis
from hidag.exceptions import Advice, SettingError
from hidag.latent.laws import NetworkLaw, Parents
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import Columns, MeasurementParameters, columns_of
from hidag.measurement.terms import Interaction, Terms

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Indices = NDArray[np.intp]


def sub_states(shape: tuple[int, ...]) -> IntArray:
    """Return all joint states of latents with these levels, (size, p), the first fastest."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.indices(shape[::-1]).reshape(len(shape), size)[::-1].T.astype(np.int64)


@dataclass(frozen=True)
class ItemGroup:
    """Items that have the same design over the sub-states (the states of their own latents)."""

    items: Indices  # (n,)
    columns: Indices  # (n, T'): columns of the loadings
    features: Array  # (size, T'): the terms' values in each sub-state
    cells: IntArray  # (n, size): positions of the items' tables
    collinear: bool = False  # whether some terms are products of others

    @cached_property
    def basis(self) -> Basis:
        """The sub-states as regressors."""
        return Basis.of(self.features, collinear=self.collinear)


def _group_items(
    terms: Terms, shape: tuple[int, ...], items: Indices, parents: IntArray, starts: IntArray
) -> list[ItemGroup]:
    """Return groups of items with latents (n, p) of levels ``shape`` and tables at ``starts``.

    All have linear steps in the same places.
    """
    states = sub_states(shape)
    cells = starts[:, None] + np.arange(len(states))
    if not shape:
        return [ItemGroup(items, np.zeros((len(items), 0), np.intp), np.zeros((1, 0)), cells)]
    main = Terms.main(shape, [a for a, k in enumerate(parents[0]) if int(k) in terms.linear])
    columns = np.array(terms.firsts)[parents[:, main.main_latents]] + main.main_levels - 1
    if not terms.interactions or len(shape) < 2:
        return [ItemGroup(items, columns, main.features(states), cells)]
    groups: dict[tuple[Interaction, ...], list[tuple[int, list[int]]]] = {}
    for i in range(len(items)):
        place = {int(k): a for a, k in enumerate(parents[i])}
        found = {
            tuple((place[k], u) for k, u in pairs): t
            for t, pairs in enumerate(terms.interactions, start=terms.n_main)
            if all(k in place for k, _ in pairs)
        }
        key = tuple(sorted(found))
        groups.setdefault(key, []).append((i, [found[pairs] for pairs in key]))
    out = []
    for key, members in sorted(groups.items()):
        places = np.array([i for i, _ in members], dtype=np.intp)
        more = np.array([t for _, t in members], dtype=np.intp).reshape(len(places), len(key))
        own, features = (
            np.hstack([columns[places], more]),
            replace(main, interactions=key).features(states),
        )
        out.append(ItemGroup(items[places], own, features, cells[places], bool(key)))
    return out


def _flatten(lists: Sequence[ArrayLike]) -> tuple[IntArray, IntArray]:
    """Return where each list begins in the concatenation of all, and the concatenation."""
    parts = [np.asarray(part, dtype=np.int64) for part in lists]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return starts, np.concatenate([*parts, np.zeros(0, dtype=np.int64)])


@dataclass(frozen=True)
class ItemLayout:
    """Latents of each item, and where each column's table over the item's sub-states is."""

    support: NDArray[np.bool_]  # (J, K)
    families: tuple[str, ...]  # length J
    terms: Terms
    columns: Columns
    levels: IntArray  # (K,)
    # latents of column j: ``item_parents[item_ptr[j] : item_ptr[j + 1]]``, and their strides in
    # the item's sub-states: 1 for the first latent
    item_ptr: IntArray
    item_parents: IntArray
    item_strides: IntArray
    table_ptr: IntArray  # (D + 1,)
    # columns of latent k with its stride in their sub-states
    latent_ptr: IntArray
    latent_items: IntArray
    latent_strides: IntArray

    @classmethod
    def of(cls, parameters: MeasurementParameters) -> ItemLayout:
        """Return the layout of the parameters' support."""
        return cls.over(parameters.support, parameters.terms, parameters.families)

    @classmethod
    def over(cls, items: NDArray[np.bool_], terms: Terms, families: tuple[str, ...]) -> ItemLayout:
        """Return the layout of a support, shape (J, K)."""
        columns = columns_of(families)
        support = items if columns.single else items[columns.item]
        counts = np.array(terms.levels, dtype=np.int64)
        growth = np.where(support, counts, 1)
        sizes = np.prod(growth.astype(np.float64), axis=1)
        largest = CONFIG.network_em.max_item_states
        if sizes.max(initial=0) > largest:
            j = int(sizes.argmax())
            size = {"n_latents": int(support[j].sum()), "n_states": float(sizes[j])}
            raise SettingError(
                "too-many-item-states",
                "item {item} loads on {n_latents} latents with {n_states:.0f} joint states; at "
                "most {largest} can be tabulated",
                {"item": int(columns.item[j]), **size, "largest": largest},
                advice=Advice("sparser-q", "set some entries of its row of Q to 0"),
            )
        strides = np.cumprod(np.hstack([np.ones((len(support), 1), int), growth[:, :-1]]), axis=1)
        of_item = [np.flatnonzero(row) for row in support]
        of_latent = [np.flatnonzero(column) for column in support.T]
        item_strides = [strides[j, latents] for j, latents in enumerate(of_item)]
        latent_strides = [strides[items, k] for k, items in enumerate(of_latent)]
        table_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        of_items = (*_flatten(of_item), _flatten(item_strides)[1], table_ptr)
        of_latents = (*_flatten(of_latent), _flatten(latent_strides)[1])
        return cls(np.array(items), families, terms, columns, counts, *of_items, *of_latents)

    def is_of(self, parameters: MeasurementParameters) -> bool:
        """Return whether this is the layout of the parameters' support."""
        return (
            self.terms == parameters.terms
            and self.families == parameters.families
            and np.array_equal(self.support, parameters.support)
        )

    @property
    def table_arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Arrays that locate a column's entry in a state, as kernels take them."""
        return self.item_ptr, self.item_parents, self.item_strides, self.table_ptr

    @property
    def latent_arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """Arrays of the columns of each latent, as kernels take them."""
        return self.latent_ptr, self.latent_items, self.latent_strides

    @property
    def size(self) -> int:
        """Number of entries of all items' tables."""
        return int(self.table_ptr[-1])

    @cached_property
    def groups(self) -> list[ItemGroup]:
        """Items grouped by design, with the cells of their first columns."""
        shapes: dict[tuple[tuple[int, bool], ...], list[int]] = {}
        for j, first in enumerate(self.columns.starts[:-1]):
            latents = self.item_parents[self.item_ptr[first] : self.item_ptr[first + 1]]
            key = tuple((int(self.levels[k]), int(k) in self.terms.linear) for k in latents)
            shapes.setdefault(key, []).append(j)
        out = []
        for key in sorted(shapes):
            shape = tuple(m for m, _ in key)
            items = np.array(shapes[key], dtype=np.intp)
            first = self.columns.starts[items]
            parents = self.item_parents[self.item_ptr[first][:, None] + np.arange(len(shape))]
            out.extend(_group_items(self.terms, shape, items, parents, self.table_ptr[first]))
        return out

    def predictors(self, parameters: MeasurementParameters) -> Array:
        """Return the linear predictors by item and sub-state, in the cells of first columns."""
        eta = np.zeros(self.size)
        for group in self.groups:
            slopes = parameters.loadings[group.items[:, None], group.columns]
            eta[group.cells] = parameters.intercept[group.items, None] + slopes @ group.features.T
        return eta

    @cached_property
    def _cells_by_family(self) -> list[tuple[str, IntArray, IntArray, IntArray]]:
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

    def tables(
        self, parameters: MeasurementParameters, *, derivatives: bool = False
    ) -> tuple[Array, Array]:
        """Return theta and A (in first columns), or derivatives, by column and sub-state, flat."""
        eta = self.predictors(parameters)
        first, second = np.empty(self.size), np.zeros(self.size)
        for name, cells, item, size in self._cells_by_family:
            family = family_named(name)
            tabulate = family.slopes if derivatives else family.natural
            found = tabulate(eta[cells], parameters.auxiliary(family, item))
            second[cells] = found[1]
            parts = found[0][None] if family.n_columns == 1 else found[0]
            for d, part in enumerate(parts):
                first[cells + d * size] = part
        return first, second


@dataclass(frozen=True)
class NetworkLayout:
    """Parents and children of each latent, and the position of its conditional table."""

    parents_of: Parents
    levels: tuple[int, ...]  # length K
    # parents of each latent with their strides in its C-ordered table, whose last axis is the
    # latent's own level
    parent_ptr: IntArray
    parents: IntArray
    parent_strides: IntArray
    table_ptr: IntArray  # (K + 1,)
    # children of each latent with its stride in their tables
    child_ptr: IntArray
    children: IntArray
    child_strides: IntArray

    @classmethod
    def of(cls, parents_of: Parents, levels: tuple[int, ...]) -> NetworkLayout:
        """Return the layout of a network given by its parent sets and the latents' levels."""
        of_children: list[list[int]] = [[] for _ in parents_of]
        strides_there: list[list[int]] = [[] for _ in parents_of]
        strides, sizes = [], []
        for child, pa in enumerate(parents_of):
            size, own = levels[child], []
            for parent in reversed(pa):
                own.append(size)
                size *= levels[parent]
            strides.append(own[::-1])
            sizes.append(size)
            for parent, stride in zip(pa, own[::-1], strict=True):
                of_children[parent].append(child)
                strides_there[parent].append(stride)
        table_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        of_latents = (*_flatten(parents_of), _flatten(strides)[1], table_ptr)
        children = (*_flatten(of_children), _flatten(strides_there)[1])
        return cls(parents_of, levels, *of_latents, *children)

    @classmethod
    def of_law(cls, law: NetworkLaw) -> NetworkLayout:
        """Return the layout of a network's tables."""
        return cls.of(law.parents, law.space.levels)

    @property
    def table_arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Arrays that locate a latent's entry in a state, as kernels take them."""
        return self.parent_ptr, self.parents, self.parent_strides, self.table_ptr

    @property
    def child_arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """Arrays of the children of each latent, as kernels take them."""
        return self.child_ptr, self.children, self.child_strides

    @property
    def size(self) -> int:
        """Number of entries of all latents' tables."""
        return int(self.table_ptr[-1])

    def log_tables(self, law: NetworkLaw) -> Array:
        """Return the log probabilities of a network's tables, flat."""
        return log_probabilities(np.concatenate([table.ravel() for table in law.tables]))

    def law_from(self, counts: Array, mass: float) -> NetworkLaw:
        """Return the network of flat counts, with prior ``mass`` rows spread over each table."""
        tables = []
        for k, pa in enumerate(self.parents_of):
            part = counts[self.table_ptr[k] : self.table_ptr[k + 1]]
            shape = (*(self.levels[a] for a in pa), self.levels[k])
            table = (part + mass / len(part)).reshape(shape)
            tables.append(table / table.sum(axis=-1, keepdims=True))
        return NetworkLaw(StateSpace(self.levels), self.parents_of, tuple(tables))
