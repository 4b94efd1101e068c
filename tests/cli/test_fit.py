from __future__ import annotations

import json
import re

import numpy as np
import pytest

from hidag import CPDAG, load
from hidag.cli.output_files import FIT_FILES
from hidag.formatting import protect_cell

from .conftest import ITEMS, read_rows, write_rows


def test_a_fit_prints_what_it_found_and_writes_all_files(hidag, table, tmp_path, answers):
    out = tmp_path / "deep" / "fit"
    ran = hidag("fit", table, "--latents", 2, "--out", out, "--seed", 1, "--starts", 3)
    assert ran.exit_code == 0, ran.stderr
    assert f"{table}: 400 rows, 8 items, no cells missing" in ran.stdout
    assert "types (inferred)" in ran.stdout
    assert "bernoulli  8  yes/no answers (0 and 1): item0, item1, item2, ... item7" in ran.stdout
    assert "  Z1 - Z2  >.99\n" in ran.stdout
    assert " of 3 starts reached the best" in ran.stdout
    assert sorted(p.name for p in out.iterdir()) == sorted(FIT_FILES)
    result = load(out / "result.npz")
    assert f"log-likelihood {result.log_likelihood:,.2f} after" in ran.stdout

    assert read_rows(out / "q.csv")[0] == ["item", "Z1", "Z2"]
    q = np.array([row[1:] for row in read_rows(out / "q.csv")[1:]], dtype=int)
    np.testing.assert_array_equal(q, result.q_matrix)
    loadings = read_rows(out / "loadings.csv")
    assert loadings[0] == ["item", "family", "intercept", "Z1", "Z2", "dispersion"]
    np.testing.assert_allclose(
        np.array([row[3:5] for row in loadings[1:]], dtype=float), result.loadings, rtol=1e-9
    )
    law = read_rows(out / "latent_law.csv")
    assert [row[:2] for row in law[1:]] == [["0", "0"], ["0", "1"], ["1", "0"], ["1", "1"]]
    assert sum(float(row[2]) for row in law[1:]) == pytest.approx(1.0)
    graph = CPDAG.from_json((out / "graph.json").read_text("utf-8"))
    assert graph == result.graph
    assert (out / "graph.dot").read_text("utf-8") == result.graph.to_dot()
    posterior = np.array(read_rows(out / "posterior.csv")[1:], dtype=float)
    np.testing.assert_allclose(posterior[:, 1:], result.posterior(answers.astype(float)), atol=1e-6)
    assert posterior[0, 0] == 1
    assert len(read_rows(out / "trace.csv")) == len(result.trace) + 1
    for name in ("q.png", "graph.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    page = (out / "report.html").read_text("utf-8")
    assert page.count("<img") == 2
    assert page.count('<g class="node"') == 2


def test_misfit_is_reported_first(hidag, table, tmp_path):
    ran = hidag("fit", table, "-k", 1, "--out", tmp_path / "poor", "--no-plots")
    assert ran.exit_code == 0, ran.stderr
    assert "poor fit of the associations between items: RMSEA2 " in ran.stderr
    page = (tmp_path / "poor" / "report.html").read_text("utf-8")
    assert page.index("Poor fit of the associations") < page.index("Model and data")
    assert '<div class="good"' not in page
    # The fit alone does not show the misfit.
    (tmp_path / "poor" / "report.json").unlink()
    assert hidag("report", tmp_path / "poor").exit_code == 0
    page = (tmp_path / "poor" / "report.html").read_text("utf-8")
    assert "Poor fit" not in page
    assert '<div class="good"' not in page


def test_the_same_seed_gives_the_same_files(hidag, table, tmp_path):
    for name in ("a", "b"):
        ran = hidag("fit", table, "-k", 2, "--out", tmp_path / name, "--seed", 3, "--no-plots")
        assert ran.exit_code == 0
    for file in (tmp_path / "a").iterdir():
        if file.suffix in (".csv", ".json", ".dot", ".html"):
            assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_nothing_is_written_without_a_folder(hidag, table, tmp_path):
    before = sorted(tmp_path.iterdir())
    ran = hidag("fit", table, "-k", 2)
    assert ran.exit_code == 0
    assert "no results were written; add --out FOLDER to write them" in ran.stdout
    assert sorted(tmp_path.iterdir()) == before


def test_a_second_fit_leaves_no_files_of_the_first(hidag, table, tmp_path):
    out = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", out).exit_code == 0
    (out / "notes.txt").write_text("mine")
    assert hidag("fit", table, "-k", 2, "--out", out, "--no-plots").exit_code == 0
    expected = {*FIT_FILES, "notes.txt"} - {"q.png", "graph.png"}
    assert {p.name for p in out.iterdir()} == expected


def test_without_pictures_the_report_lacks_nothing_but_them(hidag, table, tmp_path):
    pages = {}
    for name, more in (("with", ()), ("without", ("--no-plots",))):
        ran = hidag("fit", table, "-k", 2, "--out", tmp_path / name, *more)
        assert ran.exit_code == 0, ran.stderr
        pages[name] = (tmp_path / name / "report.html").read_text("utf-8")
    assert pages["with"].count("<img") == 2
    assert "<img" not in pages["without"]
    assert re.sub(r"<figure>.*?</figure>", "", pages["with"]) == pages["without"]
    for name, page in pages.items():
        assert hidag("report", tmp_path / name).exit_code == 0
        assert (tmp_path / name / "report.html").read_text("utf-8") == page


def test_reports_name_the_command_that_computes_slow_results(hidag, table, tmp_path, monkeypatch):
    monkeypatch.setattr("hidag.reporting.assembly.MAX_ERROR_WORK", 0)
    out = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", out, "--no-plots").exit_code == 0
    page = (out / "report.html").read_text("utf-8")
    assert "<h2>Uncertainty</h2>" in page
    command = "<code>hidag standard-errors</code>"
    assert f"Standard errors take longer than the fit; {command} computes them" in page


def test_missing_fit_statistics_have_a_reason(hidag, table, tmp_path, monkeypatch):
    words = ("fit", table, "-k", 2, "--no-plots", "--out")
    assert hidag(*words, tmp_path / "asked", "--no-statistics").exit_code == 0
    asked = (tmp_path / "asked" / "report.html").read_text("utf-8")
    command = "<code>hidag goodness</code>"
    assert f"they were not requested; {command} computes them." in asked
    monkeypatch.setattr("hidag.reporting.assembly.MAX_STATISTICS_WORK", 0)
    assert hidag(*words, tmp_path / "long").exit_code == 0
    long = (tmp_path / "long" / "report.html").read_text("utf-8")
    assert "Fit statistics were not computed: they take longer than the fit" in long


def test_a_folder_brings_its_types_and_its_q(hidag, table, q_file, tmp_path):
    study = tmp_path / "study"
    study.mkdir()
    table.rename(study / "responses.csv")
    q_file.rename(study / "q.csv")
    write_rows(study / "types.csv", ["item", "type"], [[name, "binary"] for name in ITEMS])
    ran = hidag("fit", study)
    assert ran.exit_code == 0, ran.stderr
    assert f"types from {study / 'types.csv'}" in ran.stdout
    assert f"Q-matrix from {study / 'q.csv'} (ignore it with --no-q)" in ran.stdout
    assert "types (given)" in ran.stdout
    assert "  Verbal - Spatial  >.99\n" in ran.stdout

    free = hidag("fit", study, "--no-q", "-k", 2)
    assert "Q-matrix from" not in free.stdout
    assert "  Z1 - Z2  >.99\n" in free.stdout

    normal = hidag("fit", study, "--family", "gaussian")
    assert f"{study / 'types.csv'} ignored, as --family names a type for all items" in normal.stdout
    assert "gaussian  8" in normal.stdout


def test_the_folder_of_the_data_is_not_overwritten(hidag, table, q_file, tmp_path):
    study = tmp_path / "study"
    study.mkdir()
    table.rename(study / "responses.csv")
    q_file.rename(study / "q.csv")
    before = (study / "q.csv").read_bytes()
    ran = hidag("fit", study, "--out", study)
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"hidag: the results must not be written into {study}, which holds the table "
        "responses.csv, because their q.csv would be read there as a given Q-matrix; choose "
        "another folder with --out\n"
    )
    assert (study / "q.csv").read_bytes() == before


