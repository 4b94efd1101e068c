from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hidag import DCRL
from hidag.data import read_file, read_table, resolve_families
from hidag.data.type_inference import infer_family
from hidag.data.value_checks import looks_like_row_ids, warn_of_row_ids
from hidag.exceptions import DataError, HidagWarning

RNG = np.random.default_rng(8)
REMEDY = "drop a column that identifies the rows, or set its family to use it as an item"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (np.arange(1, 302), "1 to 301 (301 different in 301 cells)"),
        (np.random.default_rng(1).permutation(17), "0 to 16 (17 different in 17 cells)"),
        (np.arange(1800) % 1790, "0 to 1789 (1790 different in 1800 cells)"),
        (np.arange(20210001, 20210051), "20210001 to 20210050 (50 different in 50 cells)"),
        (np.arange(0, 500, 10), "0 to 490 (50 different in 50 cells)"),
        (np.arange(0, 50_000, 27), "0 to 49977 (1852 different in 1852 cells)"),
    ],
)
def test_unique_numbers_are_row_ids(names: np.ndarray, reason: str) -> None:
    guess = infer_family(names.astype(float))
    assert guess.family is None
    assert guess.is_row_id
    assert guess.reason == (
        f"holds whole numbers from {reason}, which repeat less often than responses do: row "
        "identifiers?"
    )


def test_a_sample_of_unique_numbers_is_row_ids() -> None:
    sample = np.random.default_rng(2).permutation(50_000)[:1800].astype(float)
    assert infer_family(sample).is_row_id


LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.integers(0, n, n),
    "wide uniform": lambda rng, n: rng.integers(0, 10 * n, n),
    "large counts": lambda rng, n: rng.poisson(10_000, n),
    "mixed counts": lambda rng, n: rng.poisson(np.where(rng.random(n) < 0.5, 3, 3000)),
    "spread counts": lambda rng, n: rng.negative_binomial(1, 0.001, n),
    "milliseconds": lambda rng, n: np.rint(np.exp(rng.normal(6.3, 0.4, n))),
    "incomes": lambda rng, n: np.rint(np.exp(rng.normal(10, 1, n))),
    "rounded to tens": lambda rng, n: 10 * np.rint(rng.normal(100, 30, n)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n_rows", [17, 40, 200, 1000])
def test_responses_are_not_row_ids(law: str, n_rows: int) -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        values = LAWS[law](rng, n_rows).astype(float)
        assert not looks_like_row_ids(np.unique(values), n_rows)


def test_row_numbers_are_an_error_with_advice() -> None:
    data = pd.DataFrame({"id": range(1, 41), "mood": [1, 2, 3, 2] * 10, "right": [0, 1] * 20})
    with pytest.raises(DataError) as caught:
        resolve_families(read_table(data), "auto")
    assert str(caught.value) == (
        "family='auto' cannot infer the type of 2 of 3 items:\n"
        "  'id': holds whole numbers from 1 to 40 (40 different in 40 cells), which repeat less "
        "often than responses do: row identifiers?\n"
        "  'mood': holds whole numbers from 1 to 3 (3 different): grades of a scale or a count?\n"
        f"{REMEDY}; set the types of the others, for instance family={{'mood': 'ordinal'}}; the "
        "other items stay 'auto'"
    )
    with pytest.raises(DataError) as caught:
        resolve_families(read_table(data), {"mood": "ordinal"})
    assert str(caught.value) == (
        "family='auto' cannot infer the type of 1 of 3 items:\n"
        "  'id': holds whole numbers from 1 to 40 (40 different in 40 cells), which repeat less "
        "often than responses do: row identifiers?\n"
        f"{REMEDY}"
    )
    kept = resolve_families(read_table(data), {"mood": "ordinal", "id": "poisson"})
    assert kept.families == ("poisson", "ordinal(1..3)", "bernoulli")


POSTCODES = [f"{code:05d}" for code in np.random.default_rng(4).integers(1, 60, 300)]


@pytest.mark.parametrize(
    "column",
    [
        np.array(POSTCODES)[:, None],
        np.array(POSTCODES, dtype=object)[:, None],
        pd.DataFrame({"item_0": POSTCODES}),
        pd.DataFrame({"item_0": POSTCODES}).astype("category"),
        pl.DataFrame({"item_0": POSTCODES}),
        pa.table({"item_0": POSTCODES}),
    ],
    ids=["array", "objects", "pandas", "categories", "polars", "pyarrow"],
)
def test_text_with_leading_zeros_is_not_inferred_as_counts(column: object) -> None:
    table = read_table(column)
    assert table.padded == {"item_0"}
    assert read_table(table, names=["code"]).padded == {"code"}
    with pytest.raises(DataError) as caught:
        resolve_families(table, "auto")
    assert str(caught.value) == (
        "family='auto' cannot infer the type of 1 of 1 items:\n"
        "  'item_0': holds whole numbers with leading zeros: row identifiers or codes?\n"
        f"{REMEDY}"
    )
    assert resolve_families(table, "poisson").families == ("poisson",)


@pytest.mark.parametrize("blank", ["", " "])
def test_leading_zeros_in_text_files_are_detected(tmp_path: Path, blank: str) -> None:
    path = tmp_path / "t.csv"
    lines = (f"{code}{blank},{row % 3}" for row, code in enumerate(POSTCODES))
    path.write_text("code,count\n" + "\n".join(lines) + "\n", "utf-8")
    table = read_table(read_file(path))
    assert table.padded == {"code"}
    np.testing.assert_array_equal(table.values[:, 0], [float(code) for code in POSTCODES])


def test_grades_and_answers_may_have_leading_zeros() -> None:
    grades = read_table(pd.DataFrame({"grade": ["01", "02", "03"] * 20, "yes": ["00", "01"] * 30}))
    assert resolve_families(grades, {"grade": "ordinal"}).families == ("ordinal(1..3)", "bernoulli")
    assert not read_table(pd.DataFrame({"share": ["0", "0.5", "10"]})).padded


def test_counts_that_rarely_repeat_cause_a_warning() -> None:
    wide = RNG.permutation(np.arange(100) + np.arange(100) ** 4 // 1000).astype(float)
    data = pd.DataFrame({"wide": wide, "count": RNG.poisson(3, 100)})
    table = read_table(data)
    choice = resolve_families(table, {"count": "poisson"})
    assert choice.families == ("poisson", "poisson")
    with pytest.warns(HidagWarning) as caught:
        warn_of_row_ids(table, choice.families, choice.inferred)
    assert [str(one.message) for one in caught] == [
        "item 'wide' is modelled as counts, but 100 of its 100 cells are different, as row "
        f"identifiers are (1 of 2 items); {REMEDY}"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_row_ids(table, choice.families, (False, True))


def test_fitting_row_numbers_is_an_error() -> None:
    X = pd.DataFrame({f"q{j}": RNG.integers(0, 2, 60) for j in range(5)})
    X["id"] = range(60)
    with pytest.raises(DataError, match="row identifiers"):
        DCRL(1).fit(X)
