"""Predictions of a fit, before and after saving."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

import hidag
from hidag import DCRL, evaluate
from hidag.exceptions import DataError


def test_prediction(small, fitted):
    truth, data = small
    probabilities = fitted.predict_proba(data.X)
    states = fitted.predict(data.X)
    assert probabilities.shape == states.shape == (1500, 5)
    assert probabilities.min() >= 0
    assert probabilities.max() <= 1
    np.testing.assert_array_equal(fitted.transform(data.X), probabilities)
    # Matched to the truth, the states are right nearly always: items are clear in this design.
    match = evaluate(fitted, truth).permutation
    true = data.states
    ours = np.empty_like(states)
    for k, partner in enumerate(match):
        ours[:, k] = states[:, partner]
    assert (ours == true).mean() > 0.95
    assert fitted.score(data.X) == pytest.approx(fitted.log_likelihood_ / 1500, rel=1e-9)


def test_rows_with_missing_cells_and_empty_rows(small, fitted):
    _, data = small
    rows = data.X[:6].copy()
    rows[0] = np.nan
    rows[1, ::2] = np.nan
    prior = fitted.latent_law_.marginals()[:, 1]
    np.testing.assert_allclose(fitted.predict_proba(rows)[0], prior, atol=1e-12)
    assert fitted.score_samples(rows)[0] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(fitted.score(rows))


def test_save_and_load_are_exact(fitted, small, tmp_path):
    _, data = small
    path = fitted.result_.save(tmp_path / "fit.npz")
    again = hidag.load(path)
    for name in ("intercept", "loadings", "dispersion", "q_matrix", "trace"):
        assert np.array_equal(getattr(again, name), getattr(fitted.result_, name), equal_nan=True)
    assert np.array_equal(again.law.probabilities, fitted.result_.law.probabilities)
    assert np.array_equal(again.graph.adjacency, fitted.graph_.adjacency)
    assert again.starts == fitted.result_.starts
    assert again.settings == fitted.result_.settings
    assert again.log_likelihood == fitted.log_likelihood_
    assert np.array_equal(again.posterior(data.X), fitted.predict_proba(data.X))


def test_posteriors_do_not_depend_on_the_number_of_blas_threads(fitted, small):
    result, X = fitted.result_, small[1].X
    with threadpool_limits(limits=1, user_api="blas"):
        alone = result.posterior(X), result.most_probable_states(X), result.row_log_likelihood(X)
    for one, other in zip(
        alone,
        (result.posterior(X), result.most_probable_states(X), result.row_log_likelihood(X)),
        strict=True,
    ):
        assert np.array_equal(one, other)


ROWS_IN = ("rows", "posterior", "posterior_levels", "most_probable_states", "row_log_likelihood")


@pytest.mark.parametrize("method", ROWS_IN)
def test_a_loaded_result_accepts_all_kinds_of_tables(fitted, small, tmp_path, method):
    rows = small[1].X[:7]
    again = hidag.load(fitted.result_.save(tmp_path / "fit.npz"))
    wanted = getattr(again, method)(rows)
    named = pd.DataFrame(rows, columns=list(again.item_names))
    turned = named[named.columns[::-1]].assign(id="text")
    kinds = [named, turned, pl.from_pandas(turned), pa.table(named), rows.tolist()]
    for table in [*kinds, pd.DataFrame(rows), np.ma.masked_invalid(rows), rows.astype(object)]:
        np.testing.assert_array_equal(getattr(again, method)(table), wanted)


@pytest.mark.parametrize("method", ROWS_IN)
def test_tables_with_other_columns_raise(fitted, small, method):
    call = getattr(fitted.result_, method)
    rows = pd.DataFrame(small[1].X[:7], columns=list(fitted.result_.item_names))
    with pytest.raises(DataError) as caught:
        call(rows.drop(columns="item_3"))
    assert str(caught.value) == (
        "the table must have the items of the fit, but it lacks 'item_3' (1 of 15 items); give the "
        "table that was fitted, or one with the same columns"
    )
    with pytest.raises(DataError) as caught:
        call(rows.to_numpy()[:, :4])
    assert str(caught.value) == (
        "the table must have the 15 items of the fit, but it has 4 columns; give the table that "
        "was fitted, or one with the same columns"
    )


def test_invalid_values_are_reported_with_the_item_of_the_fit():
    names = [f"q{j}" for j in range(6)]
    rng = np.random.default_rng(0)
    X = (rng.random((400, 6)) < np.where(rng.random((400, 1)) < 0.5, 0.1, 0.9)).astype(float)
    result = DCRL(1, n_starts=1, random_state=0).fit(pd.DataFrame(X, columns=names)).result_
    X[0, 2] = 7
    with pytest.raises(DataError) as caught:
        result.posterior(X)
    assert "item 'q2' has" in str(caught.value)


def test_loading_another_file_raises(tmp_path):
    with pytest.raises(hidag.exceptions.FileError) as caught:
        hidag.load(tmp_path / "nothing.npz")
    assert str(caught.value) == (
        f"no result at '{tmp_path / 'nothing.npz'}': expected a file written by result_.save(path)"
    )
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 half a zip")
    with pytest.raises(
        hidag.exceptions.FileError, match="not a saved hidag fit, or it is truncated"
    ):
        hidag.load(tmp_path / "broken.npz")


def test_sampling_follows_the_fit(fitted, small):
    _, data = small
    values, states = fitted.sample(20_000, random_state=0)
    assert values.shape == (20_000, 15)
    np.testing.assert_allclose(values.mean(axis=0), data.X.mean(axis=0), atol=0.15)
    np.testing.assert_allclose(states.mean(axis=0), fitted.latent_law_.marginals()[:, 1], atol=0.02)


def test_damaged_files_raise(fitted, tmp_path):
    path = fitted.result_.save(tmp_path / "fit.npz")
    content = path.read_bytes()
    refused = 0
    for place in range(40, len(content), len(content) // 60):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            hidag.load(path)
        except hidag.exceptions.FileError:
            refused += 1
    # Some bytes of a zip file are never read.
    assert refused > 30
