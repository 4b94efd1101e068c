"""Exact marginals of a product of factors by variable elimination on a junction tree.

Latents are eliminated in min-fill order. The conditional distributions of each given its neighbours
are the joint distribution, which gives any marginal without a list of the joint states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """A table with one axis for each of its variables."""

    variables: tuple[int, ...]
    table: Array

    def marginalise_to(self, variables: Sequence[int]) -> Factor:
        """Return the sum over all other variables, with axes in the given order."""
        return product([self], variables)


def product(factors: Sequence[Factor], keep: Iterable[int]) -> Factor:
    """Return the product of at least one factor, summed over all variables but ``keep``."""
    kept = tuple(keep)
    running = factors[0]
    for other in factors[1:]:
        both = tuple(dict.fromkeys((*running.variables, *other.variables)))
        running = Factor(both, _einsum([running, other], both))
    return Factor(kept, _einsum([running], kept))


def _einsum(factors: Sequence[Factor], out: tuple[int, ...]) -> Array:
    # einsum has few labels, so variables are renumbered for each product.
    place = {v: i for i, v in enumerate(dict.fromkeys(v for f in factors for v in f.variables))}
    operands: list[Any] = []
    for factor in factors:
        operands += [factor.table, [place[v] for v in factor.variables]]
    return np.asarray(np.einsum(*operands, [place[v] for v in out]), dtype=np.float64)


def indicator(variable: int, level: int, n_levels: int) -> Factor:
    """Return the factor that is 1 at one level of a variable and 0 elsewhere."""
    return Factor((variable,), np.eye(n_levels)[level])


def elimination_order(n_variables: int, scopes: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return each latent with its neighbours in min-fill order; ties: fewer neighbours, index."""
    near: list[set[int]] = [set() for _ in range(n_variables)]
    for scope in scopes:
        for a, b in combinations(scope, 2):
            near[a].add(b)
            near[b].add(a)

    def cost(v: int) -> tuple[int, int, int]:
        missing = sum(1 for a, b in combinations(sorted(near[v]), 2) if b not in near[a])
        return missing, len(near[v]), v

    left = {v: cost(v) for v in range(n_variables)}
    out = []
    while left:
        v = min(left, key=lambda u: left[u])
        others = sorted(near[v])
        out.append([v, *others])
        del left[v]
        touched = set(others)
        for a, b in combinations(others, 2):
            if b not in near[a]:
                near[a].add(b)
                near[b].add(a)
                touched |= near[a] & near[b]
        for a in others:
            near[a].discard(v)
            touched |= near[a]
        for u in touched & left.keys():
            left[u] = cost(u)
    return out


def max_clique_size(steps: Sequence[Sequence[int]], levels: Sequence[int]) -> int:
    """Return the number of cells of the largest table of an elimination order."""
    return max((prod(levels[v] for v in clique) for clique in steps), default=1)


@dataclass(frozen=True)
class JunctionTree:
    """A joint distribution on a junction tree with one clique for each eliminated latent."""

    # length K: in the order of elimination: a latent given the separator of its clique
    conditionals: tuple[Factor, ...]
    beliefs: tuple[Factor, ...]  # length K: the joint distribution of each clique
    parent: tuple[int, ...]  # length K: the parent of each clique, -1 for roots
    home: tuple[int, ...]  # length K: the clique in which each latent is eliminated

    @classmethod
    def of(cls, factors: Sequence[Factor], steps: Sequence[Sequence[int]]) -> JunctionTree:
        """Return the law proportional to a product of factors, given its elimination order."""
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
            # Scaling prevents underflow of products of many small likelihoods.
            largest = float(total.max())
            if not largest > 0:
                raise DataError(
                    "impossible-evidence",
                    "the given values have probability zero under the fitted distribution",
                )
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
                top = beliefs[parent[i]].marginalise_to(clique[1:])
                beliefs[i] = product([conditionals[i], top], clique)
        return cls(tuple(conditionals), tuple(beliefs), tuple(parent), tuple(home))

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint distribution of some latents, one axis for each in the given order."""
        wanted = tuple(variables)
        if not wanted:
            return np.array(1.0)
        first = min(self.home[v] for v in wanted)
        if set(wanted) <= set(self.beliefs[first].variables):
            return self.beliefs[first].marginalise_to(wanted).table
        paths = {v: self._path_to_root(self.home[v]) for v in wanted}
        groups: dict[int, list[int]] = {}
        for v in wanted:
            groups.setdefault(paths[v][-1], []).append(v)
        return product([self._in_one_tree(own, paths) for own in groups.values()], wanted).table

    def _path_to_root(self, clique: int) -> list[int]:
        out = [clique]
        while self.parent[out[-1]] >= 0:
            out.append(self.parent[out[-1]])
        return out

    def _in_one_tree(self, wanted: list[int], paths: dict[int, list[int]]) -> Factor:
        """Return the joint distribution of latents in one connected component."""
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
