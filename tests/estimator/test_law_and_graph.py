"""Stages II and III: expected counts, resampled rows and prior knowledge."""

from __future__ import annotations

import numpy as np
import pytest

import hidag
from hidag import DCRL


@pytest.mark.parametrize(
    ("rule", "rows"), [("N", 1500), ("2N", 3000), ("3N", 4500), (700, 700), (lambda n: n / 2, 750)]
)
def test_resampling_rules(small, rule, rows):
    _, data = small
    model = DCRL(5, family="gaussian", n_starts=1, resample=rule, random_state=0).fit(data.X)
    assert model.result_.graph_rows == rows
    assert model.graph_.is_valid()


def test_expected_counts_have_the_effective_sample_size(small):
    _, data = small
    auto = DCRL(5, family="gaussian", n_starts=1, random_state=0).fit(data.X)
    ratio = auto.result_.information_ratio
    assert 0.5 < ratio < 1
    assert auto.result_.graph_rows == pytest.approx(ratio * 1500)
    whole = DCRL(5, family="gaussian", n_starts=1, effective_size="all", random_state=0)
    assert whole.fit(data.X).result_.graph_rows == pytest.approx(1500)


@pytest.mark.parametrize(
    "settings",
    [
        {
            "law": "network",
            "knowledge": hidag.Knowledge(required=[(0, 4)], forbidden=[(1, 2), (2, 1)]),
        },
        {"method": "saem", "max_iter": 80},
        {"law": "saturated"},
    ],
)
# The data contradict this knowledge.
@pytest.mark.filterwarnings("ignore::hidag.exceptions.KnowledgeWarning")
def test_the_likelihood_is_that_of_the_returned_law(small, settings):
    _, data = small
    model = DCRL(5, family="gaussian", n_starts=1, random_state=0, **settings).fit(data.X)
    assert model.score_samples(data.X).sum() == pytest.approx(model.log_likelihood_, rel=1e-10)
    price = model.log_likelihood_ - model.result_.objective
    strength = model.result_.penalty_strength_used
    assert price == pytest.approx(strength * model.q_matrix_.sum(), rel=1e-6)


# The data contradict this knowledge.
@pytest.mark.filterwarnings("ignore::hidag.exceptions.KnowledgeWarning")
def test_required_edges_are_in_the_law_and_forbidden_ones_are_not(small):
    _, data = small
    known = hidag.Knowledge(required=[(0, 4)], forbidden=[(1, 2), (2, 1)])
    for method in ("em", "saem"):
        model = DCRL(
            5, family="gaussian", law="network", method=method, knowledge=known, random_state=0
        ).fit(data.X)
        parents = model.latent_law_.parents
        assert 0 in parents[4]
        assert 1 not in parents[2]
        assert 2 not in parents[1]
        edges = {(a, b) for b, causes in enumerate(parents) for a in causes}
        joined = model.graph_.adjacency | model.graph_.adjacency.T
        assert {frozenset(e) for e in edges} == {
            frozenset((int(a), int(b))) for a, b in np.argwhere(joined)
        }


def test_a_rule_that_grows_too_fast_is_warned_about(small):
    _, data = small
    model = DCRL(5, family="gaussian", n_starts=1, resample=lambda n: n**1.2)
    with pytest.warns(hidag.exceptions.HidagWarning, match="grows as fast as N log N or faster"):
        model.fit(data.X)


# The data contradict this knowledge.
@pytest.mark.filterwarnings("ignore::hidag.exceptions.KnowledgeWarning")
def test_knowledge_reaches_the_search(small):
    _, data = small
    forbidden = [(a, b) for a in range(5) for b in range(5) if a != b]
    model = DCRL(
        5, family="gaussian", n_starts=1, knowledge=hidag.Knowledge(forbidden=forbidden)
    ).fit(data.X)
    assert not model.graph_.adjacency.any()
