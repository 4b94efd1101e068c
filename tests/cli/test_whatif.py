"""`hidag whatif` and `hidag export` on a saved result."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag.cli.app import app
from hidag.discover import CPDAG
from hidag.latent import SaturatedLaw
from hidag.simulate import chain_dag, dag_from_parents, make_truth, random_law


@pytest.fixture(scope="module")
def saved(tmp_path_factory, as_result):
    dag = dag_from_parents([(), (), (0, 1)])
    truth = make_truth(random_law(dag, rng=0), np.vstack([np.eye(3, dtype=int)] * 3), "bernoulli")
    result = as_result(truth)
    return result.save(tmp_path_factory.mktemp("saved") / "result.npz")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_setting_and_seeing_are_told_apart(saved, tmp_path):
    done = run("whatif", saved, "--do", "Z3=1", "--json")
    seen = run("whatif", saved, "--given", "Z3=1", "--json")
    assert done.exit_code == seen.exit_code == 0
    after = {row["name"]: row for row in json.loads(done.output)["rows"]}
    given = {row["name"]: row for row in json.loads(seen.output)["rows"]}
    assert after["Z1"]["low"] == pytest.approx(after["Z1"]["before"])
    assert given["Z1"]["before"] != pytest.approx(after["Z1"]["before"], abs=0.05)
    text = run("whatif", saved, "--do", "Z3=1", "--out", tmp_path / "answer.csv")
    assert "what follows if Z3 = 1 is brought about in everybody" in text.output
    assert "6 others do not change" in text.output
    with (tmp_path / "answer.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 12


def test_effects_have_intervals(saved):
    found = run("whatif", saved, "--effects", "--draws", "20")
    assert found.exit_code == 0
    assert "in brackets 90% intervals" in found.output
    assert "Z1" in found.output


def test_export_writes_networks(saved, tmp_path):
    assert "probability ( Z3 | Z1, Z2 ) {" in run("export", saved).output
    told = run("export", saved, "--format", "gml", "--items", "--out", tmp_path / "n.gml")
    assert told.exit_code == 0
    assert (tmp_path / "n.gml").read_text().startswith("graph [")


def test_export_says_what_a_network_does_not_show(tmp_path, as_result):
    families = ("bernoulli", "gaussian") * 3
    law = random_law(chain_dag(2), rng=0)
    truth = make_truth(law, np.repeat(np.eye(2, dtype=int), 3, axis=0), families)
    fit = as_result(truth).save(tmp_path / "result.npz")
    left_out = "3 of 6 items are left out, as they have no short table of values: X2, X4 and X6"
    told = run("export", fit, "--items", "--out", tmp_path / "n.bif")
    assert told.output == (
        f"wrote {tmp_path / 'n.bif'}\n1 edge has a direction there that the data leave open: one "
        f"of 2 graphs that explain the data alike\n{left_out}\n"
    )
    told = run("export", fit, "--items", "--format", "dot")
    assert told.stdout.startswith("digraph {")
    assert told.stderr == (
        "hidag: warning: 1 edge has no arrow head, as the data leave the direction open; the "
        "tables are those of one of 2 graphs that explain the data alike\n"
        f"hidag: warning: {left_out}\n"
    )


def test_export_says_that_a_network_is_not_the_fitted_law(tmp_path, as_result):
    law = random_law(chain_dag(3), rng=0)
    noise = np.array([0.3, 0.05, 0.05, 0.1, 0.1, 0.05, 0.05, 0.3])
    truth = make_truth(law, np.vstack([np.eye(3, dtype=int)] * 2), "bernoulli")
    graph = CPDAG.from_edges(("Z1", "Z2", "Z3"), [("Z1", "Z2"), ("Z3", "Z2")], [])
    result = as_result(truth, law=SaturatedLaw(law.space, noise), graph=graph)
    fit = result.save(tmp_path / "result.npz")
    note = (
        "these tables are not the fitted law, which does not factorise over the graph, but the "
        "nearest one that does: probabilities of events differ from the fit's by up to 0.2; fit "
        "with --law network for a law that can be exported as it is"
    )
    told = run("export", fit, "--out", tmp_path / "n.bif")
    assert told.output == f"wrote {tmp_path / 'n.bif'}\n{note}\n"
    assert run("export", fit).stderr == f"hidag: warning: {note}\n"
    # A graph alone says nothing about probabilities.
    assert run("export", fit, "--format", "dowhy").stderr == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("whatif", "--do", "Z1"), "--do takes NAME=VALUE, such as Z1=1, got 'Z1'"),
        (("whatif", "--do", "Z1=1,Z1=0"), "--do names Z1 twice"),
        (
            ("whatif",),
            "say what is set or known: --do Z1=1, --given Z2=0, or --effects for a table of all "
            "average effects",
        ),
        (
            ("whatif", "--effects", "--do", "Z1=1"),
            "--effects asks for all average effects: leave --do and --given out",
        ),
        (("whatif", "--do", "Z1=7"), "Z1=7 is no level of Z1: its levels are 0 to 1"),
        (
            ("export", "--format", "xml"),
            "--format must be one of bif, dot, dowhy, gml, got 'xml'",
        ),
    ],
)
def test_bad_questions_end_with_one_sentence(saved, words, sentence):
    found = run(words[0], saved, *words[1:])
    assert found.exit_code == 1
    assert found.stderr.strip() == f"hidag: {sentence}"
