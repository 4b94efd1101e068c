"""Selected numbers of levels, and traits in equal steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import hidag
from hidag import DCRL
from hidag.exceptions import SettingError
from hidag.inference import bootstrap, standard_errors
from hidag.simulation import random_law, random_q, random_truth, simulate, tree_dag

#: Theory guarantees levels, not traits, and needs more items for more levels.
pytestmark = pytest.mark.filterwarnings("ignore:this Q-matrix has no guarantee")
N = 1500


def table_of(levels, seed, family="gaussian"):
    rng = np.random.default_rng(seed)
    law = random_law(tree_dag(len(levels)), rng=rng, levels=levels)
    q = random_q(4 * len(levels), len(levels), pure_share=1.0, max_parents=1, rng=rng)
    truth = random_truth(law, q, family, rng=rng)
    return truth, simulate(truth, N, rng=rng).X


def traits_table(seed, n_traits=3):
    """Return answers to four items per trait, and Q; traits are normal and form a chain."""
    rng = np.random.default_rng(seed)
    traits = rng.normal(size=(N, n_traits))
    for k in range(1, n_traits):
        traits[:, k] = 0.6 * traits[:, k - 1] + 0.8 * traits[:, k]
    q = np.kron(np.eye(n_traits, dtype=int), np.ones((4, 1), dtype=int))
    chance = 1.0 / (1.0 + np.exp(-1.8 * traits @ q.T))
    return (rng.random(chance.shape) < chance).astype(float), q


def same_up_to_order(q, other):
    return sorted(map(tuple, q.T)) == sorted(map(tuple, other.T))


@pytest.fixture(scope="module")
def of_traits():
    x, q = traits_table(9241)
    model = DCRL(3, levels="auto", family="bernoulli", random_state=0)
    with warnings.catch_warnings():  # Marks do not apply to fixtures.
        warnings.simplefilter("ignore")
        return x, q, model.fit(x)


@pytest.mark.parametrize("levels", [(2, 2, 2), (3, 2, 3)])
def test_the_levels_of_the_truth_are_selected(levels):
    truth, x = table_of(levels, 9240)
    model = DCRL(3, levels="auto", family="gaussian", random_state=0).fit(x)
    assert sorted(model.terms_.levels) == sorted(levels)
    assert same_up_to_order(model.q_matrix_, truth.q_matrix)
    assert model.result_.levels_reason.count("BIC") == 3


def test_traits_get_equal_steps_and_keep_their_items(of_traits):
    _, q, model = of_traits
    assert min(model.terms_.levels) > 2
    assert model.terms_.linear == (0, 1, 2)
    assert same_up_to_order(model.q_matrix_, q)
    assert model.loadings_.shape == (12, 3)
    assert "in equal steps" in model.result_.levels_reason


def test_permuted_columns_and_rows_select_the_same_levels(of_traits):
    x, _, model = of_traits
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(x)), rng.permutation(12)
    other = DCRL(3, levels="auto", family="bernoulli", random_state=0)
    other.fit(x[np.ix_(rows, columns)])
    np.testing.assert_allclose(other.loadings_, model.loadings_[columns], atol=1e-8)
    assert other.terms_ == model.terms_


def test_posteriors_have_a_probability_for_each_level(of_traits):
    x, _, model = of_traits
    found = model.predict_proba(x[:5])
    assert [one.shape for one in found] == [(5, m) for m in model.terms_.levels]
    np.testing.assert_allclose(np.stack([one.sum(axis=1) for one in found]), 1.0)
    means = [one @ np.arange(one.shape[1]) for one in found]
    np.testing.assert_allclose(model.transform(x[:5]), np.stack(means, axis=1))


def test_a_saved_fit_keeps_its_steps(of_traits, tmp_path):
    x, _, model = of_traits
    again = hidag.load(model.result_.save(tmp_path / "fit.npz"))
    assert again.terms == model.terms_
    assert again.levels_reason == model.result_.levels_reason
    np.testing.assert_allclose(again.row_log_likelihood(x), model.score_samples(x))


def test_standard_errors_and_refits_use_the_selected_steps(of_traits):
    x, _, model = of_traits
    errors = standard_errors(model, x)
    # Four items do not always identify the shares of three levels.
    assert np.isfinite(errors.covariance[:8, :8]).all()
    refits = bootstrap(model, x, n_resamples=2, random_state=0)
    assert refits.loadings.shape == (2, 12, 3)


def test_a_given_q_selects_levels_too(of_traits):
    x, q, model = of_traits
    given = DCRL(3, levels="auto", q_matrix=q, family="bernoulli", random_state=0).fit(x)
    assert min(given.terms_.levels) > 2
    assert given.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=10)


def test_equal_steps_can_be_given():
    x, q = traits_table(9242)
    given = DCRL(3, levels="4-linear", family="bernoulli", random_state=0).fit(x)
    assert given.terms_.levels == (4, 4, 4)
    assert given.terms_.linear == (0, 1, 2)
    assert same_up_to_order(given.q_matrix_, q)
    assert given.result_.levels_reason == ""


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        ("levels-conjunctive", {"effects": "dina", "q_matrix": np.eye(3)[[0, 1, 2] * 3]}),
        ("levels-sampled", {"method": "saem"}),
        ("invalid-setting", {"levels": "4-even"}),
    ],
)
def test_what_selected_levels_cannot_do_is_refused(code, settings):
    x = np.random.default_rng(0).integers(0, 2, (200, 9)).astype(float)
    with pytest.raises(SettingError) as caught:
        DCRL(3, **{"levels": "auto", "family": "bernoulli", **settings}).fit(x)
    assert caught.value.code == code
