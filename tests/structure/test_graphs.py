from __future__ import annotations

import pickle

import numpy as np
import pytest

from hidag.exceptions import GraphError
from hidag.structure import CPDAG, DAG

DIAMOND = DAG.from_edges(["a", "b", "c", "d"], [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


def test_default_names_and_read_only() -> None:
    graph = DAG([[0, 1], [0, 0]])
    assert graph.names == ("Z1", "Z2")
    assert graph.edges == [("Z1", "Z2")]
    assert graph.adjacency.dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        graph.adjacency[0, 1] = 0
    with pytest.raises(AttributeError, match="a DAG cannot be changed; build a new one"):
        graph.names = ("x", "y")  # type: ignore[misc]


def test_an_argument_is_copied() -> None:
    given = np.array([[0, 1], [0, 0]], dtype=np.int8)
    graph = DAG(given)
    given[0, 1] = 0
    assert graph.n_edges == 1


@pytest.mark.parametrize(
    ("adjacency", "names", "sentence"),
    [
        (
            [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
            ["a", "b", "c"],
            "the directed edges form a cycle: a -> b -> c -> a; remove or reverse one of them",
        ),
        (
            [[0, 1], [1, 0]],
            None,
            "the directed edges form a cycle: Z1 -> Z2 -> Z1; remove or reverse one of them",
        ),
        ([[0, 1]], None, "an adjacency matrix must be square, got shape (1, 2)"),
        ([[0, 2], [0, 0]], None, "an adjacency matrix must contain only 0 and 1"),
        (
            [[0, 0], [0, 1]],
            None,
            "variable 1 has an edge to itself; the diagonal of an adjacency matrix must be 0",
        ),
        ([[0, 1], [0, 0]], ["a"], "2 variables need 2 names, got 1"),
        ([[0, 1], [0, 0]], ["a", "a"], "names must be unique, but 'a' occurs 2 times"),
    ],
)
def test_what_is_not_a_dag_is_refused_in_words(adjacency, names, sentence) -> None:
    with pytest.raises(GraphError) as caught:
        DAG(adjacency, names)
    assert str(caught.value) == sentence


def test_cpdag_refuses_a_directed_cycle_but_takes_undirected_edges() -> None:
    with pytest.raises(GraphError, match="form a cycle: Z1 -> Z2 -> Z3 -> Z1"):
        CPDAG([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert CPDAG(1 - np.eye(3)).undirected_edges == [("Z1", "Z2"), ("Z1", "Z3"), ("Z2", "Z3")]


def test_unknown_variable_in_an_edge() -> None:
    with pytest.raises(GraphError) as caught:
        DAG.from_edges(["a", "b"], [("a", "x")])
    assert str(caught.value) == "an edge names 'x', which is not a variable"


def test_completion_of_a_diamond() -> None:
    graph = DIAMOND.to_cpdag()
    assert graph.directed_edges == [("b", "d"), ("c", "d")]
    assert graph.undirected_edges == [("a", "b"), ("a", "c")]
    assert graph.v_structures == DIAMOND.v_structures == [("b", "d", "c")]
    assert graph.is_valid()
    assert graph.is_closed()
    assert len(graph.members()) == 3
    assert all(graph.contains(member) for member in graph.members())
    assert graph.contains(DIAMOND)
    assert repr(graph) == "CPDAG(4 variables, 2 directed edges, 2 undirected edges)"


def test_a_graph_without_a_member_raises_an_error() -> None:
    square = CPDAG.from_edges(
        ["a", "b", "c", "d"], undirected=[("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    )
    assert not square.is_valid()
    assert not square.is_closed()
    with pytest.raises(GraphError) as caught:
        square.to_dag()
    assert str(caught.value) == (
        "the graph has no member: its undirected edges cannot be directed without a cycle "
        "or a new v-structure"
    )


def test_a_directed_edge_that_need_not_be_is_not_completed_but_closed() -> None:
    graph = CPDAG([[0, 1], [0, 0]])
    assert not graph.is_valid()
    assert graph.is_closed()
    assert graph.members() == [DAG([[0, 1], [0, 0]])]


def test_the_number_of_members_that_are_listed_can_be_limited() -> None:
    assert len(CPDAG(1 - np.eye(25)).members(limit=5)) == 5
    chain = np.diag(np.ones(24), 1)
    assert len(CPDAG(chain + chain.T).members()) == 25


def test_members_of_overlapping_triangles_are_listed_once() -> None:
    # Two triangles that share an edge.
    graph = CPDAG.from_edges(
        ["a", "b", "c", "d"],
        undirected=[("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")],
    )
    members = graph.members()
    assert len(members) == len(set(members)) == 10


def test_members_with_knowledge_obey_it() -> None:
    rng = np.random.default_rng(2)
    tried = 0
    while tried < 30:
        graph = DAG(np.triu(rng.random((7, 7)) < 0.45, 1).astype(int)).to_cpdag()
        if not graph.undirected_edges:
            continue
        tried += 1
        adjacency = np.array(graph.adjacency)
        i, j = rng.choice(np.argwhere(adjacency & adjacency.T))
        adjacency[j, i] = 0
        directed = CPDAG(adjacency)
        obeying = {m for m in graph.members() if m.adjacency[i, j]}
        assert set(directed.members()) == obeying


def test_permute_rename_and_equality() -> None:
    order = [2, 0, 3, 1]
    moved = DIAMOND.permute(order)
    assert set(moved.edges) == set(DIAMOND.edges)
    assert moved.names == ("c", "a", "d", "b")
    assert moved.to_cpdag() == DIAMOND.to_cpdag().permute(order)
    assert hash(DIAMOND) == hash(DAG(DIAMOND.adjacency, DIAMOND.names))
    assert DIAMOND.rename(["w", "x", "y", "z"]).edges[0] == ("w", "x")
    assert DIAMOND.to_cpdag() != DIAMOND
    assert pickle.loads(pickle.dumps(DIAMOND)) == DIAMOND
    with pytest.raises(GraphError, match=r"order must contain each of 0..3 once"):
        DIAMOND.permute([0, 0, 1, 2])


def test_order_and_parents() -> None:
    order = DIAMOND.order()
    assert order.index(0) < order.index(1) < order.index(3)
    assert DIAMOND.parents == ((), (0,), (0,), (1, 2))


def test_empty_graph_of_no_variables() -> None:
    graph = DAG(np.zeros((0, 0)))
    assert len(graph.to_cpdag().members()) == 1
