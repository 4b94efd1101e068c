from __future__ import annotations

import gzip
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hidag.errors import DataError, FileError
from hidag.observations import (
    check_values,
    read_file,
    read_folder,
    read_q_matrix,
    read_table,
    resolve_families,
)

NAN = float("nan")


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


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
            "lines); repair the line",
        ),
        (
            "t.csv",
            'a,b\n"1\n",2\n\n3,4,5\n6,7\n',
            "each line of {} must have 2 cells, as the first has, but line 5 has 3 (1 such "
            "line); repair the line",
        ),
        (
            "t.csv",
            "a,b\n1,2\n3,4\n5",
            "each line of {} must have 2 cells, as the first has, but line 4 has 1 (1 such "
            "line); the file seems to be cut off",
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
            "t.xlsx",
            "x",
            "{} must end in one of .csv, .tsv, .csv.gz, .tsv.gz, .parquet; convert it to CSV or "
            "Parquet",
        ),
        (
            "t.parquet",
            "PAR1",
            "{} cannot be read as a Parquet file; it may be cut off or of another format",
        ),
        (
            "t.csv",
            "1,2,3,4\n0,1,1,0\n",
            "the first line of {} must hold the names of the items, but it holds numbers (1, 2, "
            "3, ...); add a line of names",
        ),
        (
            "t.csv",
            '"","a","b"\n"1",0,1\n',
            "each column of {} needs a name, but column 1 has none (1 of 3 columns); if it holds "
            "row numbers, write the file without them (row.names=FALSE in R, index=False in "
            "pandas)",
        ),
        (
            "t.csv",
            "a,b,a\n1,2,3\n",
            "the column names of {} must be unique, but 'a' occurs 2 times (1 of 2 names occur "
            "more than once); rename the columns in the file, or take them out",
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
    with pytest.raises(FileError, match="cut off or of another format"):
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
def test_cells_that_are_no_numbers(tmp_path: Path, content: str, sentence: str) -> None:
    path = write(tmp_path / "t.csv", content)
    with pytest.raises(DataError) as caught:
        read_file(path)
    assert str(caught.value) == sentence.format(path)


def test_a_missing_file_suggests_its_neighbours(tmp_path: Path) -> None:
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
    with pytest.raises(FileError) as caught:
        read_file(path)
    assert str(caught.value) == (
        "reading files needs pyarrow, which is not installed; use pip install 'hidag[io]'"
    )


def test_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "responses.csv", "a,b\n1,2\n0,5\n")
    write(tmp_path / "types.csv", "item,type\nb,count\na,binary\n")
    write(tmp_path / "q.csv", "item,G,N\nb,1,NA\na,0,1\n")
    source = read_folder(tmp_path)
    assert source.title == tmp_path.name
    table = read_table(source.table)
    assert source.types == {"a": "binary", "b": "count"}
    assert resolve_families(table, source.types).families == ("bernoulli", "poisson")
    q = read_q_matrix(source.q, table.names)
    assert q.latent_names == ("G", "N")
    np.testing.assert_array_equal(q.entries, [[0, 1], [1, -1]])


def test_blanks_around_names_are_no_part_of_them(tmp_path: Path) -> None:
    write(tmp_path / "responses.csv", "a , b\n1,0\n0,1\n")
    write(tmp_path / "types.csv", "item,type\na ,bernoulli\n b,bernoulli\n")
    write(tmp_path / "q.csv", "item,Z\na ,1\n b,1\n")
    found = read_folder(tmp_path)
    assert dict(found.types or {}) == {"a": "bernoulli", "b": "bernoulli"}
    assert read_q_matrix(found.q, found.table.column_names).entries.tolist() == [[1], [1]]


def test_a_line_break_in_a_name_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", '"a\nb",c\n1,0\n')
    with pytest.raises(FileError) as error:
        read_file(path)
    assert str(error.value) == (
        f"the first line of {path} ends inside quotes: the name of an item must not hold a line "
        "break, and its quotes must be closed"
    )
    inches = write(tmp_path / "inches.csv", '5" pipe,c\n1,0\n0,1\n')
    assert read_file(inches).column_names == ['5" pipe', "c"]


def test_a_folder_of_parquet_files_and_a_single_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 0]}), tmp_path / "responses.parquet")
    pq.write_table(pa.table({"item": ["a"], "G": [1]}), tmp_path / "q.parquet")
    source = read_folder(str(tmp_path))
    assert source.types is None
    assert read_q_matrix(source.q, ("a",)).latent_names == ("G",)
    alone = read_folder(tmp_path / "responses.parquet")
    assert (alone.types, alone.q, alone.title) == (None, None, "responses")


