from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hidag import CPDAG
from hidag.reporting import render_report
from hidag.reporting.findings_text import what_was_found, without_edges
from hidag.reporting.fit_description import knowledge_in_words
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
    "A shows in 4 items, most strongly in item9, item6 and item3. "
    "B shows in 4 items, most strongly in item10, item7 and item4. "
    "C shows in 4 items, most strongly in item11, item8 and item5."
)


def with_graph(result, directed, undirected):
    return dataclasses.replace(result, graph=CPDAG.from_edges("ABC", directed, undirected))


def test_directions_are_told_or_said_to_be_open(result):
    assert what_was_found(result) == [
        "Joined, with the data leaving open which is the cause: A and B; B and C.",
        ITEMS,
    ]
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    assert what_was_found(collider)[0] == (
        "As the data and the model have it, A causes C and B causes C."
    )
    assert what_was_found(with_graph(result, [], []))[0] == (
        "No cause was found to be joined to another: they look independent."
    )


def knowing(result, **told):
    return dataclasses.replace(result, settings={**result.settings, "knowledge": told})


def test_what_was_told_beforehand_is_not_said_to_be_found(result):
    alone = with_graph(result, [("A", "B")], [])
    assert what_was_found(knowing(alone, required=[["A", "B"]]), {("A", "B"): 1.0})[0] == (
        "Told beforehand, not found in the data: A causes B. No other two causes were found to be "
        "joined."
    )
    line = with_graph(result, [("A", "B")], [("B", "C")])
    assert what_was_found(knowing(line, hierarchy=[[0, 1]]), {("A", "B"): 1.0, ("B", "C"): 0.8})[
        0
    ] == (
        "Joined, with the data leaving open which is the cause: B and C. Told beforehand, not "
        "found in the data: A causes B. B and C are joined in 80% of the resampled tables."
    )


def test_directions_that_need_what_was_told_are_said_to_need_it(result):
    line = with_graph(result, [("A", "B"), ("B", "C")], [])
    words = (
        "Joined, with a direction that the data give only together with what was told beforehand: "
    )
    assert what_was_found(knowing(line, tiers=[["A"], ["B", "C"]]))[0] == (
        f"{words}A causes B and B causes C."
    )
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    assert what_was_found(knowing(collider, forbidden=[["C", "A"]]))[0] == (
        "As the data and the model have it, A causes C and B causes C."
    )
    # Without the required edge nothing would say which of B and C is the cause.
    assert what_was_found(knowing(collider, required=[["A", "C"]]))[0] == (
        f"{words}B causes C. Told beforehand, not found in the data: A causes C."
    )


@pytest.mark.parametrize(
    ("support", "words"),
    [
        ({("A", "B"): 0.97, ("B", "C"): 1.0}, "Each of these pairs is joined in at least 95%"),
        (
            {("A", "B"): 0.5, ("B", "C"): 0.6},
            "None of these 2 pairs is joined in at least 95% of the resampled tables; least sure "
            "are A and B, joined in 50%.",
        ),
        (
            {("B", "A"): 0.64, ("B", "C"): 1.0},
            "1 of these 2 pairs is joined in at least 95% of the resampled tables; least sure are "
            "A and B, joined in 64%.",
        ),
    ],
)
def test_support_is_told_where_tables_were_resampled(result, support, words):
    assert words in what_was_found(result, support)[0]


def test_a_single_edge_and_its_support(result):
    one = with_graph(result, [], [("A", "B")])
    assert what_was_found(one, {("A", "B"): 0.5})[0].endswith(
        "The two are joined in 50% of the resampled tables."
    )


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.99, 0.97), "Each of the directions came back in at least 95%."),
        (
            (0.99, 0.8),
            "1 of the 2 directions came back in at least 95%; least sure is that B causes C, "
            "which came back in 80%.",
        ),
    ],
)
def test_support_of_directions_is_told_beside_that_of_edges(result, shares, words):
    collider = with_graph(result, [("A", "C"), ("B", "C")], [])
    pairs = [("A", "C"), ("B", "C")]
    directions = dict(zip(pairs, shares, strict=True))
    found = what_was_found(collider, dict.fromkeys(pairs, 1.0), directions)[0]
    assert found.endswith(f"in at least 95% of the resampled tables. {words}")
    told = knowing(collider, required=[["A", "C"]])
    assert "came back" not in what_was_found(told, dict.fromkeys(pairs, 1.0), directions)[0]


def test_support_of_a_single_direction(result):
    one = with_graph(result, [("A", "B")], [])
    found = what_was_found(one, {("A", "B"): 1.0}, {("A", "B"): 0.8})[0]
    assert found.endswith("That A is the cause and B the effect came back in 80%.")


