"""Tables over groups of latents, one for each of many rows.

Rows are the last axis: sums over a latent then run along whole rows of memory, which for tables of
two by two by two is many times as fast as the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

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
        return summed_to(self.beliefs[home], self.steps[home], scope).reshape(-1, n_rows)

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


def summed_to(table: Array, clique: Scope, scope: Scope) -> Array:
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
