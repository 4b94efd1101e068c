from __future__ import annotations

import csv
import re

import pytest

from hidag_paper.commands.options import STUDY_HELP
from hidag_paper.studies import STUDIES, read_folder
from hidag_paper.studies.rows import add_run

SMALL = ("--n", 300, "--replicates", 2, "--methods", "ours")
#: The paper's items only.
PAPER = ("--cells", "*/300")
MODELS = ("Chain-5", "Tree-5", "Model-5")


@pytest.fixture
def published(tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    with (folder / "study1_shd.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model", "q", "family", "n", "method", "f_n", "mean_shd"])
        writer.writerows([[m, "Q1", "gaussian", 300, "dcrl", "N", 0.75] for m in MODELS])
    return folder


def test_every_study_of_the_catalogue_is_a_command(hidag) -> None:
    assert list(STUDY_HELP) == list(STUDIES)
    for name in STUDIES:
        ran = hidag("study", name, "--help")
        assert ran.exit_code == 0
        assert f"hidag study {name} --cells" in ran.stdout


def test_a_study_runs_reports_and_is_not_run_twice(hidag, tmp_path, published) -> None:
    out = tmp_path / "study"
    words = ("study", "table1", *SMALL, *PAPER, "--out", out)
    ran = hidag(*words, "--published", published)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    assert lines[0] == f"table1, design research-code, seed 0: {out}"
    assert re.split(r"  +", lines[2]) == [
        "cell",
        "runs",
        "ours (s.e.)",
        "graph",
        "Q",
        "published",
        "truth-started",
        "true latents",
        "CPU s",
    ]
    assert [line.split()[0] for line in lines[3:6]] == [f"{m}/Q1/gaussian/300" for m in MODELS]
    rows = read_folder(out).rows()
    mean = sum(row["shd"] for row in rows if row["model"] == "Model-5") / 2
    assert f" {mean:.2f} (" in lines[5]
    assert "cells at or below published:  " in ran.stdout
    assert "s.e.           unreliable with fewer than 5 runs" in ran.stdout
    file = (out / "rows" / "merged.parquet").read_bytes()
    assert hidag(*words).stdout == ran.stdout
    assert hidag("study", "report", out).stdout.startswith(ran.stdout)
    assert (out / "rows" / "merged.parquet").read_bytes() == file


def test_without_published_numbers_the_column_is_empty(hidag, tmp_path, published) -> None:
    out = tmp_path / "study"
    ran = hidag("study", "table1", *SMALL, "--cells", "Chain-5/*/300", "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert re.split(r"  +", ran.stdout.splitlines()[3])[5] == "-"
    assert "no comparison: the paper has no numbers for these cells" in ran.stdout
    later = hidag("study", "report", out, "--published", published)
    assert re.split(r"  +", later.stdout.splitlines()[3])[5] == "0.75"


def test_studies_print_published_numbers_by_default(hidag, tmp_path) -> None:
    words = ("--cells", "Chain-5/Q1/gaussian/1000", "--replicates", 1, "--methods", "ours")
    out = tmp_path / "study"
    ran = hidag("study", "table1", *words, "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert re.split(r"  +", ran.stdout.splitlines()[3])[5] == "0.38"
    assert hidag("study", "report", out).stdout.startswith(ran.stdout)
    assert "0.38" in (out / "report" / "report.md").read_text()


def test_published_numbers_do_not_stand_beside_another_design(hidag, tmp_path, published) -> None:
    words = ("--design", "text", "--cells", "Chain-5/*/300", "--published", published)
    ran = hidag("study", "table1", *SMALL, *words, "--out", tmp_path / "study")
    assert ran.exit_code == 0, ran.stderr
    assert re.split(r"  +", ran.stdout.splitlines()[3])[5] == "-"


def test_a_report_names_failed_fits_and_their_reason(hidag, tmp_path, monkeypatch) -> None:
    def broken(data, seed, estimator):
        raise FloatingPointError("overflow in the second step")

    monkeypatch.setattr("hidag_paper.studies.runs._fit", broken)
    words = ("--cells", "Chain-5/*/300", "--out", tmp_path / "study")
    ran = hidag("study", "table1", *SMALL, *words)
    assert ran.exit_code == 0, ran.stderr
    assert "Chain-5/Q1/gaussian/300  2, 2 failed        - (-)" in ran.stdout
    assert "cells with failed fits, not compared: 1: Chain-5/Q1/gaussian/300" in ran.stdout
    assert ran.stderr == (
        "hidag: warning: Chain-5/Q1/gaussian/300: 2 of 2 fits failed and are excluded from the "
        "means: FloatingPointError: overflow in the second step\n"
    )


def test_rows_of_different_code_versions_are_reported(hidag, tmp_path) -> None:
    out = tmp_path / "study"
    words = (*SMALL, "--cells", "Chain-5/*/300", "--out", out)
    assert hidag("study", "table1", *words).exit_code == 0
    row = read_folder(out).rows()[1]
    add_run(out / "rows", "another", [{**row, "replicate": 9, "address": "9", "source": "other"}])
    assert hidag("study", "report", out).stderr == (
        f"hidag: warning: the rows of {out} come from different versions of the source code; use a "
        "new folder for results of one version\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--cells", "Chain-7"),
            "no cell matches 'Chain-7'; the 27 cells have names such as "
            "'Chain-5/Q1/gaussian/1000' and 'Model-5/Q1/gaussian/10000/distinct-quiet'",
        ),
        (("--design", "mine"), "--design must be one of text, research-code, got 'mine'"),
        (("--replicates", 0), "--replicates must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_options_are_one_sentence(hidag, tmp_path, words, sentence) -> None:
    ran = hidag("study", "table1", *words, "--out", tmp_path / "study")
    assert ran.exit_code == 1
    assert ran.stderr == f"hidag: {sentence}\n"
    assert not (tmp_path / "study").exists()


def test_other_settings_are_refused_in_a_sentence(hidag, tmp_path) -> None:
    out = tmp_path / "study"
    words = ("study", "table1", *SMALL, "--cells", "Chain-5/*/300", "--out", out)
    assert hidag(*words).exit_code == 0
    ran = hidag(*words, "--seed", 1)
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"hidag: {out} contains a study with --seed 0, but 1 was requested; repeat the settings to "
        "resume it, or choose another folder\n"
    )
    assert "got nothing" in hidag(*words[:2], "--cells", ",").stderr
    assert "expected integers separated by commas" in hidag(*words[:2], "--n", "many").stderr
    assert hidag(*words, "--quick").stderr == (
        "hidag: --quick and --replicates both set the number of tables per cell; omit one of them\n"
    )
