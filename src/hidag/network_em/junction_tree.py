"""Exact posteriors of the latents by a junction tree, for any number of joint states.

Variable elimination sums the latents out of the factors (latents given parents, items given
latents) for many rows at once, with tables of at most treewidth plus one latents; the last sum is
the row's density. The backward pass gives the marginals of all cliques, or, with maxima in place of
sums, the most probable state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import log_probabilities
from hidag.latent.junction_tree import elimination_order, max_clique_size
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]
Integers = NDArray[np.integer]
Scope = tuple[int, ...]


@dataclass(frozen=True)
class CliqueMarginals:
    """Posterior marginals of the cliques for a block of n rows."""

    cliques: tuple[Scope, ...]
    marginals: tuple[Array, ...]  # (levels of each latent, n)
    # (levels of each latent, n): posterior of each clique's first latent given the others
    conditionals: tuple[Array, ...]
    log_density: Array  # (n,): without the items' bases

    def by_state(self, scope: Scope) -> Array:
        """Return the joint posterior of latents that some clique contains, (states, n)."""
        n_rows = len(self.log_density)
        if not scope:
            return np.ones((1, n_rows))
        home = next(i for i, clique in enumerate(self.cliques) if clique[0] in scope)
        return _sum_to(self.marginals[home], self.cliques[home], scope).reshape(-1, n_rows)

    def over(self, scope: Scope) -> Array:
        """Return the joint posterior of latents that some clique contains, (n, states)."""
        return np.ascontiguousarray(self.by_state(scope).T)

    @cached_property
    def entropy(self) -> Array:
        """Posterior entropy of all latents jointly, shape (n,)."""
        out = np.zeros(len(self.log_density))
        for marginal, conditional in zip(self.marginals, self.conditionals, strict=True):
            with np.errstate(divide="ignore"):
                terms = np.asarray(xlogy(marginal, conditional))
            out -= terms.reshape(-1, terms.shape[-1]).sum(axis=0)
        return out


def _sum_to(table: Array, clique: Scope, scope: Scope) -> Array:
    """Return a clique's table summed to some of its latents, in their order."""
    summed = tuple(a for a, v in enumerate(clique) if v not in scope)
    left = [v for v in clique if v in scope]
    return np.asarray(table.sum(axis=summed).transpose(*(left.index(v) for v in scope), len(left)))


def _log_sum(joint: Array) -> tuple[Array, Array]:
    """Return the log of a table's sum over its first latent, and the conditional of that latent."""
    top = joint.max(axis=0)
    share = np.exp(joint - top)
    total = share.sum(axis=0)
    share /= total
    return top + np.log(total), share


def _align(table: Array, scope: Scope, clique: Scope) -> Array:
    """Return a table with the axes of a clique, of length 1 for latents outside its scope."""
    order = sorted(range(len(scope)), key=lambda a: clique.index(scope[a]))
    sizes = {v: table.shape[a] for a, v in enumerate(scope)}
    turned = table.transpose(*order, len(scope))
    return turned.reshape(*(sizes.get(v, 1) for v in clique), table.shape[-1])


