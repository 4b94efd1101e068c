"""Sets of parents that latents may have in the DAGs of a Markov equivalence class.

The effect of an intervention depends on the DAG only through the parents of the targets jointly
(Maathuis, Kalisch and Bühlmann 2009; Nandy, Maathuis and Richardson 2017): one DAG for each set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hidag.structure.graphs import CPDAG, DAG
from hidag.structure.mixed_graphs import (
    MixedGraph,
    apply_meek_rules,
    bits,
    cliques,
    extend_to_dag,
    find_v_structures,
)

MAX_PARENT_SETS = 512


@dataclass(frozen=True)
class ParentSets:
    """Different sets of parents of the targets, all of them or the first ones found."""

    dags: tuple[DAG, ...]  # one member of the equivalence class for each set
    complete: bool  # whether there are no other sets


def enumerate_parent_sets(
    graph: CPDAG, targets: Sequence[int], *, limit: int = MAX_PARENT_SETS
) -> ParentSets:
    """Return at most ``limit`` sets of parents that the targets have in the members of a graph."""
    member = graph.to_dag()  # raises if the graph has no member
    start = apply_meek_rules(MixedGraph.from_adjacency(graph.adjacency))
    colliders = find_v_structures(MixedGraph.from_adjacency(member.adjacency))
    found = list(islice(_members(start, list(targets), colliders), limit + 1))
    return ParentSets(tuple(DAG(dag, graph.names) for dag in found[:limit]), len(found) <= limit)


def _members(
    graph: MixedGraph, targets: list[int], colliders: list[tuple[int, int, int]]
) -> Iterator[NDArray[np.int8]]:
    """Yield one member for each way to direct the edges of the targets."""
    if not targets:
        dag = extend_to_dag(graph)
        if dag is not None:
            yield dag
        return
    target = targets[0]
    for parents in cliques(graph, graph.neighbours[target]):
        branch = graph.copy()
        for other in bits(graph.neighbours[target]):
            is_parent = parents >> other & 1
            branch.orient(*((other, target) if is_parent else (target, other)))
        apply_meek_rules(branch)
        dag = extend_to_dag(branch)
        # Orientations that force a new collider or a cycle belong to no member.
        if dag is not None and find_v_structures(MixedGraph.from_adjacency(dag)) == colliders:
            yield from _members(branch, targets[1:], colliders)
