"""DCRL from outside: habits of scikit-learn, truths found, nothing that depends on order."""

from __future__ import annotations

import copy
import logging
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import hidag
from hidag import DCRL, design, evaluate, simulate
from hidag.errors import ConvergenceWarning, DataError, IdentifiabilityWarning, SettingError

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


@pytest.fixture(scope="module")
def small():
    truth = design("Chain-5", "Q1", "gaussian", design="research-code", rng=3)
    return truth, simulate(truth, 1500, rng=4)


@pytest.fixture(scope="module")
def fitted(small):
    _, data = small
    return DCRL(5, family="gaussian", random_state=0).fit(data.X)


def test_a_known_truth_is_found(small, fitted):
    truth, _ = small
    found = evaluate(fitted, truth)
    assert found.shd == 0
    assert found.rmse_loadings < 0.15
    assert found.tv_law < 0.12


@pytest.mark.parametrize(
    ("family", "name"),
    [("bernoulli", "bernoulli"), ("poisson", "poisson-identity"), ("gaussian", "gaussian")],
)
@pytest.mark.parametrize("method", ["em", "saem"])
def test_both_methods_recover_q(family, name, method):
    truth = design("Tree-5", "Q1", family, design="research-code", rng=5)
    data = simulate(truth, 4000, rng=6)
    model = DCRL(5, family=name, method=method, n_starts=1, random_state=1).fit(data.X)
    assert model.result_.method == method
    assert evaluate(model, truth).shd_q <= 2


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


def test_the_number_of_starts_is_kept(small):
    _, data = small
    model = DCRL(
        5, family="gaussian", law="saturated", n_starts=3, penalty_strength=5.0, random_state=0
    )
    model.fit(data.X)
    assert len(model.result_.starts) == 3
    assert max(r.objective for r in model.result_.starts) <= model.result_.objective + 1e-6


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


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_the_wished_kind_of_table_comes_out_of_every_transform(small, fitted, library, kind):
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


def test_rows_keep_their_labels_where_a_frame_is_wished_for(small):
    _, data = small
    table = pd.DataFrame(data.X[:300], index=[f"person {n}" for n in range(300)])
    model = DCRL(5, family="gaussian", n_starts=1, random_state=0).set_output(transform="pandas")
    together = model.fit_transform(table)
    pd.testing.assert_frame_equal(model.transform(table), together)
    assert list(together.index) == list(table.index)


def test_rows_with_gaps_and_rows_with_nothing(small, fitted):
    _, data = small
    rows = data.X[:6].copy()
    rows[0] = np.nan
    rows[1, ::2] = np.nan
    prior = fitted.latent_law_.marginals()[:, 1]
    np.testing.assert_allclose(fitted.predict_proba(rows)[0], prior, atol=1e-12)
    assert fitted.score_samples(rows)[0] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(fitted.score(rows))


def test_missing_cells_in_the_fit(small):
    truth, data = small
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    X[7] = np.nan
    model = DCRL(5, family="gaussian", random_state=0).fit(X)
    assert evaluate(model, truth).shd <= 1
    assert model.result_.missing_share == pytest.approx(0.15, abs=0.01)


def test_mixed_families_in_one_table():
    truth = design("Chain-5", "Q1", "gaussian", design="research-code", rng=8)
    from dataclasses import replace

    families = ("gaussian",) * 5 + ("lognormal",) * 5 + ("bernoulli",) * 5
    mixed = replace(
        truth,
        families=families,
        loadings=truth.loadings,
        dispersion=np.where(np.array(families) == "bernoulli", np.nan, 0.5),
    )
    data = simulate(mixed, 2500, rng=9)
    model = DCRL(5, family=list(families), random_state=0).fit(data.X)
    assert evaluate(model, mixed).shd <= 2
    assert np.isnan(model.dispersion_[10:]).all()
    assert not np.isnan(model.dispersion_[:10]).any()


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
def test_permuting_rows_and_columns_only_permutes_the_answer(method, family):
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


def test_units_of_measurement_change_nothing_but_units(small):
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


def test_a_known_q_is_kept_and_not_penalised(small):
    truth, data = small
    model = DCRL(5, family="gaussian", q_matrix=truth.q_matrix, random_state=0).fit(data.X)
    np.testing.assert_array_equal(model.q_matrix_, truth.q_matrix)
    assert (model.loadings_[truth.q_matrix == 0] == 0).all()
    assert model.result_.objective == model.result_.log_likelihood
    assert evaluate(model, truth).rmse_loadings < 0.12
    assert list(evaluate(model, truth).permutation) == [0, 1, 2, 3, 4]


