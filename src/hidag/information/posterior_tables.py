"""Tables over latent states, and their posterior probabilities given rows.

Few joint states are listed in one table. Else the parameters of an item need only the states of its
own latents, and those of a conditional distribution the states of a latent and its parents; their
posterior probabilities come from a junction tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import StateScores, iterate_posteriors
from hidag.exceptions import SettingError
from hidag.latent.junction_tree import Factor, JunctionTree, elimination_order
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.junction_tree import CliqueMarginals, Scope, TreePosterior
from hidag.results import FitResult

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class RowBlock:
    """Posterior probabilities of the states of each table for a block of n rows."""

    rows: slice
    posteriors: tuple[Array, ...]  # (n, S_t) each
    log_density: Array  # (n,), working scale, up to a constant
    groups: CliqueMarginals | None = None  # of the junction tree; None if joint states are listed

    def joint_entropy(self) -> Array:
        """Return the posterior entropy of the joint state given each row, shape (n,)."""
        if self.groups is not None:
            return self.groups.entropy
        return np.asarray(-xlogy(self.posteriors[0], self.posteriors[0]).sum(axis=1))


class ListedTables:
    """One table over all joint states; :class:`TreeTables` has the same interface."""

    n_tables = 1

    def __init__(self, law: LatentLaw, n_responses: int) -> None:
        self.of_response = np.zeros(n_responses, dtype=np.intp)
        self.of_latent = np.zeros(law.space.n_latents, dtype=np.intp)
        self.n_cells = law.space.n_states
        self._states = np.asarray(law.space.states())
        self._shares = np.asarray(law.probabilities)

    def states(self, table: int) -> NDArray[np.int64]:
        """Return all joint states, shape (S, K)."""
        return self._states

    def shares(self, table: int) -> Array:
        """Return the probabilities of the joint states, shape (S,)."""
        return self._shares

    def joint_sums(self, first: int, numbers: Array, second: int) -> Array:
        """Return numbers (..., S) times the probabilities of the states."""
        return np.asarray(numbers * self._shares)

    def blocks(self, data: WorkingData, working: MeasurementParameters) -> Iterator[RowBlock]:
        """Yield the posteriors of the rows in blocks."""
        features = working.terms.features(self._states)
        scores = StateScores.of(working.tables(features), self._shares, data.incomplete)
        n_rows = max(1, CONFIG.derivatives.block_cells // len(self._shares))
        parts: list[tuple[Array, Array]] = []
        begin = end = 0
        for rows, posterior, marginal in iterate_posteriors(scores, data):
            parts.append((posterior, marginal))
            end = rows.stop
            if end - begin >= n_rows or end == data.n_samples:
                tables, marginals = zip(*parts, strict=True)
                here = slice(begin, end)
                yield RowBlock(here, (np.vstack(tables),), np.concatenate(marginals))
                parts, begin = [], end


@dataclass(frozen=True)
class TreeTables:
    """Small tables: one for the latents of each item, and one for each latent and its parents."""

    tree: TreePosterior
    scopes: tuple[Scope, ...]  # latents of each table
    of_response: IntArray  # (R,), table with the latents of each response
    of_latent: IntArray  # (K,), table with each latent and its parents

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
        """Number of cells in the sums of a row, over all cliques or joint states."""
        return self.tree.n_cells

    @cached_property
    def _law(self) -> JunctionTree:
        scopes = [(*pa, k) for k, pa in enumerate(self.tree.law.parents)]
        steps = elimination_order(len(scopes), scopes)
        return JunctionTree.of(list(map(Factor, scopes, self.tree.law.tables)), steps)

    def states(self, table: int) -> NDArray[np.int64]:
        """Return the states of a table, shape (S_t, K); latents outside it are 0."""
        latents = np.array(self.scopes[table], dtype=np.intp)
        return self.tree.parameters.terms.states_of(latents)

    def shares(self, table: int) -> Array:
        """Return the probabilities of the states of a table, shape (S_t,)."""
        return self._marginal(self.scopes[table])

    def joint_sums(self, first: int, numbers: Array, second: int) -> Array:
        """Return sums of numbers (..., S_first) times joint probabilities, (..., S_second)."""
        one, other = self.scopes[first], self.scopes[second]
        both = (*one, *(v for v in other if v not in one))
        levels = self.tree.law.space.levels
        law = self._marginal(both).reshape([levels[v] for v in both])
        # einsum has few subscripts: latents are renumbered within the two tables.
        place = {v: i for i, v in enumerate(both)}
        table = numbers.reshape(*numbers.shape[:-1], *(levels[v] for v in one))
        axes, kept = ([..., *(place[v] for v in scope)] for scope in (one, other))
        operands: list[Any] = [table, axes, law, [*place.values()], kept]
        found = np.einsum(*operands)
        return np.asarray(found.reshape(*numbers.shape[:-1], -1))

    def _marginal(self, scope: Scope) -> Array:
        return self._law.marginal(scope).ravel() if scope else np.ones(1)

    def blocks(self, data: WorkingData, working: MeasurementParameters) -> Iterator[RowBlock]:
        """Yield the posteriors of the rows in blocks."""
        for rows, groups in self.tree.iterate_marginals(data, working):
            posteriors = tuple(groups.over(scope) for scope in self.scopes)
            yield RowBlock(rows, posteriors, groups.log_density, groups)


StateTables = ListedTables | TreeTables


def can_list_states(result: FitResult) -> bool:
    """Return whether the joint states are few enough to list."""
    return result.law.space.n_states <= CONFIG.derivatives.max_states


def state_tables(result: FitResult) -> StateTables | None:
    """Return the tables of a fit; None if sums over its states are too expensive."""
    law, n_responses = result.law, len(result.parameters.families)
    if can_list_states(result):
        return ListedTables(law, n_responses)
    if result.has_prerequisites:
        return None
    # All responses of an item share the latents that any of them may have.
    q = result.responses.of_items(result.q_matrix)
    tree = TreePosterior.of(result.parameters, law, q)
    return None if tree is None else TreeTables.of(tree)


def too_many_states(result: FitResult, what: str) -> SettingError:
    """Return the error that ``what`` is not computed because it sums over all joint states."""
    reason = "the treewidth of the model is too large for a junction tree"
    if result.has_prerequisites:
        reason = "prerequisites need listed states"
    elif not isinstance(result.law, NetworkLaw):
        reason = "a saturated law has no junction tree"
    return SettingError(
        "too-many-states",
        "{what} needs a sum over {number} joint states of the latents; states are listed up to "
        "2^{exponent}, and {reason}",
        {"what": what, "number": result.law.space.n_states_text(), "reason": reason},
        exponent=CONFIG.derivatives.max_states.bit_length() - 1,
    )


@dataclass(frozen=True)
class StateFunctions:
    """G functions of the latent states, each given over the states of one table."""

    tables: StateTables
    table: IntArray  # (G,), table of each function
    parts: dict[int, Array]  # by table, the values (S_t, G_t) of its functions

    def columns(self, table: int) -> IntArray:
        """Return the indices of the functions on a table."""
        return np.flatnonzero(self.table == table)

    def selected(self, columns: IntArray) -> StateFunctions:
        """Return some of the functions, in their order."""
        chosen = np.isin(np.arange(len(self.table)), columns)
        parts = {t: part[:, chosen[self.columns(t)]] for t, part in self.parts.items()}
        kept = {t: part for t, part in parts.items() if part.shape[1]}
        return StateFunctions(self.tables, self.table[columns], kept)

    def like(self, parts: dict[int, Array]) -> StateFunctions:
        """Return other functions on the same tables."""
        return StateFunctions(self.tables, self.table, parts)

    def column(self, column: int) -> Array:
        """Return the values of one function, shape (S_t,)."""
        own = int(self.table[column])
        return np.asarray(self.parts[own][:, int((self.table[:column] == own).sum())])

    def means(self) -> Array:
        """Return the expectations under the law, shape (G,)."""
        out = np.empty(len(self.table))
        for t, part in self.parts.items():
            out[self.columns(t)] = self.tables.shares(t) @ part
        return out

    def mean_products(self, shift: Array | None = None) -> Array:
        """Return expectations of products of two functions, minus a shift (G,) each, (G, G)."""
        n = len(self.table)
        shifts = np.zeros(n) if shift is None else shift
        out = np.empty((n, n))
        parts = {t: part - shifts[self.columns(t)] for t, part in self.parts.items()}
        for t, part in parts.items():
            for u, other in parts.items():
                if u >= t:
                    found = self.tables.joint_sums(t, part.T, u) @ other
                    out[np.ix_(self.columns(t), self.columns(u))] = found
                    out[np.ix_(self.columns(u), self.columns(t))] = found.T
        return out
