from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
import tracemalloc
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.utils.estimator_checks import _NotAnArray

from hidag.data import Observations, read_table
from hidag.exceptions import DataError

NAN = float("nan")
QUIET = 0x7FF8000000000000
R_NA = 0x7FF00000000007A2


def said(X: object, **settings: object) -> str:
    with pytest.raises(DataError) as caught:
        read_table(X, **settings)  # type: ignore[arg-type]
    return str(caught.value)


def test_values_are_a_read_only_c_contiguous_copy() -> None:
    X = np.asfortranarray([[1.0, NAN, 3.0], [4.0, 5.0, 6.0]])
    before = X.copy()
    table = read_table(X)
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert not table.values.flags.writeable
    assert not np.shares_memory(table.values, X)
    np.testing.assert_array_equal(table.values, before)
    np.testing.assert_array_equal(X, before)
    assert X.flags.writeable
    assert (table.n_samples, table.n_items) == (2, 3)
    assert table.names == ("item_0", "item_1", "item_2")
    assert not table.named
    assert table.missing_share == pytest.approx(1 / 6)
    np.testing.assert_array_equal(table.observed, [[True, False, True], [True, True, True]])
    assert not table.observed.flags.writeable
    assert repr(table) == "Observations(2 samples, 3 items, 16.7% missing)"


def test_empty_rows_are_kept() -> None:
    assert read_table([[NAN, NAN], [1, 2]]).n_samples == 2


def test_an_observations_table_passes_through_and_can_be_renamed() -> None:
    table = read_table([[1.0, 2.0]])
    again = read_table(table, names=["a", "b"])
    assert isinstance(again, Observations)
    assert again.values is table.values
    assert again.names == ("a", "b")
    assert again.named


@pytest.mark.parametrize(
    "X",
    [
        [[1, None], [0, 1]],
        ((1, NAN), (0, 1)),
        np.array([[1, NAN], [0, 1]], dtype=np.float32),
        np.array([[1, NAN], [0, 1]], dtype=np.float16),
        np.array([[1, NAN], [0, 1]], dtype=">f8"),
        np.array([[True, None], [False, True]], dtype=object),
        np.array([[1, pd.NA], [0, 1]], dtype=object),
        np.array([[1, pd.NaT], [0, 1]], dtype=object),
        np.array([["1", "NA"], ["0", " 1.0 "]]),
        np.array([[b"1", b""], [b"0", b"1e0"]]),
        np.array([[decimal.Decimal(1), decimal.Decimal("sNaN")], [0, np.int8(1)]], dtype=object),
        np.array([["TRUE", "."], ["false", "True"]], dtype=object),
        np.ma.array([[1, 7], [0, 1]], mask=[[False, True], [False, False]]),
        np.ma.array([[True, True], [False, True]], mask=[[False, True], [False, False]]),
        np.ma.array([[1, "x"], [0, 1]], mask=[[False, True], [False, False]], dtype=object),
        _NotAnArray(np.array([[1, NAN], [0, 1]])),
        pd.DataFrame({"a": [1, 0], "b": [None, 1.0]}),
        pd.DataFrame({"a": [True, False], "b": pd.array([None, 1], dtype="Int64")}),
        pd.DataFrame({"a": [1, 0], "b": pd.array([None, True], dtype="boolean")}),
        pd.DataFrame({"a": [1, 0], "b": pd.array([None, 1], dtype="Float64")}),
        pd.DataFrame({"a": [1, 0], "b": pd.array([None, 1], dtype="int64[pyarrow]")}),
        pd.DataFrame({"a": [1, 0], "b": pd.array([None, "1"], dtype="string")}),
        pd.DataFrame({"a": [1, 0], "b": pd.Categorical([None, "1"])}),
        pd.DataFrame({"a": [1, 0], "b": pd.Categorical([None, 1])}),
        pd.DataFrame({"a": [1, 0], "b": np.array([pd.NA, 1], dtype=object)}),
        pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 0.0]), "b": [NAN, 1.0]}),
        pl.DataFrame({"a": [1, 0], "b": [None, 1.0]}),
        pl.DataFrame({"a": [True, False], "b": [None, True]}),
        pl.DataFrame({"a": [1, 0], "b": [None, "1"]}),
        pl.DataFrame({"a": [1, 0], "b": pl.Series([None, "1"], dtype=pl.Categorical)}),
        pl.DataFrame({"a": [1, 0], "b": pl.Series([None, "1"], dtype=pl.Enum(["1", "2"]))}),
        pl.DataFrame({"a": [1, 0], "b": pl.Series([None, 1], dtype=pl.Decimal(10, 2))}),
        pl.LazyFrame({"a": [1, 0], "b": [None, 1.0]}),
        pa.table({"a": [1, 0], "b": [None, 1.0]}),
        pa.table({"a": [True, False], "b": pa.array([None, "1"]).dictionary_encode()}),
        pa.table({"a": [1, 0], "b": pa.array([None, decimal.Decimal(1)])}),
        nw.from_native(pl.DataFrame({"a": [1, 0], "b": [None, 1.0]})),
    ],
    ids=lambda X: type(X).__module__.split(".")[0],
)
def test_every_kind_of_table_gives_the_same_numbers(X: object) -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        table = read_table(X)
    np.testing.assert_array_equal(table.values, [[1, NAN], [0, 1]])
    assert table.values.view(np.uint64)[0, 1] == QUIET


