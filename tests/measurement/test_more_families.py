"""A table of many kinds of items, from the door to the saved fit."""

from __future__ import annotations

import numpy as np
import pytest

import hidag
from hidag import DCRL
from hidag.causal import what_if
from hidag.exceptions import SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulation import Truth, simulate

FAMILIES = (
    "gaussian", "binomial(8)", "ordinal(4)", "negative-binomial", "ordinal(1..3)", "gamma",
    "zero-inflated-poisson", "beta", "censored-lognormal(3)", "bernoulli-probit", "ordinal(4)",
    "gaussian",
)  # fmt: skip
LAW = NetworkLaw(
    StateSpace.binary(2),
    ((), (0,)),
    (np.array([0.5, 0.5]), np.array([[0.75, 0.25], [0.3, 0.7]])),
)


def mixed_truth() -> Truth:
    n_items = len(FAMILIES)
    q = np.zeros((n_items, 2), dtype=np.int8)
    q[np.arange(n_items), np.arange(n_items) % 2] = 1
    dispersion = {"gaussian": 0.6, "negative-binomial": 0.4, "gamma": 0.3, "beta": 0.1,
                  "zero-inflated-poisson": 0.2, "censored-lognormal(3)": 0.4}  # fmt: skip
    cutpoints = np.full((n_items, 2), np.nan)
    cutpoints[[2, 10]] = [1.2, 2.5]
    cutpoints[4, 0] = 1.5
    return Truth(
        q,
        np.full(n_items, -0.5),
        1.8 * q,
        np.array([dispersion.get(name, 1.0) for name in FAMILIES]),
        FAMILIES,
        LAW,
        cutpoints=cutpoints,
    )


@pytest.fixture(scope="module")
def fit():
    truth = mixed_truth()
    drawn = simulate(truth, 3000, rng=1, missing=0.05)
    model = DCRL(2, family=list(FAMILIES), random_state=0).fit(drawn.X)
    return truth, drawn, model


def test_items_of_every_kind_are_recovered(fit):
    truth, _, model = fit
    order = [0, 1] if (model.q_matrix_ == truth.q_matrix).all() else [1, 0]
    np.testing.assert_array_equal(model.q_matrix_[:, order], truth.q_matrix)
    np.testing.assert_allclose(model.intercept_, truth.intercept, atol=0.3)
    np.testing.assert_allclose(model.loadings_[:, order], truth.loadings, atol=0.4)
    known = ~np.isnan(truth.dispersion)
    np.testing.assert_array_equal(known, ~np.isnan(model.dispersion_))
    np.testing.assert_allclose(model.dispersion_[known], truth.dispersion[known], rtol=0.25)
    np.testing.assert_allclose(model.cutpoints_, truth.cutpoints, atol=0.3)


def test_sampled_latents_find_the_same_items(fit):
    _, drawn, model = fit
    sampled = DCRL(2, family=list(FAMILIES), method="saem", random_state=0).fit(drawn.X)
    np.testing.assert_array_equal(sampled.q_matrix_, model.q_matrix_)
    np.testing.assert_allclose(sampled.loadings_, model.loadings_, atol=0.15)
    np.testing.assert_allclose(sampled.cutpoints_, model.cutpoints_, atol=0.15)
    np.testing.assert_allclose(sampled.dispersion_, model.dispersion_, rtol=0.1)


def test_expected_items_are_the_means_of_draws(fit):
    _, _, model = fit
    values, states = model.sample(40_000, random_state=3)
    for state in LAW.space.states():
        here = (states == state).all(axis=1)
        mean = model.result_.item_means(state[None])[0]
        error = values[here].std(axis=0) / np.sqrt(here.sum())
        assert (np.abs(values[here].mean(axis=0) - mean) < 5 * error).all()


def test_a_saved_fit_answers_as_before(fit, tmp_path):
    _, drawn, model = fit
    again = hidag.load(model.result_.save(tmp_path / "fit.hidag"))
    assert again.families == FAMILIES
    np.testing.assert_array_equal(again.cutpoints, model.cutpoints_)
    np.testing.assert_array_equal(again.posterior(drawn.X[:50]), model.predict_proba(drawn.X[:50]))


