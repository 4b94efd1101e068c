"""Layered layout: labels do not overlap, edges avoid labels, causes are above effects."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.plotting.graph import graph_layout
from hidag.plotting.layered_layout import Layout, components, layered
from hidag.simulation import chain_dag, random_dag, tree_dag


def _boxes(layout: Layout):
    for (x, y), (width, height) in zip(layout.centres, layout.sizes, strict=True):
        yield x - width / 2, x + width / 2, y - height / 2, y + height / 2


def _curve_points(points):
    """Points along the drawn path: straight through rows, a cubic between them."""
    t = np.linspace(0, 1, 41)[:, None]
    out = []
    for start, end in zip(points[0::2], points[1::2], strict=True):
        half = (start[1] + end[1]) / 2
        a, b, c, d = (np.array(p) for p in (start, (start[0], half), (end[0], half), end))
        out.append((1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d)
    for (_, low), (high_x, high) in zip(points[1:-1:2], points[2::2], strict=True):
        out.append(np.column_stack([np.full(41, high_x), low + (high - low) * t[:, 0]]))
    return np.vstack(out)


GRAPHS = [
    chain_dag(30),
    tree_dag(15),
    random_dag(30, 1.5, rng=3),
    random_dag(30, 3.0, rng=4),
    random_dag(12, 1.0, rng=5),
    random_dag(7, 0.0, rng=6),
]


@pytest.mark.parametrize("dag", GRAPHS)
@pytest.mark.parametrize("completed", [False, True])
def test_labels_do_not_overlap_and_edges_avoid_them(dag, completed):
    graph = dag.to_cpdag() if completed else dag
    layout = graph_layout(graph)
    boxes = list(_boxes(layout))
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
    for edge, points in layout.routes.items():
        path = _curve_points(points)
        for k, (left, right, low, high) in enumerate(boxes):
            if k in edge:
                continue
            inside = (
                (path[:, 0] > left)
                & (path[:, 0] < right)
                & (path[:, 1] > low)
                & (path[:, 1] < high)
            )
            assert not inside.any(), (edge, k)
    assert len(layout.routes) == graph.n_edges


@pytest.mark.parametrize("dag", GRAPHS)
def test_causes_are_above_effects_within_the_size(dag):
    layout = graph_layout(dag)
    place = {name: k for k, name in enumerate(dag.names)}
    for a, b in dag.edges:
        assert layout.centres[place[a], 1] > layout.centres[place[b], 1]
    for left, right, low, high in _boxes(layout):
        assert left >= -1e-9
        assert low >= -1e-9
        assert right <= layout.width + 1e-9
        assert high <= layout.height + 1e-9


def test_middle_of_an_undirected_chain_is_on_top():
    levels = {round(y) for y in graph_layout(chain_dag(9).to_cpdag()).centres[:, 1]}
    assert len(levels) == 5


def test_order_without_crossings_is_found():
    # a -> d, b -> c drawn in index order would cross once.
    arrows = np.zeros((4, 4), dtype=bool)
    arrows[0, 3] = arrows[1, 2] = True
    assert layered(arrows).n_crossings == 0


def test_components_come_largest_first():
    joined = np.zeros((5, 5), dtype=np.int8)
    joined[1, 3] = joined[3, 1] = joined[3, 4] = joined[4, 3] = 1
    assert components(joined) == [[1, 3, 4], [0], [2]]
