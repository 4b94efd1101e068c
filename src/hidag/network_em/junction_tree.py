"""Latents given responses by sums over small tables, whatever the number of joint states.

A row's joint density is a product: one factor for each latent given its parents, and one for each
item, over the few latents that drive it. Latents are summed out one after the other, for many rows
at once; tables are no larger than the widest group of latents that hang together on the way. The
last sum is the row's density. Going back gives the probabilities of each such group, or, with
maxima in place of sums, the most probable state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.em.design_data import WorkingData
from hidag.em.e_step import LOG_OF_NOTHING, log_probabilities
from hidag.latent.junction_tree import elimination_order, max_clique_size
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters

# --- Tables over groups of latents, one for each of many rows

Array = NDArray[np.float64]
Scope = tuple[int, ...]


@dataclass(frozen=True)
class RowGroups:
    """What a block of n rows says of groups of latents.

    Attributes
    ----------
    steps : tuple of tuples of int
        The groups.
    beliefs : tuple of ndarray, shape (levels of each, n)
        Their joint probabilities given the rows.
    conditionals : tuple of ndarray, shape (levels of each, n)
        Probabilities of each group's first latent given the others and the row.
    log_density : ndarray, shape (n,)
        Without the items' bases.
    """

    steps: tuple[Scope, ...]
    beliefs: tuple[Array, ...]
    conditionals: tuple[Array, ...]
    log_density: Array

    def by_state(self, scope: Scope) -> Array:
        """Return the joint probabilities of latents that some group holds, (states, n)."""
        n_rows = len(self.log_density)
        if not scope:
            return np.ones((1, n_rows))
        home = next(i for i, clique in enumerate(self.steps) if clique[0] in scope)
        return marginalise_to(self.beliefs[home], self.steps[home], scope).reshape(-1, n_rows)

    def over(self, scope: Scope) -> Array:
        """Return the joint probabilities of latents that some group holds, (n, states)."""
        return np.ascontiguousarray(self.by_state(scope).T)

    @cached_property
    def doubt(self) -> Array:
        """Entropy of all latents together, given the row, shape (n,)."""
        out = np.zeros(len(self.log_density))
        for belief, conditional in zip(self.beliefs, self.conditionals, strict=True):
            # What never occurs adds nothing.
            with np.errstate(divide="ignore"):
                out -= _flat(np.asarray(xlogy(belief, conditional))).sum(axis=0)
        return out


def states_over(scope: Scope, levels: Sequence[int]) -> NDArray[np.int64]:
    """Return the states of some latents, the last changing fastest, all others 0, (s, K)."""
    sizes = [levels[v] for v in scope]
    states = np.zeros((int(np.prod(sizes, dtype=np.int64)), len(levels)), dtype=np.int64)
    states[:, list(scope)] = list(product(*map(range, sizes)))
    return states


def marginalise_to(table: Array, clique: Scope, scope: Scope) -> Array:
    """Return a table over a group of latents summed to some of them, in their order."""
    gone = tuple(a for a, v in enumerate(clique) if v not in scope)
    kept = [v for v in clique if v in scope]
    return np.asarray(table.sum(axis=gone).transpose(*(kept.index(v) for v in scope), len(kept)))


def log_sum(joint: Array) -> tuple[Array, Array]:
    """Return the logarithm of a table's sum over its first latent, and each term's share of it."""
    top = joint.max(axis=0)
    share = np.exp(joint - top)
    total = share.sum(axis=0)
    share /= total
    return top + np.log(total), share


def aligned(table: Array, scope: Scope, clique: Scope) -> Array:
    """Return a table whose axes are those of a clique, of length 1 where it does not depend."""
    order = sorted(range(len(scope)), key=lambda a: clique.index(scope[a]))
    sizes = {v: table.shape[a] for a, v in enumerate(scope)}
    turned = table.transpose(*order, len(scope))
    return turned.reshape(*(sizes.get(v, 1) for v in clique), table.shape[-1])


def _flat(table: NDArray[Any]) -> NDArray[Any]:
    """Return a table with one axis for all its latents, (states, n)."""
    return table.reshape(-1, table.shape[-1])


# ---

#: Wider tables are not made for every row: sampling is quicker then.
WIDEST = 1 << 12
#: Rows are worked on in blocks whose tables have about this many cells.
BLOCK_CELLS = 1 << 22


@dataclass(frozen=True)
class TreePosterior:
    """The order in which latents are summed out of the rows' densities.

    Attributes
    ----------
    parameters : MeasurementParameters
        In the user's units.
    law : NetworkLaw
    steps : tuple of tuples of int
        The latent that goes, and its neighbours then.
    items : tuple of tuples of int
        The latents of each item.
    known : tuple of (tuple of int, ndarray)
        Latents that some step has together, with a log factor over their levels.
    """

    parameters: MeasurementParameters
    law: NetworkLaw
    steps: tuple[Scope, ...]
    items: tuple[Scope, ...]
    known: tuple[tuple[Scope, Array], ...] = ()

    @classmethod
    def of(
        cls,
        parameters: MeasurementParameters,
        law: LatentLaw,
        q_matrix: NDArray[np.integer] | None = None,
    ) -> TreePosterior | None:
        """Return the order for a fit; None without a graph or if some table would be too wide.

        ``q_matrix``, shape (R, K), says which latents items may have; by default those they do.
        """
        if not isinstance(law, NetworkLaw):
            return None
        q = parameters.q_matrix if q_matrix is None else q_matrix
        items = [tuple(map(int, np.flatnonzero(own))) for own in q]
        scopes = [*((*pa, k) for k, pa in enumerate(law.parents)), *items]
        # An item of many latents alone makes a table that is too wide: nothing need be ordered.
        levels = law.space.levels
        if max_clique_size([scope for scope in scopes if scope], levels) > WIDEST:
            return None
        steps = elimination_order(law.space.n_latents, scopes)
        if max_clique_size(steps, levels) > WIDEST:
            return None
        return cls(parameters, law, tuple(map(tuple, steps)), tuple(items))

    @property
    def n_cells(self) -> int:
        """Cells of a row's tables, all steps together."""
        levels = self.law.space.levels
        return sum(int(np.prod([levels[v] for v in clique])) for clique in self.steps)

    def with_law(self, law: NetworkLaw) -> TreePosterior:
        """Return the same order for a law with the same parents."""
        return replace(self, law=law)

    def given(self, scope: Scope, state: NDArray[np.integer]) -> TreePosterior:
        """Return the same where latents that drive an item together are known to be in a state."""
        factor = np.full([self.law.space.levels[v] for v in scope], LOG_OF_NOTHING)
        factor[tuple(state)] = 0.0
        return replace(self, known=(*self.known, (scope, factor)))

    def marginals(self, values: Array) -> Array:
        """Return the probability of each level above 0 given each row, shape (N, F).

        Latent by latent, levels ascending; NaN cells of ``values`` (N, R) are missing.
        """
        levels = self.law.space.levels
        ends = np.cumsum([m - 1 for m in levels])
        out = np.empty((len(values), ends[-1]))
        for rows, groups in self.groups(*self.working(values)):
            for latent, m in enumerate(levels):
                own = groups.by_state((latent,))
                own /= own.sum(axis=0)
                out[rows, ends[latent] - m + 1 : ends[latent]] = own[1:].T
        return np.clip(out, 0.0, 1.0)

    def log_densities(self, values: Array) -> Array:
        """Return rows' log densities, (N,), in units of the fit and without the items' bases."""
        return self.working_densities(*self.working(values))

    def working_densities(self, data: WorkingData, working: MeasurementParameters) -> Array:
        """Return rows' log densities, (N,), on a working scale and without the items' bases."""
        out = np.empty(data.n_samples)
        for rows, _, density in self._blocks(data, working):
            out[rows] = density
        return out

    def log_likelihood(self, data: WorkingData, working: MeasurementParameters) -> float:
        """Return the log-likelihood of rows, counted by their weights."""
        densities = data.weighted(self.working_densities(data, working))
        return float(densities.sum()) + data.base(working.dispersion)

    def groups(
        self, data: WorkingData, working: MeasurementParameters
    ) -> Iterator[tuple[slice, RowGroups]]:
        """Yield row ranges with what they say of groups of latents.

        Parameters
        ----------
        data : WorkingData
        working : MeasurementParameters
            On the working scale of ``data``; items have no latents but ``self.items``.
        """
        for rows, conditionals, density in self._blocks(data, working):
            beliefs = list(conditionals)
            for i in reversed(range(len(self.steps))):
                above = self._above[i]
                if above >= 0:
                    over = marginalise_to(beliefs[above], self.steps[above], self.steps[i][1:])
                    beliefs[i] = conditionals[i] * over
            yield rows, RowGroups(self.steps, tuple(beliefs), tuple(conditionals), density)

    def modes(self, values: Array) -> NDArray[np.int64]:
        """Return the jointly most probable latent state of each row, shape (N, K)."""
        return self.modes_with_densities(values)[0]

    def modes_with_densities(self, values: Array) -> tuple[NDArray[np.int64], Array]:
        """Return the jointly most probable latent states of rows, (N, K), and their log densities.

        These are of row and state together, (N,), in units as those of :meth:`log_densities`.
        """
        out = np.zeros((len(values), len(self.steps)), dtype=np.int64)
        largest = np.empty(len(values))
        for rows, joints, density in self._blocks(*self.working(values), largest=True):
            largest[rows] = density
            found = out[rows]
            here = np.arange(len(found))
            for i in reversed(range(len(self.steps))):
                latent, *others = self.steps[i]
                place: Any = (slice(None), *(found[:, v] for v in others), here)
                found[:, latent] = joints[i][place].argmax(axis=0)
        return out, largest

    def doubts(self, values: Array) -> Array:
        """Return the entropy of all latents together given each row, shape (N,)."""
        out = np.empty(len(values))
        for rows, groups in self.groups(*self.working(values)):
            out[rows] = groups.doubt
        return out

    @cached_property
    def _above(self) -> tuple[int, ...]:
        """For each step the one whose table holds all neighbours of its latent; -1 for none."""
        return tuple(
            next((i for i, one in enumerate(self.steps) if one[0] in others), -1)
            for others in (set(clique[1:]) for clique in self.steps)
        )

    def working(self, values: Array) -> tuple[WorkingData, MeasurementParameters]:
        """Return rows (N, R) and items on the scale that sums are taken on."""
        data = WorkingData.around(self.parameters, values)
        return data, data.to_working(self.parameters)

    def _blocks(
        self, data: WorkingData, working: MeasurementParameters, *, largest: bool = False
    ) -> Iterator[tuple[slice, list[Array], Array]]:
        """Yield row ranges with tables of all steps, (levels of each, n).

        They are the probabilities of the step's latent given its neighbours then and the row; with
        ``largest`` the logarithms that the latent's level is chosen by. What is left when all
        latents are gone comes last, (n,): the log density, or that of the best state.
        """
        levels = self.law.space.levels
        n_rows = int(np.clip(BLOCK_CELLS // self.n_cells, 1, 4096))
        home = {clique[0]: i for i, clique in enumerate(self.steps)}
        tables = self._tables(data, working)
        for start in range(0, data.n_samples, n_rows):
            rows = slice(start, min(start + n_rows, data.n_samples))
            waiting: list[list[tuple[Scope, Array]]] = [[] for _ in self.steps]
            rest = np.zeros(rows.stop - start)
            for scope, table in self._factors(data, tables, rows):
                if scope:
                    waiting[min(home[v] for v in scope)].append((scope, table))
                else:
                    rest += table
            kept = []
            for i, clique in enumerate(self.steps):
                joint = np.zeros((*(levels[v] for v in clique), rows.stop - start))
                for scope, table in waiting[i]:
                    joint += aligned(table, scope, clique)
                if largest:
                    left = joint.max(axis=0)
                else:
                    left, joint = log_sum(joint)
                kept.append(joint)
                if self._above[i] >= 0:
                    waiting[self._above[i]].append((clique[1:], left))
                else:
                    rest += left
            yield rows, kept, rest

    @cached_property
    def alike(self) -> tuple[tuple[Scope, NDArray[np.intp]], ...]:
        """Groups of latents that drive items, each with all the items that it drives alone."""
        found: dict[Scope, list[int]] = {}
        for j, scope in enumerate(self.items):
            found.setdefault(scope, []).append(j)
        return tuple((scope, np.array(items, dtype=np.intp)) for scope, items in found.items())

    def _tables(self, data: WorkingData, working: MeasurementParameters) -> list[_ItemTables]:
        """Return what items say of their latents, those with the same latents together."""
        levels, out = self.law.space.levels, []
        for scope, items in self.alike:
            features = working.terms.features(states_over(scope, levels))
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
            out.append(
                _ItemTables(
                    scope, items, np.concatenate(columns), np.vstack(thetas), np.array(partitions)
                )
            )
        return out

    def _factors(
        self, data: WorkingData, tables: list[_ItemTables], rows: slice
    ) -> Iterator[tuple[Scope, Array]]:
        """Yield latents with log factors, (levels of each, n or 1); every latent is in one."""
        law, levels = self.law, self.law.space.levels
        for k, parents in enumerate(law.parents):
            yield (*parents, k), log_probabilities(law.tables[k])[..., None]
        for scope, factor in self.known:
            yield scope, factor[..., None]
        x = data.x[rows]
        for one in tables:
            table = one.theta.T @ x[:, one.columns].T
            if data.observed is None:
                table -= one.partition.sum(axis=0)[:, None]
            else:
                table -= one.partition.T @ data.observed[rows][:, one.items].T
            yield one.scope, table.reshape(*(levels[v] for v in one.scope), len(x))


@dataclass(frozen=True)
class _ItemTables:
    """Natural parameters (D, s) and partitions (n, s) of n items in the s states of their latents.

    The items have D columns of a table together.
    """

    scope: Scope
    items: NDArray[np.intp]
    columns: NDArray[np.intp]
    theta: Array
    partition: Array
