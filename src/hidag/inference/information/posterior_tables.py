"""The tables over states that questions about a fit need: one over all joint states, or small ones.

Few joint states are listed, and one table over all of them serves everything. Where they are many,
an item's parameters need no more than the states of its own latents, and those of a latent's
distribution the states of the latent and its parents: rows' probabilities of these come from sums
over small tables (:mod:`hidag.network_em.junction_tree`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.em.design_data import WorkingData
from hidag.em.e_step import StateScores, iterate_posteriors
from hidag.latent.junction_tree import Factor, JunctionTree, elimination_order
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.junction_tree import CliqueMarginals, Scope, TreePosterior, states_over
from hidag.results import FitResult

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Likelihoods are summed over joint states up to this many.
MOST_STATES = 1 << 13
#: Numbers of a block's table of rows and states.
BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class RowBlock:
    """What a range of n rows says of the states of each table.

    Attributes
    ----------
    rows : slice
    posteriors : tuple of ndarray, shape (n, S_t)
        Probabilities of each table's states given the rows.
    log_density : ndarray, shape (n,)
        On the working scale and without what no parameter enters.
    groups : RowGroups or None
        What tells the entropy of all latents together; None where the first table does.
    """

    rows: slice
    posteriors: tuple[Array, ...]
    log_density: Array
    groups: CliqueMarginals | None = None

    def joint_doubt(self) -> Array:
        """Return the entropy of all latents together given each row, shape (n,)."""
        if self.groups is not None:
            return self.groups.entropy
        return np.asarray(-xlogy(self.posteriors[0], self.posteriors[0]).sum(axis=1))


class StateTables(Protocol):
    """Tables over states, T of them, and what law and rows say of their states."""

    @property
    def n_tables(self) -> int:
        """Number of tables, T."""
        ...

    @property
    def of_response(self) -> IntArray:
        """Table that holds the latents of each response, shape (R,)."""
        ...

    @property
    def of_latent(self) -> IntArray:
        """Table that holds each latent and its parents, shape (K,)."""
        ...

    def states(self, table: int) -> NDArray[np.int64]:
        """Return the states of a table, shape (S_t, K); latents that it does not hold are 0."""
        ...

    def shares(self, table: int) -> Array:
        """Return the law of a table's states, shape (S_t,)."""
        ...

    def together(self, first: int, numbers: Array, second: int) -> Array:
        """Return sums over states of one table by states of another, shape (..., S_second).

        Of ``numbers`` (..., S_first), each times the law of the two states together.
        """
        ...

    @property
    def n_cells(self) -> int:
        """How many numbers a row's sums go through."""
        ...

    def blocks(self, data: WorkingData, working: MeasurementParameters) -> Iterator[RowBlock]:
        """Yield what rows say, a block of them at a time."""
        ...


