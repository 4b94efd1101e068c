from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hidag.data import read_q_matrix
from hidag.exceptions import DataError

ITEMS = ("a", "b", "c")
NAN = float("nan")


def said(q: object, **settings: object) -> str:
    with pytest.raises(DataError) as caught:
        read_q_matrix(q, ITEMS, **settings)  # type: ignore[arg-type]
    return str(caught.value)


def test_an_array_is_taken_in_the_order_of_the_items() -> None:
    spec = read_q_matrix([[1, 0], [0, 1], [1, 1]], ITEMS, n_latents=2)
    np.testing.assert_array_equal(spec.entries, [[1, 0], [0, 1], [1, 1]])
    assert spec.entries.dtype == np.int8
    assert not spec.entries.flags.writeable
    assert spec.latent_names == ("latent_0", "latent_1")
    assert (spec.named, spec.fully_known) == (False, True)
    assert (spec.n_items, spec.n_latents) == (3, 2)


def test_nan_and_minus_one_both_mark_entries_to_estimate() -> None:
    spec = read_q_matrix([[1, NAN], [NAN, -1], [1, None]], ITEMS)
    np.testing.assert_array_equal(spec.entries, [[1, -1], [-1, -1], [1, -1]])
    assert not spec.fully_known


def test_a_row_of_zeros_is_allowed() -> None:
    assert read_q_matrix([[1], [0], [1]], ITEMS).entries[1, 0] == 0


COLUMNS = {"item": ["c", "a", "b"], "Geometry": [1, 0, 0], "Number": [0, 1, None]}


@pytest.mark.parametrize(
    "q",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).set_index("item"),
        pd.DataFrame(COLUMNS).rename(columns={"item": "Item"}),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
    ],
)
def test_a_frame_is_matched_by_name(q: object) -> None:
    spec = read_q_matrix(q, ITEMS)
    np.testing.assert_array_equal(spec.entries, [[0, 1], [0, -1], [1, 0]])
    assert spec.latent_names == ("Geometry", "Number")
    assert spec.named


def test_a_frame_without_item_names_is_taken_in_order() -> None:
    spec = read_q_matrix(pd.DataFrame({"G": [1, 0, 1]}), ITEMS)
    assert spec.latent_names == ("G",)
    np.testing.assert_array_equal(spec.entries[:, 0], [1, 0, 1])
    assert read_q_matrix(pd.DataFrame([[1], [0], [1]]), ITEMS).latent_names == ("latent_0",)


@pytest.mark.parametrize(
    ("q", "sentence"),
    [
        (
            np.ones((4, 2)),
            "the Q-matrix must have shape (3, K), one row per item and one column per latent, but "
            "it has shape (4, 2)",
        ),
        (
            np.ones((2, 3)),
            "the Q-matrix must have shape (3, K), one row per item and one column per latent, but "
            "it has shape (2, 3); it seems to be transposed",
        ),
        (
            [[1, 0], [1, 0], [1, 0]],
            "each latent needs at least one item, but latent 'latent_1' has only zeros in the "
            "Q-matrix (1 of 2 latents); drop the column or mark the entries to be estimated with "
            "-1",
        ),
        (
            [[1, 0], [1, 2], [0.5, 0]],
            "the entries of the Q-matrix must be 1, 0 or -1 (estimate), but item 'b' has 2 for "
            "latent 'latent_1' (2 of 6 entries)",
        ),
        (
            pd.DataFrame({"item": ["a", "b", "b", "c"], "G": [1, 1, 1, 1]}),
            "each item must have one row in the Q-matrix, but item 'b' has 2; remove the others",
        ),
        (
            pd.DataFrame([["a", 1, 1]], columns=["item", "G", "G"]),
            "column names must be unique, but 'G' occurs 2 times (1 of 2 names occur more than "
            "once); rename or drop the columns",
        ),
        (
            pd.DataFrame({"item": ["a", "b", "c", "d"], "G": [1, 1, 1, 1]}),
            "the rows of the Q-matrix must be items of the table, but 'd' is not one (1 of 4 "
            "rows); remove the row or rename the item",
        ),
        (
            pd.DataFrame({"item": ["a", "c"], "G": [1, 1]}),
            "each item must have a row in the Q-matrix, but item 'b' has none (1 of 3 items); add "
            "a row, with -1 for unknown entries",
        ),
        (
            pd.DataFrame({"item": ["a", "b", "c"], "G": [1, "x", 1]}),
            "in the Q-matrix, whose columns are read like items: cells must be numbers, but item "
            "'G' has the text 'x' in row 1, counting from 0 (1 of 3 cells of this item; 1 of 1 "
            "items); recode the text as numbers, use None for a missing answer, or drop the "
            "column",
        ),
    ],
)
def test_refusals(q: object, sentence: str) -> None:
    assert said(q) == sentence


def test_the_number_of_latents_is_checked() -> None:
    assert said(np.ones((3, 2)), n_latents=4) == (
        "the Q-matrix must have shape (3, 4), one row per item and one column per latent, but it "
        "has shape (3, 2)"
    )


def test_a_misspelt_item_gets_a_suggestion() -> None:
    q = pd.DataFrame({"item": ["time_q1", "time_Q2"], "G": [1, 1]})
    with pytest.raises(DataError, match=r"\(1 of 2 rows\); did you mean 'time_q2'\?$"):
        read_q_matrix(q, ("time_q1", "time_q2"))
