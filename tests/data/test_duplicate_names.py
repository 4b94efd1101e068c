from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hidag.data import read_file
from hidag.data.csv_text import make_unique
from hidag.data.readers import column_names, read_columns, read_q
from hidag.exceptions import FileError


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "b", "a", "a"], ["a", "b", "a#2", "a#3"]),
        (["a", "a", "a#2"], ["a", "a#2'", "a#2"]),
    ],
)
def test_only_later_duplicates_are_renamed(names: list[str], expected: list[str]) -> None:
    assert make_unique(names) == expected


@pytest.fixture(params=["t.csv", "t.parquet"])
def twice(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    if path.suffix == ".csv":
        path.write_text("a,b,a\n1,2,3\n4,5,6\n")
    else:
        pq.write_table(pa.table([[1, 4], [2, 5], [3, 6]], names=["a", "b", "a"]), path)
    return path


def test_one_of_two_is_read_where_the_other_is_left_out(twice: Path) -> None:
    assert column_names(twice) == ["a", "b", "a#2"]
    assert read_file(twice, leave_out=["a#2"]).to_pydict() == {"a": [1, 4], "b": [2, 5]}
    assert read_file(twice, leave_out=["a"]).to_pydict() == {"b": [2, 5], "a#2": [3, 6]}
    table, *_ = read_columns(twice, ["a"], leave_out=["a#2"])
    assert table.to_pydict() == {"a": [1, 4]}


def test_duplicate_names_are_an_error(twice: Path) -> None:
    for read in (read_file, lambda path: read_columns(path, ["b"])):
        with pytest.raises(FileError) as caught:
            read(twice)
        assert str(caught.value) == (
            f"the column names of {twice} must be unique, but 'a' occurs 2 times (1 of 2 names "
            "occur more than once); rename the columns in the file, or remove them"
        )


def test_duplicate_latents_of_a_q_matrix_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("item,G,G\na,1,1\n")
    with pytest.raises(FileError, match="'G' occurs 2 times"):
        read_q(path)
