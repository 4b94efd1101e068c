"""Validation of settings, and warnings before and after Stage I."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, Knowledge
from hidag.data import read_table
from hidag.exceptions import (
    ConvergenceWarning,
    IdentifiabilityWarning,
    KnowledgeWarning,
    SettingError,
)
from hidag.fitting.settings import read_task
from hidag.reporting.fit_description import list_concerns


def task_of(n_items, n_latents, **settings):
    table = read_table(np.random.default_rng(0).integers(0, 2, (40, n_items)).astype(float))
    return read_task(table, None, DCRL(n_latents, **settings).get_params())


def test_one_item_identifies_no_latent():
    with pytest.raises(SettingError) as caught:
        task_of(1, 2)
    assert str(caught.value) == (
        "n_latents=2 is more than the 1 item of the table, and each latent needs at least one "
        "item of its own; add items: even one latent needs 3 items to be identified"
    )
    with pytest.warns(IdentifiabilityWarning) as caught:
        task_of(1, 1)
    assert str(caught[0].message) == (
        "1 latent cannot be identified from 1 item: at least 3 are needed; add items"
    )


def test_the_advised_number_of_latents_is_accepted_without_a_warning():
    with pytest.raises(SettingError, match="use at most n_latents=2, which 5 items can identify"):
        task_of(5, 6)
    assert task_of(5, 2).n_latents == 2


@pytest.mark.parametrize(
    "known",
    [
        Knowledge(required=[("Z1", "Z2")]),
        Knowledge(forbidden=[("Z1", "Z2")]),
        Knowledge(tiers=[("Z1",), ("Z2",)]),
    ],
)
def test_knowledge_about_latents_without_q_warns(known):
    with pytest.warns(KnowledgeWarning) as caught:
        task_of(6, 2, knowledge=known)
    assert str(caught[0].message) == (
        "the prior knowledge names the latent Z1, but without a Q-matrix the fit orders the "
        "latents by the strength of their loadings, and the knowledge applies to whichever latent "
        "is called Z1; fit without it, inspect the estimated Q, and give q_matrix with names "
        "for its latents"
    )
    q = np.tile(np.eye(2, dtype=np.int8), (3, 1))
    q[4:] = -1
    task_of(6, 2, knowledge=known, q_matrix=q)


def test_knowledge_about_all_pairs_needs_no_q():
    task_of(6, 2, knowledge=Knowledge(forbidden=[("Z1", "Z2"), ("Z2", "Z1")]))


def test_starts_that_did_not_converge_are_reported():
    rng = np.random.default_rng(2)
    states = rng.integers(0, 2, (800, 2))
    x = (rng.random((800, 8)) < 0.2 + 0.6 * np.tile(states, 4)).astype(float)
    with pytest.warns(
        ConvergenceWarning,
        match=r"did not converge in 1 iteration \(max_iter=1\); increase max_iter",
    ):
        result = DCRL(2, max_iter=1, n_starts=2, random_state=0).fit(x).result_
    assert result.all_starts_stopped
    sentences = [text for text in map(str, list_concerns(result)) if "converge" in text]
    assert len(sentences) == 1
    if result.converged:
        assert sentences[0] == (
            "no start converged in 1 iteration, so that the selected start may not be the best; "
            "fit again with a larger max_iter before interpreting the estimates"
        )
    assert not DCRL(2, n_starts=2, random_state=0).fit(x).result_.all_starts_stopped
