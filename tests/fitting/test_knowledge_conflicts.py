"""Knowledge that the data contradict: the fit obeys it and reports the likelihood lost."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pytest

from hidag import DCRL, Knowledge, load
from hidag.exceptions import HidagWarning, KnowledgeWarning
from hidag.fitting.fit_warnings import knowledge_conflicts
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.reporting import render_report
from hidag.reporting.fit_description import list_concerns
from hidag.simulation import make_truth, simulate
from hidag.structure.knowledge import admits_complete_dag

NAMES = ("A", "B", "C", "D")
Q = np.repeat(np.eye(4, dtype=int), 3, axis=0)
ALL = Knowledge(forbidden=list(permutations(NAMES, 2)))
ENDS = Knowledge(forbidden=[("A", "D"), ("D", "A")])
FIRST = Knowledge(forbidden=[("A", "B"), ("B", "A")])


@pytest.fixture(scope="module")
def rows():
    """Items of a chain A - B - C - D."""
    after = np.array([[0.75, 0.25], [0.25, 0.75]])
    law = NetworkLaw(
        StateSpace.binary(4), ((), (0,), (1,), (2,)), (np.array([0.5, 0.5]), after, after, after)
    )
    truth = make_truth(law, Q, "gaussian", rng=2)
    return np.array(simulate(truth, 800, rng=3).X)


def fitted(rows, **settings):
    """Return a fit and its warnings about knowledge."""
    chosen = {"family": "gaussian", "q_matrix": Q, "latent_names": NAMES, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HidagWarning)
        result = DCRL(4, **{**chosen, **settings}).fit(rows).result_
    return result, [str(one.message) for one in caught if one.category is KnowledgeWarning]


@pytest.mark.parametrize("q", [Q, None])
def test_an_automatic_law_obeys_forbidden_pairs(rows, q):
    result, warned = fitted(rows, knowledge=ALL, q_matrix=q)
    assert isinstance(result.law, NetworkLaw)
    assert result.law.parents == ((),) * 4
    assert len(warned) == 1
    assert warned == [str(one) for one in knowledge_conflicts(result)]


def test_the_cost_of_contradicted_knowledge_and_its_pairs_are_reported(rows, tmp_path):
    free, none = fitted(rows, law="network")
    assert none == []
    result, (sentence,) = fitted(rows, knowledge=ALL)
    cost = result.knowledge_cost["graph"]
    # Free items could only gain more.
    assert 0 < cost.log_likelihood <= free.log_likelihood - result.log_likelihood + 0.1
    assert cost.log_likelihood > 0.8 * (free.log_likelihood - result.log_likelihood)
    assert cost.saved == pytest.approx(0.5 * np.log(800) * 3)
    (a, b, most), *others = cost.pairs
    assert {(one[0], one[1]) for one in cost.pairs[:3]} == {("A", "B"), ("B", "C"), ("C", "D")}
    assert most >= others[0][2] >= others[1][2]
    assert sentence.startswith(
        "the data contradict the knowledge about the graph: it costs "
        f"{cost.log_likelihood:,.1f} units of log-likelihood in 800 rows, and saves "
        f"{cost.saved:.1f} by fewer parameters; cost of each forbidden pair: {a} and {b} "
        f"({most:.1f}), "
    )
    again = load(result.save(tmp_path / "result.npz"))
    assert [str(one) for one in knowledge_conflicts(again)] == [sentence]


def test_the_report_lists_the_conflict_first(rows):
    result, warned = fitted(rows, knowledge=ALL)
    (conflict,) = knowledge_conflicts(result)
    assert [str(conflict)] == warned
    assert list_concerns(result, [KnowledgeWarning.of(conflict)])[0] == conflict
    assert list_concerns(result, [conflict]) == list_concerns(result)
    page = render_report(result)
    assert f"<li>T{warned[0][1:]}.</li>" in page
    assert "look independent" not in page
    assert "The graph has no edge: prior knowledge excludes all pairs." in page


def test_one_pair_is_named_alone(rows):
    result, (sentence,) = fitted(rows, knowledge=FIRST)
    ((a, b, lost),) = result.knowledge_cost["graph"].pairs
    assert (a, b) == ("A", "B")
    assert sentence.endswith(f" rows; cost of each forbidden pair: A and B ({lost:.1f})")


def test_a_requested_saturated_law_does_not_obey_and_is_reported(rows):
    free, _ = fitted(rows, law="saturated")
    result, (sentence,) = fitted(rows, law="saturated", knowledge=ALL)
    assert isinstance(result.law, SaturatedLaw)
    assert result.log_likelihood == free.log_likelihood
    assert sentence.endswith("; the requested saturated law does not obey it, the graph does")


@pytest.mark.parametrize(
    "knowledge",
    [
        ENDS,
        Knowledge(tiers=[["D"], ["A"]]),
        Knowledge(required=[("A", "D")]),
        Knowledge(forbidden=[("A", "B"), ("C", "B")]),
    ],
)
@pytest.mark.parametrize("law", ["auto", "saturated"])
def test_compatible_knowledge_is_not_reported(rows, knowledge, law):
    result, warned = fitted(rows, knowledge=knowledge, law=law)
    assert warned == []
    assert result.knowledge_cost == {}


def test_a_false_hierarchy_is_reported(rows):
    free, _ = fitted(rows, law="saturated")
    hierarchy = Knowledge(hierarchy=[("A", "D")])
    result, (sentence,) = fitted(rows, law="saturated", knowledge=hierarchy)
    cost = result.knowledge_cost["hierarchy"]
    assert cost.log_likelihood == pytest.approx(free.log_likelihood - result.log_likelihood)
    # Four of sixteen states are excluded.
    assert cost.saved == pytest.approx(0.5 * np.log(800) * 4)
    assert sentence == (
        f"the data contradict the hierarchy: it costs {cost.log_likelihood:,.1f} units of "
        f"log-likelihood in 800 rows, and saves {cost.saved:.1f} by fewer parameters"
    )
    assert sentence in map(str, list_concerns(result))


def test_saem_computes_the_cost_of_knowledge_from_counts(rows, tmp_path):
    exact = fitted(rows, knowledge=ALL)[0].knowledge_cost["graph"]
    result, (sentence,) = fitted(rows, knowledge=ALL, method="saem")
    cost = result.knowledge_cost["graph"]
    # Counts under the restricted law indicate a slightly smaller cost.
    assert 0.8 * exact.log_likelihood < cost.log_likelihood < 1.02 * exact.log_likelihood
    assert {pair[:2] for pair in cost.pairs[:3]} == {("A", "B"), ("B", "C"), ("C", "D")}
    assert cost.saved == pytest.approx(0.5 * np.log(cost.counted) * 3)
    assert cost.counted == pytest.approx(result.graph_rows)
    assert sentence.startswith(
        "the data contradict the knowledge about the graph: it costs "
        f"{cost.log_likelihood:,.1f} units of log-likelihood in expected latent counts of "
        f"{cost.counted:,.0f} effective rows, and saves "
    )
    again = load(result.save(tmp_path / "result.npz"))
    assert [str(one) for one in knowledge_conflicts(again)] == [sentence]


@pytest.mark.parametrize(
    "knowledge", [ENDS, Knowledge(tiers=[["D"], ["A"]]), Knowledge(required=[("A", "D")])]
)
def test_saem_does_not_report_compatible_knowledge(rows, knowledge):
    assert fitted(rows, knowledge=knowledge, method="saem")[1] == []


def test_complete_dags_are_admitted_unless_pairs_are_forbidden_or_directions_are_cyclic():
    assert admits_complete_dag(Knowledge(), NAMES)
    assert admits_complete_dag(Knowledge(tiers=[["A", "B"], ["C"]], required=[("D", "A")]), NAMES)
    assert admits_complete_dag(Knowledge(hierarchy=[("A", "B"), ("B", "C")]), NAMES)
    assert admits_complete_dag(Knowledge(forbidden=[("A", "B"), ("B", "C")]), NAMES)
    assert not admits_complete_dag(Knowledge(forbidden=[("A", "B"), ("B", "C"), ("C", "A")]), NAMES)
    assert not admits_complete_dag(Knowledge(forbidden=[("A", "B")], tiers=[["A"], ["B"]]), NAMES)
    assert not admits_complete_dag(FIRST, NAMES)
