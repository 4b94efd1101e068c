"""The matrix of rules that knowledge comes to: which graphs and which laws obey it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.discover.orientation import MixedGraph, bits, close, find_cycle
from hidag.errors import GraphError

if TYPE_CHECKING:
    from hidag.discover.knowledge import Knowledge

#: Bits of the matrix of rules: i -> j must not be made; the pair i, j must stay joined.
FORBIDDEN = 1
KEPT = 2


def pairs_kept_apart(knowledge: Knowledge, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs that may be joined in neither direction, each once."""
    forbidden = (knowledge.rules(names) & FORBIDDEN) > 0
    return [(i, j) for i, j in np.argwhere(np.triu(forbidden & forbidden.T, 1)).tolist()]


def any_law_obeys(knowledge: Knowledge, names: Sequence[str]) -> bool:
    """Return whether every joint law factorises over some graph that the knowledge allows.

    That takes a graph in which all are joined: no pair is kept apart, and directions that are left
    make no circle.
    """
    if pairs_kept_apart(knowledge, names):
        return False
    forbidden = (knowledge.rules(names) & FORBIDDEN) > 0
    return find_cycle(np.asarray(forbidden.T & ~forbidden, dtype=np.int8)) is None


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


def directed_further(
    completed: NDArray[np.int8], rules: NDArray[np.uint8] | None
) -> NDArray[np.int8]:
    """Return a completed graph with the directions that background knowledge gives it."""
    if rules is None:
        return completed
    out = direct_by_rules(completed, rules)
    if out is None:
        raise GraphError("the search returned a graph that contradicts the background knowledge")
    return out