def test_a_partly_known_q(small):
    truth, data = small
    q = truth.q_matrix.astype(float)
    q[:5] = np.nan
    model = DCRL(5, family="gaussian", q_matrix=q, random_state=0).fit(data.X)
    np.testing.assert_array_equal(model.q_matrix_, truth.q_matrix)


def test_without_penalty_em_never_goes_down(small):
    _, data = small
    model = DCRL(
        5,
        family="gaussian",
        penalty=None,
        method="em",
        law="saturated",
        tol=1e-9,
        max_iter=60,
        n_starts=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X)
    assert np.diff(model.trace_[:, 0]).min() > -1e-6


@pytest.mark.parametrize(
    ("rule", "rows"), [("N", 1500), ("2N", 3000), ("3N", 4500), (700, 700), (lambda n: n / 2, 750)]
)
def test_resampling_rules(small, rule, rows):
    _, data = small
    model = DCRL(5, family="gaussian", n_starts=1, resample=rule, random_state=0).fit(data.X)
    assert model.result_.graph_rows == rows
    assert model.graph_.is_valid()


def test_expected_counts_stand_for_what_the_items_tell(small):
    _, data = small
    auto = DCRL(5, family="gaussian", n_starts=1, random_state=0).fit(data.X)
    ratio = auto.result_.information_ratio
    assert 0.5 < ratio < 1
    assert auto.result_.graph_rows == pytest.approx(ratio * 1500)
    whole = DCRL(5, family="gaussian", n_starts=1, effective_size="all", random_state=0)
    assert whole.fit(data.X).result_.graph_rows == pytest.approx(1500)


@pytest.mark.parametrize(
    "settings",
    [
        {
            "law": "network",
            "knowledge": hidag.Knowledge(required=[(0, 4)], forbidden=[(1, 2), (2, 1)]),
        },
        {"method": "saem", "max_iter": 80},
        {"law": "saturated"},
    ],
)
# What is told here is not so: the table says so, and it is obeyed all the same.
@pytest.mark.filterwarnings("ignore::hidag.errors.KnowledgeWarning")
def test_the_likelihood_is_that_of_the_law_that_comes_with_it(small, settings):
    _, data = small
    model = DCRL(5, family="gaussian", n_starts=1, random_state=0, **settings).fit(data.X)
    assert model.score_samples(data.X).sum() == pytest.approx(model.log_likelihood_, rel=1e-10)
    price = model.log_likelihood_ - model.result_.objective
    strength = model.result_.settings["penalty_strength_used"]
    assert price == pytest.approx(strength * model.q_matrix_.sum(), rel=1e-6)


# What is told here is not so: the table says so, and it is obeyed all the same.
@pytest.mark.filterwarnings("ignore::hidag.errors.KnowledgeWarning")
def test_required_edges_are_in_the_law_and_forbidden_ones_are_not(small):
    _, data = small
    known = hidag.Knowledge(required=[(0, 4)], forbidden=[(1, 2), (2, 1)])
    for method in ("em", "saem"):
        model = DCRL(
            5, family="gaussian", law="network", method=method, knowledge=known, random_state=0
        ).fit(data.X)
        parents = model.latent_law_.parents
        assert 0 in parents[4]
        assert 1 not in parents[2]
        assert 2 not in parents[1]
        edges = {(a, b) for b, causes in enumerate(parents) for a in causes}
        joined = model.graph_.adjacency | model.graph_.adjacency.T
        assert {frozenset(e) for e in edges} == {
            frozenset((int(a), int(b))) for a, b in np.argwhere(joined)
        }


def test_a_rule_that_grows_too_fast_is_warned_about(small):
    _, data = small
    model = DCRL(5, family="gaussian", n_starts=1, resample=lambda n: n**1.2)
    with pytest.warns(hidag.errors.HidagWarning, match="grows as fast as N log N or faster"):
        model.fit(data.X)


