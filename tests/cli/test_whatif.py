"""`hidag whatif` and `hidag export` on a saved result."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag.cli.app import app
from hidag.latent import SaturatedLaw
from hidag.simulation import chain_dag, dag_from_parents, make_truth, random_law
from hidag.structure import CPDAG


@pytest.fixture(scope="module")
def saved(tmp_path_factory, as_result):
    dag = dag_from_parents([(), (), (0, 1)])
    truth = make_truth(random_law(dag, rng=0), np.vstack([np.eye(3, dtype=int)] * 3), "bernoulli")
    result = as_result(truth)
    return result.save(tmp_path_factory.mktemp("saved") / "result.npz")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_interventions_differ_from_conditions(saved, tmp_path):
    done = run("whatif", saved, "--do", "Z3=1", "--json")
    seen = run("whatif", saved, "--given", "Z3=1", "--json")
    assert done.exit_code == seen.exit_code == 0
    after = {row["name"]: row for row in json.loads(done.output)["rows"]}
    given = {row["name"]: row for row in json.loads(seen.output)["rows"]}
    assert after["Z1"]["low"] == pytest.approx(after["Z1"]["before"])
    assert given["Z1"]["before"] != pytest.approx(after["Z1"]["before"], abs=0.05)
    text = run("whatif", saved, "--do", "Z3=1", "--out", tmp_path / "answer.csv")
    assert "intervention in the whole population: Z3 = 1" in text.output
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
    reported = run("export", saved, "--format", "gml", "--items", "--out", tmp_path / "n.gml")
    assert reported.exit_code == 0
    assert (tmp_path / "n.gml").read_text().startswith("graph [")


def test_export_notes_what_the_network_omits(tmp_path, as_result):
    families = ("bernoulli", "gaussian") * 3
    law = random_law(chain_dag(2), rng=0)
    truth = make_truth(law, np.repeat(np.eye(2, dtype=int), 3, axis=0), families)
    fit = as_result(truth).save(tmp_path / "result.npz")
    omitted = (
        "3 of 6 items are omitted because they have no finite table of probabilities: X2, X4 and X6"
    )
    reported = run("export", fit, "--items", "--out", tmp_path / "n.bif")
    assert reported.output == (
        f"wrote {tmp_path / 'n.bif'}\n1 edge has a direction in this file that the data do not "
        f"identify: it is one of 2 equivalent graphs\n{omitted}\n"
    )
    reported = run("export", fit, "--items", "--format", "dot")
    assert reported.stdout.startswith("digraph {")
    assert reported.stderr == (
        "hidag: warning: 1 edge has no direction because the data do not identify it; the "
        "tables refer to one of 2 equivalent graphs\n"
        f"hidag: warning: {omitted}\n"
    )


def test_export_says_that_a_network_is_not_the_fitted_law(tmp_path, as_result):
    law = random_law(chain_dag(3), rng=0)
    noise = np.array([0.3, 0.05, 0.05, 0.1, 0.1, 0.05, 0.05, 0.3])
    truth = make_truth(law, np.vstack([np.eye(3, dtype=int)] * 2), "bernoulli")
    graph = CPDAG.from_edges(("Z1", "Z2", "Z3"), [("Z1", "Z2"), ("Z3", "Z2")], [])
    result = as_result(truth, law=SaturatedLaw(law.space, noise), graph=graph)
    fit = result.save(tmp_path / "result.npz")
    note = (
        "the exported tables are not the fitted latent distribution, which does not factorise over "
        "the graph, but the closest one that does: probabilities differ by up to 0.2; fit with "
        "--law network to export the fitted distribution itself"
    )
    reported = run("export", fit, "--out", tmp_path / "n.bif")
    assert reported.output == f"wrote {tmp_path / 'n.bif'}\n{note}\n"
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
            "there is no intervention and no condition; use --do Z1=1, --given Z2=0, or --effects "
            "for all average effects",
        ),
        (
            ("whatif", "--effects", "--do", "Z1=1"),
            "--effects computes all average effects and takes neither --do nor --given",
        ),
        (("whatif", "--do", "Z1=7"), "Z1=7 is not a level of Z1: its levels are 0 to 1"),
        (
            ("export", "--format", "xml"),
            "--format must be one of bif, dot, dowhy, gml, got 'xml'",
        ),
    ],
)
def test_invalid_questions_give_one_sentence(saved, words, sentence):
    found = run(words[0], saved, *words[1:])
    assert found.exit_code == 1
    assert found.stderr.strip() == f"hidag: {sentence}"


@pytest.fixture(scope="module")
def in_mol(tmp_path_factory, as_result):
    """Two linked latents; an item in a tiny unit, one in a huge one, and one with a comma."""
    truth = make_truth(
        random_law(chain_dag(2), rng=0), np.vstack([np.eye(2, dtype=int)] * 3), "gaussian"
    )
    result = as_result(truth)
    unit = np.array([1e-9, 1e-9, 1e12, 1e12, 1.0, 1.0])
    own = result.parameters
    result = replace(
        result,
        item_names=("mol, blood", "mol_2", "gdp", "gdp_2", "a", "b"),
        parameters=replace(
            own,
            intercept=own.intercept * unit,
            loadings=own.loadings * unit[:, None],
            dispersion=own.dispersion * unit**2,
        ),
    )
    return result.save(tmp_path_factory.mktemp("mol") / "result.npz")


def test_effects_on_items_in_tiny_units_are_reported(in_mol):
    reported = run("whatif", in_mol, "--do", "Z1=1").output
    lines = {line.split("  ")[1]: line for line in reported.splitlines() if line.startswith("  ")}
    assert {"mol, blood", "gdp", "a"} <= set(lines)
    assert "e-09" in lines["mol, blood"]
    assert "e+12" in lines["gdp"]
    reported = run("whatif", in_mol, "--effects", "--draws", "0").output
    assert re.search(r"Z1 +->  mol, blood +\S*\d\S*e-\d", reported)
    assert "-0.000" not in reported


def test_a_name_with_a_comma_can_be_given(in_mol):
    reported = run("whatif", in_mol, "--given", "mol, blood=1e-9,Z2=1")
    assert reported.exit_code == 0, reported.output
    assert reported.output.startswith("given: mol, blood = 1e-9, Z2 = 1\n")


def test_yes_is_a_condition_as_in_tables(saved):
    in_words = run("whatif", saved, "--given", "X1=yes").output.splitlines()
    assert in_words[0] == "given: X1 = yes"
    assert in_words[1:] == run("whatif", saved, "--given", "X1=1").output.splitlines()[1:]
    refused = run("whatif", saved, "--given", "X1=perhaps")
    assert refused.exit_code == 1


def test_the_latents_that_change_come_first(tmp_path, as_result):
    dag = dag_from_parents([(), *[()] * 23, (0, 1)])
    truth = make_truth(random_law(dag, rng=0), np.vstack([np.eye(25, dtype=int)] * 2), "bernoulli")
    fit = as_result(truth).save(tmp_path / "result.npz")
    reported = run("whatif", fit, "--do", "Z1=1").output.split("items")[0]
    assert [line.split()[0] for line in reported.splitlines()[3:] if line] == ["Z1", "Z25", "23"]
    assert "23 others do not change" in reported


def test_impossible_and_extreme_values(in_mol):
    reported = run("whatif", in_mol, "--given", "a=1e300")
    assert reported.exit_code == 1
    assert reported.stderr == (
        "hidag: a=1e+300 cannot be given: it is so far from the fitted distribution of the item "
        "that its density is zero in every latent state\n"
    )
    reported = run("whatif", in_mol, "--given", "a=1e6")
    assert "standard deviations from the mean: the result is an extrapolation" in reported.output
    assert "extrapolation" not in run("whatif", in_mol, "--given", "a=1").output


def test_a_missing_folder_is_named(saved, tmp_path):
    reported = run("whatif", saved, "--do", "Z1=1", "--out", tmp_path / "none" / "a.csv")
    assert reported.stderr == (
        f"hidag: there is no folder {tmp_path / 'none'}; create it, or choose another --out\n"
    )


def test_a_time_beyond_the_limit_is_no_further_out_than_the_limit(tmp_path, as_result):
    q = np.vstack([np.eye(2, dtype=int)] * 3)
    times = make_truth(random_law(chain_dag(2), rng=0), q, "lognormal")
    truth = replace(times, families=("censored-lognormal(6)",) * 6)
    fit = as_result(truth).save(tmp_path / "result.npz")
    beyond, limit = (run("whatif", fit, "--given", f"X1={time}") for time in ("600", "6"))
    assert beyond.exit_code == 0, beyond.output
    assert "far outside" not in beyond.output
    assert beyond.output == limit.output.replace("X1 = 6", "X1 = 600")