def test_names_come_from_the_table_or_from_the_caller() -> None:
    frame = pd.DataFrame([[1, 2]], columns=["a", "b"])
    assert read_table(frame).names == ("a", "b")
    assert read_table(frame).named
    assert read_table(frame, names=["x", "y"]).names == ("x", "y")
    assert read_table([[1, 2]], names=["x", "y"]).named
    assert read_table(pd.DataFrame([[1, 2]], columns=[101, 102])).names == ("101", "102")
    unnamed = read_table(pd.DataFrame([[1, 2]]))
    assert unnamed.names == ("item_0", "item_1")
    assert not unnamed.named


@pytest.mark.parametrize("bits", [R_NA, R_NA | 1 << 63, 0xFFF8000000000000, QUIET + 5])
def test_nan_of_every_kind_becomes_the_same_quiet_one(bits: int) -> None:
    column = np.array([bits, np.float64(2).view(np.uint64)], dtype=np.uint64).view(np.float64)
    narrow = np.array([0x7F8007A2, np.float32(2).view(np.uint32)], dtype=np.uint32)
    tables = [
        column[:, None],
        np.asfortranarray(np.column_stack([column, column])),
        column[:, None].astype(">f8"),
        np.ma.array(column[:, None]),
        pd.DataFrame({"a": column}),
        pl.DataFrame({"a": column}),
        pa.table({"a": column}),
        narrow.view(np.float32)[:, None],
        pd.DataFrame({"a": narrow.view(np.float32)}),
    ]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for X in tables:
            table = read_table(X)
            assert (table.values[0].view(np.uint64) == QUIET).all()
            assert (table.values[1] == 2).all()
            assert not table.observed[0].any()


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 4)),
        elements=st.floats(allow_infinity=False, width=64),
    )
)
def test_the_numbers_of_an_array_survive(X: np.ndarray) -> None:
    table = read_table(X, allow_empty_items=True)
    np.testing.assert_array_equal(table.values, X)
    np.testing.assert_array_equal(table.observed, ~np.isnan(X))


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, pd.DataFrame])
def test_float64_input_is_copied_once(make: object) -> None:
    X = make(np.random.default_rng(0).normal(size=(40_000, 50)))  # type: ignore[operator]
    read_table(X)
    tracemalloc.start()
    read_table(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One copy, the mask (1/8) and the temporaries of one block.
    assert peak < 1.5 * 40_000 * 50 * 8


EXTENT = "(1 of 2 cells of this item; 1 of 2 items)"


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (
            np.empty((0, 3)),
            "Found a table with 0 sample(s) (shape=(0, 3)) while a minimum of 1 is required; "
            "give one row for each sample",
        ),
        (
            np.empty((12, 0)),
            "Found a table with 0 feature(s) (shape=(12, 0)) while a minimum of 1 is required; "
            "give one column for each item",
        ),
        (
            [1.0, 2.0],
            "Expected 2D array, got 1D array instead (shape=(2,)). Reshape your data: "
            "X.reshape(-1, 1) if it is one item, X.reshape(1, -1) if it is one sample",
        ),
        (
            pl.Series([1, 2]),
            "Expected 2D array, got 1D array instead (shape=(2,)). Reshape your data: "
            "X.reshape(-1, 1) if it is one item, X.reshape(1, -1) if it is one sample",
        ),
        (
            3.0,
            "Expected 2D array, got scalar array instead (shape=()). Reshape your data: "
            "X.reshape(-1, 1) if it is one item, X.reshape(1, -1) if it is one sample",
        ),
        (
            np.zeros((1, 1, 1)),
            "Expected 2D array, got 3D array instead (shape=(1, 1, 1)). Reshape your data: "
            "X.reshape(-1, 1) if it is one item, X.reshape(1, -1) if it is one sample",
        ),
        (
            [[1, 2], [3], [4]],
            "all rows must have as many cells as row 0, which has 2, but row 1 has 1 (2 of 3 rows "
            "differ); use None for a missing answer",
        ),
        (
            np.array([[1j]]),
            "Complex data not supported: expected real numbers, got a table of dtype complex128 "
            "and shape (1, 1); use X.real if the imaginary part is zero",
        ),
        (
            np.array([[1, 1j], [2, 3]], dtype=object),
            "Complex data not supported: item 'item_1' has 1j in row 0, counting from 0 "
            f"{EXTENT}; use the real part",
        ),
        (
            sparse.csr_array(np.eye(3)),
            "Sparse input is not supported: expected a dense table, got a csr_array of shape "
            "(3, 3); use X.toarray() if it fits into memory",
        ),
        (
            [[1, 2.5], [3, "often"]],
            f"cells must be numbers, but item 'item_1' has the text 'often' in row 1, counting "
            f"from 0 {EXTENT}; recode the text as numbers, use None for a missing answer, or drop "
            "the column",
        ),
        (
            pd.DataFrame({"a": [1, 2], "mood": ["good", "1_0"]}),
            "cells must be numbers, but item 'mood' has the text 'good' in row 0, counting from 0 "
            "(2 of 2 cells of this item; 1 of 2 items); recode the text as numbers, use None for "
            "a missing answer, or drop the column",
        ),
        (
            np.array([[1, datetime.date(2020, 5, 1)], [2, 3]], dtype=object),
            "cells must be numbers, but item 'item_1' has the date or time 2020-05-01 in row 0, "
            f"counting from 0 {EXTENT}; convert it to a number, such as days since a reference "
            "date, or drop the column",
        ),
        (
            np.array([["2020-05-01"]], dtype="datetime64[D]"),
            "cells must be numbers, but item 'item_0' has the date or time 2020-05-01 in row 0, "
            "counting from 0 (1 of 1 cells of this item; 1 of 1 items); convert it to a number, "
            "such as days since a reference date, or drop the column",
        ),
        (
            pl.DataFrame({"a": [1, 2], "when": [None, datetime.date(2020, 5, 1)]}),
            "cells must be numbers, but item 'when' has the date or time 2020-05-01 in row 1, "
            f"counting from 0 {EXTENT}; convert it to a number, such as days since a reference "
            "date, or drop the column",
        ),
        (
            [[1, 2.0], [3, -np.inf]],
            f"numbers must be finite, but item 'item_1' has -inf in row 1, counting from 0 "
            f"{EXTENT}; use NaN for a missing answer",
        ),
        (
            [[1, 10**400], [3, 4]],
            f"numbers must be finite, but item 'item_1' has inf in row 0, counting from 0 "
            f"{EXTENT}; use NaN for a missing answer",
        ),
        (
            pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
            "column names must be unique, but 'a' occurs 2 times (1 of 2 names occur more than "
            "once); rename or drop the columns",
        ),
        (
            pa.table([[1], [2]], names=["a", "a"]),
            "column names must be unique, but 'a' occurs 2 times (1 of 1 names occur more than "
            "once); rename or drop the columns",
        ),
        (
            pd.DataFrame({"a": [1, 2], "b": [None, NAN]}),
            "each item needs at least one observed cell, but item 'b' has none in 2 rows (1 of 2 "
            "items); drop the column",
        ),
        (
            pl.DataFrame({"a": [1, 2], "b": [None, None]}),
            "each item needs at least one observed cell, but item 'b' has none in 2 rows (1 of 2 "
            "items); drop the column",
        ),
        (
            pd.DataFrame({"a": [NAN, NAN, NAN], "b": [NAN, NAN, NAN]}),
            "all 3 rows of the table are empty in all 2 items; check that the right file was read "
            "and that its cells hold numbers",
        ),
    ],
)
def test_refusals(X: object, sentence: str) -> None:
    assert said(X) == sentence