# What is told here is not so: the table says so, and it is obeyed all the same.
@pytest.mark.filterwarnings("ignore::hidag.errors.KnowledgeWarning")
def test_knowledge_reaches_the_search(small):
    _, data = small
    forbidden = [(a, b) for a in range(5) for b in range(5) if a != b]
    model = DCRL(
        5, family="gaussian", n_starts=1, knowledge=hidag.Knowledge(forbidden=forbidden)
    ).fit(data.X)
    assert not model.graph_.adjacency.any()


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


ROWS_IN = ("rows", "posterior", "posterior_levels", "classify", "row_log_likelihood")


@pytest.mark.parametrize("method", ROWS_IN)
def test_a_loaded_result_takes_whatever_can_be_fitted(fitted, small, tmp_path, method):
    rows = small[1].X[:7]
    again = hidag.load(fitted.result_.save(tmp_path / "fit.npz"))
    wanted = getattr(again, method)(rows)
    named = pd.DataFrame(rows, columns=list(again.item_names))
    turned = named[named.columns[::-1]].assign(id="somebody")
    kinds = [named, turned, pl.from_pandas(turned), pa.table(named), rows.tolist()]
    for table in [*kinds, pd.DataFrame(rows), np.ma.masked_invalid(rows), rows.astype(object)]:
        np.testing.assert_array_equal(getattr(again, method)(table), wanted)


@pytest.mark.parametrize("method", ROWS_IN)
def test_a_result_refuses_a_wrong_table_in_a_sentence(fitted, small, method):
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


def test_values_that_no_family_takes_are_refused_by_the_name_of_the_fits_item():
    names = [f"q{j}" for j in range(6)]
    rng = np.random.default_rng(0)
    X = (rng.random((400, 6)) < np.where(rng.random((400, 1)) < 0.5, 0.1, 0.9)).astype(float)
    result = DCRL(1, n_starts=1, random_state=0).fit(pd.DataFrame(X, columns=names)).result_
    X[0, 2] = 7
    with pytest.raises(DataError) as caught:
        result.posterior(X)
    assert "item 'q2' has" in str(caught.value)


def test_loading_something_else_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(hidag.errors.FileError) as caught:
        hidag.load(tmp_path / "nothing.npz")
    assert str(caught.value) == (
        f"no result at '{tmp_path / 'nothing.npz'}': expected a file written by result_.save(path)"
    )
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 half a zip")
    with pytest.raises(hidag.errors.FileError, match="not a saved hidag fit, or it is truncated"):
        hidag.load(tmp_path / "broken.npz")


def test_sampling_follows_the_fit(fitted, small):
    _, data = small
    values, states = fitted.sample(20_000, random_state=0)
    assert values.shape == (20_000, 15)
    np.testing.assert_allclose(values.mean(axis=0), data.X.mean(axis=0), atol=0.15)
    np.testing.assert_allclose(states.mean(axis=0), fitted.latent_law_.marginals()[:, 1], atol=0.02)


def test_types_are_told(small, caplog):
    _, data = small
    with caplog.at_level(logging.INFO, logger="hidag"):
        DCRL(5, n_starts=1, random_state=0).fit(data.X)
    assert "gaussian" in caplog.text


def test_verbose_says_types_and_method(small, capsys):
    _, data = small
    DCRL(5, n_starts=1, random_state=0, verbose=1).fit(data.X)
    told = capsys.readouterr().err
    assert "hidag: item types" in told
    assert "item_0" in told
    assert "Stage I by method='em'" in told


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_latents": 0}, "n_latents must be a whole number of at least 1, got 0"),
        ({"n_latents": 2.5}, "n_latents must be a whole number of at least 1, got 2.5"),
        (
            {"n_latents": 16},
            "n_latents=16 is more than the 15 items of the table, and each latent needs an item of "
            "its own to be fitted at all; ask for 7, the most that 15 items can identify",
        ),
        (
            {"method": "mcmc"},
            "method must be 'auto', 'em' or 'saem', got 'mcmc'",
        ),
        ({"law": "dense"}, "law must be 'auto', 'network' or 'saturated', got 'dense'"),
        ({"penalty": "l1"}, "penalty must be 'tlp', 'scad' or None, got 'l1'"),
        ({"n_starts": 0}, "n_starts must be a whole number of at least 1, got 0"),
        ({"tol": 0}, "tol must be a positive number, got 0"),
        (
            {"effective_size": 3},
            "effective_size must be 'auto', 'all' or a share of N between 0 and 1, got 3",
        ),
        (
            {"resample": "twice"},
            "resample must be 'expected', a multiple of N such as '2N', a number of rows or a "
            "function of N, got 'twice'",
        ),
    ],
)
def test_wrong_settings_get_a_sentence(small, settings, sentence):
    _, data = small
    with pytest.raises(SettingError) as caught:
        DCRL(**{"n_latents": 5, "family": "gaussian", **settings}).fit(data.X)
    assert str(caught.value) == sentence


