"""What was found, in a few sentences: for readers who stop after the first paragraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.identify.findings import listed
from hidag.plots.q_matrix import strengths
from hidag.report.model_words import counted
from hidag.shown_text import shortened

if TYPE_CHECKING:
    from hidag.result import FitResult

#: More edges or latents than this are left to the drawing and the tables.
_TOLD_EDGES, _TOLD_LATENTS = 8, 8
_STRONGEST_ITEMS = 3
#: A whole question of a survey would bury the sentence.
_LONGEST_NAME = 40
#: Two latents joined in so many of the resampled tables are beyond reasonable doubt.
_SURE = 0.95


def what_was_found(
    result: FitResult, support: Mapping[tuple[str, str], float] | None = None
) -> list[str]:
    """Return paragraphs: which causes are joined and how sure that is, and which items show them.

    Parameters
    ----------
    result : FitResult
    support : mapping from pair of names to float, optional
        Share of resampled tables in which two latents are joined; either order of a pair will do.
    """
    joined = " ".join([*_edges(result), *_support(result, support)])
    return [text for text in (joined, " ".join(_items(result))) if text]


def _edges(result: FitResult) -> list[str]:
    graph, n_latents = result.graph, len(result.latent_names)
    directed, undecided = graph.directed_edges, graph.undirected_edges
    if n_latents == 1:
        return []
    if not directed and not undecided:
        return ["No cause was found to be joined to another: they look independent."]
    if len(directed) + len(undecided) > _TOLD_EDGES:
        n_pairs, n_joined = n_latents * (n_latents - 1) // 2, len(directed) + len(undecided)
        return [
            f"Of the {n_pairs:,} pairs of causes {n_joined:,} are joined, "
            f"{len(directed) or 'none'} of them with a direction that the data settle."
        ]
    out = []
    if directed:
        arrows = listed([f"{_cut(a)} causes {_cut(b)}" for a, b in directed])
        out.append(f"As the data and the model have it, {arrows}.")
    if undecided:
        pairs = "; ".join(f"{_cut(a)} and {_cut(b)}" for a, b in undecided)
        out.append(f"Joined, with the data leaving open which is the cause: {pairs}.")
    return out


def _support(result: FitResult, support: Mapping[tuple[str, str], float] | None) -> list[str]:
    pairs = [*result.graph.directed_edges, *result.graph.undirected_edges]
    if support is None or not pairs:
        return []
    shares = {pair: support.get(pair, support.get(pair[::-1], 0.0)) for pair in pairs}
    doubtful = sorted((share, pair) for pair, share in shares.items() if share < _SURE)
    if not doubtful:
        each = "The two are" if len(pairs) == 1 else "Each of these pairs is"
        return [f"{each} joined in at least {_SURE:.0%} of the resampled tables."]
    share, (a, b) = doubtful[0]
    if len(pairs) == 1:
        return [f"The two are joined in {share:.0%} of the resampled tables."]
    n_sure = len(pairs) - len(doubtful)
    return [
        f"{n_sure} of these {len(pairs)} pairs {'is' if n_sure == 1 else 'are'} joined in at least "
        f"{_SURE:.0%} of the resampled tables; least sure are {_cut(a)} and {_cut(b)}, joined in "
        f"{share:.0%}."
    ]


def _items(result: FitResult) -> list[str]:
    strength, q, _ = strengths(result)
    if len(result.latent_names) > _TOLD_LATENTS:
        few, many = int(q.sum(axis=0).min()), int(q.sum(axis=0).max())
        span = f"{few} to {many} items" if few < many else counted(few, "item", "items")
        return [f"Each cause shows in {span}."]
    return [
        _one_latent(name, np.abs(strength[:, k]) * q[:, k], result.item_names)
        for k, name in enumerate(result.latent_names)
    ]


def _one_latent(name: str, strength: NDArray[np.float64], items: Sequence[str]) -> str:
    count = int((strength > 0).sum())
    if not count:
        return f"{_cut(name)} shows in no item."
    order = np.argsort(-strength, kind="stable")[: min(count, _STRONGEST_ITEMS)]
    names = listed([_cut(items[j]) for j in order.tolist()])
    most = ", most strongly in" if count > len(order) else ":"
    return f"{_cut(name)} shows in {counted(count, 'item', 'items')}{most} {names}."


def _cut(name: str) -> str:
    return shortened(name, _LONGEST_NAME)
