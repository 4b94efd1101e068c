"""Entries of Q are judged over small tables as over all joint states."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, simulate, validate_q
from hidag.information.free_parameters import (
    FreeParameters,
    item_scores,
    iterate_loading_scores,
)
from hidag.information.posterior_tables import ListedTables, TreeTables, state_tables
from hidag.simulation import chain_dag, make_truth, random_law

from ..fitted_models import drawn
from ..inference.test_posterior_tables import four_latents
from ..inference.test_row_scores import EVERY


@pytest.fixture
def few_listed(configure):
    """Have small tables take the place of listed states."""
    configure("derivatives", max_states=2)


def test_scores_of_loadings_agree_with_enumeration(few_listed) -> None:
    result = four_latents(EVERY)
    X, _ = drawn(result, 150, seed=1)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(X))
    tables = state_tables(result)
    assert isinstance(tables, TreeTables)
    found = dict(iterate_loading_scores(FreeParameters.over(tables, result, X, weights)))
    listed = FreeParameters.over(
        ListedTables(result.law, len(result.parameters.families)), result, X, weights
    )
    features = result.terms.features(result.law.space.states())
    for c, one in enumerate(listed.channels):
        if one.kind == "predictor":
            expected = item_scores(listed, np.full(features.shape[1], c), features)
            np.testing.assert_allclose(found[one.response], expected, atol=1e-9)
    assert len(found) == len(result.parameters.families)


def chain(n_latents: int, n_rows: int):
    """Return rows of a chain with four items a latent, their Q, and one with an entry amiss."""
    law = random_law(chain_dag(n_latents), rng=3)
    q = np.repeat(np.eye(n_latents, dtype=np.int8), 4, axis=0)
    q[0, 1] = 1
    X = np.array(simulate(make_truth(law, q, "bernoulli"), n_rows, rng=4).X)
    amiss = q.copy()
    amiss[0, 1] = 0
    return X, q, amiss


def test_validation_by_junction_tree_agrees_with_enumeration(few_listed, monkeypatch) -> None:
    X, _, amiss = chain(4, 800)
    fit = DCRL(4, q_matrix=amiss, family="bernoulli", law="network", random_state=0).fit(X)
    small = validate_q(fit.result_, X)
    monkeypatch.undo()
    listed = validate_q(fit.result_, X)
    assert small.log_likelihood == pytest.approx(listed.log_likelihood, abs=0.05)
    np.testing.assert_array_equal(small.suggested, listed.suggested)
    assert small.suggested[0, 1] == 1
    for column in ("screening", "likelihood_ratio"):
        ours, theirs = (
            np.array(one.entries.column(column), dtype=float) for one in (small, listed)
        )
        both = ~np.isnan(ours) & ~np.isnan(theirs)
        assert both.any()
        np.testing.assert_allclose(ours[both], theirs[both], atol=0.3, rtol=0.03)


def test_a_missing_entry_is_found_with_many_joint_states() -> None:
    X, q, amiss = chain(14, 600)
    fit = DCRL(14, q_matrix=amiss, family="bernoulli", random_state=0).fit(X)
    found = validate_q(fit.result_, X, max_changes=1)
    assert found.steps.column("item") == ["item_0"]
    assert found.steps.column("latent") == ["Z2"]
    np.testing.assert_array_equal(found.suggested, q)
