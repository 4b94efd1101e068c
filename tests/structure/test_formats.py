from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hidag.exceptions import GraphError, SettingError
from hidag.structure import CPDAG, DAG

plain_names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)
any_names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]),
    min_size=1,
    max_size=6,
)


@st.composite
def dags(draw, names=plain_names) -> DAG:
    n = draw(st.integers(1, 6))
    order = draw(st.permutations(range(n)))
    adjacency = np.zeros((n, n), dtype=int)
    for i in range(n):
        for j in range(i + 1, n):
            adjacency[order[i], order[j]] = draw(st.integers(0, 1))
    return DAG(adjacency, draw(st.lists(names, min_size=n, max_size=n, unique=True)))


TEXT = ["json", "dot", "gml", "tetrad"]
OBJECTS = ["networkx", "frame", "causal_learn"]


def back(graph, form, *arguments):
    written = getattr(graph, f"to_{form}")(*arguments)
    if form == "causal_learn":
        return type(graph).from_causal_learn(written, graph.names)
    return getattr(type(graph), f"from_{form}")(written)


@pytest.mark.parametrize("form", TEXT + OBJECTS)
@given(dag=dags())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_round_trip(form, dag) -> None:
    assert back(dag, form) == dag
    assert back(dag.to_cpdag(), form) == dag.to_cpdag()


@pytest.mark.parametrize("form", ["json", "dot", "gml", "networkx", "frame"])
@given(dag=dags(any_names))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_round_trip_with_any_names(form, dag) -> None:
    assert back(dag, form) == dag


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_round_trip_of_frames(frame) -> None:
    pytest.importorskip(frame)
    dag = DAG.from_edges(["a", "b", "cause"], [("a", "b"), ("b", "cause")])
    for graph in (dag, dag.to_cpdag()):
        table = graph.to_frame(frame)
        assert table.shape == (3, 4)
        assert type(graph).from_frame(table) == graph


def test_direction_in_a_table() -> None:
    columns = DAG.from_edges(["a", "b"], [("a", "b")]).to_frame()
    assert columns == {"cause": ["a", "b"], "a": [0, 0], "b": [1, 0]}


def test_endpoints() -> None:
    graph = CPDAG.from_edges(["a", "b", "c"], [("a", "b")], [("b", "c")])
    assert graph.to_causal_learn().tolist() == [[0, -1, 0], [1, 0, -1], [0, -1, 0]]


def test_tetrad_text() -> None:
    graph = CPDAG.from_edges(["a", "b", "c"], [("a", "b")], [("b", "c")])
    assert graph.to_tetrad() == ("Graph Nodes:\na;b;c\n\nGraph Edges:\n1. a --> b\n2. b --- c\n")


def test_tetrad_text_of_others() -> None:
    text = "Graph Nodes:\nX1,X2,X3\n\nGraph Edges:\n1. X2 <-- X1 dd nl\n2. X2 --- X3\n\nrest"
    graph = CPDAG.from_tetrad(text)
    assert graph.directed_edges == [("X1", "X2")]
    assert graph.undirected_edges == [("X2", "X3")]


@pytest.mark.parametrize("word", ["node", "edge", "graph", "Node"])
def test_words_that_open_defaults_in_dot_may_be_names(word) -> None:
    dag = DAG(np.array([[0, 1], [0, 0]]), [word, "x"])
    assert DAG.from_dot(dag.to_dot()) == dag
    text = f'digraph {{ {word} [shape=box]; "{word}" [color=red]; "{word}" -> x }}'
    assert DAG.from_dot(text) == dag
    assert DAG.from_dot(f"digraph {{ {word} [shape=box]; a -> b }}").names == ("a", "b")


def test_dot_text_of_others() -> None:
    text = """
    strict digraph "my graph" {
      // a comment -> here
      rankdir=LR; node [shape=box, label="a -> b"];
      a -> b -> c; /* b -> z */
      c -> "d e" [dir=none color="red"]
      f [label="F"]; f->a [dir=back];
    }
    """
    graph = CPDAG.from_dot(text)
    assert graph.names == ("a", "b", "c", "d e", "f")
    assert graph.directed_edges == [("a", "b"), ("a", "f"), ("b", "c")]
    assert graph.undirected_edges == [("c", "d e")]
    assert CPDAG.from_dot("graph { a -- b; a--c }").undirected_edges == [("a", "b"), ("a", "c")]


def test_undirected_networkx_graph() -> None:
    networkx = pytest.importorskip("networkx")
    assert CPDAG.from_networkx(networkx.path_graph(3)).undirected_edges == [("0", "1"), ("1", "2")]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: CPDAG.from_tetrad("Graph Nodes:\na;b\n\nGraph Edges:\n1. a <-> b"),
            "only -->, <-- and --- edges are supported, got '1. a <-> b'",
        ),
        (
            lambda: CPDAG.from_tetrad("a --> b"),
            "the text is not a Tetrad graph: it lacks 'Graph Nodes:' or 'Graph Edges:'",
        ),
        (
            lambda: DAG([[0]], ["my name"]).to_tetrad(),
            "names in Tetrad files must not be empty or contain blanks, commas or semicolons, got "
            "'my name'; rename the variables first",
        ),
        (
            lambda: DAG.from_json("[1]"),
            "the JSON text is not a graph: it lacks format='hidag-graph'",
        ),
        (
            lambda: DAG.from_json('{"format": "hidag-graph", "version": 9}'),
            "the graph has format version 9; this release reads version 1",
        ),
        (
            lambda: CPDAG.from_causal_learn([[0, 1], [1, 0]]),
            "only i -> j and i - j edges are supported, but variables 0 and 1 have the endpoints 1 "
            "and 1",
        ),
        (lambda: DAG.from_dot("a -> b"), "the text is not a DOT graph: it lacks { or }"),
        (
            lambda: DAG.from_dot("digraph { subgraph x { a -> b } }"),
            "subgraphs in DOT text are not supported; write the edges one by one",
        ),
        (
            lambda: DAG.from_frame({"cause": ["a", "b"], "b": [0, 0], "a": [0, 1]}),
            "the first column of an adjacency table must name the rows as the other columns are "
            "named, ['b', 'a'], got ['a', 'b']",
        ),
    ],
)
def test_unsupported_content_raises(call, sentence) -> None:
    with pytest.raises(GraphError) as caught:
        call()
    assert str(caught.value) == sentence


def test_unknown_frame() -> None:
    with pytest.raises(SettingError) as caught:
        DAG([[0]]).to_frame("excel")
    assert str(caught.value) == "frame must be 'pandas', 'polars' or None, got 'excel'"


def test_reading_an_equivalence_class_as_a_dag_raises() -> None:
    text = CPDAG([[0, 1], [1, 0]]).to_json()
    with pytest.raises(GraphError, match="form a cycle: Z1 -> Z2 -> Z1"):
        DAG.from_json(text)