@dataclass(frozen=True)
class ListedTables:
    """One table over all joint states.

    Attributes
    ----------
    law : LatentLaw
    n_responses : int
    """

    law: LatentLaw
    n_responses: int

    n_tables = 1

    @property
    def of_response(self) -> IntArray:
        """Table that holds the latents of each response, shape (R,)."""
        return np.zeros(self.n_responses, dtype=np.intp)

    @property
    def of_latent(self) -> IntArray:
        """Table that holds each latent and its parents, shape (K,)."""
        return np.zeros(self.law.space.n_latents, dtype=np.intp)

    @property
    def n_cells(self) -> int:
        """How many numbers a row's sums go through: one for each joint state."""
        return self.law.space.n_states

    @cached_property
    def _states(self) -> NDArray[np.int64]:
        return np.asarray(self.law.space.states())

    @cached_property
    def _shares(self) -> Array:
        return np.asarray(self.law.probabilities)

    def states(self, table: int) -> NDArray[np.int64]:
        """Return all joint states, shape (S, K)."""
        return self._states

    def shares(self, table: int) -> Array:
        """Return the law, shape (S,)."""
        return self._shares

    def together(self, first: int, numbers: Array, second: int) -> Array:
        """Return numbers by state times the law."""
        return np.asarray(numbers * self._shares)

    def blocks(self, data: WorkingData, working: MeasurementParameters) -> Iterator[RowBlock]:
        """Yield what rows say, a block of them at a time."""
        features = working.terms.features(self._states)
        scores = StateScores.of(working, self._shares, features, data.incomplete)
        enough = max(1, BLOCK_NUMBERS // len(self._shares))
        waiting: list[tuple[Array, Array]] = []
        begin = end = 0
        for rows, posterior, marginal in iterate_posteriors(scores, data):
            waiting.append((posterior, marginal))
            end = rows.stop
            if end - begin >= enough or end == data.n_samples:
                tables, marginals = zip(*waiting, strict=True)
                here = slice(begin, end)
                yield RowBlock(here, (np.vstack(tables),), np.concatenate(marginals))
                waiting, begin = [], end


@dataclass(frozen=True)
class TreeTables:
    """Small tables: one for each set of latents that an item, or a latent with its parents, has.

    Attributes
    ----------
    tree : TreePosterior
    scopes : tuple of tuples of int, length T
    of_response : ndarray of int, shape (R,)
    of_latent : ndarray of int, shape (K,)
    """

    tree: TreePosterior
    scopes: tuple[Scope, ...]
    of_response: IntArray
    of_latent: IntArray

    @classmethod
    def of(cls, tree: TreePosterior) -> TreeTables:
        """Return the tables of the items and latents of a fit."""
        families = [tuple(sorted((*pa, k))) for k, pa in enumerate(tree.law.parents)]
        places = {scope: t for t, scope in enumerate(dict.fromkeys((*tree.items, *families)))}
        of_response = np.array([places[scope] for scope in tree.items], dtype=np.intp)
        of_latent = np.array([places[scope] for scope in families], dtype=np.intp)
        return cls(tree, tuple(places), of_response, of_latent)

    @property
    def n_tables(self) -> int:
        """Number of tables, T."""
        return len(self.scopes)

    @property
    def n_cells(self) -> int:
        """How many numbers a row's sums go through: the tables of all groups on the way."""
        return self.tree.n_cells

    def under(self, law: NetworkLaw) -> TreeTables:
        """Return the tables under another law over the same graph."""
        return replace(self, tree=replace(self.tree, law=law))

    @cached_property
    def _law(self) -> JunctionTree:
        scopes = [(*pa, k) for k, pa in enumerate(self.tree.law.parents)]
        steps = elimination_order(len(scopes), scopes)
        return JunctionTree.of(list(map(Factor, scopes, self.tree.law.tables)), steps)

    def states(self, table: int) -> NDArray[np.int64]:
        """Return the states of a table, shape (S_t, K); latents that it does not hold are 0."""
        return states_over(self.scopes[table], self.tree.law.space.levels)

    def shares(self, table: int) -> Array:
        """Return the law of a table's states, shape (S_t,)."""
        return self._marginal(self.scopes[table])

    def together(self, first: int, numbers: Array, second: int) -> Array:
        """Return sums over states of one table by states of another, shape (..., S_second)."""
        one, other = self.scopes[first], self.scopes[second]
        both = (*one, *(v for v in other if v not in one))
        levels = self.tree.law.space.levels
        law = self._marginal(both).reshape([levels[v] for v in both])
        # Letters of einsum are few: latents get the numbers that these two tables need.
        place = {v: i for i, v in enumerate(both)}
        shaped = numbers.reshape(*numbers.shape[:-1], *(levels[v] for v in one))
        operands: list[Any] = [shaped, [..., *(place[v] for v in one)], law, [*place.values()]]
        found = np.einsum(*operands, [..., *(place[v] for v in other)])
        return np.asarray(found.reshape(*numbers.shape[:-1], -1))

    def _marginal(self, scope: Scope) -> Array:
        return self._law.marginal(scope).ravel() if scope else np.ones(1)

    def blocks(self, data: WorkingData, working: MeasurementParameters) -> Iterator[RowBlock]:
        """Yield what rows say, a block of them at a time."""
        for rows, groups in self.tree.iterate_marginals(data, working):
            posteriors = tuple(groups.over(scope) for scope in self.scopes)
            yield RowBlock(rows, posteriors, groups.log_density, groups)


def state_tables(result: FitResult) -> ListedTables | TreeTables | None:
    """Return the tables for questions about a fit; None if sums would be too long.

    Joint states that prerequisites rule out are told by listing them: with many there is nothing.
    """
    law, n_responses = result.law, len(result.parameters.families)
    if law.space.n_states <= MOST_STATES:
        return ListedTables(law, n_responses)
    if result.has_prerequisites:
        return None
    # All responses of an item share the latents that any of them has or may have.
    q = result.responses.of_items(result.q_matrix)
    tree = TreePosterior.of(result.parameters, law, q)
    return None if tree is None else TreeTables.of(tree)


def too_many_states(result: FitResult, what: str) -> str:
    """Return why something that takes a sum over all joint states is not computed for a fit."""
    why = "its latents hang together too closely for that to fall into small sums"
    if result.has_prerequisites:
        why = "its prerequisites are told by listing them"
    elif not isinstance(result.law, NetworkLaw):
        why = "a saturated law does not fall into small tables"
    return (
        f"{what} takes a sum over {result.law.space.n_states_text()} joint states of the latents; "
        f"states are listed up to 2^{MOST_STATES.bit_length() - 1}, and {why}"
    )


# --- Numbers of columns over the states of tables, and their means under the law


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
    table: IntArray
    parts: dict[int, Array]

    def columns(self, table: int) -> IntArray:
        """Return the columns of a table."""
        return np.flatnonzero(self.table == table)

    def selected(self, columns: IntArray) -> OverStates:
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
