from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from hidag.data import check_values, read_file, read_table, resolve_families
from hidag.data.cells import remove_missing_codes
from hidag.data.type_inference import infer_family
from hidag.data.value_checks import find_code, find_far_code, warn_of_codes
from hidag.exceptions import DataError, HidagWarning

RNG = np.random.default_rng(5)
TIMES = RNG.lognormal(3.0, 0.5, 300)


def grades(code: float) -> np.ndarray:
    return np.array([1, 2, 3, 4, 5] * 20 + [code] * 3, dtype=float)


@pytest.mark.parametrize("code", [9.0, 99.0, -9.0])
def test_a_value_apart_from_grades_may_be_a_code(code):
    found = f"{code:g} in 3 of 103 cells, apart from the other values (1 to 5)"
    guess = infer_family(grades(code))
    assert (guess.family, guess.reason, guess.suggestion) == (None, f"holds {found}", "ordinal")
    table = read_table(grades(code)[:, None])
    shown = "-9, 1, 2, 3, 4, 5" if code < 0 else f"1, 2, 3, 4, 5, {code:g}"
    with pytest.raises(DataError) as caught:
        resolve_families(table, "ordinal")
    assert str(caught.value) == (
        "family='ordinal' takes its number of grades from values that are whole numbers without "
        f"gaps, at least 3 of them, but item 'item_0' holds {shown}; recode the item, or set what "
        f"can occur: family='ordinal(5)'; it holds {found}: replace it with NaN if it stands for a "
        "missing answer"
    )
    with pytest.raises(DataError, match="; it holds"):
        check_values(table, ["ordinal(5)"])


def test_a_code_among_times_or_counts_causes_a_warning():
    coded = np.where(np.arange(300) % 20 == 0, 9999.0, TIMES)
    counts = np.where(np.arange(300) % 20 == 0, 99.0, RNG.poisson(4, 300))
    table = read_table(np.column_stack([TIMES, coded, counts]))
    rest, most = coded[coded < 9999], counts[counts < 99].max()
    with pytest.warns(HidagWarning) as caught:
        warn_of_codes(table, ["lognormal", "lognormal", "poisson"])
    assert [str(warning.message) for warning in caught] == [
        f"item 'item_1' holds 9999 in 15 of 300 cells, apart from the other values ({rest.min():g} "
        f"to {rest.max():g}) (1 of 3 items); replace 9999 with NaN if it stands for a missing "
        "answer",
        f"item 'item_2' holds 99 in 15 of 300 cells, apart from the other values (0 to {most:g}) "
        "(1 of 3 items); replace 99 with NaN if it stands for a missing answer",
    ]


@pytest.mark.parametrize("code", [9.0, 99.0, -9.0])
def test_a_code_beside_grades_with_a_gaussian_family_causes_a_warning(code):
    with pytest.warns(HidagWarning) as caught:
        warn_of_codes(read_table(grades(code)[:, None]), ["gaussian"])
    assert [str(warning.message) for warning in caught] == [
        f"item 'item_0' holds {code:g} in 3 of 103 cells, apart from the other values (1 to 5) "
        f"(1 of 1 items); replace {code:g} with NaN if it stands for a missing answer"
    ]


@pytest.mark.parametrize(
    ("values", "family"),
    [
        (np.append(np.tile([1.0, 2, 3, 4, 5], 60), 9.0), "gaussian"),  # once, a slip of the pen
        (np.append(np.repeat(np.arange(8.0), 8 - np.arange(8)), [9.0, 9.0]), "poisson"),
        (np.append(RNG.poisson(4, 999), 99.0), "poisson"),  # once, as the end of a tail
        (np.round(RNG.normal(60, 20, 500).clip(0, 99)), "gaussian"),  # the end of a scale
        (np.array([-1.0, 0, 1] * 50), "gaussian"),
        (np.array([1.0, 2, 3, 9] * 50), "categorical(1, 2, 3, 9)"),
    ],
)
def test_ordinary_values_cause_no_warning(values, family):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_codes(read_table(values[:, None]), [family])


def test_two_values_contain_no_code():
    assert find_code(np.array([0.0, 9.0])) is None


def test_codes_are_removed_from_text_and_numbers(tmp_path: Path):
    table = pa.table({"a": ["99", " 99.0", "7", None], "b": [99.0, 1.0, 2.0, None]})
    found = remove_missing_codes(table, {"a": ["99", "x"], "b": ["99"]})
    assert found.to_pydict() == {"a": [None, None, "7", None], "b": [None, 1.0, 2.0, None]}
    words = pa.table({"a": pa.array(["1", "refused", "0"]).dictionary_encode()})
    parquet.write_table(words, tmp_path / "t.parquet")
    found = read_file(tmp_path / "t.parquet", missing={"a": ["refused"]})
    np.testing.assert_array_equal(read_table(found).values, [[1.0], [np.nan], [0.0]])


@pytest.mark.parametrize(
    ("code", "n", "log"),
    [(999.0, 2, False), (-9.0, 2, False), (10000.0, 30, True), (1e6, 1, False)],
)
def test_far_values_among_measurements_are_asked_about(code, n, log):
    values = np.random.default_rng(3).normal(size=(120, 7)) * 1.5 + 1
    values = np.exp(values / 2) if log else values
    values[:n, 2] = code
    with pytest.warns(HidagWarning, match=rf"'item_2' holds .* in {n} of 120 cells"):
        warn_of_codes(read_table(values), ("gaussian",) * 7)


def test_long_tails_are_not_codes():
    rng = np.random.default_rng(4)
    for draw in (rng.standard_normal, lambda s: rng.lognormal(0, 2, s), rng.standard_exponential):
        for n_rows in (30, 300, 3000):
            columns = draw((n_rows, 40)).T
            assert sum(find_far_code(column) is not None for column in columns) == 0


def test_a_fraction_among_answers_is_asked_about():
    answers = np.repeat([0.0, 1.0, 0.5], [60, 59, 1])
    guess = infer_family(answers)
    assert guess.family is None
    assert "1 of 120 cells with fractions such as 0.5" in guess.reason
    assert infer_family(np.random.default_rng(0).normal(size=60)).family
