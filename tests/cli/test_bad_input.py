"""Every bad input is one sentence on standard error and exit code 1 (2 for wrong usage)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .conftest import ITEMS, write_rows


def _refused(ran, sentence: str) -> None:
    assert ran.exception is None or isinstance(ran.exception, SystemExit)
    assert ran.stderr == f"hidag: {sentence}\n"
    assert ran.exit_code == 1


def _changed(path: Path, name: str, answers, column: int, values) -> Path:
    rows = answers.tolist()
    for row, value in zip(rows, values, strict=False):
        row[column] = value
    return write_rows(path / name, ITEMS, rows)


def test_missing_and_empty_files(hidag, table, tmp_path):
    _refused(
        hidag("fit", tmp_path / "answer.csv", "-k", 2),
        f"there is no file {tmp_path / 'answer.csv'}; did you mean 'answers.csv'?",
    )
    empty = tmp_path / "empty.csv"
    empty.touch()
    _refused(
        hidag("fit", empty, "-k", 2),
        f"{empty} is empty; expected a line with the names of the items and one line per sample",
    )


def test_truncated_file(hidag, table):
    table.write_text(table.read_text()[:-6])
    _refused(
        hidag("fit", table, "-k", 2),
        f"each line of {table} must have 8 cells, as the first has, but line 401 has 6 (1 such "
        "line); the file seems to be truncated",
    )


def test_text_in_a_column_of_numbers(hidag, tmp_path, answers):
    path = _changed(tmp_path, "text.csv", answers, 1, ["yes"])
    _refused(
        hidag("fit", path, "-k", 2),
        f"cells must be numbers, but {path} has the text 'yes' in column 'item1', line 2 (1 of 400 "
        "cells of this column; 1 of 8 columns); recode the text as numbers, or leave the cell "
        "empty or use --missing yes if the answer is missing",
    )


def test_negative_counts(hidag, tmp_path, answers):
    path = _changed(tmp_path, "negative.csv", answers, 0, [-2])
    types = write_rows(tmp_path / "types.csv", ["item", "type"], [["item0", "count"]])
    _refused(
        hidag("fit", path, "-k", 2, "--types", types),
        "--family item0=poisson needs counts >= 0, but item 'item0' has minimum -2 (1 of 8 items); "
        "use --family item0=gaussian for real-valued items",
    )


def test_binary_items_coded_one_and_two(hidag, tmp_path, answers):
    path = _changed(tmp_path, "two.csv", answers, 0, (answers[:, 0] + 1).tolist())
    _refused(
        hidag("fit", path, "-k", 2),
        "--family auto cannot infer the type of 1 of 8 items: 'item0': holds only 1 and 2: recode "
        "it as 0 and 1 for a binary item, or use two categories; set the types, for "
        "instance --family item0=categorical; the other items stay 'auto'",
    )
    assert hidag("fit", path, "-k", 2, "--family", "item0=categorical").exit_code == 0


def test_constant_and_empty_columns(hidag, tmp_path, answers):
    path = _changed(tmp_path, "constant.csv", answers, 3, [1] * 400)
    _refused(
        hidag("fit", path, "-k", 2),
        "each item needs at least two different values, but item 'item3' is 1 in all observed rows "
        "(1 of 8 items); leave the column out with --drop item3",
    )
    path = _changed(tmp_path, "missing.csv", answers, 3, [""] * 400)
    _refused(
        hidag("fit", path, "-k", 2),
        "each item needs at least one observed cell, but item 'item3' has none in 400 rows (1 of 8 "
        "items); leave the column out with --drop item3",
    )


def test_an_empty_row_is_not_an_error(hidag, tmp_path, answers):
    rows = answers.tolist()
    rows[0] = [""] * 8
    path = write_rows(tmp_path / "row.csv", ITEMS, rows)
    assert hidag("fit", path, "-k", 2).exit_code == 0


def test_duplicate_columns(hidag, tmp_path, answers):
    path = write_rows(tmp_path / "twice.csv", ["item1", *ITEMS[1:]], answers.tolist())
    _refused(
        hidag("fit", path, "-k", 2),
        f"the column names of {path} must be unique, but 'item1' occurs 2 times (1 of 7 names "
        "occur more than once); rename the columns in the file, or leave one out: "
        "--drop 'item1#2'",
    )


def test_impossible_numbers_of_latents(hidag, table):
    _refused(hidag("fit", table, "-k", 0), "--latents must be a whole number of at least 1, got 0")
    _refused(
        hidag("fit", table, "-k", 9),
        "--latents 9 is more than the 8 items of the table, and each latent needs at least one "
        "item of its own; use at most --latents 3, which 8 items can identify",
    )


@pytest.mark.parametrize(
    ("header", "rows", "sentence"),
    [
        (
            ["item", "A", "B"],
            [[name, 1, 1] for name in ITEMS[:-1]],
            "each item must have a row in the Q-matrix, but item 'item7' has none (1 of 8 items); "
            "add a row, with -1 for unknown entries",
        ),
        (
            ["item", "A", "B"],
            [[name, 1, 0] for name in ITEMS],
            "each latent needs at least one item, but latent 'B' has only zeros in the Q-matrix (1 "
            "of 2 latents); drop the column or mark the entries to be estimated with -1",
        ),
        (
            ["item", "A", "B"],
            [[name, 1, 1] for name in [*ITEMS[:-1], "itemm7"]],
            "the rows of the Q-matrix must be items of the table, but 'itemm7' is not one (1 of 8 "
            "rows); did you mean 'item7'?",
        ),
    ],
)
def test_bad_q(hidag, table, tmp_path, header, rows, sentence):
    path = write_rows(tmp_path / "q.csv", header, rows)
    _refused(hidag("fit", table, "--q", path), sentence)


def test_q_with_another_number_of_latents(hidag, table, q_file):
    _refused(
        hidag("fit", table, "--q", q_file, "-k", 3),
        "the Q-matrix must have shape (8, 3), one row per item and one column per latent, but it "
        "has shape (8, 2)",
    )


def test_the_folder_is_checked_before_the_fit(hidag, table, monkeypatch):
    monkeypatch.setattr("hidag.estimator.DCRL.fit", None)
    _refused(
        hidag("fit", table, "-k", 2, "--out", table / "fit"),
        f"cannot write {table / 'fit'}: Not a directory; choose another place with --out",
    )


def test_a_failing_writer_leaves_the_folder_as_it_was(hidag, table, tmp_path, monkeypatch):
    out = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", out, "--no-plots").exit_code == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hidag.results.FitResult.save", full)
    _refused(
        hidag("fit", table, "-k", 2, "--out", out, "--seed", 9, "--starts", 1),
        f"cannot write {out}: No space left on device; choose another place with --out",
    )
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


def test_a_folder_without_a_table(hidag, tmp_path):
    (tmp_path / "notes.txt").touch()
    _refused(
        hidag("fit", tmp_path, "-k", 2),
        f"the folder {tmp_path} must hold a table named responses.csv or responses.parquet, but it "
        "holds notes.txt",
    )


def test_binomial_items_without_trials_are_an_error(hidag, table, tmp_path):
    types = write_rows(tmp_path / "types.csv", ["item", "type"], [["item2", "binomial"]])
    _refused(
        hidag("fit", table, "-k", 2, "--types", types),
        "item 'item2' (1 of 8 items): family='binomial' needs its number of trials in "
        "parentheses; use for instance 'binomial(20)'",
    )


@pytest.mark.parametrize(
    "words",
    [
        ["fit"],
        ["fit", "{table}"],
        ["fit", "{table}", "-k", "two"],
        ["fit", "{table}", "-k", "2", "--seed", "-1"],
        ["frobnicate"],
        ["fit", "{table}", "--frobnicate"],
        ["simulate"],
    ],
)
def test_wrong_usage_is_exit_code_two(hidag, table, words):
    ran = hidag(*(word.format(table=table) for word in words))
    assert ran.exit_code == 2
    assert "Usage: " in ran.stderr


def test_a_file_that_no_fit_wrote_is_not_overwritten(hidag, table, tmp_path):
    study = tmp_path / "study"
    study.mkdir()
    (study / "q.csv").write_text("item,skill\nx,1\n")
    ran = hidag("fit", table, "-k", 2, "--out", study)
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"hidag: the results would overwrite {study / 'q.csv'}, which no earlier run has written; "
        "choose another folder with --out\n"
    )
    assert (study / "q.csv").read_text() == "item,skill\nx,1\n"


def test_an_empty_cell_of_q_is_an_entry_to_estimate(hidag, tmp_path, answers):
    study = tmp_path / "study"
    study.mkdir()
    write_rows(study / "responses.csv", ITEMS, answers[:80].tolist())
    rows = [[name, "x" if j == 1 else int(j < 4), int(j >= 4)] for j, name in enumerate(ITEMS)]
    write_rows(study / "q.csv", ["item", "A", "B"], rows)
    ran = hidag("fit", study, "--out", tmp_path / "out")
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"hidag: cells must be numbers, but {study / 'q.csv'} has the text 'x' in column 'A', line "
        f"3 (1 of {len(ITEMS)} cells of this column; 1 of 2 columns); recode the text as numbers, "
        "or leave the cell empty to have the entry estimated\n"
    )


def test_a_q_file_without_latents(hidag, table, tmp_path):
    (tmp_path / "empty_q.csv").write_text("item\nitem0\n")
    ran = hidag("fit", table, "-k", 2, "--q", tmp_path / "empty_q.csv")
    assert ran.exit_code == 1
    assert "must have a column per latent beside the column item" in ran.stderr


def test_times_above_the_limit_cause_a_warning(hidag, tmp_path, answers):
    times = np.exp(answers[:, 0] + np.random.default_rng(4).normal(0, 0.5, len(answers)))
    path = _changed(tmp_path, "times.csv", answers, 0, times.round(2).tolist())
    ran = hidag("fit", path, "-k", 2, "--family", "item0=censored-lognormal(2)")
    assert ran.exit_code == 0
    n_above, top = int((times.round(2) > 2).sum()), times.max().round(2)
    assert (
        f"warning: --family 'item0=censored-lognormal(2)': item 'item0' has {n_above} of 400 "
        f"values above its limit, up to {top:g} (1 of 8 items); the fit treats them as censored at "
        "2; put a higher limit in parentheses if they were measured"
    ) in ran.stderr
