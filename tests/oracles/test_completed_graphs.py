"""Completion of a DAG against causal-learn."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.structure import DAG


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
        # -1 marks a tail at the row's variable.
        completed = convert.dag2cpdag(graph).graph == -1
        np.testing.assert_array_equal(completed, dag.to_cpdag().adjacency == 1)
