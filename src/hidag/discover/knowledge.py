"""Background knowledge: edges that must or must not be there, and an order of tiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hidag.discover.orientation import MixedGraph, bits, close, find_cycle
from hidag.errors import GraphError

Variable = str | int

#: Bits of the matrix of rules: i -> j must not be made; the pair i, j must stay joined.
FORBIDDEN = 1
KEPT = 2


@dataclass(frozen=True)
class Knowledge:
    """What is known about the graph before the search.

    Attributes
    ----------
    required : sequence of (cause, effect)
        Edges that must be there, by name or index.
    forbidden : sequence of (cause, effect)
        Directions that must not occur; forbid both to keep two variables apart.
    tiers : sequence of sequences of variables
        Nothing in a later tier causes anything in an earlier one. Variables in no tier are free.
    """

    required: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)
    forbidden: Sequence[tuple[Variable, Variable]] = field(default_factory=tuple)
    tiers: Sequence[Sequence[Variable]] = field(default_factory=tuple)

    def rules(self, names: Sequence[str]) -> NDArray[np.uint8]:
        """Return the rules, shape (K, K): bit 1 if i -> j is forbidden, bit 2 if i, j stay joined.

        Raises
        ------
        GraphError
            If the knowledge contradicts itself or names an unknown variable.
        """
        n = len(names)
        out = np.zeros((n, n), dtype=np.uint8)
        for a, b in self.forbidden:
            out[_index(a, names), _index(b, names)] |= FORBIDDEN
        tier = self._tier_of(names)
        for i, of_i in tier.items():
            for j, of_j in tier.items():
                if of_i > of_j:
                    out[i, j] |= FORBIDDEN
        required = self.required_adjacency(names)
        for i, j in np.argwhere(required):
            edge = f"{names[i]} -> {names[j]}"
            if i in tier and j in tier and tier[i] > tier[j]:
                raise GraphError(
                    f"{edge} is required, but {names[i]} is in tier {tier[i] + 1} and "
                    f"{names[j]} in the earlier tier {tier[j] + 1}"
                )
            if out[i, j] & FORBIDDEN:
                raise GraphError(f"{edge} is both required and forbidden")
        cycle = find_cycle(required)
        if cycle is None and (required & required.T).any():
            i, j = (int(k) for k in np.argwhere(required & required.T)[0])
            cycle = [i, j, i]
        if cycle is not None:
            path = " -> ".join(names[k] for k in cycle)
            raise GraphError(f"the required edges form a cycle: {path}")
        out[required.T == 1] |= FORBIDDEN
        out[(required | required.T) == 1] |= KEPT
        return out

    def required_adjacency(self, names: Sequence[str]) -> NDArray[np.int8]:
        """Return the required edges as an adjacency, shape (K, K)."""
        out = np.zeros((len(names), len(names)), dtype=np.int8)
        for a, b in self.required:
            i, j = _index(a, names), _index(b, names)
            if i == j:
                raise GraphError(
                    f"{names[i]} -> {names[i]} is required, but no variable causes itself"
                )
            out[i, j] = 1
        return out

    def _tier_of(self, names: Sequence[str]) -> dict[int, int]:
        out: dict[int, int] = {}
        for number, members in enumerate(self.tiers):
            for variable in members:
                k = _index(variable, names)
                if k in out:
                    raise GraphError(
                        f"{names[k]} is in tier {out[k] + 1} and in tier {number + 1}; "
                        f"a variable has one tier"
                    )
                out[k] = number
        return out


def _index(variable: Variable, names: Sequence[str]) -> int:
    if isinstance(variable, str):
        if variable not in names:
            known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise GraphError(f"the knowledge names {variable!r}, but the variables are {known}")
        return list(names).index(variable)
    if not 0 <= int(variable) < len(names):
        raise GraphError(
            f"the knowledge names variable {variable}, but indices go from 0 to {len(names) - 1}"
        )
    return int(variable)


def direct_by_rules(
    adjacency: NDArray[np.int8], rules: NDArray[np.uint8]
) -> NDArray[np.int8] | None:
    """Return the closed graph of the members that obey the rules, or None if there are none.

    Parameters
    ----------
    adjacency : ndarray of int8, shape (K, K)
        A completed graph.
    rules : ndarray of uint8, shape (K, K)
    """
    graph = MixedGraph.from_adjacency(adjacency)
    for i in range(graph.n):
        for j in bits(graph.neighbours[i]):
            if rules[i, j] & FORBIDDEN and graph.neighbours[i] >> j & 1:
                graph.orient(j, i)
                close(graph)
    out = graph.adjacency()
    directed = (out == 1) & (out.T == 0)
    apart = (out | out.T) == 0
    broken = (directed & (rules & FORBIDDEN > 0)).any() or (apart & (rules & KEPT > 0)).any()
    return None if broken else out
