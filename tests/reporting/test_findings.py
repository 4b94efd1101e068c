from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hidag import CPDAG
from hidag.reporting import render_report
from hidag.reporting.findings import describe_empty_graph, describe_findings
from hidag.reporting.fit_description import describe_knowledge
from hidag.simulation import chain_dag, dag_from_parents, make_truth, random_law

Q = np.vstack([np.eye(3, dtype=int)] * 4)


@pytest.fixture
def result(as_result):
    truth = make_truth(random_law(chain_dag(3), rng=0), Q)
    loadings = truth.items.loadings * np.arange(1, 13)[:, None]
    items = dataclasses.replace(truth.items, loadings=loadings)
    return dataclasses.replace(
        as_result(truth, latent_names=("A", "B", "C")),
        parameters=items,
        item_names=tuple(f"item{j}" for j in range(12)),
    )


ITEMS = (
    "A is measured by 4 items, most strongly by item9, item6 and item3. "
    "B is measured by 4 items, most strongly by item10, item7 and item4. "
    "C is measured by 4 items, most strongly by item11, item8 and item5."
)


def with_graph(result, directed, undirected):
    return dataclasses.replace(result, graph=CPDAG.from_edges("ABC", directed, undirected))


def with_probabilities(result, **shares):
    """Return the result with probabilities such as AB=.7, that A causes B."""
    p = np.zeros((3, 3))
    for pair, share in shares.items():
        p["ABC".index(pair[0]), "ABC".index(pair[1])] = share
    return dataclasses.replace(result, edge_probabilities=p)


def test_words_follow_the_probabilities(result):
    chain = with_probabilities(result, AB=0.5, BA=0.45, BC=0.4, CB=0.3)
    assert describe_findings(chain) == [
        "Directly related, direction uncertain: A and B (.95). "
        "Probably directly related: B and C (.70).",
        ITEMS,
    ]
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    found = with_probabilities(collider, AC=0.999, BC=0.3, CB=0.1)
    assert describe_findings(found)[0] == (
        "Under the model, with its probability: A causes C (>.99). "
        "In the best graph, but improbable: B and C (.40)."
    )
    assert "causes" not in describe_findings(with_probabilities(collider, AC=0.79, BC=0.7))[0]
    strict = dataclasses.replace(found, settings={**found.settings, "claim_level": 1.0})
    assert "causes" not in describe_findings(strict)[0]


def test_probable_edges_outside_the_best_graph_are_stated(result):
    empty = with_graph(result, [], [])
    assert describe_findings(with_probabilities(empty, AB=0.85))[0] == (
        "Under the model, with its probability: A causes B (.85)."
    )
    assert describe_findings(with_probabilities(empty, AB=0.45, BA=0.3))[0] == (
        "No two latents are connected; the most probable pair is A and B (.75)."
    )
    assert describe_findings(with_probabilities(empty, AB=0.1))[0] == (
        "No two latents are connected: the latents appear to be independent."
    )


def test_without_probabilities_nothing_is_called_a_cause(result):
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    assert describe_findings(collider)[0] == (
        "Edges of the best graph: A -> C; B -> C. The probabilities of edges were not computed."
    )
    asked = dataclasses.replace(collider, uncertainty_note="they were not requested")
    assert describe_findings(asked)[0].endswith("not computed: they were not requested.")


def test_bootstrap_samples_are_counted(result):
    p = with_probabilities(result, AB=0.5, BA=0.45).edge_probabilities
    text = describe_findings(result, p, 3)[0]
    assert text.startswith("Directly related, direction uncertain: A and B (.95).")
    assert text.endswith("averages over 3 bootstrap samples; so few are hardly informative.")
    assert describe_findings(result, p, 20)[0].endswith("averages over 20 bootstrap samples.")


def with_knowledge(result, **knowledge):
    return dataclasses.replace(result, settings={**result.settings, "knowledge": knowledge})


def test_required_edges_are_not_findings(result):
    alone = with_probabilities(with_graph(result, [("A", "B")], []), AB=1.0)
    assert describe_findings(with_knowledge(alone, required=[["A", "B"]]))[0] == (
        "Required by prior knowledge, not estimated: A causes B. No other pair of latents is "
        "connected."
    )
    line = with_probabilities(with_graph(result, [("A", "B")], [("B", "C")]), AB=1.0, BC=0.6)
    assert describe_findings(with_knowledge(line, hierarchy=[[0, 1]]))[0] == (
        "Probably directly related: B and C (.60). Required by prior knowledge, not estimated: A "
        "causes B."
    )


