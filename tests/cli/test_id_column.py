from __future__ import annotations

from datetime import date

import pytest

from hidag.cli.data_source import warn_of_ids

from .conftest import ITEMS, read_rows, write_rows


def named(tmp_path, answers):
    rows = [[f"pupil {i}", *row] for i, row in enumerate(answers.tolist())]
    return write_rows(tmp_path / "named.csv", ["who", *ITEMS], rows)


def test_repeated_ids_cause_a_warning(hidag, tmp_path, answers):
    rows = [[f"pupil {i // 2}", *row] for i, row in enumerate(answers[:100].tolist())]
    table = write_rows(tmp_path / "twice.csv", ["who", *ITEMS], rows)
    said = (
        "hidag: warning: column 'who' does not identify all rows: it has 'pupil 0' in rows 1 and "
        "2 (50 of 50 identifiers occur more than once)\n"
    )
    ran = hidag("fit", table, "--latents", 1, "--id", "who", "--no-plots", "--out", tmp_path / "f")
    assert said in ran.stderr
    ran = hidag("classify", tmp_path / "f", table, "--id", "who")
    assert ran.exit_code == 0
    assert ran.stderr == said


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a"] * 5, "'a' in rows 1, 2 and 3 more (1 of 1 identifiers occurs more than once)"),
        ([7, 8, 7, 9], "7 in rows 1 and 3 (1 of 3 identifiers occurs more than once)"),
        (
            [date(2020, 1, 1)] * 2,
            "2020-01-01 in rows 1 and 2 (1 of 1 identifiers occurs more than once)",
        ),
        (["a", "b", "b", "a"], "'a' in rows 1 and 4 (2 of 2 identifiers occur more than once)"),
    ],
)
def test_the_warning_about_repeated_ids(capsys, names, said):
    warn_of_ids(names, "who")
    start = "hidag: warning: column 'who' does not identify all rows: it has "
    assert capsys.readouterr().err == f"{start}{said}\n"


def test_missing_ids_cause_a_warning(hidag, tmp_path, answers):
    rows = [["" if i in (3, 7, 9) else i, *row] for i, row in enumerate(answers[:100].tolist())]
    table = write_rows(tmp_path / "blank.csv", ["who", *ITEMS], rows)
    assert (
        "hidag: warning: column 'who' has no identifier for rows 4, 8 and 1 more (3 of 100 rows)\n"
        in hidag("fit", table, "--latents", 1, "--id", "who").stderr
    )


def test_goodness_and_classify_use_the_id_column_of_the_fit(hidag, tmp_path, answers):
    table = named(tmp_path, answers[:100])
    fit = tmp_path / "fit"
    words = ("--latents", 1, "--id", "who", "--no-plots", "--no-statistics", "--out", fit)
    assert hidag("fit", table, *words).exit_code == 0
    ran = hidag("goodness", fit, table, "--tables", 2, "--out", tmp_path / "goodness")
    assert ran.exit_code == 0, ran.stderr
    assert read_rows(tmp_path / "goodness" / "persons.csv")[1][0] == "pupil 0"
    assert hidag("classify", fit, table, "--out", tmp_path / "people.csv").exit_code == 0
    assert read_rows(tmp_path / "people.csv")[1][0] == "pupil 0"
    bare = write_rows(tmp_path / "bare.csv", ITEMS, answers[:100].tolist())
    assert hidag("classify", fit, bare, "--out", tmp_path / "rows.csv").exit_code == 0
    assert read_rows(tmp_path / "rows.csv")[1][0] == "1"
    other = write_rows(
        tmp_path / "other.csv",
        ["nick", *ITEMS],
        [[f"nick {i}", *row] for i, row in enumerate(answers[:100].tolist())],
    )
    words = ("--tables", 2, "--id", "nick", "--out", tmp_path / "nicks")
    assert hidag("goodness", fit, other, *words).exit_code == 0
    assert read_rows(tmp_path / "nicks" / "persons.csv")[1][0] == "nick 0"


def test_a_folder_without_a_fit_is_an_error(hidag, tmp_path):
    assert hidag("report", tmp_path).stderr == (
        f"hidag: the folder {tmp_path} holds no fit (result.npz); give a folder that hidag fit "
        "--out wrote\n"
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
        assert "or with --id who if it identifies rows" in refused.stderr
        ran = hidag(*words, "--id", "who")
        assert ran.exit_code == 0, ran.stderr


def test_row_numbers_are_an_error_that_names_the_options(hidag, tmp_path, answers):
    rows = [[i + 1, *row] for i, row in enumerate(answers.tolist())]
    table = write_rows(tmp_path / "numbered.csv", ["nr", *ITEMS], rows)
    ran = hidag("fit", table, "--latents", 1)
    assert (ran.exit_code, ran.stderr) == (
        1,
        "hidag: --family auto cannot infer the type of 1 of 9 items: 'nr': holds whole numbers "
        "from 1 to 400 (400 different in 400 cells), which repeat less often than responses "
        "do: row identifiers? leave out a column that identifies rows with --id nr or --drop nr, "
        "or set its type with --family ITEM=TYPE to use it\n",
    )
    assert hidag("select", table).stderr == ran.stderr
    assert hidag("fit", table, "--latents", 1, "--drop", "nr").exit_code == 0
    kept = hidag("fit", table, "--latents", 1, "--family", "nr=gaussian")
    assert (kept.exit_code, "identifiers" in kept.stderr) == (0, False)


def test_counts_that_rarely_repeat_cause_a_warning_on_the_command_line(hidag, tmp_path, answers):
    wide = [n + n**4 // 1000 for n in range(98)]
    rows = [[n, *row] for n, row in zip(wide, answers.tolist(), strict=False)]
    table = write_rows(tmp_path / "wide.csv", ["nr", *ITEMS], rows)
    ran = hidag("fit", table, "--latents", 1)
    assert ran.exit_code == 0
    assert (
        "hidag: warning: item 'nr' is modelled as counts, but 98 of its 98 cells are different, as "
        "row identifiers are (1 of 9 items); leave out a column that identifies rows with --id nr "
        "or --drop nr, or set its type with --family ITEM=TYPE to use it\n"
    ) in ran.stderr
