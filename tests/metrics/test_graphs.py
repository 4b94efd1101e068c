"""Structural Hamming distance, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.exceptions import DataError
from hidag.metrics import evaluate_graph
from hidag.structure.graphs import CPDAG, DAG

NAMES = ("a", "b", "c", "d")


def test_every_pair_of_statuses_counts_once_when_it_differs() -> None:
    status = {
        "none": [[0, 0], [0, 0]],
        "->": [[0, 1], [0, 0]],
        "<-": [[0, 0], [1, 0]],
        "-": [[0, 1], [1, 0]],
    }
    for mine, a in status.items():
        for yours, b in status.items():
            compared = evaluate_graph(np.array(a), np.array(b))
            assert compared.shd == int(mine != yours)
            assert compared.n_missing == int(mine == "none" != yours)
            assert compared.n_extra == int(yours == "none" != mine)
            assert compared.n_misdirected == int("none" not in (mine, yours) and mine != yours)


def test_a_mixture_of_mistakes() -> None:
    true = CPDAG.from_edges(NAMES, directed=[("a", "c"), ("b", "c")], undirected=[("c", "d")])
    ours = CPDAG.from_edges(NAMES, undirected=[("a", "c"), ("a", "b"), ("c", "d")])
    compared = evaluate_graph(ours, true)
    # a-c misdirected, b-c missing, a-b extra, c-d right
    assert compared.to_dict() == {
        "shd": 3,
        "n_missing": 1,
        "n_extra": 1,
        "n_misdirected": 1,
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
    }
    assert evaluate_graph(true, ours).shd == 3
    assert evaluate_graph(true, true).shd == 0


def test_a_dag_stands_for_its_equivalence_class() -> None:
    chain = DAG.from_edges(NAMES, [("a", "b"), ("b", "c"), ("c", "d")])
    turned = DAG.from_edges(NAMES, [("d", "c"), ("c", "b"), ("b", "a")])
    collider = DAG.from_edges(NAMES, [("a", "b"), ("c", "b"), ("c", "d")])
    assert evaluate_graph(chain, turned).shd == 0
    # a -> b <- c is compelled; c - d is not.
    assert evaluate_graph(collider, chain).shd == 2


def test_precision_and_recall_of_empty_sets_are_one() -> None:
    empty, full = np.zeros((3, 3), dtype=int), np.ones((3, 3), dtype=int) - np.eye(3, dtype=int)
    none = evaluate_graph(empty, full)
    assert (none.precision, none.recall, none.f1) == (1.0, 0.0, 0.0)
    everything = evaluate_graph(full, empty)
    assert (everything.precision, everything.recall, everything.f1) == (0.0, 1.0, 0.0)
    both = evaluate_graph(empty, empty)
    assert (both.precision, both.recall, both.f1, both.shd) == (1.0, 1.0, 1.0, 0)


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (
            np.zeros((2, 2)),
            np.zeros((3, 3)),
            "graphs must have the same variables, got 2 estimated and 3 true ones",
        ),
        (
            np.zeros((2, 3)),
            np.zeros((3, 3)),
            "a graph must be a CPDAG, a DAG or a square array of 0 and 1",
        ),
    ],
)
def test_invalid_graphs_are_reported(a, b, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        evaluate_graph(a, b)
    assert str(caught.value) == sentence