def test_directions_that_need_prior_knowledge(result):
    line = with_graph(result, [("A", "B"), ("B", "C")], [])
    line = with_probabilities(line, AB=0.9, BC=0.9)
    words = (
        "Directly related, with a direction that follows only together with the prior knowledge: "
    )
    assert describe_findings(with_knowledge(line, tiers=[["A"], ["B", "C"]]))[0] == (
        f"{words}A causes B (.90) and B causes C (.90)."
    )
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    collider = with_probabilities(collider, AC=0.9, BC=0.9)
    assert describe_findings(with_knowledge(collider, forbidden=[["C", "A"]]))[0] == (
        "Under the model, with its probability: A causes C (.90) and B causes C (.90)."
    )
    # The direction between B and C depends on the required edge.
    assert describe_findings(with_knowledge(collider, required=[["A", "C"]]))[0] == (
        f"{words}B causes C (.90). Required by prior knowledge, not estimated: A causes C."
    )


def test_long_names_are_shortened_and_unmeasured_latents_named(result):
    names = ("During the past 30 days, how often were you sad", *result.item_names[1:])
    loadings = np.zeros_like(result.loadings)
    loadings[0, 0] = 1.0
    bare = dataclasses.replace(
        result,
        item_names=names,
        parameters=dataclasses.replace(result.parameters, loadings=loadings),
    )
    assert describe_findings(bare)[1] == (
        "A is measured by 1 item: During the past 30 d\N{HORIZONTAL ELLIPSIS}often were you sad. "
        "B is measured by no item. C is measured by no item."
    )


def test_many_edges_and_latents_are_counted(as_result):
    law = random_law(dag_from_parents([(), *((k,) for k in range(11))]), rng=0)
    found = describe_findings(as_result(make_truth(law, np.vstack([np.eye(12, dtype=int)] * 2))))
    assert found == [
        "Edges of the best graph: Z1 - Z2; Z2 - Z3; Z3 - Z4; Z4 - Z5; Z5 - Z6; Z6 - Z7; Z7 - Z8; "
        "Z8 - Z9 and 3 more. The probabilities of edges were not computed.",
        "Each latent is measured by 2 items.",
    ]


def test_the_summary_comes_before_the_model(result):
    page = render_report(result, plots=False)
    assert page.index("A is measured by 4 items") < page.index("<h2>Model and data</h2>")


def test_excluded_pairs_are_not_called_independent(result):
    both_ways = [["A", "C"], ["C", "A"]]
    excluded = "Excluded by prior knowledge, whatever the data: A and C."
    assert describe_findings(with_knowledge(result, forbidden=both_ways))[0] == (
        "Edges of the best graph: A - B; B - C. The probabilities of edges were not computed. "
        + excluded
    )
    none = with_graph(result, [], [])
    assert describe_findings(with_knowledge(none, forbidden=both_ways))[0] == (
        "No two latents are connected. " + excluded
    )
    # The other direction is still allowed.
    assert describe_findings(with_knowledge(none, forbidden=[["A", "C"]]))[0] == (
        "No two latents are connected: the latents appear to be independent."
    )
    everything = [[a, b] for a in "ABC" for b in "ABC" if a != b]
    assert describe_findings(with_knowledge(none, forbidden=everything))[0] == (
        "No two latents are connected: prior knowledge excludes all pairs."
    )


def test_describe_tiers(result):
    prior = "Prior knowledge, not estimated from the data: tiers "
    some, every = (
        with_knowledge(result, tiers=[["C"], [0]]),
        with_knowledge(result, tiers=[["C", "B"], ["A"]]),
    )
    assert describe_knowledge(some) == [f"{prior}C before A (B in no tier)."]
    assert describe_knowledge(every) == [f"{prior}C, B before A."]


def test_weakly_measured_latents_are_not_called_independent(result):
    apart = with_graph(result, [], [])
    seen = dataclasses.replace(apart, information_ratio=0.5)
    assert describe_findings(seen)[0] == (
        "No two latents are connected: the latents appear to be independent."
    )
    assert (
        describe_empty_graph(seen) == "The graph has no edge: the latents appear to be independent."
    )
    dark = dataclasses.replace(apart, information_ratio=0.0)
    assert describe_findings(dark)[0] == (
        "No two latents are connected, but the items are too weakly informative to conclude that "
        "they are independent."
    )
    assert describe_empty_graph(dark) == (
        "The graph has no edge, but the items are too weakly informative to conclude that they are "
        "independent."
    )
