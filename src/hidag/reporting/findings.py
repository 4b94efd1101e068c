"""Summary of a fit in two paragraphs: the edges among the latents and the items of each latent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.formatting import join_names, plural, sentence_case, shorten
from hidag.plotting.q_matrix import standardized_loadings
from hidag.results.claims import WEAK_LEVEL, Claim, show_probability
from hidag.results.findings import rejection_note
from hidag.structure.graphs import DAG
from hidag.structure.knowledge import Knowledge, nonadjacent_pairs

if TYPE_CHECKING:
    from hidag.results import FitResult

Pair = tuple[str, str]
Array = NDArray[np.float64]

#: More edges or latents are counted instead of named.
_MAX_EDGES, _MAX_LATENTS = 8, 8
_N_STRONGEST = 3
#: Effects that cancel in all possible states leave a rounding error of the strongest effect.
_ZERO_STRENGTH = 1e-9
_MAX_NAME_LENGTH = 40
#: Fewer bootstrap samples are hardly informative.
FEW_SAMPLES = 20
_UNINFORMATIVE = "the items are too weakly informative to conclude that they are independent"


@dataclass(frozen=True)
class KnownEdges:
    """What prior knowledge contributes to a graph."""

    required: tuple[Pair, ...] = ()  # such as the steps of a hierarchy
    oriented: tuple[Pair, ...] = ()  # directions that the best graph has only with the knowledge
    excluded: tuple[Pair, ...] = ()  # pairs that it forbids in both directions

    @classmethod
    def of(cls, result: FitResult) -> KnownEdges:
        """Return the contribution of the prior knowledge of a fit."""
        graph, stored = result.graph, result.settings.get("knowledge")
        if not isinstance(stored, Mapping):
            return cls()
        knowledge = Knowledge.from_dict(stored)
        adjacency = knowledge.required_adjacency(graph.names)
        member = graph.to_dag()
        # The data identify a direction if the Markov equivalence class has it, with and without
        # the required edges: without such an edge two causes may form a spurious collider.
        by_data = set(member.to_cpdag().directed_edges) & set(
            DAG(member.adjacency * (1 - adjacency), graph.names).to_cpdag().directed_edges
        )
        index = {name: k for k, name in enumerate(graph.names)}
        directed = graph.directed_edges
        required = tuple((a, b) for a, b in directed if adjacency[index[a], index[b]])
        oriented = tuple(e for e in directed if e not in required and e not in by_data)
        excluded = nonadjacent_pairs(knowledge, graph.names)
        return cls(required, oriented, tuple((graph.names[i], graph.names[j]) for i, j in excluded))


def describe_findings(
    result: FitResult, probabilities: Array | None = None, n_samples: int | None = None
) -> list[str]:
    """Return a paragraph on the edges and their probabilities, and one on the items.

    ``probabilities``, shape (K, K), are those of a bootstrap with ``n_samples`` samples.
    """
    sentences = _describe_edges(result.claims(probabilities), KnownEdges.of(result), result)
    note = rejection_note(result.misfits)
    if note is not None and len(result.latent_names) > 1:
        lowered = "so that no direction is stated, and edges are stated one grade lower"
        sentences.insert(0, f"{sentence_case(str(note))}, {lowered}.")
    if n_samples is not None and len(result.latent_names) > 1:
        few = "; so few are hardly informative" if n_samples < FEW_SAMPLES else ""
        number = plural(n_samples, "bootstrap sample")
        sentences.append(f"Probabilities are averages over {number}{few}.")
    return [text for text in (" ".join(sentences), " ".join(_describe_items(result))) if text]


def describe_empty_graph(result: FitResult) -> str:
    """Return the meaning of a graph without edges."""
    n_latents = len(result.latent_names)
    n_pairs, n_excluded = n_latents * (n_latents - 1) // 2, len(KnownEdges.of(result).excluded)
    if n_excluded:
        share = f"{n_excluded:,} of {n_pairs:,}" if n_excluded < n_pairs else "all"
        mark = ";" if n_excluded < n_pairs else ":"
        return f"The graph has no edge{mark} prior knowledge excludes {share} pairs."
    return f"The graph has no edge{_meaning_of_none(result)}."


def _meaning_of_none(result: FitResult) -> str:
    """Return what follows from a graph without edges, as a clause."""
    pairs = np.triu(result.edge_probabilities + result.edge_probabilities.T, 1)
    if np.isfinite(pairs).all() and pairs.max() >= WEAK_LEVEL / 2:
        a, b = np.unravel_index(pairs.argmax(), pairs.shape)
        pair = _pairs([(result.latent_names[a], result.latent_names[b])])
        return f"; the most probable pair is {pair} ({show_probability(pairs[a, b])})"
    if _is_uninformative(result):
        return f", but {_UNINFORMATIVE}"
    return ": the latents appear to be independent"


def _is_uninformative(result: FitResult) -> bool:
    """Return whether the items carry too little information for absent edges to mean anything."""
    low = result.information_ratio < CONFIG.information.low_ratio
    return low or not result.q_matrix.any(axis=0).all()


def _describe_edges(claims: Sequence[Claim], known: KnownEdges, result: FitResult) -> list[str]:
    n_latents = len(result.latent_names)
    n_pairs = n_latents * (n_latents - 1) // 2
    if n_latents == 1:
        return []
    many = len(known.excluded) > _MAX_EDGES
    named = f"{len(known.excluded):,} pairs" if many else _pairs(known.excluded)
    excluded = [f"Excluded by prior knowledge, whatever the data: {named}."] if named else []
    if not claims:
        if len(known.excluded) == n_pairs:
            return ["No two latents are connected: prior knowledge excludes all pairs."]
        meaning = "" if excluded else _meaning_of_none(result)
        return [f"No two latents are connected{meaning}.", *excluded]
    estimated = [claim for claim in claims if (claim.one, claim.other) not in known.required]
    out = []
    if any(math.isnan(claim.adjacency) for claim in estimated):
        edges = "; ".join(claim.mark for claim in estimated[:_MAX_EDGES])
        more = f" and {len(estimated) - _MAX_EDGES} more" if len(estimated) > _MAX_EDGES else ""
        note = result.uncertainty_note and f": {result.uncertainty_note}"
        out.append(f"Edges of the best graph: {edges}{more}.")
        out.append(f"The probabilities of edges were not computed{note}.")
    elif len(estimated) > _MAX_EDGES:
        n_arrows = sum(claim.directed for claim in estimated)
        n_firm = sum(claim.directed or claim.firm for claim in estimated)
        out.append(
            f"{n_firm:,} of the {n_pairs:,} pairs of latents are directly related with a "
            f"probability of at least {estimated[0].level:g}; the direction is as certain for "
            f"{n_arrows or 'none'} of them."
        )
    else:
        out += _describe_claims(estimated, known)
    if known.required:
        out.append(f"Required by prior knowledge, not estimated: {_arrows(known.required)}.")
        if not estimated and n_latents > 2:
            out.append("No other pair of latents is connected.")
    return out + excluded


def _describe_claims(claims: Sequence[Claim], known: KnownEdges) -> list[str]:
    """Return a sentence for each degree of certainty; "causes" only at the claim level."""
    arrows = [claim for claim in claims if claim.directed]
    by_knowledge = [claim for claim in arrows if (claim.one, claim.other) in known.oriented]
    by_data = [claim for claim in arrows if claim not in by_knowledge]
    others = [claim for claim in claims if not claim.directed]
    out = []
    if by_data:
        causes = [f"{_cut(c.one)} causes {_cut(c.other)} ({c.shown})" for c in by_data]
        out.append(f"Under the model, with its probability: {join_names(causes)}.")
    if by_knowledge:
        causes = [f"{_cut(c.one)} causes {_cut(c.other)} ({c.shown})" for c in by_knowledge]
        how = "with a direction that follows only together with the prior knowledge"
        out.append(f"Directly related, {how}: {join_names(causes)}.")
    for words, part in (
        ("Directly related, direction uncertain", [c for c in others if c.firm]),
        ("Probably directly related", [c for c in others if not c.firm and not c.weak]),
        ("In the best graph, but improbable", [c for c in others if c.weak]),
    ):
        if part:
            pairs = [f"{_cut(c.one)} and {_cut(c.other)} ({c.shown})" for c in part]
            out.append(f"{words}: {'; '.join(pairs)}.")
    return out


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
