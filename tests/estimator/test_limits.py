"""Settings and names that cannot be meant are refused in a sentence before any work."""

from __future__ import annotations

import numpy as np
import pytest

import hidag
from hidag.exceptions import DataError, HidagError, SettingError
from hidag.fitting import settings as module

X = (np.random.default_rng(0).random((60, 7)) < 0.5).astype(float)


@pytest.fixture(autouse=True)
def no_fit(monkeypatch):
    monkeypatch.setattr("hidag.estimator.run_stages", None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_latents": 10**9},
        {"n_latents": 10**30},
        {"n_starts": 10**9},
        {"max_iter": 10**30},
        {"n_sweeps": 10**12},
        {"n_jobs": 10**9},
        {"tol": 1e308},
        {"tol": float("nan")},
        {"random_state": 10**400},
        {"family": "categorical(100000)"},
        {"family": "ordinal(100000)"},
        {"family": "ordinal(0..100000)"},
        {"family": "binomial(1e300)"},
        {"resample": lambda n: "many"},
        {"resample": lambda n: None},
        {"doublets": 3},
        {"doublets": lambda n: n},
        {"doublets": [3]},
        {"doublets": ["ab"]},
        {"nuisance": {"speed": 4}},
        {"latent_names": ["", "b"]},
        {"latent_names": ["\ud800", "b"]},
    ],
    ids=lambda one: next(iter(one)),
)
def test_extreme_settings(wrong):
    with pytest.raises(SettingError if "latent_names" not in wrong else HidagError) as caught:
        hidag.DCRL(**{"n_latents": 2, **wrong}).fit(X)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("labels", [[None], [float("nan")], [("a", 1)], [""], [3], [" "]])
def test_names_of_columns(labels):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X)
    frame.columns = pandas.Index([*labels, *"abcdef"], dtype=object)
    with pytest.raises(DataError, match="a column name must be text that is not empty"):
        hidag.DCRL(2).fit(frame)


def test_integers_that_numpy_lacks():
    polars = pytest.importorskip("polars")
    series = polars.Series("a", [0, 1, None], dtype=polars.Int128)
    frame = polars.DataFrame({"a": series, "b": [1, 0, 1]})
    found = hidag.data.table.read_table(frame).values
    assert np.array_equal(found, [[0, 1], [1, 0], [np.nan, 1]], equal_nan=True)


def test_weights_of_any_unit():
    weights = np.random.default_rng(1).random(60)
    expected = hidag.survey_weights(weights)
    for unit in (2.0**-996, 2.0**1000):
        assert np.array_equal(hidag.survey_weights(weights * unit), expected)
    with pytest.raises(DataError, match="numbers of rows, and must be at most 1e"):
        hidag.DCRL(2).fit(X, sample_weight=np.full(60, 1e308))


def test_memory_is_estimated_before_the_fit(monkeypatch):
    monkeypatch.setattr(module, "total_memory", lambda: 1e6)
    rows = (np.random.default_rng(2).random((60, 35)) < 0.5) * 1.0
    with pytest.raises(SettingError, match=r"needs at least 0.0 GB, but this machine has 0.0 GB"):
        hidag.DCRL(14, method="em", family="bernoulli").fit(rows)
