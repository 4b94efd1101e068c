"""Layered graph layout (Sugiyama, Tagawa and Toda 1981): causes above effects, no overlaps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path
from sklearn.isotonic import isotonic_regression

from hidag.structure.mixed_graphs import topological_order

Point = tuple[float, float]
Edge = tuple[int, int]
_Graph = NDArray[np.int8]

#: Sweeps that reduce crossings, and that move nodes towards their neighbours.
_CROSSING_SWEEPS, _POSITION_SWEEPS = 12, 24
#: Weight of links between dummy nodes relative to others; it straightens long edges.
_DUMMY_WEIGHT = 4.0
#: Points.
ROW_GAP, NODE_GAP, EDGE_GAP, COMPONENT_GAP = 44.0, 22.0, 12.0, 40.0
#: Target ratio of width to height when components are packed.
_ASPECT = 1.5


@dataclass(frozen=True)
class Layered:
    """Nodes in rows, with a dummy node in each row that an edge passes through."""

    rows: list[list[int]]  # from the top; numbers from ``n_nodes`` on are dummy nodes
    chains: dict[Edge, list[int]]  # dummy nodes of each edge, from the top
    n_nodes: int
    n_crossings: int

    @property
    def cost(self) -> tuple[int, int, int]:
        """Crossings, then the larger of height and width, then dummy nodes; smaller is better."""
        n_dummies = sum(len(chain) for chain in self.chains.values())
        widest = max(sum(v < self.n_nodes for v in row) for row in self.rows)
        return (self.n_crossings, max(len(self.rows), widest), n_dummies)

    def links(self) -> list[Edge]:
        """Return the parts of all edges, each from a row to the next."""
        steps = ([a, *chain, b] for (a, b), chain in self.chains.items())
        return [link for step in steps for link in itertools.pairwise(step)]


def layered(arrows: NDArray[np.bool_]) -> Layered:
    """Assign the nodes of an acyclic graph to rows; ``arrows[i, j]`` puts i above j."""
    level = _levels(arrows)
    rows: list[list[int]] = [[] for _ in range(max(level) + 1)]
    for k, row in enumerate(level):
        rows[row].append(k)
    numbers = itertools.count(len(arrows))
    chains: dict[Edge, list[int]] = {}
    for a, b in np.argwhere(arrows).tolist():
        chains[(a, b)] = list(itertools.islice(numbers, level[b] - level[a] - 1))
        for row, v in enumerate(chains[(a, b)], level[a] + 1):
            rows[row].append(v)
    above: dict[int, list[int]] = {v: [] for row in rows for v in row}
    below: dict[int, list[int]] = {v: [] for row in rows for v in row}
    for a, b in Layered(rows, chains, len(arrows), 0).links():
        below[a].append(b)
        above[b].append(a)
    best, fewest = [list(row) for row in rows], _count_crossings(rows, below)
    for sweep in range(_CROSSING_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        for r in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            fixed = rows[r - 1] if down else rows[r + 1]
            _sort_by_barycentre(rows[r], fixed, above if down else below)
        count = _count_crossings(rows, below)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return Layered(best, chains, len(arrows), fewest)


def _sort_by_barycentre(row: list[int], fixed: list[int], neighbours: dict[int, list[int]]) -> None:
    """Sort a row by the mean position of the neighbours in an adjacent row."""
    place = {v: i for i, v in enumerate(fixed)}
    scale = len(fixed) / max(len(row), 1)
    centre = {
        v: float(np.mean([place[w] for w in neighbours[v]])) if neighbours[v] else i * scale
        for i, v in enumerate(row)
    }
    row.sort(key=centre.__getitem__)


def _levels(arrows: NDArray[np.bool_]) -> list[int]:
    """Return the row of each node: below all parents; roots directly above their children."""
    level = [0] * len(arrows)
    order = topological_order(arrows)
    for k in order:
        level[k] = max([level[p] + 1 for p in np.flatnonzero(arrows[:, k])], default=0)
    for k in reversed(order):
        children = np.flatnonzero(arrows[k])
        if not arrows[:, k].any() and len(children):
            level[k] = min(level[c] for c in children) - 1
    return level


def _count_crossings(rows: list[list[int]], below: dict[int, list[int]]) -> int:
    total = 0
    for upper, lower in itertools.pairwise(rows):
        place = {v: i for i, v in enumerate(lower)}
        ends = np.array([end for v in upper for end in sorted(place[w] for w in below[v])])
        total += int(np.triu(ends[:, None] > ends[None, :], 1).sum())
    return total


def _horizontal_positions(
    graph: Layered, widths: list[NDArray[np.float64]], gap: float
) -> dict[int, float]:
    """Return the horizontal centres of nodes with these widths, near those of their neighbours."""
    near: dict[int, list[tuple[int, float]]] = {v: [] for row in graph.rows for v in row}
    for a, b in graph.links():
        weight = _DUMMY_WEIGHT if a >= graph.n_nodes and b >= graph.n_nodes else 1.0
        near[a].append((b, weight))
        near[b].append((a, weight))
    # Smallest distances of the members of each row from its first member.
    offsets = [np.append(0.0, np.cumsum((w[:-1] + w[1:]) / 2 + gap)) for w in widths]
    x: dict[int, float] = {}
    for row, offset in zip(graph.rows, offsets, strict=True):
        x.update(zip(row, (offset - offset[-1] / 2).tolist(), strict=True))
    for sweep in range(_POSITION_SWEEPS):
        rows = list(zip(graph.rows, offsets, strict=True))
        for row, offset in rows if sweep % 2 == 0 else reversed(rows):
            weights = [sum(s for _, s in near[v]) for v in row]
            wanted = [
                sum(x[w] * s for w, s in near[v]) / weight if weight else x[v]
                for v, weight in zip(row, weights, strict=True)
            ]
            weights = [weight or 0.1 for weight in weights]
            placed = isotonic_regression(np.array(wanted) - offset, sample_weight=weights) + offset
            x.update(zip(row, placed.tolist(), strict=True))
    return x


@dataclass(frozen=True)
class Layout:
    """Positions of labels and edges in points, y growing upwards.

    A route leads from the box of a node to the box of a node below it. It may be curved from the
    first to the second point, from the third to the fourth, and so on, where no box is.
    """

    nodes: list[int]
    centres: NDArray[np.float64]  # (K, 2)
    sizes: NDArray[np.float64]  # (K, 2), width and height of each box
    routes: dict[Edge, list[Point]]
    width: float
    height: float


def curve(points: Sequence[Point]) -> Iterator[tuple[str, list[Point]]]:
    """Yield a route as SVG commands: curves between the rows, vertical lines through a row."""
    yield "M", [points[0]]
    last = points[0]
    for start, end in zip(points[0::2], points[1::2], strict=True):
        if start != last:
            yield "L", [start]
        half = (start[1] + end[1]) / 2
        yield "C", [(start[0], half), (end[0], half), end]
        last = end


def lay_out(joined: _Graph, directed: _Graph, sizes: NDArray[np.float64]) -> Layout:
    """Return a layout of a graph with boxes of some sizes, shape (K, 2).

    ``joined`` is symmetric, shape (K, K), with 1 for each edge; ``directed[i, j] = 1`` where i must
    be above j, without cycles.
    """
    blocks = [_lay_out_component(nodes, joined, directed, sizes) for nodes in components(joined)]
    return _pack_components(blocks, sizes)


def components(joined: NDArray[np.int8]) -> list[list[int]]:
    """Return the connected components in descending order of size, each in index order."""
    count, member = connected_components(joined, directed=False)
    found = [np.flatnonzero(member == c).tolist() for c in range(count)]
    return sorted(found, key=lambda nodes: (-len(nodes), nodes))


def _lay_out_component(
    nodes: list[int], joined: _Graph, directed: _Graph, sizes: NDArray[np.float64]
) -> Layout:
    """Return the layout of one component, its lower left corner at the origin."""
    part, size, box = np.ix_(nodes, nodes), len(nodes), sizes[nodes]
    candidates = map(layered, _orientations(joined[part], directed[part]))
    best = min(candidates, key=lambda graph: graph.cost)
    widths = [np.array([box[v, 0] if v < size else EDGE_GAP for v in row]) for row in best.rows]
    x = _horizontal_positions(best, widths, NODE_GAP)
    left = min(x[row[0]] - width[0] / 2 for row, width in zip(best.rows, widths, strict=True))
    right = max(x[row[-1]] + width[-1] / 2 for row, width in zip(best.rows, widths, strict=True))
    heights = [max([box[v, 1] for v in row if v < size], default=0.0) for row in best.rows]
    total = sum(heights) + ROW_GAP * (len(heights) - 1)
    middle: dict[int, float] = {}
    height_of: dict[int, float] = {}
    top = total
    for row, height in zip(best.rows, heights, strict=True):
        middle.update(dict.fromkeys(row, top - height / 2))
        height_of.update({v: float(box[v, 1]) if v < size else height for v in row})
        top -= height + ROW_GAP
    ports = _ports(best, x, box)
    routes = {}
    for (a, b), chain in best.chains.items():
        points: list[Point] = []
        for v, w in itertools.pairwise([a, *chain, b]):
            # An edge passes vertically through a row, clear of the boxes.
            low, high = middle[v] - height_of[v] / 2, middle[w] + height_of[w] / 2
            start, end = ports.get((v, (a, b)), x[v]), ports.get((w, (a, b)), x[w])
            points += [(start - left, low), (end - left, high)]
        routes[(nodes[a], nodes[b])] = points
    centres = np.array([[x[v] - left, middle[v]] for v in range(size)])
    return Layout(nodes, centres, box, routes, right - left, total)


def _orientations(joined: NDArray[np.int8], directed: NDArray[np.int8]) -> list[NDArray[np.bool_]]:
    """Return ways to direct all edges downwards that respect the directed ones.

    Each node in turn is tried as the top: a chain is half as tall if its middle is the top.
    """
    found: list[NDArray[np.bool_]] = []
    for distances in shortest_path(joined, unweighted=True):
        place = np.argsort(topological_order(directed, distances.tolist()))
        arrows = (joined == 1) & (place[:, None] < place[None, :])
        if not any(np.array_equal(arrows, other) for other in found):
            found.append(arrows)
    return found


def _ports(
    graph: Layered, x: dict[int, float], box: NDArray[np.float64]
) -> dict[tuple[int, Edge], float]:
    """Return where each edge meets its boxes: spread out, in the order of the other ends."""
    ends: dict[tuple[int, bool], list[tuple[float, Edge]]] = {}
    for (a, b), chain in graph.chains.items():
        ends.setdefault((a, True), []).append((x[chain[0] if chain else b], (a, b)))
        ends.setdefault((b, False), []).append((x[chain[-1] if chain else a], (a, b)))
    ports = {}
    for (v, _), edges in ends.items():
        half = min(box[v, 0] * 0.75, EDGE_GAP * (len(edges) - 1)) / 2
        shifts = np.linspace(-half, half, len(edges)) if len(edges) > 1 else [0.0]
        for shift, (_, edge) in zip(shifts, sorted(edges), strict=True):
            ports[(v, edge)] = x[v] + float(shift)
    return ports


def _pack_components(blocks: list[Layout], sizes: NDArray[np.float64]) -> Layout:
    """Arrange the components in lines, the largest first."""

    def line_width(line: list[Layout]) -> float:
        return sum(b.width for b in line) + COMPONENT_GAP * (len(line) - 1)

    area = sum((b.width + COMPONENT_GAP) * (b.height + COMPONENT_GAP) for b in blocks)
    limit = max([b.width for b in blocks] + [float(np.sqrt(area * _ASPECT))])
    lines: list[list[Layout]] = []
    for block in blocks:
        if lines and line_width([*lines[-1], block]) <= limit + 1e-9:
            lines[-1].append(block)
        else:
            lines.append([block])
    width = max([line_width(line) for line in lines], default=0.0)
    heights = [max(b.height for b in line) for line in lines]
    height = sum(heights) + COMPONENT_GAP * max(len(lines) - 1, 0)
    centres = np.zeros((len(sizes), 2))
    routes: dict[Edge, list[Point]] = {}
    top = height
    for line, line_height in zip(lines, heights, strict=True):
        x = (width - line_width(line)) / 2
        for block in line:
            y = top - block.height
            centres[block.nodes] = block.centres + np.array([x, y])
            for edge, points in block.routes.items():
                routes[edge] = [(px + x, py + y) for px, py in points]
            x += block.width + COMPONENT_GAP
        top -= line_height + COMPONENT_GAP
    return Layout(list(range(len(sizes))), centres, sizes, routes, width, height)