@pytest.mark.parametrize(
    ("n_tables", "support", "words"),
    [
        (3, (1.0, 1.0), "Each of these pairs is joined in all 3 resampled tables. So few tables "
         "say little."),
        (3, (1 / 3, 1.0), "1 of these 2 pairs is joined in all 3 resampled tables; least sure are "
         "A and B, joined in 1 of 3. So few tables say little."),
        (19, (0.0, 18 / 19), "None of these 2 pairs is joined in all 19 resampled tables; least "
         "sure are A and B, joined in none of 19. So few tables say little."),
        (20, (1.0, 1.0), "Each of these pairs is joined in at least 95% of the resampled tables."),
    ],
)  # fmt: skip
def test_few_resampled_tables_are_counted_and_said_to_say_little(result, n_tables, support, words):
    shares = dict(zip([("A", "B"), ("B", "C")], support, strict=True))
    assert what_was_found(result, shares, None, n_tables)[0].endswith(words)


def test_directions_in_few_resampled_tables_are_counted(result):
    one = with_graph(result, [("A", "B")], [])
    for n_tables, share, joined, words in (
        (4, 0.75, "in all 4 resampled tables", "in 3 of 4"),
        (4, 1.0, "in all 4 resampled tables", "in all 4"),
        (1, 0.0, "in 1 of 1 resampled tables", "in none of 1"),
    ):
        found = what_was_found(one, {("A", "B"): 1.0}, {("A", "B"): share}, n_tables)[0]
        assert found.endswith(
            f"The two are joined {joined}. That A is the cause and B the effect came back {words}. "
            "So few tables say little."
        )


def test_long_names_are_cut_and_idle_latents_named(result):
    names = ("During the past 30 days, how often were you sad", *result.item_names[1:])
    loadings = np.zeros_like(result.loadings)
    loadings[0, 0] = 1.0
    bare = dataclasses.replace(
        result,
        item_names=names,
        parameters=dataclasses.replace(result.parameters, loadings=loadings),
    )
    assert what_was_found(bare)[1] == (
        "A shows in 1 item: During the past 30 d\N{HORIZONTAL ELLIPSIS}often were you sad. "
        "B shows in no item. C shows in no item."
    )


def test_many_edges_and_latents_are_counted(as_result):
    law = random_law(dag_from_parents([(), *((k,) for k in range(11))]), rng=0)
    found = what_was_found(as_result(make_truth(law, np.vstack([np.eye(12, dtype=int)] * 2))))
    assert found == [
        "Of the 66 pairs of causes 11 are joined, none of them with a direction that the data "
        "settle.",
        "Each cause shows in 2 items.",
    ]


def test_findings_come_before_how_they_were_found(result):
    page = render_report(result, plots=False)
    assert page.index("A shows in 4 items") < page.index("<h2>What was fitted</h2>")


def test_pairs_that_were_forbidden_are_not_said_to_look_independent(result):
    both_ways = [["A", "C"], ["C", "A"]]
    apart = "Kept apart beforehand, whatever the data say: A and C."
    assert what_was_found(knowing(result, forbidden=both_ways))[0] == (
        "Joined, with the data leaving open which is the cause: A and B; B and C. " + apart
    )
    none = with_graph(result, [], [])
    assert what_was_found(knowing(none, forbidden=both_ways))[0] == (
        "No cause was found to be joined to another. " + apart
    )
    # One way forbidden leaves the other.
    assert what_was_found(knowing(none, forbidden=[["A", "C"]]))[0] == (
        "No cause was found to be joined to another: they look independent."
    )
    everything = [[a, b] for a in "ABC" for b in "ABC" if a != b]
    assert what_was_found(knowing(none, forbidden=everything))[0] == (
        "No two causes could be joined: all pairs were forbidden beforehand."
    )


def test_tiers_are_told_as_an_order_of_edges_with_the_latents_that_effects_may_pass_through(result):
    told = "Told beforehand, not found in the data: an order against which no edge goes: "
    some, every = knowing(result, tiers=[["C"], [0]]), knowing(result, tiers=[["C", "B"], ["A"]])
    assert knowledge_in_words(some) == [
        f"{told}C before A (effects may pass through B, in no tier)."
    ]
    assert knowledge_in_words(every) == [f"{told}C, B before A."]


def test_latents_that_no_item_shows_are_not_said_to_look_independent(result):
    apart = with_graph(result, [], [])
    seen = dataclasses.replace(apart, information_ratio=0.5)
    assert what_was_found(seen)[0] == (
        "No cause was found to be joined to another: they look independent."
    )
    assert without_edges(seen) == "No edge was found: the latents look independent."
    dark = dataclasses.replace(apart, information_ratio=0.0)
    assert what_was_found(dark)[0] == (
        "No cause was found to be joined to another, but the items show too little of them to tell "
        "whether they are independent."
    )
    assert without_edges(dark) == (
        "No edge was found, but the items show too little of them to tell whether they are "
        "independent."
    )
