"""Which edges of a graph were found, and which were told to the search beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hidag.discover import DAG, Knowledge
from hidag.discover.rules import pairs_kept_apart

if TYPE_CHECKING:
    from hidag.result import FitResult

Pair = tuple[str, str]


@dataclass(frozen=True)
class SortedEdges:
    """The edges of a fit's graph by where they come from.

    Attributes
    ----------
    found : tuple of (cause, effect)
        With a direction that the data and the model settle.
    helped : tuple of (cause, effect)
        Joined by the data, with a direction that needs what was told beforehand.
    undecided : tuple of pair
        Joined by the data, without a direction.
    told : tuple of (cause, effect)
        Required, or steps of a hierarchy: the search could not have left them out.
    kept_apart : tuple of pair
        Forbidden either way round: the search could not have joined them.
    """

    found: tuple[Pair, ...]
    helped: tuple[Pair, ...]
    undecided: tuple[Pair, ...]
    told: tuple[Pair, ...]
    kept_apart: tuple[Pair, ...] = ()

    @property
    def joined_by_data(self) -> tuple[Pair, ...]:
        """All pairs that the search was free to leave apart."""
        return (*self.found, *self.helped, *self.undecided)

    @classmethod
    def of(cls, result: FitResult) -> SortedEdges:
        """Return the edges of a fit's graph, sorted."""
        graph = result.graph
        directed, undecided = tuple(graph.directed_edges), tuple(graph.undirected_edges)
        content = result.settings.get("knowledge")
        if not isinstance(content, Mapping):
            return cls(directed, (), undecided, ())
        knowledge = Knowledge.from_dict(content)
        required = knowledge.required_adjacency(graph.names)
        member = graph.to_dag()
        # A direction is the data's own if all graphs have it that imply the same independences,
        # and if it does not hang on an edge that was required. Without that edge two causes may
        # look like a collider that they are not, so both graphs have to agree.
        own = set(member.to_cpdag().directed_edges) & set(
            DAG(member.adjacency * (1 - required), graph.names).to_cpdag().directed_edges
        )
        place = {name: k for k, name in enumerate(graph.names)}
        told = tuple((a, b) for a, b in directed if required[place[a], place[b]])
        rest = [edge for edge in directed if edge not in told]
        return cls(
            tuple(edge for edge in rest if edge in own),
            tuple(edge for edge in rest if edge not in own),
            undecided,
            told,
            tuple(
                (graph.names[i], graph.names[j])
                for i, j in pairs_kept_apart(knowledge, graph.names)
            ),
        )
