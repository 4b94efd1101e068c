"""Folders with a table, its types and its Q-matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hidag.data import check_values, read_folder, read_q_matrix, read_table, resolve_families
from hidag.exceptions import DataError, FileError

from .helpers import write


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


def test_blanks_around_names_are_stripped(tmp_path: Path) -> None:
    write(tmp_path / "responses.csv", "a , b\n1,0\n0,1\n")
    write(tmp_path / "types.csv", "item,type\na ,bernoulli\n b,bernoulli\n")
    write(tmp_path / "q.csv", "item,Z\na ,1\n b,1\n")
    found = read_folder(tmp_path)
    assert dict(found.types or {}) == {"a": "bernoulli", "b": "bernoulli"}
    assert read_q_matrix(found.q, found.table.column_names).entries.tolist() == [[1], [1]]


def test_items_that_are_numbers_in_a_parquet_file_are_found_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"1": [1, 0], "2": [0, 1]}), tmp_path / "responses.parquet")
    kinds = pa.table({"item": [1, 2], "type": ["bernoulli", "bernoulli"]})
    pq.write_table(kinds, tmp_path / "types.parquet")
    assert read_folder(tmp_path).types == {"1": "bernoulli", "2": "bernoulli"}


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
            {"responses.csv": "a\n1\n", "q.csv": "item\na\n"},
            FileError,
            "{0}/q.csv must have a column per latent beside the column item, but it has none",
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
