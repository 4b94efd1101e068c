"""Networks for other programs: tables that survive, graphs that can be read."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

from hidag.discover import CPDAG
from hidag.explain import to_bif, to_dot, to_dowhy, to_gml
from hidag.explain.exports import items_without_table, network_law
from hidag.simulate import chain_dag, make_truth, random_law


@pytest.fixture
def result(as_result):
    law = random_law(chain_dag(3), rng=0)
    return as_result(make_truth(law, np.vstack([np.eye(3, dtype=int)] * 2), "bernoulli"))


def test_gml_has_the_tables(result):
    graph = nx.parse_gml(to_gml(result, items=True))
    assert set(graph.nodes) == {*result.latent_names, *result.item_names}
    table = np.array(json.loads(graph.nodes["Z2"]["table"]))
    np.testing.assert_allclose(table, network_law(result).tables[1])
    assert json.loads(graph.nodes["Z2"]["parents"]) == ["Z1"]


def test_dot_keeps_open_directions_and_reads_back(result):
    text = to_dot(result)
    assert CPDAG.from_dot(text) == result.graph
    assert "Z1=0: P(0)=" in text


def test_dowhy_gets_one_dag_with_items_below_their_latents(result):
    graph = nx.parse_gml(to_dowhy(result))
    edges = set(graph.edges())
    assert ("Z1", "X1") in edges
    assert ("Z1", "X4") in edges
    latents = {edge for edge in edges if edge[1] in result.latent_names}
    assert latents == {("Z1", "Z2"), ("Z2", "Z3")}
    assert nx.is_directed_acyclic_graph(graph)


def test_dowhy_gets_names_as_they_are(as_result):
    names = ('say "x"', "a.gml & {graph [b]}\\", "ß\u202e\n")
    result = as_result(
        make_truth(random_law(chain_dag(3), rng=0), np.eye(3, dtype=int), "gaussian"),
        latent_names=names,
    )
    assert list(nx.parse_gml(to_dowhy(result, items=False))) == list(names)


def test_items_without_a_short_list_of_values_are_left_out_and_named(as_result):
    law = random_law(chain_dag(2), rng=0)
    families = ("poisson", "bernoulli", "gaussian", "bernoulli")
    result = as_result(make_truth(law, np.vstack([np.eye(2, dtype=int)] * 2), families))
    assert items_without_table(result) == ("X1", "X3")
    text = to_bif(result, items=True)
    assert text.startswith(
        '// "X1" is left out: it has no short table\n// "X3" is left out: it has no short table\n'
    )
    assert [name for name in result.item_names if f"variable {name} " in text] == ["X2", "X4"]
    assert set(nx.parse_gml(to_gml(result, items=True))) == {"Z1", "Z2", "X2", "X4"}
    assert '"X3"' not in to_dot(result, items=True)
    assert "X3" in nx.parse_gml(to_dowhy(result))
