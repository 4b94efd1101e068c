"""Empty rows change no estimate: all numbers are those of the table without them."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, select
from hidag.data.rows import describe_empty_rows
from hidag.diagnostics import classify, fit_statistics, person_fit, validate_q
from hidag.exceptions import DataError, HidagWarning
from hidag.fitting.information_criteria import information_criteria
from hidag.inference import bootstrap, standard_errors
from hidag.reporting.fit_description import describe_fit
from hidag.simulation import chain_dag, make_truth, random_law, simulate

N, EMPTY = 300, 500
Q = np.tile(np.eye(2, dtype=np.int8), (4, 1))


@pytest.fixture(scope="module")
def tables():
    """Return rows with answers, and the same among empty ones, with their places."""
    rng = np.random.default_rng(3)
    truth = make_truth(random_law(chain_dag(2), rng=rng), Q, ("bernoulli", "gaussian") * 4, rng=rng)
    values = np.array(simulate(truth, N, rng=rng, missing=0.1).X)
    values = values[~np.isnan(values).all(axis=1)]
    places = np.sort(rng.permutation(len(values) + EMPTY)[: len(values)])
    padded = np.full((len(values) + EMPTY, values.shape[1]), np.nan)
    padded[places] = values
    return values, padded, places


def fitted(values, weights=None, **settings):
    return DCRL(2, random_state=0, **settings).fit(values, sample_weight=weights).result_


def both_fits(tables, weights=None, **settings):
    values, padded, places = tables
    wide = None
    if weights is not None:
        wide = np.full(len(padded), 7.0)
        wide[places] = weights
    with pytest.warns(HidagWarning, match="500 of 800 rows have no response and are ignored"):
        longer = fitted(padded, wide, **settings)
    return fitted(values, weights, **settings), longer, wide


@pytest.mark.parametrize("weighted", [False, True])
def test_empty_rows_change_neither_fit_nor_diagnostics(tables, weighted):
    values, padded, _ = tables
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(values)) if weighted else None
    short, long, wide = both_fits(tables, weights, q_matrix=Q)
    for name in ("log_likelihood", "graph_rows", "information_ratio", "missing_share", "n_counted"):
        assert getattr(long, name) == getattr(short, name)
    np.testing.assert_array_equal(long.loadings, short.loadings)
    np.testing.assert_array_equal(long.law.probabilities, short.law.probabilities)
    assert information_criteria(long) == information_criteria(short)
    assert long.penalty_strength_used == short.penalty_strength_used
    ours, theirs = (
        standard_errors(fit, x, sample_weight=w)
        for fit, x, w in ((long, padded, wide), (short, values, weights))
    )
    assert ours.n_rows == theirs.n_rows
    np.testing.assert_array_equal(ours.covariance, theirs.covariance)
    ours, theirs = (
        fit_statistics(fit, x, sample_weight=w, n_tables=10)
        for fit, x, w in ((long, padded, wide), (short, values, weights))
    )
    # Written out, as NaN is not even equal to itself.
    assert repr(ours.to_dict()) == repr(theirs.to_dict())
    ours, theirs = (
        validate_q(fit, x, sample_weight=w, n_resamples=2, random_state=0)
        for fit, x, w in ((long, padded, wide), (short, values, weights))
    )
    assert ours.summary() == theirs.summary()


def test_empty_rows_are_classified_by_the_latent_distribution(tables):
    values, padded, places = tables
    short, long, _ = both_fits(tables, q_matrix=Q)
    ours, theirs = classify(long, padded), classify(short, values)
    assert repr(ours.quality) == repr(theirs.quality)
    assert ours.shares() == theirs.shares()
    empty = np.setdiff1d(np.arange(len(padded)), places)
    for mine, other in zip(ours.probabilities, theirs.probabilities, strict=True):
        np.testing.assert_array_equal(mine[places], other)
    np.testing.assert_allclose(
        ours.expected[empty], np.tile(long.law.marginals()[:, 1], (EMPTY, 1)), atol=1e-12
    )
    assert (ours.n_answers[empty] == 0).all()
    assert ours.to_table().column("n_answers")[int(empty[0])] == 0
    first, *others = ours.notes
    assert str(first).endswith(": their posterior is the fitted latent distribution (n_answers 0)")
    assert "500 of 800 rows" in str(first)
    assert others == list(theirs.notes)
    np.testing.assert_array_equal(ours.profiles, long.most_probable_states(padded))
    # With nobody to place, nothing is known of how well that goes.
    nobody = classify(long, np.full((3, 8), np.nan))
    assert np.isnan(nobody.quality.column("accuracy")).all()
    assert nobody.quality.column("n_rows") == [0, 0, 0]
    assert len(nobody.shares()) == 0


def test_a_bootstrap_draws_nonempty_rows(tables):
    values, padded, _ = tables
    short, long, _ = both_fits(tables, q_matrix=Q)
    ours, theirs = (
        bootstrap(fit, x, n_resamples=2, start="fitted", random_state=0)
        for fit, x in ((long, padded), (short, values))
    )
    assert ours.n_rows == theirs.n_rows == len(values)
    np.testing.assert_array_equal(ours.loadings, theirs.loadings)


def test_numbers_of_latents_are_compared_without_empty_rows(tables):
    values, padded, _ = tables
    settings = {"fits": "none", "random_state": 0}
    with pytest.warns(HidagWarning, match="500 of 800 rows"):
        long = select(padded, [1, 2, 3], **settings)
    assert repr(long.rows()) == repr(select(values, [1, 2, 3], **settings).rows())


def test_few_empty_rows_cause_no_warning(tables):
    values = tables[0]
    result = fitted(np.vstack([values, np.full((3, 8), np.nan)]), q_matrix=Q)
    n = len(values)
    assert f"3 of {n + 3} rows have no response and are ignored." in describe_fit(result)
    assert result.n_samples == n + 3
    assert describe_empty_rows(1, 20) == "1 of 20 rows has no response and is ignored"


def test_too_few_nonempty_rows_are_an_error(tables):
    one = np.full((5, 3), np.nan)
    one[2] = 1.0
    with pytest.raises(DataError, match="2"):
        DCRL(1).fit(one)
    weights = np.zeros(len(tables[1]))
    weights[np.isnan(tables[1]).all(axis=1)] = 1.0
    with pytest.raises(DataError) as refused:
        DCRL(2).fit(tables[1], sample_weight=weights)
    assert str(refused.value) == (
        "sample_weight must be above zero for at least 2 rows that have a response"
    )


def test_a_dominant_weight_is_an_error():
    x = np.random.default_rng(0).integers(0, 2, (50, 4)).astype(float)
    weights = np.full(50, 1e-12)
    weights[4] = 1.0
    with pytest.raises(DataError) as refused:
        DCRL(1).fit(x, sample_weight=weights)
    assert str(refused.value) == (
        "sample_weight must let more than one row count, but row 4 (counting from 0) has 1 of 1, "
        "nearly all of the weight; check the weight of that row"
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_is_the_mean_over_nonempty_rows(tables, weighted):
    values, padded, places = tables
    model = DCRL(2, q_matrix=Q, random_state=0).fit(values)
    weights = wide = None
    if weighted:
        weights = np.random.default_rng(0).uniform(0.5, 1.5, len(values))
        wide = np.full(len(padded), 7.0)
        wide[places] = weights
    short = model.score(values, sample_weight=weights)
    assert model.score(padded, sample_weight=wide) == short
    assert short == np.average(model.score_samples(values), weights=weights)


def test_empty_rows_have_no_score(tables):
    model = DCRL(2, q_matrix=Q, random_state=0).fit(tables[0])
    with pytest.raises(DataError) as caught:
        model.score(np.full((3, len(Q)), np.nan))
    assert str(caught.value) == (
        "score needs a row with an observed cell, but all 3 rows are empty"
    )
    with pytest.raises(DataError) as caught:
        model.score(tables[0][:3], sample_weight=[1.0, 2.0])
    assert (
        str(caught.value)
        == "sample_weight must have one weight for each of the 3 rows, got shape (2,)"
    )


def test_person_fit_excludes_rows_with_too_few_responses(tables):
    values, padded, places = tables
    model = fitted(values, q_matrix=Q)
    # One answer is too few to be judged by, and no row's reference either.
    single = np.setdiff1d(np.arange(len(padded)), places)[:50]
    padded = padded.copy()
    padded[single, 0] = 1.0
    ours, theirs = person_fit(model, padded), person_fit(model, values)
    assert ours.n_reference == theirs.n_reference >= 4000
    rows = ours.to_rows()
    for mine, other in zip((rows[i] for i in places), theirs.to_rows(), strict=True):
        assert repr({**mine, "id": 0}) == repr({**other, "id": 0})
    assert np.isnan([rows[i]["lz"] for i in single]).all()
    nobody = person_fit(model, np.full((3, 8), np.nan))
    assert nobody.n_reference == 0
    assert np.isnan(nobody.table.column("p_value")).all()
