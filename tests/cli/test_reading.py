"""What is said about columns once, at the fit: codes for missing answers, columns left out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from hidag.cli.data_source import parse_drop, parse_missing
from hidag.exceptions import SettingError
from hidag.results import load

from .conftest import ITEMS, read_rows, write_rows

QUICK = ("--latents", 1, "--no-plots", "--no-statistics")


@pytest.fixture
def coded(tmp_path, answers):
    """A table with codes for missing answers and a remark, and the same with empty cells."""
    rows, empty = answers[:120].tolist(), answers[:120].tolist()
    for row, code in ((0, "99"), (5, " 99.0 "), (9, "-9"), (11, "refused")):
        rows[row][2], empty[row][2] = code, ""
    remarks = [["?", *row] for row in rows]
    table = write_rows(tmp_path / "coded.csv", ["remark", *ITEMS], remarks)
    return table, write_rows(tmp_path / "empty.csv", ITEMS, empty)


def test_missing_codes_are_stored_with_the_fit(hidag, coded, tmp_path):
    table, empty = coded
    said = ("--missing", "99,-9", "--missing", "item2=refused", "--drop", "rem*")
    ran = hidag("fit", table, *QUICK, *said, "--out", tmp_path / "fit")
    assert ran.exit_code == 0, ran.stderr
    assert hidag("fit", empty, *QUICK, "--out", tmp_path / "same").exit_code == 0
    ours, theirs = load(tmp_path / "fit" / "result.npz"), load(tmp_path / "same" / "result.npz")
    assert ours.item_names == theirs.item_names == tuple(ITEMS)
    np.testing.assert_array_equal(ours.loadings, theirs.loadings)
    assert ours.reading == {"missing": ["99,-9", "item2=refused"], "drop": ["rem*"]}
    for words in (
        ("classify", "FIT", table, "--out", "OUT"),
        ("standard-errors", "FIT", table, "--out", "OUT"),
        ("goodness", "FIT", table, "--tables", 2, "--json"),
    ):
        outputs = []
        for fit, read in ((tmp_path / "fit", table), (tmp_path / "same", empty)):
            out = tmp_path / f"{fit.name}.csv"
            named = {"FIT": fit, "OUT": out, table: read}
            ran = hidag(*(named.get(word, word) for word in words))
            assert ran.exit_code == 0, ran.stderr
            outputs.append(read_rows(out) if "OUT" in words else ran.stdout)
        assert outputs[0] == outputs[1]
    ran = hidag("bootstrap", tmp_path / "fit", table, "-r", 2, "--jobs", 1, "--start", "fitted")
    assert ran.exit_code == 0, ran.stderr


def test_other_commands_take_the_same_options(hidag, coded, q_file):
    table, _ = coded
    said = ("--missing", "99,-9,refused", "--drop", "remark")
    for words in (
        ("select", table, "--fits", "none", "--folds", 0),
        ("validate-q", table, "--q", q_file, "--changes", 0),
    ):
        ran = hidag(*words, *said)
        assert ran.exit_code == 0, ran.stderr


def test_types_and_q_may_name_dropped_columns(hidag, tmp_path, answers):
    write_rows(tmp_path / "responses.csv", ITEMS, answers[:120].tolist())
    write_rows(tmp_path / "types.csv", ["item", "type"], [[name, "binary"] for name in ITEMS])
    rows = [[name, int(j < 4), int(j >= 4)] for j, name in enumerate(ITEMS)]
    write_rows(tmp_path / "q.csv", ["item", "Verbal", "Spatial"], rows)
    ran = hidag("fit", tmp_path, "--drop", "item3,item7")
    assert ran.exit_code == 0, ran.stderr
    assert "120 rows, 6 items" in ran.stdout


def test_messages_name_the_options(hidag, coded, tmp_path, answers):
    table, _ = coded
    assert hidag("fit", table, *QUICK).stderr == (
        f"hidag: cells must be numbers, but {table} has the text '?' in column 'remark', line 2 "
        "(120 of 120 cells of this column; 2 of 9 columns, also 'item2'); recode the text as "
        "numbers; leave out a column that is not an item with --drop remark, or with --id remark "
        "if it identifies rows\n"
    )
    assert hidag("fit", table, *QUICK, "--drop", "remark").stderr == (
        f"hidag: cells must be numbers, but {table} has the text 'refused' in column 'item2', line "
        "13 (1 of 120 cells of this column; 1 of 8 columns); recode the text as numbers, or leave "
        "the cell empty or use --missing refused if the answer is missing\n"
    )
    rows = answers[:120].tolist()
    for row in range(9):
        rows[row][2] = -9
    table = write_rows(tmp_path / "nine.csv", ITEMS, rows)
    code = "-9 in 9 of 120 cells, apart from the other values (0 to 1)"
    option = "use --missing -9 if -9 stands for a missing answer"
    assert hidag("fit", table, *QUICK).stderr == (
        f"hidag: --family auto cannot infer the type of 1 of 8 items: 'item2': holds {code}; "
        f"{option}\n"
    )
    ran = hidag("fit", table, *QUICK, "--family", "item2=bernoulli")
    assert ran.stderr == (
        "hidag: --family item2=bernoulli needs 0 and 1, but item 'item2' has -9 in 9 of 120 cells "
        "(1 of 8 items); recode the item as 0 and 1, or use another family; it "
        f"holds {code}: {option}\n"
    )
    ran = hidag("fit", table, *QUICK, "--family", "item2=gaussian")
    assert f"hidag: warning: item 'item2' holds {code} (1 of 8 items); {option}\n" in ran.stderr
    assert hidag("fit", table, *QUICK, "--missing", "-9").exit_code == 0


@pytest.mark.parametrize("first", ["", "NA"])
@pytest.mark.parametrize(
    ("other", "shown", "typed"),
    [
        ("maybe", "'maybe'", "maybe"),
        ("don't know", '"don\'t know"', '"don\'t know"'),
        ("9", "'9'", "9"),
    ],
)
def test_the_advice_about_a_text_among_yes_and_no_works(
    hidag, tmp_path, answers, first, other, shown, typed
):
    rows = [["yes" if row[0] else "no", *row[1:]] for row in answers[:120].tolist()]
    rows[0][0] = first or rows[0][0]
    rows[6][0] = rows[7][0] = other
    table = write_rows(tmp_path / "words.csv", ITEMS, rows)
    assert hidag("fit", table, *QUICK).stderr == (
        f"hidag: columns of yes and no must hold nothing else, but {table} has {shown} in column "
        "'item0', line 8 (2 of 120 cells of this column; 1 of 8 columns); recode it as yes or no, "
        f"or leave the cell empty or use --missing {typed} if the answer is missing\n"
    )
    ran = hidag("fit", table, *QUICK, "--missing", other)
    assert ran.stdout.startswith("yes or true is read as 1 and no or false as 0 in item0\n")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (
            "unsure",
            "items of yes and no must hold nothing else, but item 'item0' has 'unsure' in row 6, "
            "counting from 0 (2 of 120 cells of this item; 1 of 8 items); recode it as yes or no, "
            "or leave the cell empty or use --missing unsure if the answer is missing",
        ),
        # The option would take the sign for its own.
        (
            "a,b",
            "items of yes and no must hold nothing else, but item 'item0' has 'a,b' in row 6, "
            "counting from 0 (2 of 120 cells of this item; 1 of 8 items); recode it as yes or no, "
            "or use None for a missing answer",
        ),
    ],
)
def test_texts_in_parquet_files_get_the_same_advice(hidag, tmp_path, answers, other, expected):
    columns = dict(zip(ITEMS, answers[:120].T.tolist(), strict=True))
    columns["item0"] = ["yes" if one else "no" for one in columns["item0"]]
    columns["item0"][6] = columns["item0"][7] = other
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), tmp_path / "words.parquet")
    assert hidag("fit", tmp_path / "words.parquet", *QUICK).stderr == f"hidag: {expected}\n"
    if "," not in other:
        assert hidag("fit", tmp_path / "words.parquet", *QUICK, "--missing", other).exit_code == 0


def test_texts_of_most_cells_are_not_called_missing(hidag, tmp_path, answers):
    rows = [["often" if row[0] else "never", *row[1:]] for row in answers[:120].tolist()]
    rows[0][0] = "NA"
    table = write_rows(tmp_path / "words.csv", ITEMS, rows)
    first = rows[1][0]
    assert hidag("fit", table, *QUICK).stderr == (
        f"hidag: cells must be numbers, but {table} has the text {first!r} in column 'item0', line "
        "3 (119 of 120 cells of this column; 1 of 8 columns); recode 'never' and 'often' as "
        "numbers, or list the labels with --words item0=never,often, separated by < from low to "
        "high if they are ordered; leave out a column that is not an item with --drop item0, or "
        "with --id item0 if it identifies rows\n"
    )


def test_yes_and_no_are_read_as_1_and_0_throughout(hidag, tmp_path, answers):
    rows = answers[:120].tolist()
    plain = write_rows(tmp_path / "plain.csv", ITEMS, rows)
    words = [["", *row[1:]] if i == 4 else row for i, row in enumerate(rows)]
    for row in words:
        row[0] = {1: "Yes", 0: "no"}.get(row[0], row[0])
        row[1] = "T" if row[1] else "f"
    table = write_rows(tmp_path / "words.csv", ITEMS, words)
    ran = hidag("fit", table, *QUICK, "--out", tmp_path / "fit")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith(
        "yes or true is read as 1 and no or false as 0 in item0 and item1\n"
    )
    reasons = load(tmp_path / "fit" / "result.npz").family_reasons
    assert reasons[1:3] == (
        "holds only 0 and 1, read from words such as yes and no",
        "holds only 0 and 1",
    )
    for command in ("classify", "standard-errors"):
        assert hidag(command, tmp_path / "fit", table).exit_code == 0
    assert hidag("goodness", tmp_path / "fit", table, "--tables", 2).exit_code == 0
    words = ("-r", 2, "--jobs", 1, "--start", "fitted")
    assert hidag("bootstrap", tmp_path / "fit", table, *words).exit_code == 0
    assert hidag("report", tmp_path / "fit").exit_code == 0
    placed = [
        json.loads(hidag("classify", tmp_path / "fit", file, "--json").stdout)[0]["P(Z1=1)"]
        for file in (table, plain)
    ]
    assert placed[0] == pytest.approx(placed[1])


def test_yes_and_no_in_parquet_are_noted(hidag, tmp_path, answers):
    columns = {name: answers[:120, j].tolist() for j, name in enumerate(ITEMS)}
    columns["item0"] = [None, *("Yes" if answer else "no" for answer in columns["item0"][1:])]
    columns["item1"] = pa.array(["T" if answer else "F" for answer in columns["item1"]])
    columns["item1"] = columns["item1"].dictionary_encode()
    columns["item2"] = [str(answer) for answer in columns["item2"]]
    parquet.write_table(pa.table(columns), tmp_path / "words.parquet")
    ran = hidag("fit", tmp_path / "words.parquet", *QUICK, "--out", tmp_path / "fit")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith(
        "yes or true is read as 1 and no or false as 0 in item0 and item1\n"
    )
    reasons = load(tmp_path / "fit" / "result.npz").family_reasons
    assert reasons[1:3] == (
        "holds only 0 and 1, read from words such as yes and no",
        "holds only 0 and 1",
    )


def test_codes_are_read_item_by_item():
    assert parse_missing(["99, -9", "b*=7"], ["a", "b1"]) == {
        "a": ["99", "-9"],
        "b1": ["99", "-9", "7"],
    }
    with pytest.raises(SettingError) as caught:
        parse_missing(["x="], ["a"])
    assert str(caught.value) == "--missing takes CODES or COLUMN=CODES, such as 99,-9, got 'x='"
    with pytest.raises(SettingError) as caught:
        parse_drop(["nam"], ["name", "a"])
    assert str(caught.value) == (
        "--drop names the column 'nam', which the table does not have; did you mean 'name'?"
    )
    with pytest.raises(SettingError) as caught:
        parse_drop(["x*"], ["name", "a"])
    assert str(caught.value) == (
        "--drop names the column 'x*', which the table does not have; the first column is 'name'"
    )


@pytest.mark.parametrize("more", [(), ("--missing", "item0=9"), ("--words", "item0=no,yes")])
def test_dropping_all_columns_is_an_error(hidag, table, more):
    assert hidag("fit", table, *QUICK, "--drop", "*", *more).stderr == (
        f"hidag: {table} must have columns that are items, but all 8 of its columns are left out; "
        "name fewer columns with --drop, --id and --weights\n"
    )


def test_the_index_of_a_parquet_file_can_be_the_id_column(hidag, tmp_path, answers):
    people = pd.Index([f"p{i}" for i in range(120)], name="who")
    table = tmp_path / "indexed.parquet"
    pd.DataFrame(answers[:120], columns=ITEMS, index=people).to_parquet(table)
    ran = hidag("fit", table, *QUICK)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith("who names the rows and is not an item\n")
    ran = hidag("fit", table, *QUICK, "--id", "who", "--out", tmp_path / "fit")
    assert ran.exit_code == 0, ran.stderr
    assert "no item" not in ran.stdout
    assert load(tmp_path / "fit" / "result.npz").item_names == tuple(ITEMS)
    assert read_rows(tmp_path / "fit" / "posterior.csv")[1][0] == "p0"
    assert hidag("fit", table, *QUICK, "--drop", "who").exit_code == 0


def test_decimal_commas_are_read_in_items_and_weights(hidag, tmp_path, answers):
    rng = np.random.default_rng(6)
    values = (answers[:120] + rng.normal(0, 0.5, (120, 8))).round(3)
    weights = rng.uniform(1, 2, 120).round(3)
    lines = [";".join(["w", *ITEMS])]
    lines += [";".join(map(str, (w, *row))) for w, row in zip(weights, values, strict=True)]
    text = "\n".join(lines) + "\n"
    plain, commas = tmp_path / "plain.csv", tmp_path / "commas.csv"
    plain.write_text(text, "utf-8")
    commas.write_text(text.replace(".", ","), "utf-8")
    fits = []
    for table in (plain, commas):
        fit = tmp_path / table.stem
        ran = hidag("fit", table, *QUICK, "--weights", "w", "--out", fit)
        assert ran.exit_code == 0, ran.stderr
        fits.append(load(fit / "result.npz"))
    np.testing.assert_array_equal(fits[0].loadings, fits[1].loadings)
    cell = str(values[0, 0])
    # Three digits behind a comma might be the last of a thousand.
    sure = next(str(w) for w in weights if len(str(w)) < len("1,234"))
    assert ran.stdout.startswith(
        f"a comma marks decimals in 8 columns: '{cell.replace('.', ',')}' in item0 is read as "
        f"{cell}\na comma marks decimals in 1 column: '{sure.replace('.', ',')}' in w is read as "
        f"{sure}\nweights from column w: "
    )
    out = ("--out", tmp_path / "people.csv")
    assert hidag("classify", tmp_path / "commas", commas, *out).exit_code == 0


def test_one_of_two_columns_with_the_same_name_can_be_dropped(hidag, tmp_path, answers):
    rows = [["x", *row] for row in answers[:120].tolist()]
    table = write_rows(tmp_path / "twice.csv", ["item1", *ITEMS], rows)
    once = write_rows(tmp_path / "once.csv", ITEMS, answers[:120].tolist())
    ran = hidag("fit", table, *QUICK, "--drop", "item1", "--out", tmp_path / "second")
    assert ran.exit_code == 0, ran.stderr
    names = load(tmp_path / "second" / "result.npz").item_names
    assert names == ("item0", "item1#2", *ITEMS[2:])
    table = write_rows(tmp_path / "last.csv", [*ITEMS, "item1"], [[*r[1:], "x"] for r in rows])
    ran = hidag("fit", table, *QUICK, "--drop", "item1#2", "--out", tmp_path / "first")
    assert ran.exit_code == 0, ran.stderr
    assert load(tmp_path / "first" / "result.npz").item_names == tuple(ITEMS)
    # Later commands know what was left out, and take tables that have nothing to be left out.
    for again in (table, once):
        ran = hidag("classify", tmp_path / "first", again)
        assert ran.exit_code == 0, ran.stderr
    three = write_rows(tmp_path / "three.csv", [*ITEMS, "item1", "item1"], [[0] * 10] * 5)
    assert hidag("classify", tmp_path / "first", three).stderr == (
        f"hidag: the column names of {three} must be unique, but 'item1' occurs 2 times (1 of 8 "
        "names occur more than once); rename the columns in the file, or remove them\n"
    )


def test_the_id_column_must_have_a_unique_name(hidag, tmp_path, answers):
    rows = [["x", *row, i] for i, row in enumerate(answers[:120].tolist())]
    table = write_rows(tmp_path / "who.csv", ["who", *ITEMS, "who"], rows)
    assert hidag("fit", table, *QUICK, "--id", "who").stderr == (
        f"hidag: the column names of {table} must be unique, but 'who' occurs 2 times (1 of 9 "
        "names occur more than once); rename the columns in the file, or leave one out: "
        "--drop 'who#2'\n"
    )
    ran = hidag("fit", table, *QUICK, "--id", "who#2", "--drop", "who")
    # Two latents drive the items, and one is fitted.
    assert (ran.exit_code, ran.stderr.count("\n")) == (0, 1)
    assert "the latents are too few" in ran.stderr
