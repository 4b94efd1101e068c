"""DCRL as scikit-learn knows estimators: its checks, attributes, tables that come out."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hidag import DCRL
from hidag.exceptions import DataError

_WHOLE_NUMBERS = (
    "feeds whole numbers as if they were measurements; family='auto' refuses to guess whether such "
    "a column holds counts or grades"
)
#: Checks that cannot hold when types are to be guessed, each with its reason.
EXPECTED_FAILURES = dict.fromkeys(
    (
        "check_estimators_dtypes",
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
    ),
    _WHOLE_NUMBERS,
)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        DCRL(n_latents=1, n_starts=1, max_iter=20, random_state=0),
        DCRL(n_latents=1, family="gaussian", n_starts=1, max_iter=20, random_state=0),
    ],
    expected_failed_checks=lambda estimator: (
        EXPECTED_FAILURES if estimator.family == "auto" else {}
    ),
)
def test_scikit_learn_habits(estimator, check):
    check(estimator)


def test_attributes_have_their_shapes(fitted):
    assert fitted.q_matrix_.shape == (15, 5)
    assert set(np.unique(fitted.q_matrix_)) <= {0, 1}
    assert fitted.intercept_.shape == fitted.dispersion_.shape == (15,)
    assert fitted.loadings_.shape == (15, 5)
    assert (fitted.loadings_.sum(axis=0) > 0).all()
    assert fitted.latent_law_.probabilities.shape == (32,)
    assert fitted.latent_law_.probabilities.sum() == pytest.approx(1.0)
    assert fitted.graph_.adjacency.shape == (5, 5)
    assert fitted.graph_.is_valid()
    assert fitted.latent_names_ == ("Z1", "Z2", "Z3", "Z4", "Z5")
    assert fitted.trace_.shape == (fitted.n_iter_, 2)
    assert 1 <= fitted.result_.n_reached <= len(fitted.result_.starts)


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_transform_returns_the_kind_of_table_that_set_output_selects(small, fitted, library, kind):
    X = small[1].X[:5]
    model = copy.deepcopy(fitted).set_output(transform=library)
    found = model.transform(X)
    assert isinstance(found, kind)
    assert list(found.columns) == list(fitted.latent_names_)
    np.testing.assert_array_equal(found.to_numpy(), fitted.transform(X))
    piped = make_pipeline(copy.deepcopy(fitted))
    assert isinstance(piped.set_output(transform=library).transform(X), kind)
    with sklearn.config_context(transform_output=library):
        assert isinstance(fitted.transform(X), kind)
    assert isinstance(fitted.transform(X), np.ndarray)


def test_pandas_output_keeps_the_labels_of_the_rows(small):
    _, data = small
    table = pd.DataFrame(data.X[:300], index=[f"person {n}" for n in range(300)])
    model = DCRL(5, family="gaussian", n_starts=1, random_state=0).set_output(transform="pandas")
    together = model.fit_transform(table)
    pd.testing.assert_frame_equal(model.transform(table), together)
    assert list(together.index) == list(table.index)


def test_a_refused_fit_leaves_the_estimator_as_it_was(small):
    _, data = small
    from sklearn.exceptions import NotFittedError

    model = DCRL(5, family="poisson")
    with pytest.raises(DataError):
        model.fit(data.X)
    with pytest.raises(NotFittedError):
        model.predict(data.X)
    model.set_params(family="gaussian", n_starts=1, random_state=0).fit(data.X)
    before = model.predict(data.X[:5])
    with pytest.raises(DataError):
        model.fit(np.full((4, 7), np.nan))
    np.testing.assert_array_equal(model.predict(data.X[:5]), before)
