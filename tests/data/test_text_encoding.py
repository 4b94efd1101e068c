from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hidag.data import read_file, read_folder
from hidag.data.csv_text import detect_encoding
from hidag.data.readers import column_names
from hidag.exceptions import DataError

TEXT = "Größe;Kälte\n1;2\n3;4\n"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_files_are_read_in_their_own_encoding(tmp_path: Path, encoding: str, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    content = TEXT.encode(encoding)
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    table = read_file(path)
    assert table.column_names == column_names(path) == ["Größe", "Kälte"]
    np.testing.assert_array_equal(table.column("Kälte").to_numpy(), [2, 4])
    reported = (f"t{ending} is not UTF-8 and is read as Windows-1252 text",)
    assert read_folder(path).notes == (reported if encoding == "cp1252" else ())


def test_umlauts_far_below_the_first_lines_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(("a;note\n" + "1;x\n" * 400_000 + "2;ä\n").encode("cp1252"))
    assert detect_encoding(path) == "cp1252"
    assert read_file(path, leave_out=["note"]).num_rows == 400_001


def test_lines_of_bad_cells_are_counted_in_any_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a;ä\n1;2\n1;ö\n".encode("utf-16"))
    with pytest.raises(DataError, match="has the text 'ö' in column 'ä', line 3 "):
        read_file(path)


def test_a_changed_file_is_detected_again(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for encoding, own in (("utf-16", "utf-16"), ("cp1252", "cp1252"), ("utf-8", "utf-8-sig")):
        path.write_bytes(TEXT.encode(encoding))
        assert detect_encoding(path) == own
