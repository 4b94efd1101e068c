"""Invariance of a fit to order, units, kind of table and threads."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hidag import DCRL, design, evaluate, simulate
from hidag.exceptions import ConvergenceWarning


def test_same_seed_same_bits(small):
    _, data = small
    for method in ("em", "saem"):
        one = DCRL(5, family="gaussian", method=method, random_state=11, max_iter=60)
        two = DCRL(5, family="gaussian", method=method, random_state=11, max_iter=60, n_jobs=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            one.fit(data.X)
            two.fit(data.X)
        assert np.array_equal(one.loadings_, two.loadings_)
        assert np.array_equal(one.latent_law_.probabilities, two.latent_law_.probabilities)
        assert one.log_likelihood_ == two.log_likelihood_


@pytest.mark.parametrize("method", ["em", "saem"])
@pytest.mark.parametrize("family", ["bernoulli", "gaussian"])
def test_permuting_rows_and_columns_only_permutes_the_estimates(method, family):
    truth = design("Chain-5", "Q2", family, design="research-code", rng=12)
    X = np.array(simulate(truth, 800, rng=13, missing=0.05).X)
    rng = np.random.default_rng(14)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    settings = {"family": family, "method": method, "random_state": 0, "max_iter": 80}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = DCRL(5, **settings).fit(X)
        two = DCRL(5, **settings).fit(X[np.ix_(rows, columns)])
    assert np.array_equal(one.loadings_[columns], two.loadings_)
    assert np.array_equal(one.intercept_[columns], two.intercept_)
    assert np.array_equal(one.latent_law_.probabilities, two.latent_law_.probabilities)
    assert np.array_equal(one.graph_.adjacency, two.graph_.adjacency)


def test_rescaled_items_give_rescaled_estimates(small):
    _, data = small
    scale = np.exp(np.random.default_rng(1).normal(size=15) * 4)
    shift = 1e3 * scale
    one = DCRL(5, family="gaussian", random_state=0).fit(data.X)
    two = DCRL(5, family="gaussian", random_state=0).fit(data.X * scale + shift)
    match = evaluate(two, one.result_)
    assert match.shd == 0
    np.testing.assert_allclose(
        np.sort(two.loadings_ / scale[:, None], axis=1), np.sort(one.loadings_, axis=1), atol=2e-3
    )


def test_tables_of_every_kind_give_the_same_fit(small):
    _, data = small
    names = [f"item {j}" for j in range(15)]
    frame = pd.DataFrame(data.X, columns=names)
    plain = DCRL(5, family="gaussian", n_starts=1, random_state=0).fit(data.X)
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        model = DCRL(5, family="gaussian", n_starts=1, random_state=0).fit(table)
        assert np.array_equal(model.loadings_, plain.loadings_)
        assert model.result_.item_names == tuple(names)
    assert list(DCRL(5, family="gaussian", n_starts=1).fit(frame).feature_names_in_) == names