def test_too_many_latents_are_warned_about(small):
    _, data = small
    with pytest.warns(IdentifiabilityWarning, match="3 latents cannot be identified from 6 items"):
        DCRL(3, family="gaussian", n_starts=1, max_iter=100).fit(data.X[:, :6])


def test_a_constant_item_is_named(small):
    _, data = small
    X = data.X.copy()
    X[:, 3] = 1.5
    with pytest.raises(DataError, match="item_3"):
        DCRL(5, family="gaussian").fit(X)


def test_not_settled_is_said(small):
    _, data = small
    with pytest.warns(ConvergenceWarning, match="had not settled after max_iter=2 steps"):
        DCRL(5, family="gaussian", n_starts=1, max_iter=2, tol=1e-12).fit(data.X)


def test_rooms_can_be_called(small):
    truth, data = small
    assert hidag.discover(data.states).adjacency.shape == (5, 5)
    assert hidag.simulate(truth, 10, rng=0).X.shape == (10, 15)


def test_known_loadings_stay_whatever_the_data_say(small):
    truth, data = small
    q = np.full(truth.q_matrix.shape, -1)
    q[0] = 1
    q[7] = truth.q_matrix[7]
    model = DCRL(5, family="gaussian", q_matrix=q, n_starts=1, random_state=0).fit(data.X)
    assert (model.q_matrix_[0] == 1).all()
    assert (model.loadings_[0] != 0).all()
    np.testing.assert_array_equal(model.q_matrix_[7] == 1, truth.q_matrix[7] == 1)


def test_latents_that_no_item_shows_stand_alone():
    rng = np.random.default_rng(0)
    states = rng.random((1000, 2)) < 0.5
    states[:, 1] = np.where(rng.random(1000) < 0.7, states[:, 0], states[:, 1])
    X = -1 + 2 * states[:, np.arange(9) % 2] + 0.7 * rng.standard_normal((1000, 9))
    q = np.zeros((9, 3))
    q[np.arange(9), np.arange(9) % 2] = 1
    q[:, 2] = -1
    with pytest.warns(IdentifiabilityWarning) as caught:
        model = DCRL(3, q_matrix=q, penalty_strength=40.0, random_state=0).fit(X)
    assert model.q_matrix_[:, 2].sum() == 0
    assert not model.graph_.adjacency[2].any()
    assert not model.graph_.adjacency[:, 2].any()
    assert model.graph_.undirected_edges == [("Z1", "Z2")]
    assert str(caught[0].message) == (
        "no item depends on Z3: the data do not show so many latents; ask for 2 instead of 3"
    )


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


def test_few_rows_are_warned_about(small):
    _, data = small
    with pytest.warns(IdentifiabilityWarning, match="20 rows are few for"):
        DCRL(2, family="gaussian", n_starts=1, random_state=0).fit(data.X[:20])


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty_strength": np.inf},
        {"penalty_strength": "a"},
        {"penalty": ["tlp"]},
        {"equivalent_sample_size": None},
        {"knowledge": {"required": []}},
        {"resample": None},
        {"resample": 1e12},
        {"latent_names": 5},
        {"observer": 3},
        {"random_state": "a"},
        {"n_jobs": -2},
        {"search": "pc"},
    ],
)
def test_odd_settings_are_refused_before_any_work(small, settings):
    _, data = small
    told = []
    with pytest.raises(SettingError):
        DCRL(5, **{"family": "gaussian", "observer": told.append, **settings}).fit(data.X)
    assert told == []


def test_a_damaged_file_is_refused_whatever_is_damaged(fitted, tmp_path):
    path = fitted.result_.save(tmp_path / "fit.npz")
    content = path.read_bytes()
    refused = 0
    for place in range(40, len(content), len(content) // 60):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            hidag.load(path)
        except hidag.errors.FileError:
            refused += 1
    # Some bytes of a zip are read by nobody; most damage has to be noticed.
    assert refused > 30