def test_one_row_is_an_error_only_if_two_are_needed() -> None:
    assert read_table([[1.0, 2.0]]).n_samples == 1
    assert said([[1.0, 2.0]], min_rows=2) == (
        "Found a table with 1 sample(s) (shape=(1, 2)) while a minimum of 2 is required; "
        "give one row for each sample"
    )


def test_an_unobserved_item_is_allowed_for_new_samples() -> None:
    assert read_table([[1.0, NAN]], allow_empty_items=True).missing_share == 0.5


def test_wrong_number_of_names() -> None:
    assert said([[1, 2]], names=["a"]) == (
        "names must have one name per column, but got 1 name for 2 columns"
    )
    assert said([[1, 2]], names=["a", "a"]).startswith("column names must be unique, but 'a'")


@pytest.mark.parametrize(
    "X",
    [
        np.array([[{"foo": "bar"}, 1.0], [1.0, 2.0]], dtype=object),
        pl.DataFrame({"a": [[1, 2], [3, 4]], "b": [1, 2]}),
    ],
)
def test_an_object_in_a_cell_is_also_a_type_error(X: object) -> None:
    with pytest.raises(TypeError, match=r"argument must be .* string.* number") as caught:
        read_table(X)
    assert isinstance(caught.value, DataError)


def test_an_object_is_shown_shortened() -> None:
    assert said(np.array([[{"foo": "x" * 99}]], dtype=object)) == (
        "cells must be numbers, but item 'item_0' has {'foo': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxx... "
        "(dict) in row 0, counting from 0 (1 of 1 cells of this item; 1 of 1 items); a cell as "
        "argument must be a string that reads as a number, or a number"
    )


def test_no_table_library_is_needed() -> None:
    code = (
        "import sys\n"
        "for name in ('pandas', 'polars', 'pyarrow'): sys.modules[name] = None\n"
        "from hidag.data import read_table\n"
        "assert read_table([[1, None], ['2', 'NA'], [1, 3]]).missing_share > 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
