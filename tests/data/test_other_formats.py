"""Files of spreadsheets, SPSS, Stata, SAS and R are read with their words."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from hidag.data import readers
from hidag.data.item_types import resolve_families
from hidag.data.table import read_table
from hidag.exceptions import FileError

pyreadstat = pytest.importorskip("pyreadstat")
pyreadr = pytest.importorskip("pyreadr")

NUMBERS = pd.DataFrame({"a": [1.5, 2.0, np.nan, 4.0] * 3, "b": [0.0, 1.0, 1.0, 0.0] * 3})
CODES = pd.DataFrame({"mood": [1.0, 2.0, 3.0, 99.0] * 3, "sex": [1.0, 2.0, 2.0, 1.0] * 3,
                      "age": [30.0, 41.0, 25.0, 99.0] * 3})  # fmt: skip
LABELS = {
    "mood": {1: "low", 2: "middle", 3: "high", 99: "refused"},
    "sex": {1: "F", 2: "M"},
    "age": {99: "refused"},
}


def write(kind: str, path: Path) -> None:
    if kind in ("xlsx", "ods"):
        NUMBERS.to_excel(path, index=False, engine="odf" if kind == "ods" else "openpyxl")
    elif kind in ("rds", "rda"):
        write_r = pyreadr.write_rds if kind == "rds" else pyreadr.write_rdata
        write_r(str(path), NUMBERS)
    elif kind == "feather":
        pa.feather.write_feather(pa.Table.from_pandas(NUMBERS, preserve_index=False), str(path))
    elif kind == "csv.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.csv", NUMBERS.to_csv(index=False))
    else:
        getattr(pyreadstat, f"write_{kind}")(NUMBERS, str(path))


@pytest.mark.parametrize("kind", ["xlsx", "ods", "sav", "dta", "rds", "rda", "feather", "csv.zip"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_format_gives_the_same_numbers(kind, tmp_path) -> None:
    path = tmp_path / f"t.{kind}"
    write(kind, path)
    assert readers.column_names(path) == ["a", "b"]
    found = read_table(readers.read_file(path))
    np.testing.assert_array_equal(found.values, NUMBERS.to_numpy())
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileError):
        readers.read_file(path)


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_value_labels_become_words_and_user_missing_codes_are_missing(kind, tmp_path) -> None:
    path = tmp_path / f"t.{kind}"
    data = CODES if kind == "sav" else CODES.replace(99.0, np.nan)
    options = {"variable_value_labels": LABELS}
    if kind == "sav":
        options["missing_ranges"] = {"mood": [99], "age": [99]}
        options["variable_measure"] = {"mood": "ordinal", "sex": "nominal", "age": "scale"}
    else:
        data = data.astype({"sex": int})
    getattr(pyreadstat, f"write_{kind}")(data, str(path), **options)
    found = read_table(readers.read_file(path))
    assert found.labels["mood"].labels == ("low", "middle", "high")
    assert found.labels["sex"].labels == ("F", "M")
    assert set(found.labels) == {"mood", "sex"}
    np.testing.assert_array_equal(found.values[:4, 0], [0, 1, 2, np.nan])
    np.testing.assert_array_equal(found.values[:4, 2], [30, 41, 25, np.nan])
    families = resolve_families(found, {"age": "gaussian"}).families
    assert families == ("ordinal(3)", "bernoulli", "gaussian")


def test_factors_of_r_are_words(tmp_path) -> None:
    path = tmp_path / "t.rds"
    frame = pd.DataFrame({"x": pd.Categorical(["lo", "hi"] * 4, ["lo", "hi"]), "y": [1.0, 2.0] * 4})
    pyreadr.write_rds(str(path), frame)
    found = read_table(readers.read_file(path))
    assert set(found.labels["x"].labels) == {"lo", "hi"}


def test_row_names_of_r_and_pandas_are_not_items(tmp_path) -> None:
    text = tmp_path / "t.csv"
    text.write_text('"","a","b"\n"1",0,1\n"2",1,0\n')
    assert readers.read_file(text).column_names == ["a", "b"]
    NUMBERS.to_excel(tmp_path / "t.xlsx")
    assert readers.read_file(tmp_path / "t.xlsx").column_names == ["a", "b"]
    notes = readers.read_folder(text).notes
    assert notes == ("row_names names the rows and is not an item",)


def test_a_q_may_name_its_items_otherwise_or_have_rows_in_order(tmp_path) -> None:
    for number, text in enumerate(("question,s1\na,1\nb,0\n", ",s1\na,1\nb,0\n")):
        path = tmp_path / f"q{number}.csv"
        path.write_text(text)
        assert readers.read_q(path).to_pydict() == {"item": ["a", "b"], "s1": [1, 0]}
    path.write_text("s1,s2\n1,0\n0,1\n")
    assert readers.read_q(path).to_pydict() == {"s1": [1, 0], "s2": [0, 1]}
    with pytest.raises(FileError, match="if columns of the table are left out"):
        readers.read_q(path, ("c",))
