"""Reading text and Parquet files, and errors about files that cannot be read."""

from __future__ import annotations

import gzip
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hidag.data import read_file, read_table
from hidag.exceptions import DataError, FileError, MissingPackageError

from .helpers import NAN, write


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,NA\n0,2.5\n"),
        ("t.csv", "a,b\r\n1,\r\n0,2.5"),
        ("t.csv", "\ufeffa,b\n1,.\n\n 0 ,2.5\n"),
        ("t.csv", '"a","b"\n"1","NaN"\n"0","2.5"\n'),
        ("t.csv", '"a","b"\n1,""\n0,2.5\n'),
        ("t.csv", "a;b\n1;null\n0;2.5\n"),
        ("t.tsv", "a\tb\n1\tNone\n0\t2.5\n"),
        ("T.CSV", "a,b\nTRUE,nan\nFALSE,2.5\n"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,NA\n0,2.5\n", mtime=0)),
    ],
)
def test_text_files(tmp_path: Path, name: str, content: str | bytes) -> None:
    table = read_table(read_file(write(tmp_path / name, content)))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, NAN], [0, 2.5]])


def test_an_empty_line_of_a_single_column_is_a_missing_answer(tmp_path: Path) -> None:
    table = read_table(read_file(write(tmp_path / "t.csv", "a\n1\n\n3\n")))
    np.testing.assert_array_equal(table.values[:, 0], [1, NAN, 3])


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 0], "b": [None, 2.5]}), tmp_path / "t.parquet")
    table = read_table(read_file(str(tmp_path / "t.parquet")))
    np.testing.assert_array_equal(table.values, [[1, NAN], [0, 2.5]])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "t.csv",
            "",
            "{} is empty; expected a line with the names of the items and one line per sample",
        ),
        (
            "t.csv",
            "\n\n",
            "{} is empty; expected a line with the names of the items and one line per sample",
        ),
        (
            "t.csv",
            "a,b\n1,2\n3\n4,5\n6\n7,8\n",
            "each line of {} must have 2 cells, as the first has, but line 3 has 1 (2 such "
            "lines); correct the line",
        ),
        (
            "t.csv",
            'a,b\n"1\n",2\n\n3,4,5\n6,7\n',
            "each line of {} must have 2 cells, as the first has, but line 5 has 3 (1 such "
            "line); correct the line",
        ),
        (
            "t.csv",
            "a,b\n1,2\n3,4\n5",
            "each line of {} must have 2 cells, as the first has, but line 4 has 1 (1 such "
            "line); the file seems to be truncated",
        ),
        (
            "t.csv",
            bytes(range(256)) * 9,
            "{} is not a text file in UTF-8; save it as CSV with the encoding UTF-8",
        ),
        (
            "t.csv",
            "a,b\n1,人\n".encode("shift-jis") + b"\x81",
            "{} is not a text file in UTF-8; save it as CSV with the encoding UTF-8",
        ),
        (
            "t.csv",
            "a,b\n1,2\n".encode("utf-16-le"),
            "{} is not a text file in UTF-8; save it as CSV with the encoding UTF-8",
        ),
        (
            "t.csv",
            "a,b\n1,2\n".encode("utf-16")[:-1],
            "{} is not a text file in UTF-8; save it as CSV with the encoding UTF-8",
        ),
        (
            "t.docx",
            "x",
            "{} must end in one of .csv, .tsv, .csv.gz, .tsv.gz, .csv.zip, .tsv.zip, .parquet, "
            ".xlsx, .xls, .ods, .sav, .zsav, .dta, .sas7bdat, .rds, .rda, .rdata, .feather; "
            "convert it to CSV or Parquet",
        ),
        (
            "t.parquet",
            "PAR1",
            "{} cannot be read as a Parquet file; it may be truncated or of another format",
        ),
        (
            "t.csv",
            "1,2,3,4\n0,1,1,0\n",
            "the first line of {} must hold the names of the items, but it holds numbers (1, 2, "
            "3, ...); add a line of names",
        ),
        (
            "t.csv",
            'a,"","b"\n1,0,1\n',
            "each column of {} needs a name, but column 2 has none (1 of 3 columns); name it in "
            "the first line, or remove it",
        ),
        (
            "t.csv",
            "a,b,a\n1,2,3\n",
            "the column names of {} must be unique, but 'a' occurs 2 times (1 of 2 names occur "
            "more than once); rename the columns in the file, or remove them",
        ),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, name: str, content: str | bytes, sentence: str
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(FileError) as caught:
        read_file(path)
    assert str(caught.value) == sentence.format(path)


