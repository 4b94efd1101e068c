"""`hidag standard-errors`, `goodness`, `classify` and `validate-q` on a small table."""

from __future__ import annotations

import json

import pytest

from .conftest import ITEMS, read_rows, write_rows


@pytest.fixture
def study(hidag, tmp_path, answers, q_file):
    """A table with names and weights beside the items, and a fit of it."""
    rows = [[f"pupil {i}", *row, 1 + i % 2] for i, row in enumerate(answers.tolist())]
    table = write_rows(tmp_path / "class.csv", ["name", *ITEMS, "weight"], rows)
    items = write_rows(tmp_path / "items.csv", ITEMS, answers.tolist())
    ran = hidag("fit", items, "--q", q_file, "--out", tmp_path / "fit", "--no-plots")
    assert ran.exit_code == 0, ran.stderr
    return tmp_path / "fit", table, items


def test_classify_keeps_the_names_of_the_rows(hidag, study, tmp_path):
    fit, table, _ = study
    out = tmp_path / "people.csv"
    ran = hidag("classify", fit, table, "--id", "name", "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith("400 rows classified on 2 latents\n")
    assert ran.stdout.endswith(f"wrote 400 rows into {out}\n")
    rows = read_rows(out)
    assert rows[0] == [
        "id", "profile", "profile_probability", "n_answers", "Verbal: level", "Verbal: expected",
        "P(Verbal=1)", "Spatial: level", "Spatial: expected", "P(Spatial=1)",
    ]  # fmt: skip
    assert rows[1][0] == "pupil 0"
    assert len(rows) == 401
    reported = json.loads(hidag("classify", fit, table, "--json").stdout)
    assert reported[0]["id"] == 1


def test_errors_take_weights_from_a_column(hidag, study, tmp_path):
    fit, table, _ = study
    ran = hidag("standard-errors", fit, table)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith(
        "standard errors given Q, by the observed information: 400 rows, 19 parameters, 90% "
    )
    out = tmp_path / "errors.csv"
    ran = hidag("standard-errors", fit, table, "--weights", "weight", "--out", out)
    assert ran.exit_code == 0, ran.stderr
    # 400 rows with weights 1 and 2 in turn report as much as 600^2 / 1000 equal ones.
    assert ran.stdout.startswith(
        "standard errors given Q, by the sandwich of observed information and scores: 360 rows, "
    )
    assert read_rows(out)[0][:3] == ["kind", "of", "term"]


def test_errors_write_what_is_expected_by_pattern(hidag, study, tmp_path):
    fit, table, _ = study
    out = tmp_path / "patterns.csv"
    ran = hidag("standard-errors", fit, table, "--patterns", out)
    assert ran.exit_code == 0, ran.stderr
    header, *rows = read_rows(out)
    assert header[:4] == ["item", "latents", "pattern", "called"]
    assert ran.stdout.endswith(f"wrote {len(rows)} rows into {out}\n")
    ran = hidag("standard-errors", fit, table, "--out", out, "--patterns", out)
    assert ran.exit_code == 1
    assert f"--out and --patterns both name {out}; they need two files" in ran.stderr


def test_goodness_writes_its_tables(hidag, study, tmp_path):
    fit, table, _ = study
    out = tmp_path / "goodness"
    ran = hidag("goodness", fit, table, "--tables", 20, "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert "AIC" in ran.stdout
    assert "M2" in ran.stdout
    assert len(read_rows(out / "pairs.csv")) == 1 + 28
    assert len(read_rows(out / "persons.csv")) == 401
    again = hidag("goodness", fit, table, "--tables", 20, "--json")
    reported = json.loads(again.stdout)
    assert reported["criteria"]["n_parameters"] == 19


def test_goodness_writes_files_of_computed_statistics_only(hidag, study, tmp_path, sum_nothing):
    fit, table, _ = study
    out = tmp_path / "goodness"
    words = ("goodness", fit, table, "--tables", 2, "--out", out)
    assert hidag(*words).stdout.endswith(
        f"wrote pairs.csv, items.csv, checks.csv, persons.csv into {out}\n"
    )
    sum_nothing()
    assert hidag(*words).stdout.endswith(f"\nwrote checks.csv, persons.csv into {out}\n")
    assert {path.name for path in out.iterdir()} == {"checks.csv", "persons.csv"}


def test_validate_q_finds_a_wrong_entry(hidag, study, tmp_path):
    _, _, items = study
    rows = [[name, int(j < 5), int(j >= 5)] for j, name in enumerate(ITEMS)]
    wrong = write_rows(tmp_path / "wrong.csv", ["item", "Verbal", "Spatial"], rows)
    out = tmp_path / "entries.csv"
    ran = hidag("validate-q", items, "--q", wrong, "--out", out, "--resamples", 2,
                "--family", "item0=bernoulli")  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    assert "2 of 16 entries would be changed" in ran.stdout
    assert "item4  -       +" in ran.stdout
    assert len(read_rows(out)) == 17


def test_validate_q_does_not_name_the_option_no_q(hidag, tmp_path, answers):
    write_rows(tmp_path / "responses.csv", ITEMS, answers.tolist())
    rows = [[name, int(j < 4), int(j >= 4)] for j, name in enumerate(ITEMS)]
    write_rows(tmp_path / "q.csv", ["item", "Verbal", "Spatial"], rows)
    ran = hidag("validate-q", tmp_path, "--changes", 1)
    assert ran.stdout.startswith(f"Q-matrix from {tmp_path / 'q.csv'}\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("classify", "FIT", "TABLE", "--id", "nane"),
         "has no column 'nane'; did you mean 'name'?"),
        (("standard-errors", "FIT", "TABLE", "--weights", "name"),
         "column 'name' must hold a number in every row"),
        (("standard-errors", "FIT", "TABLE", "--kind", "bootstrap"),
         "--kind must be louis, sandwich or scores, got 'bootstrap'"),
        (("validate-q", "ITEMS"),
         "there is no Q-matrix to validate; give one with --q, or give a folder that holds q.csv"),
        (("goodness", "FIT", "NOTHING"), "there is no file"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(hidag, study, tmp_path, words, sentence):
    fit, table, items = study
    places = {"FIT": fit, "TABLE": table, "ITEMS": items, "NOTHING": tmp_path / "none.csv"}
    ran = hidag(*(places.get(word, word) for word in words))
    assert ran.exit_code == 1
    assert sentence in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_another_fit_in_the_folder_removes_fit_statistics_of_the_first(hidag, table, tmp_path):
    out = tmp_path / "fit"
    quick = ("--no-plots", "--no-statistics", "--out", out)
    assert hidag("fit", table, "-k", 2, *quick).exit_code == 0
    before = {path.name for path in out.iterdir()}
    assert hidag("goodness", out, table, "--tables", 2, "--out", out).exit_code == 0
    # The same fit again is still what they are about.
    assert "removed" not in hidag("fit", table, "-k", 2, *quick).stdout
    (out / "items.csv").write_text("item,price\napple,1\n")
    ran = hidag("fit", table, "-k", 1, *quick)
    assert ran.stdout.endswith(
        "removed the fit statistics of the previous fit: pairs.csv, checks.csv, persons.csv\n"
    )
    assert {path.name for path in out.iterdir()} == {*before, "items.csv"}


def test_fit_statistics_of_a_fit_elsewhere_stay(hidag, table, tmp_path):
    fit, said = tmp_path / "fit", tmp_path / "said"
    quick = ("--no-plots", "--no-statistics", "--out")
    assert hidag("fit", table, "-k", 2, *quick, fit).exit_code == 0
    assert hidag("goodness", fit, table, "--tables", 2, "--out", said).exit_code == 0
    assert "removed" not in hidag("fit", table, "-k", 1, *quick, said).stdout
    assert (said / "pairs.csv").is_file()
