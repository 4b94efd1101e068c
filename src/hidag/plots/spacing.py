"""How far apart the labels of a row stand: near their neighbours, never on top of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.plots.layering import Layered

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
