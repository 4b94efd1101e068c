"""Statements about edges that the probabilities of a fit justify.

An arrow is stated if its probability reaches the claim level, and an edge without direction
otherwise. Edges of the best graph with an improbable adjacency are shown as weak.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.structure.graphs import CPDAG
from hidag.structure.mixed_graphs import find_cycle

Array = NDArray[np.float64]
#: Default of the setting ``claim_level``, and the probability below which an edge is weak.
CLAIM_LEVEL, WEAK_LEVEL = 0.8, 0.5


@dataclass(frozen=True)
class Claim:
    """What is stated about a pair of latents; NaN where probabilities were not computed."""

    one: str  # the cause of an arrow
    other: str
    directed: bool
    arrow: float  # probability that ``one`` causes ``other`` directly
    adjacency: float  # probability that one of the two causes the other directly
    level: float  # the claim level
    rejected: bool = False  # whether checks reject the model, so that less is stated

    @property
    def weak(self) -> bool:
        """Whether the pair is more likely not adjacent."""
        return self.adjacency < WEAK_LEVEL

    @property
    def firm(self) -> bool:
        """Whether the adjacency is as probable as the claim level demands."""
        return self.adjacency >= self.level and not self.rejected

    @property
    def shown(self) -> str:
        """The probability of the arrow, or of the adjacency, as text; empty if unknown."""
        return show_probability(self.arrow if self.directed else self.adjacency)

    @property
    def mark(self) -> str:
        """The edge as text: 'A -> B', 'A - B', and 'A ... B' if it is weak."""
        return f"{self.one} {'->' if self.directed else '...' if self.weak else '-'} {self.other}"


def show_probability(value: float) -> str:
    """Return a probability with two digits, none of them 1.00 or 0.00; empty if unknown."""
    if np.isnan(value):
        return ""
    return ">.99" if value > 0.99 else "<.01" if value < 0.01 else f"{value:.2f}".lstrip("0")


def claims_of(
    graph: CPDAG,
    probabilities: Array,
    level: float,
    required: NDArray[np.int8] | None = None,
    *,
    rejected: bool = False,
) -> tuple[Claim, ...]:
    """Return the claims about the edges of a graph and about other probable edges, arrows first.

    Parameters
    ----------
    graph : CPDAG
        The best graph. Without probabilities its edges are returned.
    probabilities : ndarray, shape (K, K)
        Of direct causes (rows) and effects; NaN if unknown.
    level : float
        Claim level.
    required : ndarray, shape (K, K), optional
        Adjacency of edges that prior knowledge requires; they are arrows.
    rejected : bool
        Whether checks reject the model: no other arrow is stated, and adjacencies one grade lower.
    """
    a, names = graph.adjacency, graph.names
    arrows = np.where(np.isnan(probabilities), (a == 1) & (a.T == 0), probabilities >= level)
    if rejected:
        arrows = np.zeros_like(arrows)
    if required is not None:
        arrows = arrows | (required == 1)
    if find_cycle(np.asarray(arrows, dtype=np.int8)) is not None:
        # Low levels allow arrows that no graph has together.
        arrows = arrows & (probabilities > 1.0 - 1.0 / len(names))
    out = []
    for i, j in combinations(range(len(names)), 2):
        adjacency = float(probabilities[i, j] + probabilities[j, i])
        directed = bool(arrows[i, j] or arrows[j, i])
        if not (a[i, j] or a[j, i] or directed or adjacency >= level):
            continue
        one, other = (j, i) if arrows[j, i] else (i, j)
        arrow = float(probabilities[one, other])
        out.append(Claim(names[one], names[other], directed, arrow, adjacency, level, rejected))
    return tuple(sorted(out, key=lambda one: (not one.directed, one.weak)))


def claimed_graph(claims: tuple[Claim, ...], names: tuple[str, ...]) -> CPDAG:
    """Return the claims as a graph, for drawing."""
    pairs = [(claim.one, claim.other, claim.directed) for claim in claims]
    directed = [(a, b) for a, b, arrow in pairs if arrow]
    return CPDAG.from_edges(names, directed, [(a, b) for a, b, arrow in pairs if not arrow])


def claim_level_of(settings: Mapping[str, Any]) -> float:
    """Return the claim level of a fit; the default without one."""
    return float(settings.get("claim_level", CLAIM_LEVEL))
