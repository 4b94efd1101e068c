"""Validation of Q with prerequisites: tests use states that may occur."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, Knowledge
from hidag.diagnostics import validate_q
from hidag.diagnostics.q_entry_tests import fit_given_q, flip_entry, screen_entries
from hidag.exceptions import HidagWarning
from hidag.reporting.panels import q_validation_panel

Q = np.array([[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]] * 2, dtype=np.int8)


def answers(rule):
    """Nobody has Z2 without Z1; a chance of .15 becomes .85 where the rule holds."""
    rng = np.random.default_rng(0)
    states = np.array([[0, 0], [1, 0], [1, 1]])[rng.choice(3, 1000, p=[0.3, 0.3, 0.4])]
    met = np.array([rule(states[:, row == 1], axis=1) for row in Q]).T
    return (rng.random(met.shape) < 0.15 + 0.7 * met) * 1.0


def fitted(X, effects):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        return (
            DCRL(
                2,
                q_matrix=Q,
                effects=effects,
                family="bernoulli",
                knowledge=Knowledge(hierarchy=[("Z1", "Z2")]),
                tol=1e-8,
                max_iter=2000,
                random_state=0,
            )
            .fit(X)
            .result_
        )


@pytest.fixture(scope="module")
def all_effects():
    # Who has Z2 has Z1: that items 6 and 7 need both says no more than that they need Z2.
    X = answers(np.all)
    return fitted(X, "gdina"), X


def test_screening_approximates_the_likelihood_ratio_of_identified_sums(all_effects):
    result, X = all_effects
    model = fit_given_q(result, X)
    reported = {(t.item, t.latent): t for t in screen_entries(model)}
    for key in [(6, 0), (7, 0)]:
        ratio = 2 * (model.log_likelihood - model.refit(flip_entry(model.q, *key)).log_likelihood)
        assert reported[key].statistic == pytest.approx(ratio, abs=0.05)
        assert reported[key].degrees == 1
    assert reported[6, 1].statistic > 100


def test_screening_is_invariant_to_unidentified_coefficients(all_effects):
    result, X = all_effects
    # Z2 and Z1*Z2 are one in every state that occurs.
    loadings = result.loadings.copy()
    loadings[6:, 1] += 5.0
    loadings[6:, 2] -= 5.0
    parameters = replace(result.parameters, loadings=loadings)
    before = fit_given_q(result, X)
    after = replace(before, result=replace(result, parameters=parameters))
    before = replace(before, result=result)
    for one, other in zip(screen_entries(before), screen_entries(after), strict=True):
        assert one.statistic == pytest.approx(other.statistic, rel=1e-6)


def test_entries_made_redundant_by_prerequisites_are_dropped(all_effects):
    result, X = all_effects
    found = validate_q(result, X)
    np.testing.assert_array_equal(found.suggested[6:], [[0, 1]] * 2)
    np.testing.assert_array_equal(found.suggested[:6], Q[:6])


@pytest.mark.parametrize(
    ("effects", "rule", "needless", "same"),
    # Needing both is needing Z2, and having any of them is having Z1.
    [("dina", np.all, 0, [3, 4, 5, 6, 7]), ("dino", np.any, 1, [0, 1, 2, 6, 7])],
)
def test_entries_without_effect_are_unchanged_and_listed(effects, rule, needless, same):
    X = answers(rule)
    found = validate_q(fitted(X, effects), X)
    np.testing.assert_array_equal(found.suggested, Q)
    assert not len(found.doubtful())
    rows = [row for row in found.to_rows() if row["action"] == "not judged"]
    assert [(row["item"], row["latent"]) for row in rows] == [
        (f"item_{j}", f"Z{needless + 1}") for j in same
    ]
    for row in rows:
        assert row["degrees"] == 0
        assert np.isnan([row["likelihood_ratio"], row["penalty"], row["p_value"]]).all()
    named = ", ".join(f"item_{j} on Z{needless + 1}" for j in same)
    sentence = (
        "5 entries cannot be tested and stay unchanged, because prerequisites rule out all states "
        f"in which they matter: {named}"
    )
    assert sentence in found.summary().splitlines()
    assert f"{sentence}." in q_validation_panel(found).paragraphs


def test_conjunctive_entries_are_tested_without_prerequisites(all_effects):
    result, X = all_effects
    free = replace(result, settings={**result.settings, "effects": "dina", "knowledge": None})
    model = fit_given_q(free, X)
    assert {reported.action for reported in screen_entries(model)} == {"add", "drop"}
