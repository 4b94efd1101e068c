"""Graphs one edge away from a class of graphs over which laws are the same.

Which edge can go, come or turn without further changes depends on the member of the class that one
looks at: of the chains a -> b -> c, a <- b <- c and a <- b -> c only the last can have d -> b added
without making b a collider of a. So all members are looked at, up to some number: they lead to each
other by turning edges whose two ends have the same other causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.discover.named_graph import adjacency_of_parents
from hidag.discover.orientation import find_cycle
from hidag.discover.rules import FORBIDDEN, KEPT
from hidag.latent import Parents

Pair = tuple[int, int]

#: Members of a class that are looked at.
MOST_MEMBERS = 32


@dataclass(frozen=True)
class SingleChanges:
    """Changes that background knowledge allows.

    Attributes
    ----------
    rules : ndarray of uint8, shape (K, K), or None
        Of the background knowledge.
    """

    rules: NDArray[np.uint8] | None = None

    def members(self, parents: Parents) -> list[Parents]:
        """Return graphs over which laws are the same, the given one first."""
        out = [parents]
        for graph in out:
            for a, k in edges_of(graph):
                if set(graph[k]) - {a} != set(graph[a]) or len(out) >= MOST_MEMBERS:
                    continue
                other = self.turned(graph, a, k)
                if other is not None and other not in out:
                    out.append(other)
        return out

    def joined(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph with one more edge; None if there may be none."""
        if self.rules is not None and self.rules[cause, effect] & FORBIDDEN:
            return None
        out = _replaced(parents, effect, {*parents[effect], cause})
        return out if find_cycle(adjacency_of_parents(out)) is None else None

    def parted(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph without an edge; None if it has to stay."""
        if self.rules is not None and self.rules[cause, effect] & KEPT:
            return None
        return _without(parents, cause, effect)

    def turned(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph with an edge the other way round; None if that may not be."""
        return self.joined(_without(parents, cause, effect), effect, cause)

    def all_turned(self, parents: Parents) -> Iterator[Parents]:
        """Yield the graphs with one edge of a member of the class turned round."""
        for graph in self.members(parents):
            for a, k in edges_of(graph):
                other = self.turned(graph, a, k)
                if other is not None:
                    yield other


def edges_of(parents: Parents) -> list[Pair]:
    """Return the edges of a graph, each as cause and effect."""
    return [(a, k) for k, causes in enumerate(parents) for a in causes]


def _without(parents: Parents, cause: int, effect: int) -> Parents:
    return _replaced(parents, effect, set(parents[effect]) - {cause})


def _replaced(parents: Parents, k: int, causes: set[int]) -> Parents:
    """Return the graph with other parents of one latent."""
    return (*parents[:k], tuple(sorted(causes)), *parents[k + 1 :])
