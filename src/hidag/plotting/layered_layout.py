"""A layered layout: causes above effects, edges that run between labels and never across them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# --- Rows of a layered layout (Sugiyama, Tagawa and Toda 1981): who stands where, edges

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


# --- How far apart the labels of a row stand: near their neighbours, never on top of each

_ROUNDS = 24
#: Stand-ins pull harder than labels, which keeps long edges straight.
_STRAIGHT = 4.0


def place_across(graph: Layered, widths: list[NDArray[np.float64]], gap: float) -> dict[int, float]:
    """Return the horizontal centre of each label and stand-in.

    Parameters
    ----------
    graph : Layered
    widths : list of ndarrays
        Widths of the members of each row.
    gap : float
        Least distance between two neighbours in a row.
    """
    near: dict[int, list[tuple[int, float]]] = {v: [] for row in graph.rows for v in row}
    for a, b in graph.links():
        weight = _STRAIGHT if a >= graph.n_nodes and b >= graph.n_nodes else 1.0
        near[a].append((b, weight))
        near[b].append((a, weight))
    offsets = []
    x: dict[int, float] = {}
    for row, width in zip(graph.rows, widths, strict=True):
        step = (width[:-1] + width[1:]) / 2 + gap
        offset = np.concatenate([[0.0], np.cumsum(step)])
        offsets.append(offset)
        for v, place in zip(row, offset - offset[-1] / 2, strict=True):
            x[v] = float(place)
    for round_ in range(_ROUNDS):
        rows = range(len(graph.rows))
        for r in rows if round_ % 2 == 0 else reversed(rows):
            row = graph.rows[r]
            wanted = np.array(
                [
                    np.average([x[w] for w, _ in near[v]], weights=[s for _, s in near[v]])
                    if near[v]
                    else x[v]
                    for v in row
                ]
            )
            weights = np.array([sum(s for _, s in near[v]) or 0.1 for v in row])
            placed = nondecreasing(wanted - offsets[r], weights) + offsets[r]
            x.update(zip(row, placed.tolist(), strict=True))
    return x


def nondecreasing(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest nondecreasing sequence in weighted squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, count = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, more, length = blocks.pop()
            mean = (mean * mass + other * more) / (mass + more)
            mass += more
            count += length
        blocks.append((mean, mass, count))
    return np.repeat([b[0] for b in blocks], [b[2] for b in blocks])


# ---

Point = tuple[float, float]

#: All lengths are in points, so that a layout knows how much room its letters need.
ROW_GAP = 44.0
NODE_GAP = 22.0
EDGE_GAP = 12.0
COMPONENT_GAP = 40.0
#: Width over height that packing several components aims at.
ASPECT = 1.5


@dataclass(frozen=True)
class Layout:
    """Where labels stand and where edges run, in points, y growing upwards.

    Attributes
    ----------
    centres : ndarray, shape (K, 2)
    sizes : list of (width, height), length K
    routes : mapping from (i, j) to points
        Each route goes from the box of i to the box of j; between two of its points an edge may
        bend, and no box stands there. i is above j.
    width, height : float
    """

    centres: NDArray[np.float64]
    sizes: list[tuple[float, float]]
    routes: dict[tuple[int, int], list[Point]]
    width: float
    height: float


def lay_out(
    joined: NDArray[np.int8],
    directed: NDArray[np.int8],
    sizes: Sequence[tuple[float, float]],
) -> Layout:
    """Return a layout of a graph.

    Parameters
    ----------
    joined : ndarray, shape (K, K)
        Symmetric; 1 where an edge is drawn.
    directed : ndarray, shape (K, K)
        ``directed[i, j] = 1`` where i must stand above j; acyclic.
    sizes : sequence of (width, height), length K
        Of the labels' boxes.
    """
    blocks = [_lay_out_component(nodes, joined, directed, sizes) for nodes in components(joined)]
    return _packed(blocks, list(sizes))


def components(joined: NDArray[np.int8]) -> list[list[int]]:
    """Return the connected components, the largest first, each in index order."""
    unseen = set(range(len(joined)))
    out = []
    while unseen:
        stack = [min(unseen)]
        found = set(stack)
        while stack:
            near = {int(b) for b in np.flatnonzero(joined[stack.pop()])} - found
            found |= near
            stack.extend(near)
        unseen -= found
        out.append(sorted(found))
    return sorted(out, key=lambda nodes: (-len(nodes), nodes))


@dataclass(frozen=True)
class _Block:
    """One component, laid out with its lower left corner at the origin."""

    nodes: list[int]
    centres: NDArray[np.float64]
    routes: dict[tuple[int, int], list[Point]]
    width: float
    height: float


def _lay_out_component(
    nodes: list[int],
    joined: NDArray[np.int8],
    directed: NDArray[np.int8],
    sizes: Sequence[tuple[float, float]],
) -> _Block:
    part = np.ix_(nodes, nodes)
    box = np.array([sizes[k] for k in nodes], dtype=np.float64)
    best: Layered | None = None
    for arrows in _orientations(joined[part], directed[part]):
        found = layered(arrows)
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    widths = [
        np.array([box[v, 0] if v < len(nodes) else EDGE_GAP for v in row]) for row in best.rows
    ]
    x = place_across(best, widths, NODE_GAP)
    heights = [max([box[v, 1] for v in row if v < len(nodes)], default=0.0) for row in best.rows]
    tops, y = [], 0.0
    for height in heights:
        tops.append(y)
        y -= height + ROW_GAP
    middle = {v: tops[r] - heights[r] / 2 for r, row in enumerate(best.rows) for v in row}
    bottom = tops[-1] - heights[-1]
    left = min(
        x[v] - w / 2
        for row, ws in zip(best.rows, widths, strict=True)
        for v, w in zip(row, ws, strict=True)
    )
    right = max(
        x[v] + w / 2
        for row, ws in zip(best.rows, widths, strict=True)
        for v, w in zip(row, ws, strict=True)
    )
    centres = np.array([[x[v] - left, middle[v] - bottom] for v in range(len(nodes))])
    row_of = {v: r for r, row in enumerate(best.rows) for v in row}
    ports = _ports(best, x, box)
    routes = {}
    for (a, b), chain in best.chains.items():
        points: list[Point] = []
        steps = [a, *chain, b]
        for v, w in itertools.pairwise(steps):
            start = x[v] if v >= len(nodes) else ports[(v, (a, b))]
            end = x[w] if w >= len(nodes) else ports[(w, (a, b))]
            r = row_of[v]
            # An edge leaves the row that it passes through straight down, clear of the boxes.
            low = middle[v] - (box[v, 1] if v < len(nodes) else heights[r]) / 2
            high = middle[w] + (box[w, 1] if w < len(nodes) else heights[r + 1]) / 2
            points += [(start - left, low - bottom), (end - left, high - bottom)]
        routes[(nodes[a], nodes[b])] = points
    return _Block(nodes, centres, routes, right - left, -bottom)


def _orientations(joined: NDArray[np.int8], directed: NDArray[np.int8]) -> list[NDArray[np.bool_]]:
    """Return ways of drawing each edge downwards that keep the directed ones downwards.

    Undirected edges may run either way; each node in turn is tried as the top, because a chain
    hung up at its middle is half as tall.
    """
    size = len(joined)
    out: list[NDArray[np.bool_]] = []
    for root in range(size):
        distance = _distances(joined, root)
        before = directed.sum(axis=0).astype(int)
        ready = [(distance[k], k) for k in range(size) if before[k] == 0]
        heapq.heapify(ready)
        place = np.zeros(size, dtype=int)
        for position in range(size):
            _, k = heapq.heappop(ready)
            place[k] = position
            for child in np.flatnonzero(directed[k]):
                before[child] -= 1
                if before[child] == 0:
                    heapq.heappush(ready, (distance[child], int(child)))
        arrows = (joined == 1) & (place[:, None] < place[None, :])
        if not any(np.array_equal(arrows, other) for other in out):
            out.append(arrows)
    return out


def _distances(joined: NDArray[np.int8], root: int) -> list[int]:
    distance = [-1] * len(joined)
    distance[root] = 0
    queue = [root]
    for k in queue:
        for near in np.flatnonzero(joined[k]):
            if distance[near] < 0:
                distance[near] = distance[k] + 1
                queue.append(int(near))
    return distance


def _ports(
    graph: Layered, x: dict[int, float], box: NDArray[np.float64]
) -> dict[tuple[int, tuple[int, int]], float]:
    """Return where on a box each of its edges starts or ends: spread, in the order they leave."""
    leaving: dict[tuple[int, bool], list[tuple[float, tuple[int, int]]]] = {}
    for (a, b), chain in graph.chains.items():
        leaving.setdefault((a, True), []).append((x[chain[0] if chain else b], (a, b)))
        leaving.setdefault((b, False), []).append((x[chain[-1] if chain else a], (a, b)))
    ports = {}
    for (v, _), edges in leaving.items():
        room = min(box[v, 0] * 0.75, EDGE_GAP * (len(edges) - 1))
        for i, (_, edge) in enumerate(sorted(edges)):
            share = i / (len(edges) - 1) - 0.5 if len(edges) > 1 else 0.0
            ports[(v, edge)] = x[v] + room * share
    return ports


def _packed(blocks: list[_Block], sizes: list[tuple[float, float]]) -> Layout:
    """Return the components on shelves, the largest first."""
    area = sum((b.width + COMPONENT_GAP) * (b.height + COMPONENT_GAP) for b in blocks)
    widest = max([b.width for b in blocks], default=0.0)
    limit = max(widest, float(np.sqrt(area * ASPECT)))
    shelves: list[list[_Block]] = []
    used = 0.0
    for block in blocks:
        if not shelves or used + block.width > limit + 1e-9:
            shelves.append([])
            used = 0.0
        shelves[-1].append(block)
        used += block.width + COMPONENT_GAP
    width = max(
        [sum(b.width for b in s) + COMPONENT_GAP * (len(s) - 1) for s in shelves], default=0.0
    )
    heights = [max(b.height for b in shelf) for shelf in shelves]
    height = sum(heights) + COMPONENT_GAP * max(len(shelves) - 1, 0)
    centres = np.zeros((len(sizes), 2))
    routes: dict[tuple[int, int], list[Point]] = {}
    top = height
    for shelf, shelf_height in zip(shelves, heights, strict=True):
        inner = sum(b.width for b in shelf) + COMPONENT_GAP * (len(shelf) - 1)
        x = (width - inner) / 2
        for block in shelf:
            y = top - block.height
            centres[block.nodes] = block.centres + np.array([x, y])
            for edge, points in block.routes.items():
                routes[edge] = [(px + x, py + y) for px, py in points]
            x += block.width + COMPONENT_GAP
        top -= shelf_height + COMPONENT_GAP
    return Layout(centres, sizes, routes, width, height)
