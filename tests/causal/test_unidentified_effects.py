"""Interventions on skills of people without the prerequisites: effects are not identified."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag.causal import average_effects, what_if
from hidag.causal.interventions import NOT_IDENTIFIED
from hidag.cli.app import app
from hidag.fitting.information_criteria import states_known
from hidag.inference import draw_asymptotic
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.measurement.terms import interactions_within
from hidag.reporting.panels import interventions_panel
from hidag.structure import CPDAG

from ..fitted_models import result_at

#: Z1 before Z2 before Z3, and Z4 that Z1 drives: X3 and X5 have two skills of the line.
Q = np.array(
    [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]],
    dtype=np.int8,
)


def line(effects="all", seed=0, copies=1):
    """Return a fit in which 0.3 of people lack Z1, which all other skills of the line need."""
    rng = np.random.default_rng(seed)
    q = np.tile(Q, (copies, 1))
    tables = (
        np.array([0.3, 0.7]),
        np.array([[1.0, 0.0], [0.4, 0.6]]),
        np.array([[1.0, 0.0], [0.5, 0.5]]),
        np.array([[0.8, 0.2], [0.3, 0.7]]),
    )
    law = NetworkLaw(StateSpace.binary(4), ((), (0,), (1,), (0,)), tables)
    terms = Terms((2,) * 4, interactions_within(q, (2,) * 4, 2 if effects == "all" else 1))
    free = terms.support(q)
    loadings = np.where(free, rng.uniform(0.5, 1.5, free.shape), 0.0)
    parameters = MeasurementParameters(
        ("bernoulli",) * len(q), np.full(len(q), -1.0), loadings, np.ones(len(q)), terms
    )
    adjacency = np.zeros((4, 4), dtype=np.int8)
    adjacency[[0, 1, 0], [1, 2, 3]] = 1
    settings = {
        "effects": effects,
        "seed": 0,
        "knowledge": {"hierarchy": [["Z1", "Z2"], ["Z2", "Z3"]]},
    }
    fit = result_at(parameters, law, n_samples=1000, effects=effects, q_given=q, settings=settings)
    return replace(fit, graph=CPDAG(adjacency, fit.latent_names))


def with_equivalent_coefficients(fit, size):
    """Return the fit with other coefficients that agree in all states that occur."""
    loadings = fit.parameters.loadings.copy()
    names = fit.terms.names(fit.latent_names)
    for item, later, both in ((2, "Z2", "Z1*Z2"), (4, "Z3", "Z2*Z3")):
        loadings[item, names.index(later)] += size
        loadings[item, names.index(both)] -= size
    return replace(fit, parameters=replace(fit.parameters, loadings=loadings))


def after(answer):
    return {row["name"]: row["low"] for row in answer.rows()}


def test_values_are_given_exactly_where_equivalent_parameters_agree():
    one, other = line(), with_equivalent_coefficients(line(), 5.0)
    occurring = ~one.ruled_out
    np.testing.assert_allclose(
        one.item_means(one.law.space.states())[occurring],
        other.item_means(one.law.space.states())[occurring],
    )
    for do in ({"Z1": 0}, {"Z1": 1}, {"Z2": 0}, {"Z2": 1}, {"Z3": 1}, {"Z2": 1, "Z4": 1}):
        reported, again = after(what_if(one, do)), after(what_if(other, do))
        assert reported == pytest.approx(again, nan_ok=True)
    # X3 and X5 differ in states that the intervention leads to and prerequisites rule out.
    found = what_if(one, {"Z2": 1})
    assert found.ruled_out == pytest.approx((0.3,))
    assert found.unidentified == ("Z3", "X3", "X4", "X5")
    assert what_if(one, {"Z3": 1}).unidentified == ("X5",)
    assert what_if(one, {"Z3": 1}).ruled_out == pytest.approx((1 - 0.7 * 0.6,))
    for do in ({"Z1": 0}, {"Z1": 1}, {"Z2": 0}, {"Z1": 1, "Z2": 1}):
        assert what_if(one, do).unidentified == ()
        assert what_if(one, do).ruled_out == pytest.approx((0.0,))


def test_identified_values_do_not_depend_on_prerequisites():
    fit = line()
    plain = replace(fit, settings={"effects": "all", "seed": 0})
    reported, free = after(what_if(fit, {"Z2": 1})), after(what_if(plain, {"Z2": 1}))
    for name in ("Z1", "Z2", "Z4", "X1", "X2", "X6"):
        assert reported[name] == free[name]
    reasons = {row["name"]: row.get("reason") for row in what_if(fit, {"Z2": 1}).rows()}
    assert {name for name, reason in reasons.items() if reason == NOT_IDENTIFIED} == {
        "Z3",
        "X3",
        "X4",
        "X5",
    }
    assert not any("reason" in row for row in what_if(plain, {"Z2": 1}).rows())


def test_main_effects_extrapolate_to_ruled_out_states():
    fit = line("main")
    assert states_known(fit).all()
    assert what_if(fit, {"Z2": 1}).unidentified == ("Z3", "X4", "X5")
    known = states_known(line())
    states = fit.law.space.states()
    np.testing.assert_array_equal(known[:, 2], ~((states[:, 0] == 0) & (states[:, 1] == 1)))
    np.testing.assert_array_equal(known[:, 4], ~((states[:, 1] == 0) & (states[:, 2] == 1)))
    assert known[:, [0, 1, 3, 5]].all()


def test_evidence_changes_which_outcomes_are_identified():
    fit = line()
    assert what_if(fit, {"Z2": 1}, {"Z1": 1}).unidentified == ()
    assert what_if(fit, {"Z2": 1}, {"Z4": 1}).unidentified == ("Z3", "X3", "X4", "X5")
    # Z3 informs about Z1 through P(Z3 | Z1 = 0, Z2 = 1), which was never observed.
    assert what_if(fit, {"Z2": 1}, {"Z3": 1}).unidentified == ("Z1", "Z4", "X1", "X3", "X6")
    assert what_if(fit, {"Z2": 1}, {"X3": 1}).unidentified == (
        "Z1",
        "Z3",
        "Z4",
        "X1",
        "X4",
        "X5",
        "X6",
    )


def test_draws_have_no_mass_in_ruled_out_states():
    fit = line(copies=4)
    draws = list(draw_asymptotic(fit, 20))
    for draw in draws:
        np.testing.assert_array_equal(np.asarray(draw.law.probabilities)[fit.ruled_out], 0.0)
    assert np.std([draw.law.tables[1][1, 1] for draw in draws]) > 0.01
    found = average_effects(fit, replicates=draws, fix_graph=True)
    np.testing.assert_array_equal(np.isnan(found.lower), np.isnan(found.low))


def test_unidentified_average_effects_have_no_value_and_no_interval():
    fit = line()
    found = average_effects(fit, replicates=[fit] * 20, fix_graph=True)
    assert found.ruled_out == pytest.approx((0.0, 0.3, 1 - 0.7 * 0.6, 0.0))
    unidentified = [(row["cause"], row["effect"]) for row in found.rows() if "reason" in row]
    assert unidentified == [("Z2", "Z3"), ("Z2", "X3"), ("Z2", "X4"), ("Z2", "X5"), ("Z3", "X5")]
    assert np.isnan(found.lower).sum() == np.isnan(found.low).sum() == 4 + 5
    own = average_effects(fit, replicates=[fit] * 3)
    np.testing.assert_array_equal(np.isnan(own.upper), np.isnan(found.upper))
    sentence = (
        "5 effects are not identified and have no value, because interventions move part of the "
        "population into states that prerequisites rule out: 30.0% when Z2 is set and 58.0% when "
        "Z3 is set"
    )
    assert str(found.unidentified_note()) == sentence
    assert average_effects(fit, causes=["Z1"]).unidentified_note() is None
    panel = interventions_panel(fit, found)
    assert f"{sentence}." in panel.paragraphs
    assert all(not np.isnan(row[2]) for table in panel.tables for row in table.rows)


def test_the_command_reports_unidentified_outcomes(tmp_path):
    saved = line().save(tmp_path / "result.npz")

    def run(*words):
        done = CliRunner().invoke(app, ["whatif", str(saved), *words])
        assert done.exit_code == 0
        return done.output

    sentence = (
        "the intervention moves 30.0% of the population into states that prerequisites rule out; "
        "the data do not identify outcomes in these states, so there is no value for Z3, X3, X4 "
        "and X5\n"
    )
    text = run("--do", "Z2=1", "--out", str(tmp_path / "answer.csv"))
    assert sentence in text
    assert "not identified" in text
    with (tmp_path / "answer.csv").open() as stream:
        rows = {row["name"]: row for row in csv.DictReader(stream)}
    assert rows["X3"]["low"] == rows["X3"]["high"] == ""
    assert rows["X3"]["reason"] == NOT_IDENTIFIED
    assert rows["X2"]["low"]
    assert not rows["X2"]["reason"]
    reported = json.loads(run("--do", "Z2=1", "--json"))
    assert reported["ruled_out"] == pytest.approx([0.3])
    assert next(row for row in reported["rows"] if row["name"] == "X3")["low"] is None
    assert "5 effects are not identified and have no value" in run("--effects", "--draws", "0")
    assert "reason" not in run("--do", "Z1=1", "--json")
