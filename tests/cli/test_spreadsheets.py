"""Text that a spreadsheet would evaluate is written after an apostrophe, and read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hidag import load
from hidag.formatting import protect_cell, unprotect_cell

from .conftest import read_rows, write_rows

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\r=1", "'=1"]


@given(st.text())
def test_protected_text_is_read_back(text):
    assert unprotect_cell(protect_cell(text)) == text
    assert not protect_cell(text).startswith(("=", "@"))


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_protected(text):
    assert protect_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-5", "+3.5", "-1e-3", "Z1", "'quoted'", "007", ""])
def test_numbers_and_other_text_stay(text):
    assert protect_cell(text) == text


def test_names_and_ids_of_a_fit_are_protected_and_read_back(hidag, answers, tmp_path):
    names = ["=1+1", "-b", "@c", "+d", "e", "f", "g", "h"]
    ids = ["=SUM(A1)", "+1", "-x", *[f"p{i}" for i in range(len(answers) - 3)]]
    rows = [[one, *row] for one, row in zip(ids, answers.tolist(), strict=True)]
    table = write_rows(tmp_path / "t.csv", ["id", *names], rows)
    out = tmp_path / "fit"
    words = ("fit", table, "-k", 2, "--id", "id", "--out", out, "--no-plots", "--no-statistics")
    ran = hidag(*words)
    assert ran.exit_code == 0, ran.stderr
    assert load(out).item_names == tuple(names)
    for file in out.glob("*.csv"):
        for row in read_rows(file):
            assert not any(c.startswith(("=", "@")) or c in ("-b", "+d", "-x") for c in row), file
    people = tmp_path / "people.csv"
    assert hidag("classify", out, table, "--out", people).exit_code == 0
    found = read_rows(people)
    assert [row[0] for row in found[1:4]] == ["'=SUM(A1)", "+1", "'-x"]
    assert all(row[1].startswith("'") for row in found[1:])
    again = hidag("fit", table, "--id", "id", "--q", out / "q.csv", "--no-plots")
    assert again.exit_code == 0, again.stderr
