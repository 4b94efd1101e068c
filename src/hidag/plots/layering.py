"""Rows of a layered layout (Sugiyama, Tagawa and Toda 1981): who stands where, edges uncrossed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Up and down through the rows; crossings rarely fall any further after this many.
_SWEEPS = 12


@dataclass(frozen=True)
class Layered:
    """Nodes in rows, with a stand-in in each row that an edge passes through.

    Attributes
    ----------
    rows : list of lists of int
        From the top; numbers from K on are stand-ins.
    chains : mapping from (i, j) to the stand-ins of that edge, from the top
    n_nodes : int
        K.
    n_crossings : int
    """

    rows: list[list[int]]
    chains: dict[tuple[int, int], list[int]]
    n_nodes: int
    n_crossings: int

    @property
    def cost(self) -> tuple[int, int, int]:
        """What a better drawing has less of: crossings, then height and width, then detours."""
        stand_ins = sum(len(chain) for chain in self.chains.values())
        widest = max(sum(v < self.n_nodes for v in row) for row in self.rows)
        return (self.n_crossings, max(len(self.rows), widest), stand_ins)

    def links(self) -> list[tuple[int, int]]:
        """Return the pieces of all edges, each from a row to the next."""
        out = []
        for (a, b), chain in self.chains.items():
            steps = [a, *chain, b]
            out += list(itertools.pairwise(steps))
        return out


def layered(arrows: NDArray[np.bool_]) -> Layered:
    """Return the rows of an acyclic graph; ``arrows[i, j]`` puts i above j."""
    size = len(arrows)
    level = _levels(arrows)
    rows: list[list[int]] = [[] for _ in range(max(level) + 1)]
    for k in range(size):
        rows[level[k]].append(k)
    chains: dict[tuple[int, int], list[int]] = {}
    number = size
    for a, b in np.argwhere(arrows).tolist():
        chain = []
        for row in range(level[a] + 1, level[b]):
            rows[row].append(number)
            chain.append(number)
            number += 1
        chains[(a, b)] = chain
    draft = Layered(rows, chains, size, 0)
    above: dict[int, list[int]] = {v: [] for row in rows for v in row}
    below: dict[int, list[int]] = {v: [] for row in rows for v in row}
    for a, b in draft.links():
        below[a].append(b)
        above[b].append(a)
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    current = [list(row) for row in rows]
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        order = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for r in order:
            fixed = current[r - 1] if down else current[r + 1]
            place = {v: i for i, v in enumerate(fixed)}
            near = above if down else below
            here = {v: i for i, v in enumerate(current[r])}

            def middle(
                v: int,
                near: dict[int, list[int]] = near,
                place: dict[int, int] = place,
                here: dict[int, int] = here,
                scale: float = len(fixed) / max(len(current[r]), 1),
            ) -> float:
                found = [place[w] for w in near[v]]
                return float(np.mean(found)) if found else here[v] * scale

            current[r].sort(key=middle)
        count = _crossings(current, below)
        if count < fewest:
            best, fewest = [list(row) for row in current], count
    return Layered(best, chains, size, fewest)


def _levels(arrows: NDArray[np.bool_]) -> list[int]:
    """Return each node's row: below all its parents, and roots just above their children."""
    size = len(arrows)
    level = [0] * size
    order = _topological(arrows)
    for k in order:
        parents = np.flatnonzero(arrows[:, k])
        level[k] = max([level[p] + 1 for p in parents], default=0)
    for k in reversed(order):
        children = np.flatnonzero(arrows[k])
        if not arrows[:, k].any() and len(children):
            level[k] = min(level[c] for c in children) - 1
    return level


def _topological(arrows: NDArray[np.bool_]) -> list[int]:
    before = arrows.sum(axis=0).astype(int)
    ready = [k for k in range(len(arrows)) if before[k] == 0]
    for k in ready:
        for child in np.flatnonzero(arrows[k]):
            before[child] -= 1
            if before[child] == 0:
                ready.append(int(child))
    return ready


def _crossings(rows: list[list[int]], below: dict[int, list[int]]) -> int:
    """Return how many pairs of pieces cross."""
    total = 0
    for upper, lower in itertools.pairwise(rows):
        place = {v: i for i, v in enumerate(lower)}
        ends = [end for v in upper for end in sorted(place[w] for w in below[v])]
        if len(ends) > 1:
            values = np.array(ends)
            total += int((np.triu(values[:, None] > values[None, :], 1)).sum())
    return total
