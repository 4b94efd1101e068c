"""Latents given responses by sums over small tables, whatever the number of joint states.

A row's joint density is a product: one factor for each latent given its parents, and one for each
item, over the few latents that drive it. Latents are summed out one after the other, for many rows
at once; tables are no larger than the widest group of latents that hang together on the way. The
last sum is the row's density. Going back gives the probabilities of each such group, or, with
maxima in place of sums, the most probable state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import log_probabilities
from hidag.estimate.working import WorkingData
from hidag.latent import LatentLaw, NetworkLaw
from hidag.latent.elimination import elimination_order, widest_table
from hidag.measurement import MeasurementParameters, family_named

Array = NDArray[np.float64]
Scope = tuple[int, ...]

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
    """

    parameters: MeasurementParameters
    law: NetworkLaw
    steps: tuple[Scope, ...]
    items: tuple[Scope, ...]

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
        if widest_table([scope for scope in scopes if scope], levels) > WIDEST:
            return None
        steps = elimination_order(law.space.n_latents, scopes)
        if widest_table(steps, levels) > WIDEST:
            return None
        return cls(parameters, law, tuple(map(tuple, steps)), tuple(items))

    def marginals(self, values: Array) -> Array:
        """Return the probability of each level above 0 given each row, shape (N, F).

        Latent by latent, levels ascending; NaN cells of ``values`` (N, R) are missing.
        """
        levels = self.law.space.levels
        ends = np.cumsum([m - 1 for m in levels])
        out = np.empty((len(values), ends[-1]))
        for rows, groups in self.groups(*self.working(values)):
            for latent, m in enumerate(levels):
                own = groups.over((latent,))
                own /= own.sum(axis=1, keepdims=True)
                out[rows, ends[latent] - m + 1 : ends[latent]] = own[:, 1:]
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
        for rows, joints, density in self._blocks(data, working):
            beliefs: list[Array] = [np.empty(0)] * len(self.steps)
            doubt = np.zeros(len(density))
            for i in reversed(range(len(self.steps))):
                logs = joints[i] - _log_sum(joints[i])[:, None]
                shares = np.exp(logs)
                above = self._above(i)
                if above >= 0:
                    over = summed_to(beliefs[above], self.steps[above], self.steps[i][1:])
                    shares *= over[:, None]
                beliefs[i] = shares
                doubt -= (shares * logs).reshape(len(shares), -1).sum(axis=1)
            yield rows, RowGroups(self.steps, tuple(beliefs), density, doubt)

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
                place: Any = (here, slice(None), *(found[:, v] for v in others))
                found[:, latent] = joints[i][place].argmax(axis=1)
        return out, largest

    def doubts(self, values: Array) -> Array:
        """Return the entropy of all latents together given each row, shape (N,)."""
        out = np.empty(len(values))
        for rows, groups in self.groups(*self.working(values)):
            out[rows] = groups.doubt
        return out

    def _above(self, step: int) -> int:
        """Return the step whose table holds all neighbours of another one's latent; -1 for none."""
        others = set(self.steps[step][1:])
        return next((i for i, one in enumerate(self.steps) if one[0] in others), -1)

    def working(self, values: Array) -> tuple[WorkingData, MeasurementParameters]:
        """Return rows (N, R) and items on the scale that sums are taken on."""
        data = WorkingData.around(self.parameters, values)
        return data, data.to_working(self.parameters)

    def _blocks(
        self, data: WorkingData, working: MeasurementParameters, *, largest: bool = False
    ) -> Iterator[tuple[slice, list[Array], Array]]:
        """Yield row ranges with the log tables of all steps, before their latent goes.

        What is left when all latents are gone comes last, (n,): with sums the log density.
        """
        levels = self.law.space.levels
        cells = sum(int(np.prod([levels[v] for v in clique])) for clique in self.steps)
        n_rows = int(np.clip(BLOCK_CELLS // cells, 1, 4096))
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
            joints = []
            for i, clique in enumerate(self.steps):
                joint = np.zeros((rows.stop - start, *(levels[v] for v in clique)))
                for scope, table in waiting[i]:
                    joint += _aligned(table, scope, clique)
                joints.append(joint)
                left = joint.max(axis=1) if largest else _log_sum(joint)
                above = self._above(i)
                if above >= 0:
                    waiting[above].append((clique[1:], left))
                else:
                    rest += left
            yield rows, joints, rest

    def _tables(
        self, data: WorkingData, working: MeasurementParameters
    ) -> list[tuple[Scope, NDArray[np.intp], Array, Array]]:
        """Return each item's latents, columns, natural parameters (D, s), partition (s,)."""
        levels, out = self.law.space.levels, []
        for j, scope in enumerate(self.items):
            states = states_over(scope, levels)
            eta = working.intercept[j] + working.terms.features(states) @ working.loadings[j]
            family, item = family_named(working.families[j]), np.array([j])
            theta, partition = family.natural(eta[None], working.auxiliary(family, item)[:, None])
            columns = data.columns.of(family, item).ravel()
            out.append((scope, columns, np.reshape(theta, (len(columns), -1)), partition.ravel()))
        return out

    def _factors(
        self,
        data: WorkingData,
        tables: list[tuple[Scope, NDArray[np.intp], Array, Array]],
        rows: slice,
    ) -> Iterator[tuple[Scope, Array]]:
        """Yield latents with log factors, (n or 1, levels of each); every latent is in one."""
        law, levels = self.law, self.law.space.levels
        for k, parents in enumerate(law.parents):
            yield (*parents, k), log_probabilities(law.tables[k])[None]
        x = data.x[rows]
        for j, (scope, columns, theta, partition) in enumerate(tables):
            table = x[:, columns] @ theta
            if data.observed is None:
                table -= partition
            else:
                table -= data.observed[rows, j][:, None] * partition
            yield scope, table.reshape(len(x), *(levels[v] for v in scope))


@dataclass(frozen=True)
class RowGroups:
    """What a block of n rows says of groups of latents.

    Attributes
    ----------
    steps : tuple of tuples of int
        The groups.
    beliefs : tuple of ndarray, shape (n, levels of each)
        Their joint probabilities given the rows.
    log_density : ndarray, shape (n,)
        Without the items' bases.
    doubt : ndarray, shape (n,)
        Entropy of all latents together, given the row.
    """

    steps: tuple[Scope, ...]
    beliefs: tuple[Array, ...]
    log_density: Array
    doubt: Array

    def over(self, scope: Scope) -> Array:
        """Return the joint probabilities of latents that some group holds, (n, states)."""
        if not scope:
            return np.ones((len(self.log_density), 1))
        home = next(i for i, clique in enumerate(self.steps) if clique[0] in scope)
        table = summed_to(self.beliefs[home], self.steps[home], scope)
        return table.reshape(len(table), -1)


def states_over(scope: Scope, levels: Sequence[int]) -> NDArray[np.int64]:
    """Return the states of some latents, the last changing fastest, all others 0, (s, K)."""
    sizes = [levels[v] for v in scope]
    states = np.zeros((int(np.prod(sizes, dtype=np.int64)), len(levels)), dtype=np.int64)
    states[:, list(scope)] = list(product(*map(range, sizes)))
    return states


def summed_to(table: Array, clique: Scope, scope: Scope) -> Array:
    """Return a table over a group of latents summed to some of them, in their order."""
    gone = tuple(1 + a for a, v in enumerate(clique) if v not in scope)
    kept = [v for v in clique if v in scope]
    return np.asarray(table.sum(axis=gone).transpose(0, *(1 + kept.index(v) for v in scope)))


def _log_sum(joint: Array) -> Array:
    """Return the logarithm of a table's sum over its first latent."""
    top = joint.max(axis=1)
    return np.asarray(top + np.log(np.exp(joint - top[:, None]).sum(axis=1)))


def _aligned(table: Array, scope: Scope, clique: Scope) -> Array:
    """Return a table whose axes are those of a clique, of length 1 where it does not depend."""
    order = sorted(range(len(scope)), key=lambda a: clique.index(scope[a]))
    sizes = {v: table.shape[1 + a] for a, v in enumerate(scope)}
    turned = table.transpose(0, *(1 + a for a in order))
    return turned.reshape(len(table), *(sizes.get(v, 1) for v in clique))
