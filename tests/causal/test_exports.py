"""Exports: tables and graphs read back by other programs."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.stats import binom

from hidag.causal import to_bif, to_dot, to_dowhy, to_gml
from hidag.causal.exports import (
    items_without_table,
    network_law,
    network_nodes,
    total_variation,
)
from hidag.exceptions import HidagWarning
from hidag.latent import SaturatedLaw
from hidag.simulation import Truth, chain_dag, make_truth, random_dag, random_law
from hidag.structure import CPDAG


def read_dot(text, names):
    """Return the graph of the lines that we write; names without quotes inside."""
    edges = re.findall(r'^  "(\w+)" -> "(\w+)"( \[dir=none\])?;$', text, re.MULTILINE)
    directed = [(a, b) for a, b, is_open in edges if not is_open]
    return CPDAG.from_edges(names, directed, [(a, b) for a, b, is_open in edges if is_open])


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
    assert read_dot(text, result.latent_names) == result.graph
    assert "Z1=0: P(0)=" in text


def test_dowhy_graph_is_one_dag_with_items_as_children(result):
    graph = nx.parse_gml(to_dowhy(result))
    edges = set(graph.edges())
    assert ("Z1", "X1") in edges
    assert ("Z1", "X4") in edges
    latents = {edge for edge in edges if edge[1] in result.latent_names}
    assert latents == {("Z1", "Z2"), ("Z2", "Z3")}
    assert nx.is_directed_acyclic_graph(graph)


def test_dowhy_graph_keeps_names(as_result):
    names = ('say "x"', "a.gml & {graph [b]}\\", "ß\u202e\n")
    result = as_result(
        make_truth(random_law(chain_dag(3), rng=0), np.eye(3, dtype=int), "gaussian"),
        latent_names=names,
    )
    assert list(nx.parse_gml(to_dowhy(result, items=False))) == list(names)


def test_bif_names_are_unique_when_case_is_ignored(as_result):
    law = random_law(chain_dag(3), rng=0)
    truth = make_truth(law, np.eye(3, dtype=int), "bernoulli")
    result = replace(as_result(truth), item_names=("z1", "a b", "A_B"))
    text = to_bif(result, items=True)
    assert [line for line in text.splitlines() if line.startswith("// ")] == [
        '// z1_2 is "z1"',
        '// a_b is "a b"',
        '// A_B_2 is "A_B"',
    ]
    pgmpy = pytest.importorskip("pgmpy.readwrite")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = pgmpy.BIFReader(string=text).get_model()
    assert set(read.edges()) == {
        ("Z1", "Z2"), ("Z2", "Z3"), ("Z1", "z1_2"), ("Z2", "a_b"), ("Z3", "A_B_2"),
    }  # fmt: skip


def test_items_with_too_many_values_are_left_out_and_listed(as_result):
    law = random_law(chain_dag(2), rng=0)
    families = ("poisson", "bernoulli", "gaussian", "bernoulli")
    result = as_result(make_truth(law, np.vstack([np.eye(2, dtype=int)] * 2), families))
    assert items_without_table(result) == ("X1", "X3")
    text = to_bif(result, items=True)
    assert text.startswith(
        '// "X1" is left out: its table is too large\n// "X3" is left out: its table is too large\n'
    )
    assert [name for name in result.item_names if f"variable {name} " in text] == ["X2", "X4"]
    assert set(nx.parse_gml(to_gml(result, items=True))) == {"Z1", "Z2", "X2", "X4"}
    assert '"X3"' not in to_dot(result, items=True)
    assert "X3" in nx.parse_gml(to_dowhy(result))


def test_binomial_items_with_few_trials_have_a_table(as_result):
    law = random_law(chain_dag(2), rng=0)
    families = ("binomial(6)", "bernoulli", "binomial(1000)")
    q = np.array([[1, 0], [0, 1], [1, 0]])
    truth = Truth(q, [-1.0, 0.3, -1.0], 1.5 * q, np.ones(3), families, law)
    result = as_result(truth)
    assert items_without_table(result) == ("X3",)
    node = next(one for one in network_nodes(result, items=True) if one.name == "X1")
    assert node.states == tuple("0123456")
    assert node.parents == (0,)
    means = truth.means(np.array([[0, 0], [1, 0]]))[:, 0]
    expected = [binom.pmf(np.arange(7), 6, mean / 6) for mean in means]
    np.testing.assert_allclose(node.table, expected, atol=1e-12)
    assert "type discrete [ 7 ] { 0, 1, 2, 3, 4, 5, 6 };" in to_bif(result, items=True)
    assert '// "X1" is left out' not in to_bif(result, items=True)


def summed_variation(result):
    """Return the largest difference of probabilities, state by state from the exported tables."""
    nodes, total = network_nodes(result), 0.0
    for state, p in zip(result.law.space.states(), result.law.probabilities, strict=True):
        own = np.prod([n.table[(*state[list(n.parents)], state[k])] for k, n in enumerate(nodes)])
        total += abs(own - p) / 2
    return total


@pytest.mark.parametrize("export", [to_bif, to_gml, to_dot])
def test_exports_warn_if_tables_are_not_the_fitted_law(export, result):
    noise = np.random.default_rng(1).dirichlet(np.ones(8))
    off = replace(result, law=SaturatedLaw(result.law.space, noise))
    note = (
        "the exported tables are not the fitted latent distribution, which does not factorise over "
        "the graph, but the closest one that does: probabilities differ by up to "
        f"{summed_variation(off):.2g}; fit with law='network' to export the fitted distribution "
        "itself"
    )
    with pytest.warns(HidagWarning) as caught:
        text = export(off)
    assert [str(one.message) for one in caught] == [note]
    assert caught[0].filename == __file__
    if export is to_bif:
        assert text.startswith(f"// {note}\n")
    elif export is to_gml:
        assert nx.parse_gml(text).graph["comment"] == note
    else:
        assert f"  // {note}\n" in text
        assert read_dot(text, off.latent_names) == off.graph


@pytest.mark.parametrize("export", [to_bif, to_gml, to_dot, to_dowhy])
def test_a_saturated_law_that_factorises_is_exported_without_warning(export, result):
    held = replace(result, law=SaturatedLaw(result.law.space, result.law.probabilities))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = export(held)
    assert "not the fitted latent distribution" not in text


def test_total_variation_of_many_latents_is_estimated_from_draws(as_result, monkeypatch):
    rng = np.random.default_rng(0)
    law = random_law(random_dag(5, 1.8, rng=rng), rng=rng)
    result = as_result(make_truth(law, np.eye(5, dtype=int), "bernoulli"))
    names = result.latent_names
    result = replace(result, graph=CPDAG.from_edges(names, [("Z1", "Z2"), ("Z3", "Z2")], []))
    exact = total_variation(result, network_law(result))
    assert exact == pytest.approx(summed_variation(result))
    assert exact > 0.02
    monkeypatch.setattr("hidag.causal.exports.MAX_SUMMED_STATES", 1)
    assert total_variation(result, network_law(result)) == pytest.approx(exact, abs=0.004)
    with pytest.warns(HidagWarning) as caught:
        to_bif(result)
    # No advice: the law is a network already.
    assert "law='network'" not in str(caught[0].message)
