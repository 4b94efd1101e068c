from __future__ import annotations

from .conftest import ITEMS, write_rows


def named(tmp_path, answers):
    rows = [[f"pupil {i}", *row] for i, row in enumerate(answers.tolist())]
    return write_rows(tmp_path / "named.csv", ["who", *ITEMS], rows)


def test_every_command_that_advises_an_id_column_takes_one(hidag, tmp_path, answers, q_file):
    table = named(tmp_path, answers)
    for words in (
        ("select", table, "--fits", "none", "--folds", 0),
        ("validate-q", table, "--q", q_file, "--changes", 1),
    ):
        refused = hidag(*words)
        assert refused.exit_code == 1
        assert "a column that names the rows is left out with --id COLUMN" in refused.stderr
        ran = hidag(*words, "--id", "who")
        assert ran.exit_code == 0, ran.stderr