def test_types_of_single_items_and_patterns(hidag, tmp_path, answers):
    rng = np.random.default_rng(1)
    times = np.exp(rng.normal(2, 0.5, (400, 2)) + answers[:, [0, 4]])
    rows = np.hstack([answers, times.round(3)])
    header = [*ITEMS, "time_a", "time_b"]
    path = write_rows(tmp_path / "mixed.csv", header, rows.tolist())
    ran = hidag("fit", path, "-k", 2, "--family", "time_*=lognormal", "--family", "item0=normal")
    assert ran.exit_code == 0, ran.stderr
    assert "types (3 given, 7 inferred)" in ran.stdout
    assert "lognormal  2  positive times or amounts, on a log scale: time_a, time_b" in ran.stdout
    assert "gaussian   1  continuous measurements: item0" in ran.stdout
    wrong = hidag("fit", path, "-k", 2, "--family", "item9=normal")
    assert wrong.exit_code == 1
    assert wrong.stderr == (
        "hidag: --family names the item 'item9', which the table does not have; did you mean "
        "'item7'?\n"
    )


def test_options_reach_the_estimator(hidag, table, tmp_path):
    out = tmp_path / "fit"
    ran = hidag(
        *("fit", table, "-k", 2, "--out", out, "--no-plots", "--seed", 5, "--starts", 1),
        *("--method", "saem", "--penalty", "scad", "--score", "bic", "--search", "ges"),
        *("--resample", "2N", "--max-iter", 40, "--tol", 0.001, "--penalty-strength", 3),
        *("--law", "saturated", "--effective-size", "0.5"),
    )
    assert ran.exit_code == 0, ran.stderr
    result = load(out / "result.npz")
    assert result.seed == 5
    settings = result.settings
    expected = {
        "n_starts": 1,
        "method": "saem",
        "penalty": "scad",
        "graph_score": "bic",
        "search": "ges",
        "resample": "2N",
        "max_iter": 40,
        "tol": 0.001,
        "penalty_strength": 3.0,
        "law": "saturated",
        "effective_size": 0.5,
    }
    assert {name: settings[name] for name in expected} == expected