def test_a_single_row_is_scored_as_it_is_among_others(fit):
    _, drawn, model = fit
    result = model.result_
    item = FAMILIES.index("censored-lognormal(3)")
    rows = np.array(drawn.X)[:200]
    # Times at the limit and beyond are censored, and a row of one such time is a row.
    rows[0, item], rows[1, item] = 3.0, 7.5
    for i in range(40):
        one = rows[[i]]
        np.testing.assert_allclose(model.predict_proba(one), model.predict_proba(rows)[[i]])
        np.testing.assert_allclose(model.score_samples(one), model.score_samples(rows)[[i]])
    alone = hidag.classify(result, rows[:1])
    np.testing.assert_allclose(alone.expected, hidag.classify(result, rows).expected[:1])
    assert len(hidag.person_fit(result, rows[:1]).table) == 1
    given = {result.item_names[item]: 3.0}
    longer = {result.item_names[item]: 9.0}
    ours, theirs = (what_if(result, given=known) for known in (given, longer))
    np.testing.assert_allclose(ours.items_before, theirs.items_before)


def test_permuted_columns_permute_the_answer(fit):
    _, drawn, model = fit
    order = np.random.default_rng(0).permutation(len(FAMILIES))
    again = DCRL(2, family=[FAMILIES[j] for j in order], random_state=0).fit(drawn.X[:, order])
    np.testing.assert_array_equal(again.loadings_, model.loadings_[order])
    np.testing.assert_array_equal(again.cutpoints_, model.cutpoints_[order])


def nominal_table(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of two nominal items, one per latent, and Gaussian ones; and the latents."""
    rng = np.random.default_rng(5)
    z = LAW.sample(n, rng)
    measured = 1.5 * z[:, [0, 1, 0, 1, 0, 1]] + 0.7 * rng.standard_normal((n, 6))
    scores = np.array([[0.0, 0.3, -0.3]]) + z[:, :, None] * np.array([0.0, 1.5, -1.5])
    nominal = (scores + rng.gumbel(size=scores.shape)).argmax(axis=2) + 4.0
    nominal[rng.random(nominal.shape) < 0.05] = np.nan
    return np.column_stack([measured, nominal]), z


def test_a_nominal_item_is_one_item(tmp_path):
    X, _ = nominal_table()
    family = ["gaussian"] * 6 + ["categorical"] * 2
    model = DCRL(2, family=family, random_state=0).fit(X)
    result = model.result_
    assert model.q_matrix_.shape == (8, 2)
    assert (model.q_matrix_[6:].sum(axis=1) == 1).all()
    assert all(name.startswith("categorical(") for name in model.families_[6:])
    assert len(model.families_) == 8
    assert model.loadings_.shape == (10, 2)
    assert len(result.response_names) == 10
    assert result.response_names[:6] == tuple(f"item_{j}" for j in range(6))
    assert result.strengths.shape == (8, 2)
    drawn, _ = model.sample(20_000, random_state=0)
    assert drawn.shape == (20_000, 8)
    for item in (6, 7):
        seen = X[~np.isnan(X[:, item]), item]
        shares = [[(column == c).mean() for c in (4, 5, 6)] for column in (seen, drawn[:, item])]
        np.testing.assert_allclose(shares[0], shares[1], atol=0.04)
    again = hidag.load(result.save(tmp_path / "fit.hidag"))
    assert again.families == model.families_
    np.testing.assert_array_equal(again.posterior(X[:30]), model.predict_proba(X[:30]))
    assert np.isfinite(model.score_samples(X)).all()


def test_a_given_q_holds_for_all_categories():
    X, _ = nominal_table(1000)
    q = np.array([[1, 0], [0, 1]] * 4)
    model = DCRL(2, family={6: "categorical", 7: "categorical"}, q_matrix=q, random_state=0).fit(X)
    np.testing.assert_array_equal(model.q_matrix_, q)
    assert (model.loadings_[6:8, 1] == 0).all()
    assert (model.loadings_[6:8, 0] != 0).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"cutpoints": np.full((2, 1), -1.0)},
            "family='ordinal(3)' needs 1 increasing cutpoints > 0, but item 'X1' has -1",
        ),
        ({}, "cutpoints must have shape (2, 1), got (2, 0)"),
        (
            {"families": ("zero-inflated-poisson", "gaussian"), "dispersion": [1.5, 1.0]},
            "family='zero-inflated-poisson' needs a dispersion (probability of an extra zero) of "
            "at most 0.999999, but item 'X1' has 1.5",
        ),
    ],
)
def test_invalid_truths_are_refused(changes, sentence):
    settings = {
        "q_matrix": np.eye(2),
        "intercept": np.zeros(2),
        "loadings": np.eye(2),
        "dispersion": np.ones(2),
        "families": ("ordinal(3)", "gaussian"),
        "law": LAW,
    }
    with pytest.raises(SettingError) as caught:
        Truth(**{**settings, **changes})
    assert str(caught.value) == sentence
