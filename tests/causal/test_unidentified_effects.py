"""Setting a skill in people who lack its prerequisites: what no data tell has no number."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag.causal import average_effects, what_if
from hidag.causal.unidentified_effects import REASON
from hidag.cli.app import app
from hidag.fitting.information_criteria import states_known
from hidag.inference import draws_of_law
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.measurement.terms import interactions_within
from hidag.reporting.diagnostic_sections import effects_panel
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


def with_other_words(fit, size):
    """Return the fit with coefficients that no state that occurs can tell from its own."""
    loadings = fit.parameters.loadings.copy()
    names = fit.terms.names(fit.latent_names)
    for item, later, both in ((2, "Z2", "Z1*Z2"), (4, "Z3", "Z2*Z3")):
        loadings[item, names.index(later)] += size
        loadings[item, names.index(both)] -= size
    return replace(fit, parameters=replace(fit.parameters, loadings=loadings))


def after(answer):
    return {row["name"]: row["low"] for row in answer.rows()}


def test_numbers_are_given_where_equal_likelihoods_give_equal_numbers_and_only_there():
    one, other = line(), with_other_words(line(), 5.0)
    occurring = ~one.ruled_out
    np.testing.assert_allclose(
        one.item_means(one.law.space.states())[occurring],
        other.item_means(one.law.space.states())[occurring],
    )
    for do in ({"Z1": 0}, {"Z1": 1}, {"Z2": 0}, {"Z2": 1}, {"Z3": 1}, {"Z2": 1, "Z4": 1}):
        told, again = after(what_if(one, do)), after(what_if(other, do))
        assert told == pytest.approx(again, nan_ok=True)
    # X3 and X5 differ where what is set leads to ruled-out states, and have no number there.
    found = what_if(one, {"Z2": 1})
    assert found.ruled_out == pytest.approx((0.3,))
    assert found.untold == ("Z3", "X3", "X4", "X5")
    assert what_if(one, {"Z3": 1}).untold == ("X5",)
    assert what_if(one, {"Z3": 1}).ruled_out == pytest.approx((1 - 0.7 * 0.6,))
    for do in ({"Z1": 0}, {"Z1": 1}, {"Z2": 0}, {"Z1": 1, "Z2": 1}):
        assert what_if(one, do).untold == ()
        assert what_if(one, do).ruled_out == pytest.approx((0.0,))


def test_all_other_numbers_are_as_they_would_be_without_prerequisites():
    fit = line()
    plain = replace(fit, settings={"effects": "all", "seed": 0})
    told, free = after(what_if(fit, {"Z2": 1})), after(what_if(plain, {"Z2": 1}))
    for name in ("Z1", "Z2", "Z4", "X1", "X2", "X6"):
        assert told[name] == free[name]
    reasons = {row["name"]: row.get("reason") for row in what_if(fit, {"Z2": 1}).rows()}
    assert {name for name, reason in reasons.items() if reason == REASON} == {
        "Z3",
        "X3",
        "X4",
        "X5",
    }
    assert not any("reason" in row for row in what_if(plain, {"Z2": 1}).rows())


def test_main_effects_add_up_where_nobody_is():
    fit = line("main")
    assert states_known(fit).all()
    assert what_if(fit, {"Z2": 1}).untold == ("Z3", "X4", "X5")
    known = states_known(line())
    states = fit.law.space.states()
    np.testing.assert_array_equal(known[:, 2], ~((states[:, 0] == 0) & (states[:, 1] == 1)))
    np.testing.assert_array_equal(known[:, 4], ~((states[:, 1] == 0) & (states[:, 2] == 1)))
    assert known[:, [0, 1, 3, 5]].all()


def test_what_is_known_then_can_leave_nobody_in_doubt_or_everybody():
    fit = line()
    assert what_if(fit, {"Z2": 1}, {"Z1": 1}).untold == ()
    assert what_if(fit, {"Z2": 1}, {"Z4": 1}).untold == ("Z3", "X3", "X4", "X5")
    # That Z3 is there tells of Z1 by how often it is there without Z1, which nobody has seen.
    assert what_if(fit, {"Z2": 1}, {"Z3": 1}).untold == ("Z1", "Z4", "X1", "X3", "X6")
    assert what_if(fit, {"Z2": 1}, {"X3": 1}).untold == ("Z1", "Z3", "Z4", "X1", "X4", "X5", "X6")


def test_draws_put_nobody_into_states_that_prerequisites_rule_out():
    fit = line(copies=4)
    draws = list(draws_of_law(fit, 20))
    for draw in draws:
        np.testing.assert_array_equal(np.asarray(draw.law.probabilities)[fit.ruled_out], 0.0)
    assert np.std([draw.law.tables[1][1, 1] for draw in draws]) > 0.01
    found = average_effects(fit, replicates=draws, held=True)
    np.testing.assert_array_equal(np.isnan(found.lower), np.isnan(found.low))


def test_average_effects_have_no_number_and_no_interval_where_no_data_tell():
    fit = line()
    found = average_effects(fit, replicates=[fit] * 20, held=True)
    assert found.ruled_out == pytest.approx((0.0, 0.3, 1 - 0.7 * 0.6, 0.0))
    untold = [(row["cause"], row["effect"]) for row in found.rows() if "reason" in row]
    assert untold == [("Z2", "Z3"), ("Z2", "X3"), ("Z2", "X4"), ("Z2", "X5"), ("Z3", "X5")]
    assert np.isnan(found.lower).sum() == np.isnan(found.low).sum() == 4 + 5
    own = average_effects(fit, replicates=[fit] * 3)
    np.testing.assert_array_equal(np.isnan(own.upper), np.isnan(found.upper))
    sentence = (
        "of all people 30.0% by setting Z2 and 58.0% by setting Z3 would come into states that "
        "prerequisites rule out; no data tell what follows there, and 5 effects that depend on "
        "them have no number"
    )
    assert found.about_untold() == sentence
    assert average_effects(fit, causes=["Z1"]).about_untold() is None
    section, tables = effects_panel(fit, found)
    assert f"O{sentence[1:]}." in section.paragraphs
    assert all(not np.isnan(row[2]) for table in tables for row in table.rows)


def test_the_command_says_who_is_put_where_nobody_is(tmp_path):
    saved = line().save(tmp_path / "result.npz")

    def run(*words):
        done = CliRunner().invoke(app, ["whatif", str(saved), *words])
        assert done.exit_code == 0
        return done.output

    sentence = (
        "this puts 30.0% of all people into states that prerequisites rule out; no data tell what "
        "follows there, and what depends on it has no number: Z3, X3, X4 and X5\n"
    )
    text = run("--do", "Z2=1", "--out", str(tmp_path / "answer.csv"))
    assert sentence in text
    assert "not known" in text
    with (tmp_path / "answer.csv").open() as stream:
        rows = {row["name"]: row for row in csv.DictReader(stream)}
    assert rows["X3"]["low"] == rows["X3"]["high"] == ""
    assert rows["X3"]["reason"] == REASON
    assert rows["X2"]["low"]
    assert not rows["X2"]["reason"]
    told = json.loads(run("--do", "Z2=1", "--json"))
    assert told["ruled_out"] == pytest.approx([0.3])
    assert next(row for row in told["rows"] if row["name"] == "X3")["low"] is None
    assert "and 5 effects that depend on them have no number" in run("--effects", "--draws", "0")
    assert "reason" not in run("--do", "Z1=1", "--json")
