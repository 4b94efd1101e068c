"""Which parents a latent may have in the members of a graph: all that an intervention depends on.

Setting a latent cuts it off from its parents. Members of a Markov equivalence class in which the
latent has the same parents agree about what follows, so nothing is gained by listing them all
(Maathuis, Kalisch and Bühlmann 2009). With several latents set at once it is the parents of all of
them that count (Nandy, Maathuis and Richardson 2017).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.structure.graphs import CPDAG, DAG
from hidag.structure.orientation import (
    MixedGraph,
    apply_meek_rules,
    bits,
    extend_to_dag,
    find_v_structures,
)

#: Members are counted one by one up to this many.
COUNTED_MEMBERS = 5000
#: Sets of parents that are looked at, at the most.
MOST_CHOICES = 512


@dataclass(frozen=True)
class Choice:
    """Members that agree about the parents of the latents that are set.

    Attributes
    ----------
    dag : DAG
        One of them.
    n_members : int or None
        How many they are; None where members are too many to count.
    """

    dag: DAG
    n_members: int | None


@dataclass(frozen=True)
class Choices:
    """All choices of parents, or the first of them.

    Attributes
    ----------
    choices : tuple of Choice
    complete : bool
        Whether there are no others.
    """

    choices: tuple[Choice, ...]
    complete: bool

    @property
    def shares(self) -> tuple[float, ...] | None:
        """Share of the members behind each choice; None where members were not counted."""
        counts = [choice.n_members for choice in self.choices]
        if not self.complete or any(n is None for n in counts):
            return None
        numbers = [n for n in counts if n is not None]
        return tuple(n / sum(numbers) for n in numbers)


def parent_choices(
    graph: CPDAG, targets: Sequence[int], *, limit: int = MOST_CHOICES, counted: bool = True
) -> Choices:
    """Return the different sets of parents that the targets have in the members of a graph.

    Parameters
    ----------
    graph : CPDAG
    targets : sequence of int
        The latents that are set.
    limit : int
        Sets looked at, at the most.
    counted : bool
        Whether the members behind each are wanted.
    """
    graph.to_dag()  # refuses a graph without members
    start = apply_meek_rules(MixedGraph.from_adjacency(graph.adjacency))
    told = find_v_structures(MixedGraph.from_adjacency(graph.to_dag().adjacency))
    found: list[tuple[MixedGraph, NDArray[np.int8]]] = []
    complete = True
    for branch in _branches(start, list(targets), told):
        if len(found) == limit:
            complete = False
            break
        found.append(branch)
    counted = counted and _few_members(graph)
    choices = []
    for mixed, dag in found:
        count = len(CPDAG(mixed.adjacency()).members(COUNTED_MEMBERS)) if counted else None
        choices.append(Choice(DAG(dag, graph.names), count))
    return Choices(tuple(choices), complete)


def _few_members(graph: CPDAG) -> bool:
    if graph.is_valid():
        return graph.n_members() <= COUNTED_MEMBERS
    return len(graph.members(COUNTED_MEMBERS + 1)) <= COUNTED_MEMBERS


def _branches(
    graph: MixedGraph, targets: list[int], told: list[tuple[int, int, int]]
) -> Iterator[tuple[MixedGraph, NDArray[np.int8]]]:
    """Yield graphs in which the targets' edges are directed, each with one of its members."""
    if not targets:
        dag = extend_to_dag(graph)
        if dag is not None:
            yield graph, dag
        return
    target = targets[0]
    for parents in _cliques(graph, graph.neighbours[target]):
        branch = graph.copy()
        for other in bits(graph.neighbours[target]):
            if parents >> other & 1:
                branch.orient(other, target)
            else:
                branch.orient(target, other)
        apply_meek_rules(branch)
        dag = extend_to_dag(branch)
        # Directions that force a new collider or a cycle belong to no member.
        if dag is not None and find_v_structures(MixedGraph.from_adjacency(dag)) == told:
            yield from _branches(branch, targets[1:], told)


def _cliques(graph: MixedGraph, inside: int) -> Iterator[int]:
    """Yield the sets of variables inside that are all joined to each other, the empty one first.

    Two parents that are not joined would be a new collider.
    """
    yield 0
    for v in bits(inside):
        later = inside & ~((1 << (v + 1)) - 1) & graph.adjacent(v)
        for rest in _cliques(graph, later):
            yield rest | 1 << v
