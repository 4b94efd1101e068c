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


def test_edges_with_and_without_direction(result):
    assert describe_findings(result) == [
        "Directly related, direction not identified: A and B; B and C.",
        ITEMS,
    ]
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    assert describe_findings(collider)[0] == (
        "Under the model, the data indicate that A causes C and B causes C."
    )
    assert describe_findings(with_graph(result, [], []))[0] == (
        "No two latents are connected: they appear to be independent."
    )


def with_knowledge(result, **knowledge):
    return dataclasses.replace(result, settings={**result.settings, "knowledge": knowledge})


def test_required_edges_are_not_findings(result):
    alone, support = with_graph(result, [("A", "B")], []), {("A", "B"): 1.0}
    assert describe_findings(with_knowledge(alone, required=[["A", "B"]]), support)[0] == (
        "Required by prior knowledge, not estimated: A causes B. No other pair of latents is "
        "connected."
    )
    line = with_graph(result, [("A", "B")], [("B", "C")])
    assert describe_findings(
        with_knowledge(line, hierarchy=[[0, 1]]), {("A", "B"): 1.0, ("B", "C"): 0.8}
    )[0] == (
        "Directly related, direction not identified: B and C. Required by prior knowledge, not "
        "estimated: A causes B. B and C are connected in 80% of the bootstrap samples."
    )


def test_directions_that_need_prior_knowledge(result):
    line = with_graph(result, [("A", "B"), ("B", "C")], [])
    words = (
        "Directly related, with a direction that follows only together with the prior knowledge: "
    )
    assert describe_findings(with_knowledge(line, tiers=[["A"], ["B", "C"]]))[0] == (
        f"{words}A causes B and B causes C."
    )
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    assert describe_findings(with_knowledge(collider, forbidden=[["C", "A"]]))[0] == (
        "Under the model, the data indicate that A causes C and B causes C."
    )
    # The direction between B and C depends on the required edge.
    assert describe_findings(with_knowledge(collider, required=[["A", "C"]]))[0] == (
        f"{words}B causes C. Required by prior knowledge, not estimated: A causes C."
    )


@pytest.mark.parametrize(
    ("support", "words"),
    [
        ({("A", "B"): 0.97, ("B", "C"): 1.0}, "Each of these pairs is connected in at least 95%"),
        (
            {("A", "B"): 0.5, ("B", "C"): 0.6},
            "None of these 2 pairs is connected in at least 95% of the bootstrap samples; the "
            "least supported, A and B, in 50%.",
        ),
        (
            {("B", "A"): 0.64, ("B", "C"): 1.0},
            "1 of these 2 pairs is connected in at least 95% of the bootstrap samples; the least "
            "supported, A and B, in 64%.",
        ),
    ],
)
def test_bootstrap_support_of_edges(result, support, words):
    assert words in describe_findings(result, support)[0]


def test_a_single_edge_and_its_support(result):
    one = with_graph(result, [], [("A", "B")])
    assert describe_findings(one, {("A", "B"): 0.5})[0].endswith(
        "A and B are connected in 50% of the bootstrap samples."
    )


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.99, 0.97), "Each direction recurs in at least 95%."),
        (
            (0.99, 0.8),
            "1 of the 2 directions recurs in at least 95%; the least supported, from B to C, in "
            "80%.",
        ),
    ],
)
def test_bootstrap_support_of_directions(result, shares, words):
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    pairs = [("A", "C"), ("B", "C")]
    directions = dict(zip(pairs, shares, strict=True))
    found = describe_findings(collider, dict.fromkeys(pairs, 1.0), directions)[0]
    assert found.endswith(f"in at least 95% of the bootstrap samples. {words}")
    required = with_knowledge(collider, required=[["A", "C"]])
    assert "recur" not in describe_findings(required, dict.fromkeys(pairs, 1.0), directions)[0]


def test_support_of_a_single_direction(result):
    one = with_graph(result, [("A", "B")], [])
    found = describe_findings(one, {("A", "B"): 1.0}, {("A", "B"): 0.8})[0]
    assert found.endswith("The direction from A to B recurs in 80%.")


@pytest.mark.parametrize(
    ("n_tables", "support", "words"),
    [
        (3, (1.0, 1.0), "Each of these pairs is connected in all 3 bootstrap samples. So few "
         "bootstrap samples are hardly informative."),
        (3, (1 / 3, 1.0), "1 of these 2 pairs is connected in all 3 bootstrap samples; the least "
         "supported, A and B, in 1 of 3. So few bootstrap samples are hardly informative."),
        (19, (0.0, 18 / 19), "None of these 2 pairs is connected in all 19 bootstrap samples; the "
         "least supported, A and B, in none of 19. So few bootstrap samples are hardly "
         "informative."),
        (20, (1.0, 1.0), "Each of these pairs is connected in at least 95% of the bootstrap "
         "samples."),
    ],
)  # fmt: skip
def test_few_bootstrap_samples_are_counted(result, n_tables, support, words):
    shares = dict(zip([("A", "B"), ("B", "C")], support, strict=True))
    assert describe_findings(result, shares, None, n_tables)[0].endswith(words)


def test_directions_in_few_bootstrap_samples_are_counted(result):
    one = with_graph(result, [("A", "B")], [])
    for n_tables, share, joined, words in (
        (4, 0.75, "in all 4 bootstrap samples", "in 3 of 4"),
        (4, 1.0, "in all 4 bootstrap samples", "in all 4"),
        (1, 0.0, "in 1 of 1 bootstrap samples", "in none of 1"),
    ):
        found = describe_findings(one, {("A", "B"): 1.0}, {("A", "B"): share}, n_tables)[0]
        assert found.endswith(
            f"A and B are connected {joined}. The direction from A to B recurs {words}. So few "
            "bootstrap samples are hardly informative."
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
        "11 of the 66 pairs of latents are connected; the data identify the direction of none of "
        "these edges.",
        "Each latent is measured by 2 items.",
    ]


def test_the_summary_comes_before_the_model(result):
    page = render_report(result, plots=False)
    assert page.index("A is measured by 4 items") < page.index("<h2>Model and data</h2>")


def test_excluded_pairs_are_not_called_independent(result):
    both_ways = [["A", "C"], ["C", "A"]]
    excluded = "Excluded by prior knowledge, whatever the data: A and C."
    assert describe_findings(with_knowledge(result, forbidden=both_ways))[0] == (
        "Directly related, direction not identified: A and B; B and C. " + excluded
    )
    none = with_graph(result, [], [])
    assert describe_findings(with_knowledge(none, forbidden=both_ways))[0] == (
        "No two latents are connected. " + excluded
    )
    # The other direction is still allowed.
    assert describe_findings(with_knowledge(none, forbidden=[["A", "C"]]))[0] == (
        "No two latents are connected: they appear to be independent."
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
        "No two latents are connected: they appear to be independent."
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
