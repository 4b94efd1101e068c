"""Exported graphs against the packages that read them."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.structure import CPDAG, DAG

MIXED = CPDAG.from_edges(["a", "b", "c", "d", "e"], [("a", "c"), ("b", "c")], [("d", "e")])
DIRECTED = DAG.from_edges(["a", "b", "c", "e"], [("a", "c"), ("b", "c")])


def test_causal_learn_reads_our_endpoints() -> None:
    general = pytest.importorskip("causallearn.graph.GeneralGraph")
    nodes = pytest.importorskip("causallearn.graph.GraphNode")
    edges = pytest.importorskip("causallearn.graph.Edge")
    ends = pytest.importorskip("causallearn.graph.Endpoint").Endpoint
    by_name = {name: nodes.GraphNode(name) for name in MIXED.names}
    graph = general.GeneralGraph(list(by_name.values()))
    for a, b in MIXED.directed_edges:
        graph.add_directed_edge(by_name[a], by_name[b])
    for a, b in MIXED.undirected_edges:
        graph.add_edge(edges.Edge(by_name[a], by_name[b], ends.TAIL, ends.TAIL))
    np.testing.assert_array_equal(graph.graph, MIXED.to_causal_learn())
    assert CPDAG.from_causal_learn(graph) == MIXED


def test_causal_learn_completes_the_same() -> None:
    general = pytest.importorskip("causallearn.graph.Dag")
    nodes = pytest.importorskip("causallearn.graph.GraphNode")
    convert = pytest.importorskip("causallearn.utils.DAG2CPDAG")
    rng = np.random.default_rng(0)
    for _ in range(20):
        upper = np.triu(rng.random((7, 7)) < 0.4, 1).astype(int)
        dag = DAG(upper).permute(rng.permutation(7))
        by_name = {name: nodes.GraphNode(name) for name in dag.names}
        graph = general.Dag(list(by_name.values()))
        for a, b in dag.edges:
            graph.add_directed_edge(by_name[a], by_name[b])
        completed = convert.dag2cpdag(graph)
        assert CPDAG.from_causal_learn(completed) == dag.to_cpdag()


@pytest.mark.filterwarnings("ignore")
def test_pgmpy_round_trip() -> None:
    base = pytest.importorskip("pgmpy.base")
    dag = DIRECTED.to_pgmpy()
    assert isinstance(dag, base.DAG)
    assert sorted(dag.edges()) == sorted(DIRECTED.edges)
    assert DAG.from_pgmpy(dag, DIRECTED.names) == DIRECTED
    mixed = MIXED.to_pgmpy()
    assert isinstance(mixed, base.PDAG)
    assert CPDAG.from_pgmpy(mixed, MIXED.names) == MIXED
