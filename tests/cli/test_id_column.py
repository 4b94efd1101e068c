from __future__ import annotations

from .conftest import ITEMS, write_rows


def named(tmp_path, answers):
    rows = [[f"pupil {i}", *row] for i, row in enumerate(answers.tolist())]
    return write_rows(tmp_path / "named.csv", ["who", *ITEMS], rows)


def test_names_that_occur_twice_are_told(hidag, tmp_path, answers):
    rows = [[f"pupil {i // 2}", *row] for i, row in enumerate(answers[:100].tolist())]
    table = write_rows(tmp_path / "twice.csv", ["who", *ITEMS], rows)
    said = (
        "hidag: warning: column 'who' names 2 rows alike, 'pupil 0' (50 of 50 names are used more "
        "than once): rows cannot be told apart by it\n"
    )
    ran = hidag("fit", table, "--latents", 1, "--id", "who", "--no-plots", "--out", tmp_path / "f")
    assert said in ran.stderr
    ran = hidag("classify", tmp_path / "f", table, "--id", "who")
    assert ran.exit_code == 0
    assert ran.stderr == said


def test_a_folder_without_a_fit_is_told_as_such(hidag, tmp_path):
    assert hidag("report", tmp_path).stderr == (
        f"hidag: the folder {tmp_path} holds no fit (result.npz); give one that hidag fit --out "
        "wrote\n"
    )
    assert hidag("report", tmp_path / "none").stderr == (
        f"hidag: there is no fit {tmp_path / 'none'}; give a folder that hidag fit --out wrote\n"
    )


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
