from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hidag.exceptions import GraphError
from hidag.structure import CPDAG, DAG

any_names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]),
    min_size=1,
    max_size=6,
)


@st.composite
def dags(draw) -> DAG:
    n = draw(st.integers(1, 6))
    order = draw(st.permutations(range(n)))
    adjacency = np.zeros((n, n), dtype=int)
    for i in range(n):
        for j in range(i + 1, n):
            adjacency[order[i], order[j]] = draw(st.integers(0, 1))
    return DAG(adjacency, draw(st.lists(any_names, min_size=n, max_size=n, unique=True)))


@pytest.mark.parametrize("form", ["json", "networkx"])
@given(dag=dags())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_round_trip_with_any_names(form, dag) -> None:
    for graph in (dag, dag.to_cpdag()):
        written = getattr(graph, f"to_{form}")()
        assert getattr(type(graph), f"from_{form}")(written) == graph


def test_dot_text_quotes_names_and_marks_undirected_edges() -> None:
    graph = CPDAG.from_edges(['say "a"', "b\\", "node"], [('say "a"', "b\\")], [("b\\", "node")])
    assert graph.to_dot().splitlines() == [
        "digraph {",
        '  "say \\"a\\"";',
        '  "b\\\\";',
        '  "node";',
        '  "say \\"a\\"" -> "b\\\\";',
        '  "b\\\\" -> "node" [dir=none];',
        "}",
    ]


def test_undirected_networkx_graph() -> None:
    networkx = pytest.importorskip("networkx")
    assert CPDAG.from_networkx(networkx.path_graph(3)).undirected_edges == [("0", "1"), ("1", "2")]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: DAG.from_json("[1]"),
            "the JSON text is not a graph: it lacks format='hidag-graph'",
        ),
        (
            lambda: DAG.from_json('{"format": "hidag-graph", "version": 9}'),
            "the graph has format version 9; this release reads version 1",
        ),
    ],
)
def test_unsupported_content_raises(call, sentence) -> None:
    with pytest.raises(GraphError) as caught:
        call()
    assert str(caught.value) == sentence


def test_reading_an_equivalence_class_as_a_dag_raises() -> None:
    text = CPDAG([[0, 1], [1, 0]]).to_json()
    with pytest.raises(GraphError, match="form a cycle: Z1 -> Z2 -> Z1"):
        DAG.from_json(text)