def test_a_fit_that_did_not_converge_warns_in_one_line(hidag, table):
    ran = hidag("fit", table, "-k", 2, "--max-iter", 1, "--tol", 1e-12)
    assert ran.exit_code == 0
    first = ran.stderr.splitlines()[0]
    assert first.startswith("hidag: warning: the estimate did not converge in ")
    assert all(line.startswith("hidag: warning: ") for line in ran.stderr.splitlines())


def test_hostile_names_reach_files_unharmed(hidag, tmp_path, answers):
    names = ['<script>alert("x")</script>', "a,b", "=1+1", "\u202eabc", "x\x1b[31mred", *ITEMS[5:]]
    path = write_rows(tmp_path / "hostile.csv", names, answers.tolist())
    out = tmp_path / "fit"
    ran = hidag("fit", path, "-k", 2, "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert "\x1b" not in ran.stdout
    written = [row[0] for row in read_rows(out / "q.csv")[1:]]
    assert written == [protect_cell(name) for name in names]
    assert "<script>alert" not in (out / "report.html").read_text("utf-8")
    assert json.loads((out / "graph.json").read_text("utf-8"))["names"] == ["Z1", "Z2"]


def test_a_column_that_names_the_rows_is_no_item(hidag, table, tmp_path):
    lines = table.read_text().splitlines()
    named = [f"pupil,{lines[0]}", *(f"P{i},{line}" for i, line in enumerate(lines[1:]))]
    path = tmp_path / "named.csv"
    path.write_text("\n".join(named) + "\n")
    out = tmp_path / "fit"
    ran = hidag("fit", path, "-k", 2, "--id", "pupil", "--out", out, "--no-plots")
    assert ran.exit_code == 0, ran.stderr
    rows = read_rows(out / "posterior.csv")
    assert [row[0] for row in rows[:3]] == ["id", "P0", "P1"]
    assert "pupil" not in [row[0] for row in read_rows(out / "q.csv")]
    ran = hidag("fit", path, "-k", 2)
    assert ran.exit_code == 1
    assert "or with --id pupil if it identifies rows" in ran.stderr
    ran = hidag("fit", path, "-k", 2, "--id", "pupl")
    assert ran.exit_code == 1
    assert f"{path} has no column 'pupl'; did you mean 'pupil'?" in ran.stderr


def test_whole_numbers_treated_as_continuous_are_listed(hidag, tmp_path, answers):
    scores = np.clip(np.rint(np.random.default_rng(2).normal(40 + 30 * answers, 5)), 0, 100)
    header = [f"score{j}" for j in range(8)]
    path = write_rows(tmp_path / "scores.csv", header, scores.astype(int).tolist())
    ran = hidag("fit", path, "-k", 2)
    assert ran.exit_code == 0, ran.stderr
    assert (
        "  whole numbers treated as continuous: score0, score1, score2 and 5 more; use --family "
        "ITEM=poisson for counts\n"
    ) in ran.stdout
