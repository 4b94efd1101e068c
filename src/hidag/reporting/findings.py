"""Summary of a fit in two paragraphs: the edges among the latents and the items of each latent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hidag.config import CONFIG
from hidag.formatting import join_names, plural, shorten
from hidag.plotting.q_matrix import standardized_loadings
from hidag.structure.graphs import DAG
from hidag.structure.knowledge import Knowledge, nonadjacent_pairs

if TYPE_CHECKING:
    from hidag.results import FitResult

Pair = tuple[str, str]

#: More edges or latents are counted instead of named.
_MAX_EDGES, _MAX_LATENTS = 8, 8
_N_STRONGEST = 3
#: Effects that cancel in all possible states leave a rounding error of the strongest effect.
_ZERO_STRENGTH = 1e-9
_MAX_NAME_LENGTH = 40
#: Share of bootstrap samples from which an edge counts as well supported.
_HIGH_SUPPORT = 0.95
#: With fewer bootstrap samples counts are reported instead of percentages.
FEW_SAMPLES = 20
_UNINFORMATIVE = "the items are too weakly informative to conclude that they are independent"


@dataclass(frozen=True)
class EdgeEvidence:
    """Edges of a graph by their evidence."""

    identified: tuple[Pair, ...]  # the data identify the direction
    oriented_by_knowledge: tuple[Pair, ...]  # the direction needs the prior knowledge
    undirected: tuple[Pair, ...]
    required: tuple[Pair, ...]  # by prior knowledge, such as the steps of a hierarchy
    excluded: tuple[Pair, ...] = ()  # pairs that prior knowledge forbids in both directions

    @property
    def estimated(self) -> tuple[Pair, ...]:
        """Edges that the search could have omitted."""
        return (*self.identified, *self.oriented_by_knowledge, *self.undirected)

    @classmethod
    def of(cls, result: FitResult) -> EdgeEvidence:
        """Return the edges of a fit by their evidence."""
        graph = result.graph
        directed, undirected = tuple(graph.directed_edges), tuple(graph.undirected_edges)
        stored = result.settings.get("knowledge")
        if not isinstance(stored, Mapping):
            return cls(directed, (), undirected, ())
        knowledge = Knowledge.from_dict(stored)
        adjacency = knowledge.required_adjacency(graph.names)
        member = graph.to_dag()
        # The data identify a direction if the Markov equivalence class has it, with and without
        # the required edges: without such an edge two causes may form a spurious collider.
        by_data = set(member.to_cpdag().directed_edges) & set(
            DAG(member.adjacency * (1 - adjacency), graph.names).to_cpdag().directed_edges
        )
        index = {name: k for k, name in enumerate(graph.names)}
        required = tuple((a, b) for a, b in directed if adjacency[index[a], index[b]])
        rest = [edge for edge in directed if edge not in required]
        excluded = nonadjacent_pairs(knowledge, graph.names)
        return cls(
            tuple(edge for edge in rest if edge in by_data),
            tuple(edge for edge in rest if edge not in by_data),
            undirected,
            required,
            tuple((graph.names[i], graph.names[j]) for i, j in excluded),
        )


def describe_findings(
    result: FitResult,
    support: Mapping[Pair, float] | None = None,
    directions: Mapping[Pair, float] | None = None,
    n_samples: int | None = None,
) -> list[str]:
    """Return a paragraph on the edges and their bootstrap support, and one on the items.

    ``support`` has shares of bootstrap samples by pair of latents, in either order, ``directions``
    by cause and effect; ``n_samples`` is None if unknown.
    """
    edges, samples = EdgeEvidence.of(result), _BootstrapShares(n_samples)
    # Required edges are in every graph: their support is not informative.
    supported = _describe_support(edges, support, samples) if support is not None else []
    supported += _describe_direction_support(edges, directions or {}, samples)
    if supported and samples.are_few:
        supported.append("So few bootstrap samples are hardly informative.")
    sentences = [*_describe_edges(edges, result), *supported]
    return [text for text in (" ".join(sentences), " ".join(_describe_items(result))) if text]


def describe_empty_graph(result: FitResult) -> str:
    """Return the meaning of a graph without edges."""
    n_latents = len(result.latent_names)
    n_pairs, n_excluded = n_latents * (n_latents - 1) // 2, len(EdgeEvidence.of(result).excluded)
    if n_excluded:
        share = f"{n_excluded:,} of {n_pairs:,}" if n_excluded < n_pairs else "all"
        mark = ";" if n_excluded < n_pairs else ":"
        return f"The graph has no edge{mark} prior knowledge excludes {share} pairs."
    if _is_uninformative(result):
        return f"The graph has no edge, but {_UNINFORMATIVE}."
    return "The graph has no edge: the latents appear to be independent."


def _is_uninformative(result: FitResult) -> bool:
    """Return whether the items carry too little information for absent edges to mean anything."""
    low = result.information_ratio < CONFIG.information.low_ratio
    return low or not result.q_matrix.any(axis=0).all()


def _describe_edges(edges: EdgeEvidence, result: FitResult) -> list[str]:
    n_latents = len(result.latent_names)
    n_edges, n_pairs = len(edges.estimated) + len(edges.required), n_latents * (n_latents - 1) // 2
    if n_latents == 1:
        return []
    many = len(edges.excluded) > _MAX_EDGES
    named = f"{len(edges.excluded):,} pairs" if many else _pairs(edges.excluded)
    excluded = [f"Excluded by prior knowledge, whatever the data: {named}."] if named else []
    if not n_edges:
        if len(edges.excluded) == n_pairs:
            return ["No two latents are connected: prior knowledge excludes all pairs."]
        meaning = "" if excluded else ": they appear to be independent"
        if _is_uninformative(result):
            meaning = f", but {_UNINFORMATIVE}"
        return [f"No two latents are connected{meaning}.", *excluded]
    if n_edges > _MAX_EDGES:
        return [*_count_edges(edges, n_pairs), *excluded]
    out = []
    if edges.identified:
        out.append(f"Under the model, the data indicate that {_arrows(edges.identified)}.")
    if edges.oriented_by_knowledge:
        how = "with a direction that follows only together with the prior knowledge"
        out.append(f"Directly related, {how}: {_arrows(edges.oriented_by_knowledge)}.")
    if edges.undirected:
        out.append(f"Directly related, direction not identified: {_pairs(edges.undirected)}.")
    if edges.required:
        out.append(f"Required by prior knowledge, not estimated: {_arrows(edges.required)}.")
        if not edges.estimated and n_latents > 2:
            out.append("No other pair of latents is connected.")
    return out + excluded


def _count_edges(edges: EdgeEvidence, n_pairs: int) -> list[str]:
    n_edges = len(edges.estimated) + len(edges.required)
    out = [
        f"{n_edges:,} of the {n_pairs:,} pairs of latents are connected; the data identify the "
        f"direction of {len(edges.identified) or 'none'} of these edges."
    ]
    if n_more := len(edges.oriented_by_knowledge):
        number = plural(n_more, "more direction follows", "more directions follow")
        out.append(f"{number} only together with the prior knowledge.")
    if edges.required:
        number = plural(len(edges.required), "edge is", "edges are")
        out.append(f"{number} required by prior knowledge, not estimated.")
    return out


class _BootstrapShares:
    """Wording of shares of bootstrap samples: percentages, or counts if there are few."""

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.are_few = number is not None and number < FEW_SAMPLES
        #: The share that counts as well supported, and the noun at the first mention.
        self.high = self.share(1.0) if self.are_few else f"in at least {_HIGH_SUPPORT:.0%}"
        self.noun = " bootstrap samples" if self.are_few else " of the bootstrap samples"

    def share(self, share: float) -> str:
        """Return a share as a phrase."""
        if self.number is None or not self.are_few:
            return f"in {share:.0%}"
        count = round(share * self.number)
        if count == self.number > 1:
            return f"in all {count}"
        return f"in {count or 'none'} of {self.number}"


def _describe_support(
    edges: EdgeEvidence, support: Mapping[Pair, float], samples: _BootstrapShares
) -> list[str]:
    shares = sorted((support.get(p, support.get(p[::-1], 0.0)), p) for p in edges.estimated)
    if not shares:
        return []
    lowest, pair = shares[0][0], _pairs([shares[0][1]])
    if len(shares) == 1:
        share = samples.share(lowest) if lowest < _HIGH_SUPPORT else samples.high
        return [f"{pair} are connected {share}{samples.noun}."]
    noun = "estimated pairs" if edges.required else "pairs"
    n_high, high = sum(share >= _HIGH_SUPPORT for share, _ in shares), samples.high + samples.noun
    if n_high == len(shares):
        return [f"Each of these {noun} is connected {high}."]
    number = f"{n_high or 'None'} of these {len(shares)} {noun} {'is' if n_high < 2 else 'are'}"
    least = f"the least supported, {pair}, {samples.share(lowest)}"
    return [f"{number} connected {high}; {least}."]


def _describe_direction_support(
    edges: EdgeEvidence, directions: Mapping[Pair, float], samples: _BootstrapShares
) -> list[str]:
    shares = sorted((directions[edge], edge) for edge in edges.identified if edge in directions)
    if not shares:
        return []
    lowest, (a, b) = shares[0]
    arrow = f"from {_cut(a)} to {_cut(b)}"
    if len(shares) == 1:
        return [f"The direction {arrow} recurs {samples.share(lowest)}."]
    n_high = sum(share >= _HIGH_SUPPORT for share, _ in shares)
    if n_high == len(shares):
        return [f"Each direction recurs {samples.high}."]
    number = f"{n_high or 'None'} of the {len(shares)} directions"
    least = f"the least supported, {arrow}, {samples.share(lowest)}"
    return [f"{number} {'recurs' if n_high < 2 else 'recur'} {samples.high}; {least}."]


def _describe_items(result: FitResult) -> list[str]:
    strength, q, _ = standardized_loadings(result)
    if len(result.latent_names) > _MAX_LATENTS:
        fewest, most = int(q.sum(axis=0).min()), int(q.sum(axis=0).max())
        number = f"{fewest} to {most} items" if fewest < most else plural(fewest, "item")
        return [f"Each latent is measured by {number}."]
    out = []
    for name, sizes in zip(result.latent_names, (np.abs(strength) * q).T, strict=True):
        count = int((sizes > _ZERO_STRENGTH * sizes.max(initial=0.0)).sum())
        order = np.argsort(-sizes, kind="stable")[: min(count, _N_STRONGEST)].tolist()
        named = join_names([_cut(result.item_names[j]) for j in order])
        how = ", most strongly by" if count > len(order) else ":"
        items = f"{plural(count, 'item')}{how} {named}" if count else "no item"
        out.append(f"{_cut(name)} is measured by {items}.")
    return out


def _arrows(edges: Sequence[Pair]) -> str:
    return join_names([f"{_cut(a)} causes {_cut(b)}" for a, b in edges], limit=_MAX_EDGES)


def _pairs(pairs: Sequence[Pair]) -> str:
    return "; ".join(f"{_cut(a)} and {_cut(b)}" for a, b in pairs)


def _cut(name: str) -> str:
    return shorten(name, _MAX_NAME_LENGTH)
