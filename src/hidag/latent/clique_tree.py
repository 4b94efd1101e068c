"""Exact marginals of a product of factors, whatever the number of latents, by a tree of cliques.

Latents are summed out one after the other, the one first that makes the fewest new neighbours.
What each sum leaves is the conditional law of its latent given the neighbours it had: together they
are the joint law again, now on a tree, from which any marginal is read without listing states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.latent.factors import Factor, product

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CliqueTree:
    """A joint law on a tree of cliques, one for each latent.

    Attributes
    ----------
    conditionals : tuple of Factor, length K
        In the order of elimination: the law of a latent given those that were there when it went.
    beliefs : tuple of Factor, length K
        The joint law of each clique.
    parent : tuple of int, length K
        The clique above each, -1 at the top.
    home : tuple of int, length K
        The clique of each latent: the one in which it went.
    """

    conditionals: tuple[Factor, ...]
    beliefs: tuple[Factor, ...]
    parent: tuple[int, ...]
    home: tuple[int, ...]

    @classmethod
    def of(cls, factors: Sequence[Factor], steps: Sequence[Sequence[int]]) -> CliqueTree:
        """Return the normalised law that is proportional to the product of the factors.

        Parameters
        ----------
        factors : sequence of Factor
            Every latent is in one of them.
        steps : sequence of sequences of int
            What :func:`elimination_order` gave for their scopes.

        Raises
        ------
        DataError
            If the product is zero everywhere.
        """
        n = len(steps)
        home = [0] * n
        for i, clique in enumerate(steps):
            home[clique[0]] = i
        waiting: list[list[Factor]] = [[] for _ in range(n)]
        for factor in factors:
            waiting[min(home[v] for v in factor.variables)].append(factor)
        parent, conditionals = [], []
        for i, clique in enumerate(steps):
            separator = clique[1:]
            joint = product(waiting[i], clique)
            total = joint.table.sum(axis=0)
            # Scaling keeps products of many small likelihoods from vanishing.
            largest = float(total.max())
            if not largest > 0:
                raise DataError("what is given has probability zero under the fitted law")
            with np.errstate(invalid="ignore"):
                shares = np.where(total > 0, joint.table / total, 1.0 / len(joint.table))
            conditionals.append(Factor(tuple(clique), shares))
            above = min((home[v] for v in separator), default=-1)
            parent.append(above)
            if above >= 0:
                waiting[above].append(Factor(tuple(separator), total / largest))
        beliefs: list[Factor] = list(conditionals)
        for i in reversed(range(n)):
            if parent[i] >= 0:
                clique = conditionals[i].variables
                top = beliefs[parent[i]].summed_to(clique[1:])
                beliefs[i] = product([conditionals[i], top], clique)
        return cls(tuple(conditionals), tuple(beliefs), tuple(parent), tuple(home))

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint law of some latents, one axis for each in the given order."""
        wanted = tuple(variables)
        if not wanted:
            return np.array(1.0)
        first = min(self.home[v] for v in wanted)
        if set(wanted) <= set(self.beliefs[first].variables):
            return self.beliefs[first].summed_to(wanted).table
        paths = {v: self._path(self.home[v]) for v in wanted}
        groups: dict[int, list[int]] = {}
        for v in wanted:
            groups.setdefault(paths[v][-1], []).append(v)
        return product([self._in_one_tree(own, paths) for own in groups.values()], wanted).table

    def _path(self, clique: int) -> list[int]:
        out = [clique]
        while self.parent[out[-1]] >= 0:
            out.append(self.parent[out[-1]])
        return out

    def _in_one_tree(self, wanted: list[int], paths: dict[int, list[int]]) -> Factor:
        """Return the joint law of latents whose cliques hang together."""
        common = set.intersection(*(set(paths[v]) for v in wanted))
        top = min(common)
        between = {i for v in wanted for i in paths[v] if i < top}
        messages: dict[int, list[Factor]] = {}
        for i in sorted(between):
            parts = [self.conditionals[i], *messages.get(i, ())]
            known = {v for part in parts for v in part.variables}
            separator = self.conditionals[i].variables[1:]
            keep = [v for v in sorted(known) if v in separator or v in wanted]
            messages.setdefault(self.parent[i], []).append(product(parts, keep))
        parts = [self.beliefs[top], *messages.get(top, ())]
        return product(parts, wanted)