@pytest.mark.parametrize(
    "content", [b"abc", gzip.compress(b"a,b\n" + b"1,2\n" * 9999, mtime=0)[:-20]]
)
def test_damaged_gzip(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "t.csv.gz", content)
    with pytest.raises(FileError, match="truncated or of another format"):
        read_file(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "a,b\n1,2\n\n3,often\n4,never\n",
            "cells must be numbers, but {} has the text 'often' in column 'b', line 4 (2 of 3 "
            "cells of this column; 1 of 2 columns); recode 'never' and 'often' as numbers, or "
            "leave the cell empty if the answer is missing",
        ),
        (
            'a,b\n"1\n",2\n3,x\n',
            "cells must be numbers, but {} has the text 'x' in column 'b', line 4 (1 of 2 cells "
            "of this column; 1 of 2 columns); recode the text as numbers, or leave the cell empty "
            "if the answer is missing",
        ),
        (
            "sex,b\nfemale,1\nmale,0\n,1\n",
            "cells must be numbers, but {} has the text 'female' in column 'sex', line 2 (2 of 3 "
            "cells of this column; 1 of 2 columns); recode 'female' and 'male' as numbers, or "
            "leave the cell empty if the answer is missing",
        ),
        (
            'a,b\n1,"2,5"\n',
            "cells must be numbers, but {} has the text '2,5' in column 'b', line 2 (1 of 1 cells "
            "of this column; 1 of 2 columns); write decimals with a point",
        ),
        (
            'a,b\n1,"0,125"\n',
            "cells must be numbers, but {} has the text '0,125' in column 'b', line 2 (1 of 1 "
            "cells of this column; 1 of 2 columns); write decimals with a point",
        ),
        (
            'a,b\n1,"1,234"\n2,"12,345.5"\n3,7\n',
            "cells must be numbers, but {} has the text '1,234' in column 'b', line 2 (2 of 3 "
            "cells of this column; 1 of 2 columns); write 1234 if its commas separate thousands, "
            "1.234 if they mark decimals",
        ),
        (
            'a,b\n1,"1,234"\n2,"681,5"\n',
            "cells must be numbers, but {} has the text '1,234' in column 'b', line 2 (2 of 2 "
            "cells of this column; 1 of 2 columns); write 1234 if its commas separate thousands, "
            "1.234 if they mark decimals, as in '681,5'",
        ),
        (
            "a,b\nY,1\n,1\nn,0\nY,0\nmaybe,1\n",
            "columns of yes and no must hold nothing else, but {} has 'maybe' in column 'a', line "
            "6 (1 of 5 cells of this column; 1 of 2 columns); recode it as yes or no, or leave the "
            "cell empty if the answer is missing",
        ),
        (
            "a,b\nyes,1\n9,1\nno,0\nyes,0\n9,1\n",
            "columns of yes and no must hold nothing else, but {} has '9' in column 'a', line 3 (2 "
            "of 5 cells of this column; 1 of 2 columns); recode it as yes or no, or leave the cell "
            "empty if the answer is missing",
        ),
        (
            "sex,b\nF,1\nF,0\nM,1\n",
            "cells must be numbers, but {} has the text 'F' in column 'sex', line 2 (3 of 3 cells "
            "of this column; 1 of 2 columns); recode 'F' and 'M' as numbers, or leave the cell "
            "empty if the answer is missing",
        ),
        (
            'a,b\n1,"1,234,567"\n',
            "cells must be numbers, but {} has the text '1,234,567' in column 'b', line 2 (1 of 1 "
            "cells of this column; 1 of 2 columns); write 1234567 if its commas separate thousands",
        ),
        (
            "a,b\n1,2\n2,inf\n",
            "numbers must be finite, but {} has inf in column 'b', line 3 (1 of 2 cells of this "
            "column); leave the cell empty if the answer is missing",
        ),
    ],
)
def test_cells_that_are_not_numbers(tmp_path: Path, content: str, sentence: str) -> None:
    path = write(tmp_path / "t.csv", content)
    with pytest.raises(DataError) as caught:
        read_file(path)
    assert str(caught.value) == sentence.format(path)


def test_all_columns_of_text_are_named_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,c,d\nlow,1,x,high\nhigh,2,y,low\n")
    with pytest.raises(DataError, match=r"; 3 of 4 columns, also 'c', 'd'\); recode 'high' and"):
        read_file(path)
    names = [f"q{j}" for j in range(15)]
    path = write(tmp_path / "t.csv", f"{','.join(names)}\n{','.join(['agree'] * 15)}\n")
    with pytest.raises(DataError, match=r"; 15 of 15 columns, also 'q1', .*'q10' and 4 more\)"):
        read_file(path)


def test_a_missing_file_suggests_a_similar_name(tmp_path: Path) -> None:
    write(tmp_path / "responses.csv", "a\n1\n")
    with pytest.raises(FileError) as caught:
        read_file(tmp_path / "response.csv")
    assert str(caught.value) == (
        f"there is no file {tmp_path / 'response.csv'}; did you mean 'responses.csv'?"
    )
    with pytest.raises(FileError, match=r"nowhere does not exist either$"):
        read_file(tmp_path / "nowhere" / "t.csv")
    with pytest.raises(FileError, match=r"is a folder, expected a file; use read_folder"):
        read_file(tmp_path)


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.csv", "a\n1\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError) as caught:
        read_file(path)
    assert str(caught.value) == (
        "reading files needs pyarrow, which is not installed; use pip install 'hidag[io]'"
    )


def test_a_line_break_in_a_name_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", '"a\nb",c\n1,0\n')
    with pytest.raises(FileError) as error:
        read_file(path)
    assert str(error.value) == (
        f"the first line of {path} ends inside quotes: the name of an item must not contain a "
        "line break, and its quotes must be closed"
    )
    inches = write(tmp_path / "inches.csv", '5" pipe,c\n1,0\n0,1\n')
    assert read_file(inches).column_names == ['5" pipe', "c"]


def test_a_large_file_is_read_at_the_speed_of_pyarrow(tmp_path: Path) -> None:
    line = ",".join(["0", "1", "", "2.5"] * 75)
    header = ",".join(f"i{j}" for j in range(300))
    path = write(tmp_path / "t.csv", header + "\n" + f"{line}\n" * 10_000)
    start = time.perf_counter()
    table = read_table(read_file(path), allow_empty_items=True)
    # A reader that walks the cells in Python takes more than ten times as long.
    assert time.perf_counter() - start < 3.0
    assert table.missing_share == 0.25