@dataclass(frozen=True)
class TreePosterior:
    """A junction tree of the items and the network, from an elimination order."""

    parameters: MeasurementParameters  # in the user's units
    law: NetworkLaw
    # in the order of elimination: the eliminated latent, then its neighbours
    cliques: tuple[Scope, ...]
    items: tuple[Scope, ...]  # the latents of each item
    # additional log factors over latents that some clique contains
    evidence: tuple[tuple[Scope, Array], ...] = ()

    @classmethod
    def of(
        cls, parameters: MeasurementParameters, law: LatentLaw, q_matrix: Integers | None = None
    ) -> TreePosterior | None:
        """Return the tree of a fit or support (R, K); None without a network, or if too large."""
        if not isinstance(law, NetworkLaw):
            return None
        q = parameters.q_matrix if q_matrix is None else q_matrix
        items = [tuple(map(int, np.flatnonzero(own))) for own in q]
        scopes = [*((*pa, k) for k, pa in enumerate(law.parents)), *items]
        levels, largest = law.space.levels, CONFIG.network_em.max_clique_cells
        # A single item can be too large, which makes the elimination order unnecessary.
        if max_clique_size([scope for scope in scopes if scope], levels) > largest:
            return None
        cliques = elimination_order(law.space.n_latents, scopes)
        if max_clique_size(cliques, levels) > largest:
            return None
        return cls(parameters, law, tuple(map(tuple, cliques)), tuple(items))

    @property
    def n_cells(self) -> int:
        """Number of cells of all cliques' tables for one row."""
        levels = self.law.space.levels
        return sum(int(np.prod([levels[v] for v in clique])) for clique in self.cliques)

    def condition_on(self, scope: Scope, state: Integers) -> TreePosterior:
        """Return the posterior given the state of latents that load on one item."""
        factor = np.full([self.law.space.levels[v] for v in scope], CONFIG.e_step.log_zero)
        factor[tuple(state)] = 0.0
        return replace(self, evidence=(*self.evidence, (scope, factor)))

    def marginals(self, values: Array) -> Array:
        """Return P(Z_k = u) of each level u > 0, latent by latent, (N, F), for rows (N, R)."""
        levels = self.law.space.levels
        ends = np.cumsum([m - 1 for m in levels])
        out = np.empty((len(values), ends[-1]))
        for rows, found in self.iterate_marginals(*self.design_data(values)):
            for latent, m in enumerate(levels):
                own = found.by_state((latent,))
                own /= own.sum(axis=0)
                out[rows, ends[latent] - m + 1 : ends[latent]] = own[1:].T
        return np.clip(out, 0.0, 1.0)

    def log_densities(self, values: Array) -> Array:
        """Return log densities of rows (N, R) without the items' bases, shape (N,)."""
        return self.working_densities(*self.design_data(values))

    def working_densities(self, data: WorkingData, working: MeasurementParameters) -> Array:
        """Return the same from design data and parameters on their scale."""
        out = np.empty(data.n_samples)
        for rows, _, density in self._eliminate(data, working):
            out[rows] = density
        return out

    def log_likelihood(self, data: WorkingData, working: MeasurementParameters) -> float:
        """Return the weighted log-likelihood."""
        densities = data.weighted(self.working_densities(data, working))
        return float(densities.sum()) + data.base(working.dispersion)

    def iterate_marginals(
        self, data: WorkingData, working: MeasurementParameters
    ) -> Iterator[tuple[slice, CliqueMarginals]]:
        """Yield row ranges and clique marginals, for items on the working scale of the data."""
        for rows, conditionals, density in self._eliminate(data, working):
            marginals = list(conditionals)
            for i in reversed(range(len(self.cliques))):
                above = self._above[i]
                if above >= 0:
                    over = _sum_to(marginals[above], self.cliques[above], self.cliques[i][1:])
                    marginals[i] = conditionals[i] * over
            both = tuple(marginals), tuple(conditionals)
            yield rows, CliqueMarginals(self.cliques, *both, density)

    def draw_states(self, values: Array, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return a joint state drawn from the posterior of each row (N, R), shape (N, K)."""
        uniforms = rng.random((len(self.cliques), len(values)))
        out = np.zeros((len(values), len(self.cliques)), dtype=np.int64)
        for rows, conditionals, _ in self._eliminate(*self.design_data(values)):
            own = uniforms[:, rows]
            self._backtrack(
                out[rows], conditionals, lambda i, table, own=own: draw_index(table.T, own[i])
            )
        return out

    def modes(self, values: Array) -> NDArray[np.int64]:
        """Return the most probable joint state of each row, shape (N, K)."""
        return self.modes_with_densities(values)[0]

    def modes_with_densities(self, values: Array) -> tuple[NDArray[np.int64], Array]:
        """Return modes (N, K) and log densities of row and mode (N,), as in `log_densities`."""
        out = np.zeros((len(values), len(self.cliques)), dtype=np.int64)
        largest = np.empty(len(values))
        for rows, joints, density in self._eliminate(*self.design_data(values), maximise=True):
            largest[rows] = density
            self._backtrack(out[rows], joints, lambda _, table: table.argmax(axis=0))
        return out, largest

    def _backtrack(self, states: NDArray[np.int64], tables: list[Array], choose: Any) -> None:
        """Fill in states (n, K) against the elimination order, by the table given the others."""
        here = np.arange(len(states))
        for i in reversed(range(len(self.cliques))):
            latent, *others = self.cliques[i]
            place: Any = (slice(None), *(states[:, v] for v in others), here)
            states[:, latent] = choose(i, tables[i][place])

    def entropies(self, values: Array) -> Array:
        """Return the posterior entropy of all latents jointly for each row, shape (N,)."""
        out = np.empty(len(values))
        for rows, found in self.iterate_marginals(*self.design_data(values)):
            out[rows] = found.entropy
        return out

    @cached_property
    def _above(self) -> tuple[int, ...]:
        """For each clique the one that contains its separator; -1 for none."""
        return tuple(
            next((i for i, one in enumerate(self.cliques) if one[0] in others), -1)
            for others in (set(clique[1:]) for clique in self.cliques)
        )

    def design_data(self, values: Array) -> tuple[WorkingData, MeasurementParameters]:
        """Return the design data of rows (N, R), and the parameters on their scale."""
        data = WorkingData.around(self.parameters, values)
        return data, data.to_working(self.parameters)

    def _eliminate(
        self, data: WorkingData, working: MeasurementParameters, *, maximise: bool = False
    ) -> Iterator[tuple[slice, list[Array], Array]]:
        """Yield row ranges, tables of all cliques (levels of each latent, n) and log densities.

        Tables are posteriors of eliminated latents given their neighbours, or with ``maximise`` log
        densities to be maximised, and the density is that of the most probable state.
        """
        levels = self.law.space.levels
        config = CONFIG.network_em
        n_rows = int(np.clip(config.block_cells // self.n_cells, 1, config.max_block_rows))
        home = {clique[0]: i for i, clique in enumerate(self.cliques)}
        tables = self._item_tables(data, working)
        for start in range(0, data.n_samples, n_rows):
            rows = slice(start, min(start + n_rows, data.n_samples))
            waiting: list[list[tuple[Scope, Array]]] = [[] for _ in self.cliques]
            rest = np.zeros(rows.stop - start)
            for scope, table in self._factors(data, tables, rows):
                if scope:
                    waiting[min(home[v] for v in scope)].append((scope, table))
                else:
                    rest += table
            out = []
            for i, clique in enumerate(self.cliques):
                joint = np.zeros((*(levels[v] for v in clique), rows.stop - start))
                for scope, table in waiting[i]:
                    joint += _align(table, scope, clique)
                if maximise:
                    message = joint.max(axis=0)
                else:
                    message, joint = _log_sum(joint)
                out.append(joint)
                if self._above[i] >= 0:
                    waiting[self._above[i]].append((clique[1:], message))
                else:
                    rest += message
            yield rows, out, rest

    @cached_property
    def items_by_scope(self) -> tuple[tuple[Scope, NDArray[np.intp]], ...]:
        """Sets of latents, each with all items that load on exactly these."""
        found: dict[Scope, list[int]] = {}
        for j, scope in enumerate(self.items):
            found.setdefault(scope, []).append(j)
        return tuple((scope, np.array(items, dtype=np.intp)) for scope, items in found.items())

    def _item_tables(self, data: WorkingData, working: MeasurementParameters) -> list[_ItemTables]:
        """Return the natural parameters and partitions of items with the same latents."""
        out = []
        for scope, items in self.items_by_scope:
            states = working.terms.states_of(np.array(scope, dtype=np.intp))
            features = working.terms.features(states)
            eta = working.intercept[items, None] + working.loadings[items] @ features.T
            columns, thetas, partitions = [], [], []
            for j, predictor in zip(items, eta, strict=True):
                family, item = family_named(working.families[j]), np.array([j])
                theta, partition = family.natural(
                    predictor[None], working.auxiliary(family, item)[:, None]
                )
                own = data.columns.of(family, item).ravel()
                columns.append(own)
                thetas.append(np.reshape(theta, (len(own), -1)))
                partitions.append(partition.ravel())
            stacked = np.concatenate(columns), np.vstack(thetas), np.array(partitions)
            out.append(_ItemTables(scope, items, *stacked))
        return out

    def _factors(
        self, data: WorkingData, tables: list[_ItemTables], rows: slice
    ) -> Iterator[tuple[Scope, Array]]:
        """Yield scopes with log factors, (levels of each latent, n or 1)."""
        law, levels = self.law, self.law.space.levels
        for k, parents in enumerate(law.parents):
            yield (*parents, k), log_probabilities(law.tables[k])[..., None]
        for scope, factor in self.evidence:
            yield scope, factor[..., None]
        x = data.x[rows]
        for one in tables:
            table = one.theta.T @ x[:, one.columns].T
            if data.observed is None:
                table -= one.partition.sum(axis=0)[:, None]
            else:
                table -= one.partition.T @ data.observed[rows][:, one.items].T
            yield one.scope, table.reshape(*(levels[v] for v in one.scope), len(x))


class _ItemTables(NamedTuple):
    """Natural parameters and partitions of n items with the same latents, in their s states."""

    scope: Scope
    items: NDArray[np.intp]
    columns: NDArray[np.intp]
    theta: Array  # (columns of the items, s)
    partition: Array  # (n, s)


def draw_index(weights: Array, uniforms: Array) -> NDArray[np.intp]:
    """Return an index drawn by inversion from each row of weights (n, S), shape (n,)."""
    ends = np.cumsum(weights, axis=1)
    return np.asarray((ends <= (uniforms * ends[:, -1])[:, None]).sum(axis=1))
