from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hidag.data import read_file, read_folder
from hidag.data.readers import column_names, index_columns, read_columns, read_parquet

FRAME = pd.DataFrame({"a": [1, 0, 1], "b": [0, 1, 1]})


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (FRAME, []),
        (FRAME.set_index(pd.Index([4, 9, 6])), ["__index_level_0__"]),
        (FRAME.set_index(pd.Index(["x", "y", "z"], name="who")), ["who"]),
        (FRAME.set_index([pd.Index([1, 1, 2], name="g"), pd.Index([7, 8, 9])]),
         ["g", "__index_level_1__"]),
    ],
    ids=["row numbers", "unnamed", "named", "two levels"],
)  # fmt: skip
def test_the_index_of_a_frame_is_not_an_item(
    tmp_path: Path, frame: pd.DataFrame, names: list[str]
) -> None:
    file = tmp_path / "t.parquet"
    frame.to_parquet(file)
    assert index_columns(read_parquet(file)) == names
    assert read_file(file).column_names == ["a", "b"]
    assert read_folder(file).notes == tuple(
        f"{name} names the rows and is not an item" for name in names
    )


def test_an_index_used_as_row_ids_needs_no_note(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    FRAME.set_index(pd.Index(["x", "y", "z"], name="who")).to_parquet(file)
    assert column_names(file) == ["a", "b", "who"]
    assert read_columns(file, ["a"], ["who"])[1] == {"who": ["x", "y", "z"]}
    source = read_folder(file, leave_out=["who"])
    assert (source.table.column_names, source.notes) == (["a", "b"], ())


def test_an_index_removed_from_the_file_is_ignored(tmp_path: Path) -> None:
    whole = pa.Table.from_pandas(FRAME.set_index(pd.Index([4, 9, 6], name="who")))
    pq.write_table(whole.drop_columns(["who"]), tmp_path / "t.parquet")
    assert read_folder(tmp_path / "t.parquet").notes == ()


def test_the_index_of_a_q_matrix_is_not_a_latent(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "responses.parquet")
    q = pd.DataFrame({"item": ["a", "b"], "G": [1, 1]}, index=[3, 5])
    q.to_parquet(tmp_path / "q.parquet")
    assert read_folder(tmp_path).q.column_names == ["item", "G"]
