"""Response styles and dependent pairs of items: nuisances that are summed out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import hidag
from hidag import DCRL, evaluate
from hidag.diagnostics import classify, fit_statistics
from hidag.exceptions import SettingError
from hidag.inference import bootstrap, standard_errors
from hidag.reporting import write_report
from hidag.simulation import chain_dag, random_law

K, N = 3, 2000
PAIRS = [("item_0", "item_1"), ("item_5", "item_6")]


def table_of(seed, style=0.0, pairs=(), family="bernoulli"):
    """Return answers of five items per latent with a style and dependent pairs, and Q."""
    rng = np.random.default_rng(seed)
    states = random_law(chain_dag(K), rng=rng).sample(N, rng)
    q = np.kron(np.eye(K, dtype=int), np.ones((5, 1), dtype=int))
    predictor = 2.6 * (states - 0.5) @ q.T + style * rng.normal(size=(N, 1))
    for (a, b), sign in zip(pairs, (1.0, -1.0), strict=False):
        common = 1.5 * rng.normal(size=N)
        predictor[:, int(a[5:])] += common
        predictor[:, int(b[5:])] += sign * common
    noisy = predictor + rng.logistic(size=predictor.shape)
    if family == "ordinal":
        return (noisy[:, :, None] > np.array([-1.5, 0.0, 1.5])).sum(axis=2).astype(float), q
    return (noisy > 0).astype(float), q


def fitted(x, **settings):
    with warnings.catch_warnings():  # Fixtures have no marks.
        warnings.simplefilter("ignore")
        return DCRL(K, random_state=0, **{"family": "bernoulli", **settings}).fit(x)


@pytest.fixture(scope="module")
def styled():
    x, q = table_of(9270, style=0.8)
    return x, q, fitted(x, nuisance="style")


def test_a_style_is_found_and_the_graph_is_that_of_the_latents(styled):
    _, q, model = styled
    (factor,) = model.result_.nuisance
    assert factor.sd == pytest.approx(0.8, abs=0.15)
    assert np.ptp(factor.loadings) == pytest.approx(0.0, abs=1e-9)
    assert model.q_matrix_.shape == (15, K)
    assert sorted(map(tuple, model.q_matrix_.T)) == sorted(map(tuple, q.T))
    assert len(model.latent_names_) == K == len(model.graph_.names)
    assert model.edge_probabilities_.shape == (K, K)
    assert len(model.graph_.directed_edges) + len(model.graph_.undirected_edges) == 2


def test_posteriors_sum_the_style_out(styled):
    x, _, model = styled
    found = model.predict_proba(x[:50])
    assert found.shape == (50, K)
    joint, law = model.result_.whole_model
    assert joint.n_latents == K + 1
    assert model.predict(x[:50]).shape == (50, K)
    # The law of the whole model has the latents' law as its margin.
    margin = np.asarray(law.probabilities).reshape(2**K, -1).sum(axis=1)
    np.testing.assert_allclose(margin, model.latent_law_.probabilities)
    assert model.score_samples(x).sum() == pytest.approx(model.log_likelihood_, abs=1e-6 * N)


def test_drawn_tables_have_the_style(styled):
    x, _, model = styled
    drawn, states = model.sample(20_000, random_state=1)
    assert states.shape == (20_000, K)
    np.testing.assert_allclose(
        np.corrcoef(drawn.T)[np.triu_indices(15, 1)],
        np.corrcoef(x.T)[np.triu_indices(15, 1)],
        atol=0.09,
    )
    np.testing.assert_allclose(
        model.result_.item_means(model.latent_law_.space.states()).T
        @ model.latent_law_.probabilities,
        x.mean(axis=0),
        atol=0.02,
    )


def test_a_saved_fit_keeps_its_nuisances(styled, tmp_path):
    x, _, model = styled
    again = hidag.load(model.result_.save(tmp_path / "fit.npz"))
    assert [one.name for one in again.nuisance] == ["style"]
    np.testing.assert_allclose(again.row_log_likelihood(x), model.score_samples(x))


def test_permuted_rows_and_columns_only_permute_the_answer(styled):
    x, _, model = styled
    rng = np.random.default_rng(2)
    rows, columns = rng.permutation(N), rng.permutation(15)
    other = fitted(x[np.ix_(rows, columns)], nuisance="style")
    np.testing.assert_allclose(other.loadings_, model.loadings_[columns], atol=1e-8)


def test_refits_reports_and_comparisons_work(styled, tmp_path):
    x, _, model = styled
    refits = bootstrap(model, x, n_resamples=2, random_state=0)
    assert refits.edge_probabilities.shape == (K, K)
    assert evaluate(model, model.result_).shd_q == 0
    page = write_report(model, tmp_path / "report.html", X=x).read_text()
    assert "Not available for fits with nuisances (style)" in page


@pytest.mark.parametrize("function", [standard_errors, fit_statistics, classify])
def test_functions_that_do_not_sum_it_out_refuse(styled, function):
    x, _, model = styled
    with pytest.raises(SettingError, match="nuisances") as caught:
        function(model, x)
    assert caught.value.code == "nuisance-not-supported"


def test_pairs_share_factors_of_either_sign():
    x, q = table_of(9271, pairs=PAIRS)
    model = fitted(x, doublets=PAIRS)
    first, second = model.result_.nuisance
    assert np.flatnonzero(first.loadings).tolist() == [0, 1]
    assert first.loadings[0] * first.loadings[1] > 0 > second.loadings[5] * second.loadings[6]
    # One of 30 possible false loadings enters.
    assert model.q_matrix_.sum() <= q.sum() + 1
    assert model.log_likelihood_ > fitted(x).log_likelihood_ + 50


def test_a_table_without_a_style_keeps_its_graph():
    x, _ = table_of(9272)
    plain, model = fitted(x), fitted(x, nuisance="style")
    order = evaluate(model, plain.result_)
    assert (order.shd_q, order.shd_graph) == (0, 0)
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=4)


@pytest.mark.parametrize(
    "settings",
    [
        {"q_matrix": np.kron(np.eye(K, dtype=int), np.ones((5, 1), dtype=int))},
        {"family": "ordinal"},
        {"sample_weight": np.tile([0.5, 1.5], N // 2)},
        {"missing": True},
        {"nuisance": {"agreement": range(8), "other": range(8, 15)}},
    ],
)
def test_other_settings_are_combined_with_nuisances(settings):
    settings = {"nuisance": "style", **settings}
    x, q = table_of(9273, style=0.8, family=settings.get("family", "bernoulli"))
    if settings.pop("missing", False):
        x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    weights = settings.pop("sample_weight", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DCRL(K, random_state=0, **{"family": "bernoulli", **settings})
        model.fit(x, sample_weight=weights)
    assert sorted(map(tuple, model.q_matrix_.T)) == sorted(map(tuple, q.T))
    assert max(one.sd.max() for one in model.result_.nuisance) > 0.4


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        ("invalid-setting", {"nuisance": "acquiescence"}),
        ("invalid-setting", {"nuisance": ["item_0", "no item", "item_2"]}),
        ("invalid-setting", {"doublets": [("item_0", "item_0")]}),
        ("nuisance-not-possible", {"nuisance": "style", "law": "saturated"}),
        ("nuisance-not-possible", {"nuisance": "style", "effects": "all"}),
        ("nuisance-not-possible", {"doublets": [(a, b) for a in range(5) for b in range(5, 9)]}),
    ],
)
def test_what_nuisances_cannot_do_is_refused(code, settings):
    x, _ = table_of(9274)
    with pytest.raises(SettingError) as caught:
        DCRL(K, family="bernoulli", **settings).fit(x)
    assert caught.value.code == code
