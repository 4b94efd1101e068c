"""Latents given responses by sums over small tables, whatever the number of joint states.

A row's joint density is a product: one factor for each latent given its parents, and one for each
item, over the few latents that drive it. Latents are summed out one after the other, for many rows
at once; tables are no larger than the widest group of latents that hang together on the way. Going
back gives each latent's probabilities, or, with maxima in place of sums, the most probable state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import log_probabilities
from hidag.estimate.working import WorkingData
from hidag.latent import NetworkLaw
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
    """

    parameters: MeasurementParameters
    law: NetworkLaw
    steps: tuple[Scope, ...]

    @classmethod
    def of(cls, parameters: MeasurementParameters, law: NetworkLaw) -> TreePosterior | None:
        """Return the order for a fit; None if some table would be too wide."""
        scopes = [(*pa, k) for k, pa in enumerate(law.parents)]
        scopes += [tuple(map(int, np.flatnonzero(own))) for own in parameters.q_matrix]
        # An item of many latents alone makes a table that is too wide: nothing need be ordered.
        levels = law.space.levels
        if widest_table([scope for scope in scopes if scope], levels) > WIDEST:
            return None
        steps = elimination_order(law.space.n_latents, scopes)
        if widest_table(steps, levels) > WIDEST:
            return None
        return cls(parameters, law, tuple(map(tuple, steps)))

    def marginals(self, values: Array) -> Array:
        """Return the probability of each level above 0 given each row, shape (N, F).

        Latent by latent, levels ascending; NaN cells of ``values`` (N, R) are missing.
        """
        levels = self.law.space.levels
        ends = np.cumsum([m - 1 for m in levels])
        out = np.empty((len(values), ends[-1]))
        for rows, joints in self._blocks(values):
            beliefs: list[Array] = [np.empty(0)] * len(self.steps)
            for i in reversed(range(len(self.steps))):
                shares = np.exp(joints[i] - _log_sum(joints[i])[:, None])
                above = self._above(i)
                if above >= 0:
                    shares *= self._summed(beliefs[above], above, self.steps[i][1:])[:, None]
                beliefs[i] = shares
                latent = self.steps[i][0]
                own = shares.reshape(*shares.shape[:2], -1).sum(axis=2)
                own /= own.sum(axis=1, keepdims=True)
                out[rows, ends[latent] - levels[latent] + 1 : ends[latent]] = own[:, 1:]
        return np.clip(out, 0.0, 1.0)

    def modes(self, values: Array) -> NDArray[np.int64]:
        """Return the jointly most probable latent state of each row, shape (N, K)."""
        out = np.zeros((len(values), len(self.steps)), dtype=np.int64)
        for rows, joints in self._blocks(values, largest=True):
            found = out[rows]
            here = np.arange(len(found))
            for i in reversed(range(len(self.steps))):
                latent, *others = self.steps[i]
                place: Any = (here, slice(None), *(found[:, v] for v in others))
                found[:, latent] = joints[i][place].argmax(axis=1)
        return out

    def _above(self, step: int) -> int:
        """Return the step whose table holds all neighbours of another one's latent; -1 for none."""
        others = set(self.steps[step][1:])
        return next((i for i, one in enumerate(self.steps) if one[0] in others), -1)

    def _summed(self, table: Array, step: int, scope: Scope) -> Array:
        """Return a table of a step summed to some of its latents, in their order."""
        clique = self.steps[step]
        gone = tuple(1 + a for a, v in enumerate(clique) if v not in scope)
        kept = [v for v in clique if v in scope]
        turned = table.sum(axis=gone).transpose(0, *(1 + kept.index(v) for v in scope))
        return np.asarray(turned)

    def _blocks(
        self, values: Array, *, largest: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        """Yield row ranges with the log tables of all steps, before their latent goes."""
        levels = self.law.space.levels
        cells = sum(int(np.prod([levels[v] for v in clique])) for clique in self.steps)
        n_rows = int(np.clip(BLOCK_CELLS // cells, 1, 4096))
        home = {clique[0]: i for i, clique in enumerate(self.steps)}
        for start in range(0, len(values), n_rows):
            rows = slice(start, min(start + n_rows, len(values)))
            waiting: list[list[tuple[Scope, Array]]] = [[] for _ in self.steps]
            for scope, table in self._factors(values[rows]):
                waiting[min(home[v] for v in scope)].append((scope, table))
            joints = []
            for i, clique in enumerate(self.steps):
                joint = np.zeros((rows.stop - start, *(levels[v] for v in clique)))
                for scope, table in waiting[i]:
                    joint += _aligned(table, scope, clique)
                joints.append(joint)
                above = self._above(i)
                if above >= 0:
                    left = joint.max(axis=1) if largest else _log_sum(joint)
                    waiting[above].append((clique[1:], left))
            yield rows, joints

    def _factors(self, values: Array) -> Iterator[tuple[Scope, Array]]:
        """Yield latents with log factors, (n or 1, levels of each); every latent is in one."""
        law, levels = self.law, self.law.space.levels
        for k, parents in enumerate(law.parents):
            yield (*parents, k), log_probabilities(law.tables[k])[None]
        data = WorkingData.around(self.parameters, values)
        working = data.to_working(self.parameters)
        for j, own in enumerate(self.parameters.q_matrix):
            scope = tuple(map(int, np.flatnonzero(own)))
            if not scope:
                continue
            sizes = [levels[v] for v in scope]
            states = np.zeros((int(np.prod(sizes)), len(levels)), dtype=np.int64)
            states[:, list(scope)] = list(product(*map(range, sizes)))
            eta = working.intercept[j] + working.terms.features(states) @ working.loadings[j]
            family, item = family_named(working.families[j]), np.array([j])
            theta, partition = family.natural(eta[None], working.auxiliary(family, item)[:, None])
            columns = data.columns.of(family, item).ravel()
            table = data.x[:, columns] @ np.reshape(theta, (len(columns), -1))
            seen = np.ones(len(values)) if data.observed is None else data.observed[:, j]
            table -= seen[:, None] * np.reshape(partition, (1, -1))
            yield scope, table.reshape(len(values), *sizes)


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
