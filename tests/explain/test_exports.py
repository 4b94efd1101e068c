"""Networks for other programs: tables that survive, graphs that can be read."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

from hidag.discover import CPDAG
from hidag.errors import SettingError
from hidag.explain import to_bif, to_dot, to_dowhy, to_gml
from hidag.explain.exports import network_law
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dowhy_gets_one_dag_with_items_below_their_latents(result):
    pydot = pytest.importorskip("pydot")
    graph = nx.nx_pydot.from_pydot(pydot.graph_from_dot_data(to_dowhy(result))[0])
    edges = {(a.strip('"'), b.strip('"')) for a, b in graph.edges()}
    assert ("Z1", "X1") in edges
    assert ("Z1", "X4") in edges
    latents = {edge for edge in edges if edge[1] in result.latent_names}
    assert latents == {("Z1", "Z2"), ("Z2", "Z3")}
    assert nx.is_directed_acyclic_graph(nx.DiGraph(edges))


def test_dowhy_itself_reads_the_graph(result):
    dowhy = pytest.importorskip("dowhy")
    pandas = pytest.importorskip("pandas")
    columns = [*result.latent_names, *result.item_names]
    rows = pandas.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 9)), columns=columns)
    model = dowhy.CausalModel(rows, treatment="Z1", outcome="X3", graph=to_dowhy(result))
    assert model.identify_effect() is not None


def test_items_without_a_short_list_of_values_are_refused(as_result):
    law = random_law(chain_dag(2), rng=0)
    result = as_result(make_truth(law, np.eye(2, dtype=int), "poisson"))
    with pytest.raises(SettingError) as caught:
        to_bif(result, items=True)
    assert str(caught.value) == (
        "a network of tables cannot hold item 'X1': its family 'poisson' has no short list of "
        "values; export the latents alone"
    )
