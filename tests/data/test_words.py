"""Tables of words: categorical columns and declared labels keep their words to the end."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hidag
from hidag.data.cells import CategoryLabels
from hidag.data.item_types import resolve_families
from hidag.data.table import read_table
from hidag.exceptions import DataError, SettingError

RNG = np.random.default_rng(5)
N = 300
HIDDEN = RNG.integers(0, 2, N)


def noisy(words, noise=0.15):
    """Return one word for each row, of the upper half where the hidden cause is present."""
    half = len(words) // 2
    state = np.where(RNG.random(N) < noise, 1 - HIDDEN, HIDDEN)
    place = np.where(
        state, RNG.integers(half, len(words), N), RNG.integers(0, len(words) - half, N)
    )
    return np.array(words)[place]


def table():
    grades = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    out = {
        "mood": pd.Series(noisy(["low", "middle", "high"])).astype(grades),
        "sex": pd.Series(noisy(["F", "M"])).astype("category"),
        "answer": noisy(["no", "yes"]),
        "flag": noisy([False, True]),
        "score": HIDDEN * 2.0 + RNG.normal(size=N),
    }
    return pd.DataFrame(out)


def families(X, **options):
    found = read_table(X, **options)
    return dict(zip(found.names, resolve_families(found, "auto").families, strict=True))


def test_categorical_columns_become_grades_categories_and_binary_items() -> None:
    X = table()
    X["region"] = pd.Series(noisy(["north", "east", "south"])).astype("category")
    found = families(X)
    assert found["mood"] == "ordinal(3)"
    assert found["sex"] == found["answer"] == found["flag"] == "bernoulli"
    assert found["region"].startswith("categorical")
    enum = pl.DataFrame(
        {"mood": pl.Series(X["mood"].tolist(), dtype=pl.Enum(["low", "middle", "high"]))}
    )
    assert families(enum) == {"mood": "ordinal(3)"}
    np.testing.assert_array_equal(read_table(enum).values[:, 0], X["mood"].cat.codes)
    plain = pl.DataFrame({"sex": pl.Series(X["sex"].tolist(), dtype=pl.Categorical)})
    assert families(plain) == {"sex": "bernoulli"}


def test_words_stay_with_the_fit_and_code_later_tables(tmp_path) -> None:
    X = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hidag.DCRL(1, random_state=0).fit(X)
    items = model.to_frame("items")
    assert "P(M)" in set(items["what"])
    assert {"P(=low)", "P(=high)"} <= set(items["what"])
    # Two rows with other categories than the table have the codes of the fit.
    few = X.iloc[:2].assign(sex=["m", "F"], mood=["HIGH", "low"])
    again = X.iloc[:2].assign(sex=[1, 0], mood=[2, 0])
    np.testing.assert_allclose(model.predict_proba(few), model.predict_proba(again))
    loaded = hidag.load(model.result_.save(tmp_path / "fit.npz"))
    np.testing.assert_allclose(loaded.posterior(few), model.predict_proba(few))
    with pytest.raises(DataError, match="must hold one of 'F', 'M'"):
        model.predict_proba(few.assign(sex=["X", "F"]))


def test_declared_words_are_merged_missing_or_in_another_language() -> None:
    X = pd.DataFrame(
        {"sex": ["F", "Female", "male", "M", "unknown"] * 9, "ja1": ["ja", "nein", "Ja"] * 15}
    )
    declared = {"sex": "Female=F,Male=M,NA=unknown", "ja*": "nein,ja"}
    labels = {"sex": CategoryLabels.parse(declared["sex"]), "ja1": CategoryLabels.parse("nein,ja")}
    values = read_table(X, labels=labels).values
    np.testing.assert_array_equal(values[:5, 0], [0, 0, 1, 1, np.nan])
    np.testing.assert_array_equal(values[:3, 1], [1, 0, 1])
    with pytest.raises(SettingError, match="words must map items"):
        hidag.DCRL(1, words={"age": "low<high"}).fit(X)
    with pytest.raises(DataError, match="item 'sex' has the text"):
        hidag.DCRL(1).fit(X)


def test_ordered_labels_may_have_words_for_missing_answers() -> None:
    labels = CategoryLabels.parse("never=nie<often=oft<always,NA=N/A=unknown")
    assert labels.labels == ("never", "often", "always")
    assert labels.ordered
    codes = labels.codes
    assert (codes["nie"], codes["oft"]) == (0, 1)
    assert np.isnan(codes["n/a"])
    assert np.isnan(codes["unknown"])


def test_a_category_that_may_mean_a_missing_answer_is_asked_about() -> None:
    X = pd.DataFrame({"sex": pd.Categorical(["F", "M", "Unknown"] * 10)})
    with pytest.raises(DataError, match="may be an answer or a missing one") as error:
        read_table(X)
    assert "NA=Unknown" in str(error.value)


def test_categories_of_numbers_stay_numbers() -> None:
    X = pd.DataFrame(
        {"x": pd.Categorical([3, 1, 2] * 5), "y": pd.Categorical(["yes", "no", "no"] * 5)}
    )
    found = read_table(X)
    assert found.values[:3].tolist() == [[3, 1], [1, 0], [2, 0]]
    assert not found.labels
