from __future__ import annotations

import numpy as np
import pytest

from hidag import CPDAG
from hidag.results.claims import claimed_graph, claims_of, show_probability

COLLIDER = CPDAG.from_edges("ABC", [("A", "C"), ("B", "C")], [])


def marks(claims):
    return [claim.mark for claim in claims]


def probabilities(**shares):
    p = np.zeros((3, 3))
    for pair, share in shares.items():
        p["ABC".index(pair[0]), "ABC".index(pair[1])] = share
    return p


def test_arrows_need_the_claim_level():
    p = probabilities(AC=0.8, BC=0.7, CB=0.25)
    assert marks(claims_of(COLLIDER, p, 0.8)) == ["A -> C", "B - C"]
    assert marks(claims_of(COLLIDER, p, 0.9)) == ["A - C", "B - C"]
    assert marks(claims_of(COLLIDER, p, 0.7)) == ["A -> C", "B -> C"]
    assert [claim.firm for claim in claims_of(COLLIDER, p, 0.9)] == [False, True]


def test_an_arrow_may_contradict_the_best_graph_or_be_missing_in_it():
    p = probabilities(CA=0.9, BC=0.2, AB=0.5, BA=0.35)
    claims = claims_of(COLLIDER, p, 0.8)
    assert marks(claims) == ["C -> A", "A - B", "B ... C"]
    graph = claimed_graph(claims, tuple("ABC"))
    assert graph.directed_edges == [("C", "A")]
    assert graph.undirected_edges == [("A", "B"), ("B", "C")]


def test_required_edges_are_arrows_and_unknown_ones_are_those_of_the_best_graph():
    required = np.zeros((3, 3), dtype=np.int8)
    required[0, 2] = 1
    p = probabilities(BC=0.3, CB=0.3)
    assert marks(claims_of(COLLIDER, p, 0.8, required)) == ["A -> C", "B - C"]
    unknown = np.full((3, 3), np.nan)
    claims = claims_of(COLLIDER, unknown, 0.8)
    assert marks(claims) == ["A -> C", "B -> C"]
    assert [claim.shown for claim in claims] == ["", ""]


def test_claimed_arrows_have_no_cycle():
    p = probabilities(AB=0.6, BC=0.6, CA=0.6)
    assert not any(claim.directed for claim in claims_of(COLLIDER, p, 0.55))


@pytest.mark.parametrize(
    ("value", "text"), [(0.999, ">.99"), (0.001, "<.01"), (0.5, ".50"), (np.nan, "")]
)
def test_probabilities_are_shown_with_two_digits(value, text):
    assert show_probability(value) == text
