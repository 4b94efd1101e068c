"""What was found, in a few sentences: for readers who stop after the first paragraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.formatting import plural, shorten
from hidag.identifiability.findings import join_names
from hidag.plotting.q_matrix import standardized_loadings
from hidag.structure.graphs import DAG
from hidag.structure.knowledge import Knowledge, nonadjacent_pairs

if TYPE_CHECKING:
    from hidag.results import FitResult


# --- Which edges of a graph were found, and which were told to the search beforehand

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
                for i, j in nonadjacent_pairs(knowledge, graph.names)
            ),
        )


# ---

#: More edges or latents than this are left to the drawing and the tables.
_TOLD_EDGES, _TOLD_LATENTS = 8, 8
_STRONGEST_ITEMS = 3
#: Effects that cancel in all states that can occur leave a rounding error of the strongest.
_NO_STRENGTH = 1e-9
#: A whole question of a survey would bury the sentence.
_LONGEST_NAME = 40
#: Two latents joined in so many of the resampled tables are beyond reasonable doubt.
_SURE = 0.95
#: With fewer tables such a share is no other than all of them, and even that says little.
FEW_TABLES = 20
_NOTHING_TOLD = "but the items show too little of them to tell whether they are independent"


def what_was_found(
    result: FitResult,
    support: Mapping[tuple[str, str], float] | None = None,
    directions: Mapping[tuple[str, str], float] | None = None,
    n_tables: int | None = None,
) -> list[str]:
    """Return paragraphs: which causes are joined and how sure that is, and which items show them.

    Parameters
    ----------
    result : FitResult
    support : mapping from pair of names to float, optional
        Share of resampled tables in which two latents are joined; either order of a pair will do.
    directions : mapping from (cause, effect) to float, optional
        Share of them in which an edge has its direction.
    n_tables : int, optional
        How many tables were resampled; fewer than `FEW_TABLES` are counted. None if nobody knows.
    """
    edges, tables = SortedEdges.of(result), _Tables(n_tables)
    sure = [
        *_support(edges, support, tables),
        *_sure_directions(edges, directions or {}, tables),
    ]
    if sure and tables.are_few:
        sure.append("So few tables say little.")
    sentences = [
        *_edges(edges, len(result.latent_names), in_the_dark=tells_nothing(result)),
        *sure,
    ]
    joined = " ".join(sentences)
    return [text for text in (joined, " ".join(_items(result))) if text]


def without_edges(result: FitResult) -> str:
    """Return what it means that a graph has no edge, as a sentence."""
    n_latents = len(result.latent_names)
    n_pairs, n_apart = n_latents * (n_latents - 1) // 2, len(SortedEdges.of(result).kept_apart)
    if n_apart == n_pairs:
        return "No edge could be found: all pairs were forbidden beforehand."
    if n_apart:
        return f"No edge was found, with {n_apart:,} of {n_pairs:,} pairs kept apart beforehand."
    if tells_nothing(result):
        return f"No edge was found, {_NOTHING_TOLD}."
    return "No edge was found: the latents look independent."


def tells_nothing(result: FitResult) -> bool:
    """Return whether items show the latents so little that a missing edge means nothing."""
    return (
        result.information_ratio < CONFIG.information.low_ratio
        or not result.q_matrix.any(axis=0).all()
    )


def _edges(edges: SortedEdges, n_latents: int, *, in_the_dark: bool) -> list[str]:
    n_joined = len(edges.joined_by_data) + len(edges.told)
    if n_latents == 1:
        return []
    apart = _kept_apart(edges)
    if not n_joined:
        if len(edges.kept_apart) == n_latents * (n_latents - 1) // 2:
            return ["No two causes could be joined: all pairs were forbidden beforehand."]
        look = ": they look independent" if not apart else ""
        if in_the_dark:
            look = f", {_NOTHING_TOLD}"
        return [f"No cause was found to be joined to another{look}.", *apart]
    if n_joined > _TOLD_EDGES:
        return [*_counts(edges, n_latents), *apart]
    out = []
    if edges.found:
        out.append(f"As the data and the model have it, {_arrows(edges.found)}.")
    if edges.helped:
        out.append(
            "Joined, with a direction that the data give only together with what was told "
            f"beforehand: {_arrows(edges.helped)}."
        )
    if edges.undecided:
        pairs = "; ".join(f"{_cut(a)} and {_cut(b)}" for a, b in edges.undecided)
        out.append(f"Joined, with the data leaving open which is the cause: {pairs}.")
    if edges.told:
        out.append(f"Told beforehand, not found in the data: {_arrows(edges.told)}.")
        if not edges.joined_by_data and n_latents > 2:
            out.append("No other two causes were found to be joined.")
    return out + apart


def _kept_apart(edges: SortedEdges) -> list[str]:
    """Return which pairs were not to be joined: that they are not is nothing the data say."""
    pairs = edges.kept_apart
    if not pairs:
        return []
    if len(pairs) > _TOLD_EDGES:
        return [f"{len(pairs):,} pairs were kept apart beforehand, whatever the data say."]
    named = "; ".join(f"{_cut(a)} and {_cut(b)}" for a, b in pairs)
    return [f"Kept apart beforehand, whatever the data say: {named}."]


def _counts(edges: SortedEdges, n_latents: int) -> list[str]:
    """Return how many edges there are, where they are too many to name."""
    n_pairs = n_latents * (n_latents - 1) // 2
    n_joined = len(edges.joined_by_data) + len(edges.told)
    out = [
        f"Of the {n_pairs:,} pairs of causes {n_joined:,} are joined, "
        f"{len(edges.found) or 'none'} of them with a direction that the data settle."
    ]
    if edges.helped:
        have = "has" if len(edges.helped) == 1 else "have"
        out.append(
            f"{len(edges.helped)} more {have} a direction only together with what was told "
            "beforehand."
        )
    if edges.told:
        out.append(f"{len(edges.told)} of them were told beforehand, not found in the data.")
    return out


@dataclass(frozen=True)
class _Tables:
    """Words for how many of the resampled tables show something."""

    number: int | None

    @property
    def are_few(self) -> bool:
        return self.number is not None and self.number < FEW_TABLES

    @property
    def surely(self) -> str:
        """Where whatever is beyond doubt is found."""
        return self.share(1.0) if self.are_few else f"in at least {_SURE:.0%}"

    @property
    def resampled(self) -> str:
        """Whose share it is, at the first mention."""
        return " resampled tables" if self.are_few else " of the resampled tables"

    def share(self, share: float) -> str:
        """Return where something is found that has a share of the tables."""
        if self.number is None or not self.are_few:
            return f"in {share:.0%}"
        count = round(share * self.number)
        if count == self.number > 1:
            return f"in all {count}"
        return f"in {count or 'none'} of {self.number}"


def _support(
    edges: SortedEdges, support: Mapping[tuple[str, str], float] | None, tables: _Tables
) -> list[str]:
    # What was told is in every graph: its share says nothing.
    pairs = edges.joined_by_data
    if support is None or not pairs:
        return []
    these = "pairs that were found" if edges.told else "pairs"
    shares = {pair: support.get(pair, support.get(pair[::-1], 0.0)) for pair in pairs}
    doubtful = sorted((share, pair) for pair, share in shares.items() if share < _SURE)
    if not doubtful:
        each = f"Each of these {these} is" if len(pairs) > 1 else _the_two(edges)
        return [f"{each} joined {tables.surely}{tables.resampled}."]
    share, (a, b) = doubtful[0]
    if len(pairs) == 1:
        return [f"{_the_two(edges)} joined {tables.share(share)}{tables.resampled}."]
    n_sure = len(pairs) - len(doubtful)
    return [
        f"{n_sure or 'None'} of these {len(pairs)} {these} {'is' if n_sure < 2 else 'are'} joined "
        f"{tables.surely}{tables.resampled}; least sure are {_cut(a)} and {_cut(b)}, joined "
        f"{tables.share(share)}."
    ]


def _sure_directions(
    edges: SortedEdges, directions: Mapping[tuple[str, str], float], tables: _Tables
) -> list[str]:
    """Return how often directions came back that the data settle; empty if nobody knows."""
    shares = sorted((directions[edge], edge) for edge in edges.found if edge in directions)
    if not shares:
        return []
    share, (a, b) = shares[0]
    if len(shares) == 1:
        cause = f"That {_cut(a)} is the cause and {_cut(b)} the effect"
        return [f"{cause} came back {tables.share(share)}."]
    if share >= _SURE:
        return [f"Each of the directions came back {tables.surely}."]
    n_sure = sum(share >= _SURE for share, _ in shares)
    return [
        f"{n_sure or 'None'} of the {len(shares)} directions came back {tables.surely}; least sure "
        f"is that {_cut(a)} causes {_cut(b)}, which came back {tables.share(share)}."
    ]


def _the_two(edges: SortedEdges) -> str:
    """Return the beginning of a sentence about the only pair that was found."""
    if not edges.told:
        return "The two are"
    ((a, b),) = edges.joined_by_data
    return f"{_cut(a)} and {_cut(b)} are"


def _arrows(edges: Sequence[tuple[str, str]]) -> str:
    return join_names([f"{_cut(a)} causes {_cut(b)}" for a, b in edges], limit=_TOLD_EDGES)


def _items(result: FitResult) -> list[str]:
    strength, q, _ = standardized_loadings(result)
    if len(result.latent_names) > _TOLD_LATENTS:
        few, many = int(q.sum(axis=0).min()), int(q.sum(axis=0).max())
        span = f"{few} to {many} items" if few < many else plural(few, "item", "items")
        return [f"Each cause shows in {span}."]
    return [
        _one_latent(name, np.abs(strength[:, k]) * q[:, k], result.item_names)
        for k, name in enumerate(result.latent_names)
    ]


def _one_latent(name: str, strength: NDArray[np.float64], items: Sequence[str]) -> str:
    count = int((strength > _NO_STRENGTH * strength.max(initial=0.0)).sum())
    if not count:
        return f"{_cut(name)} shows in no item."
    order = np.argsort(-strength, kind="stable")[: min(count, _STRONGEST_ITEMS)]
    names = join_names([_cut(items[j]) for j in order.tolist()])
    most = ", most strongly in" if count > len(order) else ":"
    return f"{_cut(name)} shows in {plural(count, 'item', 'items')}{most} {names}."


def _cut(name: str) -> str:
    return shorten(name, _LONGEST_NAME)
