from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hidag.data import read_file, read_folder, read_table
from hidag.data.readers import read_columns
from hidag.exceptions import DataError

NAN = float("nan")


def write(tmp_path: Path, text: str, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a;b\n1;2,5\n", [[1, 2.5]]),
        ("a;b\n1;0,125\n", [[1, 0.125]]),
        ("a\tb\n1\t-2,5\n", [[1, -2.5]]),
        ("a;b\n;+2,5\nNA; ,5 \n3;7\n", [[NAN, 2.5], [NAN, 0.5], [3, 7]]),
        ("a;b\n1,5E-03;1,016\n2;10,250\n", [[0.0015, 1.016], [2, 10.25]]),
        ("a;b\n1.234,5;0,1\n1.234.567,25;2\n", [[1234.5, 0.1], [1234567.25, 2]]),
    ],
)
def test_unambiguous_decimal_commas_are_converted(
    tmp_path: Path, text: str, values: list[list[float]]
) -> None:
    table = read_table(read_file(write(tmp_path, text)))
    np.testing.assert_array_equal(table.values, values)


def test_a_note_names_the_converted_columns(tmp_path: Path) -> None:
    two = write(tmp_path, "a;b;c\n1,016;1;0,50\n")
    assert read_folder(two).notes == (
        "a comma marks decimals in 2 columns: '0,50' in c is read as 0.50",
    )
    assert read_folder(two, leave_out=["a"]).notes == (
        "a comma marks decimals in 1 column: '0,50' in c is read as 0.50",
    )
    assert read_folder(write(tmp_path, "a;b\n1.5;1\n")).notes == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "a;b\n1;1,016\n2;2,345\n",
            "'1,016' in column 'b', line 2 (2 of 2 cells of this column; 1 of 2 columns); write "
            "1016 if its commas separate thousands, 1.016 if they mark decimals",
        ),
        (
            "a;b\n2,5;1\n1,234,567;2\n",
            "'2,5' in column 'a', line 2 (2 of 2 cells of this column; 1 of 2 columns); write "
            "decimals with a point",
        ),
        (
            "a;b\n2,5;1\n3,5;0.0\n",
            "'2,5' in column 'a', line 2 (2 of 2 cells of this column; 1 of 2 columns); write "
            "decimals with a point, and thousands without any: there is '0.0' in column 'b'",
        ),
        (
            "a;b\n2,5;1.234\n3,5;7\n",
            "'2,5' in column 'a', line 2 (2 of 2 cells of this column; 1 of 2 columns); write "
            "decimals with a point, and thousands without any: there is '1.234' in column 'b'",
        ),
        (
            'a,b\n"2,5",1\n"3,5",0\n',
            "'2,5' in column 'a', line 2 (2 of 2 cells of this column; 1 of 2 columns); write "
            "decimals with a point",
        ),
        (
            "a;b\n2,5;1\nmuch;0\n",
            "'much' in column 'a', line 3 (1 of 2 cells of this column; 1 of 2 columns); recode "
            "the text as numbers, or leave the cell empty if the answer is missing",
        ),
    ],
)
def test_ambiguous_commas_are_an_error_with_advice(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_file(path)
    assert str(caught.value) == f"cells must be numbers, but {path} has the text {sentence}"


def test_columns_left_out_do_not_affect_decimal_commas(tmp_path: Path) -> None:
    path = write(tmp_path, "time;a;w\n12.30;2,5;1,5\n08.15;1;2\n")
    table = read_table(read_file(path, leave_out=["time", "w"]))
    np.testing.assert_array_equal(table.values, [[2.5], [1]])
    assert read_columns(path, ["a"], ["time", "w"])[1] == {
        "time": ["12.30", "08.15"],
        "w": ["1.5", "2"],
    }


def test_codes_for_missing_answers_are_found_among_decimal_commas(tmp_path: Path) -> None:
    path = write(tmp_path, "a;b\n2,5;1\n-99,0;0\nk. A.;1\n")
    table = read_table(read_file(path, missing={"a": ["-99", "k. A."]}))
    np.testing.assert_array_equal(table.values, [[2.5, 1], [NAN, 0], [NAN, 1]])
