"""Coefficients of which prerequisites leave only sums identified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import BootstrapResult
from hidag.fitting.information_criteria import coefficients_in_sum
from hidag.inference.refit import BootstrapTask, align_refit
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.metrics import evaluate, match_latents
from hidag.reporting.findings import describe_findings
from hidag.reporting.fit_description import describe_loadings
from hidag.reporting.panels import bootstrap_panel
from hidag.reporting.report import fit_variables

from ..fitted_models import result_at

Q = np.array([[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]] * 2, dtype=np.int8)
#: Of the states 00, 01, 10, 11 the second is impossible.
LAW = SaturatedLaw(StateSpace((2, 2)), np.array([0.3, 0.0, 0.3, 0.4]))
TERMS = Terms((2, 2), (((0, 1), (1, 1)),))


def fit_with(moved=1.5, effects="all"):
    """Items 6 and 7 add .1 and .2 by Z1, then 3 and 2 by Z2; ``moved`` changes no answer."""
    loadings = np.zeros((8, 3))
    loadings[:3, 0] = loadings[3:6, 1] = 2.5
    loadings[6:] = [[0.1, 3.0 - moved, moved], [0.2, 2.0 - moved, moved]]
    parameters = MeasurementParameters(
        ("bernoulli",) * 8, np.full(8, -1.0), loadings, np.ones(8), TERMS
    )
    settings = {"effects": effects, "seed": 0, "knowledge": {"hierarchy": [["Z1", "Z2"]]}}
    return result_at(parameters, LAW, n_samples=100, q_given=Q, settings=settings)


def bootstrapped():
    fit = fit_with()
    task = BootstrapTask(np.zeros((100, 1)), None, fit, {}, "nonparametric", "full", 0)
    return BootstrapResult.of(task, [align_refit(fit_with(moved), fit) for moved in range(-20, 20)])


@pytest.mark.parametrize("moved", [1.5, 30.0, -30.0])
def test_strengths_average_over_possible_states(moved):
    fit = fit_with(moved)
    np.testing.assert_allclose(fit.strengths[6:], [[0.1, 3.0], [0.2, 2.0]], atol=1e-12)
    np.testing.assert_allclose(fit.strengths[:6], 2.5 * Q[:6])
    rows = {row["item"]: row["loadings"] for row in fit_variables(fit, plots=False)["rows"]}
    np.testing.assert_allclose(rows["X7"], [0.1, 3.0], atol=1e-12)
    assert describe_findings(fit)[-1] == (
        "Z1 is measured by 5 items, most strongly by X1, X2 and X3. "
        "Z2 is measured by 5 items, most strongly by X7, X4 and X5."
    )
    assert "among the combinations that prerequisites allow" in describe_loadings(fit)


def test_a_latent_without_effect_in_possible_states_has_no_strength():
    fit = fit_with(effects="dina")
    loadings = np.where([[True, True, False]], fit.loadings, 0.0)
    # Both are needed, and who has Z2 has Z1: what the item shows is Z2.
    loadings[6:] = [[0.0, 0.0, 2.0]] * 2
    fit = replace(fit, parameters=replace(fit.parameters, loadings=loadings))
    np.testing.assert_array_equal(fit.strengths[6:], [[0.0, 2.0]] * 2)
    assert "Z1 is measured by 3 items: X1, X2 and X3." in describe_findings(fit)[-1]


def test_refits_are_matched_by_possible_states():
    fit = fit_with()
    for moved in (30.0, -30.0):
        refit = align_refit(fit_with(moved), fit)
        assert not refit.moved
        np.testing.assert_allclose(refit.agreement, 1.0)
        swapped = match_latents(fit_with(moved), fit)
        assert swapped.permutation == (0, 1)
        assert swapped.flips == (False, False)


def test_coefficients_identified_in_sums_only_have_no_intervals():
    found = bootstrapped()
    assert np.argwhere(found.in_sum).tolist() == [[6, 2], [6, 3], [7, 2], [7, 3]]
    for row in found.coefficient_table():
        in_sum = row["item"] in ("X7", "X8") and row["term"] in ("Z2", "Z1*Z2")
        assert np.isnan(row["low"]) == np.isnan(row["high"]) == in_sum
    sentence = (
        "no interval for 4 parameters of which prerequisites leave only sums identified: X7: Z2, "
        "X7: Z1*Z2, X8: Z2, X8: Z1*Z2"
    )
    assert sentence in found.summary().splitlines()
    assert f"N{sentence[1:]}." in bootstrap_panel(found).paragraphs


def test_a_saved_bootstrap_stores_coefficients_without_interval(tmp_path):
    found = bootstrapped()
    again = BootstrapResult.load(found.save(tmp_path / "bootstrap.npz"))
    np.testing.assert_array_equal(again.in_sum, found.in_sum)


def test_coefficients_of_dino_items_are_identified():
    fit = fit_with(effects="dino")
    loadings = fit.loadings.copy()
    loadings[6:] = [[2.0, 2.0, -2.0]] * 2
    fit = replace(fit, parameters=replace(fit.parameters, loadings=loadings))
    assert not coefficients_in_sum(fit).any()
    assert coefficients_in_sum(fit_with()).any()


def test_the_split_of_an_identified_sum_is_no_error():
    found = evaluate(fit_with(30.0), fit_with())
    assert found.rmse_loadings == pytest.approx(0.0, abs=1e-12)