@pytest.mark.parametrize(
    ("files", "error", "sentence"),
    [
        (
            {},
            FileError,
            "the folder {0} must hold a table named responses.csv or responses.parquet, but it "
            "holds nothing",
        ),
        (
            {"a.csv": "a\n1\n", "b.csv": "b\n1\n"},
            FileError,
            "the folder {0} must hold a table named responses.csv or responses.parquet, but it "
            "holds a.csv, b.csv",
        ),
        (
            {"responses.csv": "a\n1\n", "responses.parquet": "x"},
            FileError,
            "the folder {0} must hold responses once, but it holds responses.csv and "
            "responses.parquet; remove all but one",
        ),
        (
            {"responses.csv": "a\n1\n", "types.csv": "name,kind\na,count\n"},
            FileError,
            "{0}/types.csv must have the columns item and type, but it has name, kind",
        ),
        (
            {"responses.csv": "a\n1\n", "types.csv": "item,type\na,count\na,normal\n"},
            DataError,
            "{0}/types.csv must name each item once, but item 'a' occurs twice",
        ),
        (
            {"responses.csv": "item1\n1\n", "types.csv": "item,type\nitem2,count\n"},
            DataError,
            "{0}/types.csv gives a type for item 'item2', which the table does not have; did you "
            "mean 'item1'?",
        ),
        (
            {"responses.csv": "a\n1\n", "types.csv": "item,type\na,\n"},
            DataError,
            "each line of {0}/types.csv must have an item and a type, but the line of item 'a' "
            "has type None",
        ),
        (
            {"responses.csv": "a\n1\n", "q.csv": "G,N\n1,0\n"},
            FileError,
            "the first column of {0}/q.csv must be called item and hold the names of the items, "
            "but it is called 'G'",
        ),
        (
            {"responses.csv": "a\n1\n", "q.csv": "item,G\na,often\n"},
            DataError,
            "cells must be numbers, but {0}/q.csv has the text 'often' in column 'G', line 2 (1 of "
            "1 cells of this column; 1 of 1 columns); recode the text as numbers, or leave the "
            "cell empty to have the entry estimated",
        ),
    ],
)
def test_folders_that_cannot_be_read(
    tmp_path: Path, files: dict[str, str], error: type[Exception], sentence: str
) -> None:
    for name, content in files.items():
        write(tmp_path / name, content)
    with pytest.raises(error) as caught:
        read_folder(tmp_path)
    assert str(caught.value) == sentence.format(tmp_path)


def test_a_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    with pytest.raises(FileError) as caught:
        read_folder(tmp_path / "studie")
    assert str(caught.value) == f"there is no folder {tmp_path / 'studie'}; did you mean 'study'?"


def test_a_large_file_is_read_at_the_speed_of_pyarrow(tmp_path: Path) -> None:
    line = ",".join(["0", "1", "", "2.5"] * 75)
    header = ",".join(f"i{j}" for j in range(300))
    path = write(tmp_path / "t.csv", header + "\n" + f"{line}\n" * 10_000)
    start = time.perf_counter()
    table = read_table(read_file(path), allow_empty_items=True)
    # A reader that walks the cells in Python takes more than ten times as long.
    assert time.perf_counter() - start < 3.0
    assert table.missing_share == 0.25


DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "shape", "n_latents", "families"),
    [
        ("ecpe", (2922, 28), 3, {"bernoulli"}),
        ("holzinger_swineford", (301, 9), 3, {"gaussian"}),
        ("timss2011_g4_austria", (4668, 174), 6, {"bernoulli"}),
        ("timss2019_mixed", (435, 58), 7, {"bernoulli", "gaussian"}),
        ("timss2019_rt", (620, 29), 7, {"lognormal"}),
    ],
)
def test_real_folders(
    name: str, shape: tuple[int, int], n_latents: int, families: set[str]
) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"the data set {name} is not there")
    source = read_folder(DATA / name)
    table = read_table(source.table, min_rows=2)
    assert table.values.shape == shape
    assert source.types is not None
    choice = resolve_families(table, source.types)
    assert set(choice.families) == families
    check_values(table, choice.families)
    q = read_q_matrix(source.q, table.names)
    assert q.entries.shape == (shape[1], n_latents)
    assert q.fully_known


@pytest.mark.data
def test_real_grades_are_read() -> None:
    if not (DATA / "nhanes_mixed").is_dir():
        pytest.skip("the data set nhanes_mixed is not there")
    source = read_folder(DATA / "nhanes_mixed")
    table = read_table(source.table)
    assert source.types is not None
    choice = resolve_families(table, source.types)
    check_values(table, choice.families)
    families = dict(zip(table.names, choice.families, strict=True))
    assert families["HealthGen"].startswith("ordinal(")
    measured = ("Pulse", "BPSys", "BPDia", "SleepHrsNight")
    with pytest.raises(DataError) as caught:
        resolve_families(table, "auto")
    for name in (*measured, "HealthGen", "LittleInterest", "Depressed"):
        assert repr(name) in str(caught.value)
