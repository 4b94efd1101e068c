"""Interactions and levels, fitted: truths found, restrictions kept, likelihoods in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, evaluate
from hidag.exceptions import MisfitWarning, SettingError
from hidag.fitting.information_criteria import count_parameters
from hidag.initialization.start_points import spread_law
from hidag.measurement.terms import Terms
from hidag.simulation import chain_dag, random_law, random_truth, simulate

K = 3
Q = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], *np.tile(np.eye(3, dtype=int), (3, 1))])


def table(effects, family="gaussian", levels=(2, 2, 2), n_samples=4000, seed=0):
    rng = np.random.default_rng(seed)
    law = random_law(chain_dag(K), rng=rng, levels=levels)
    truth = random_truth(law, Q, family, effects=effects, rng=rng)
    return truth, np.array(simulate(truth, n_samples, rng=rng).X)


# Main effects leave counts more varied than Poisson ones that interact.
@pytest.mark.filterwarnings("ignore::hidag.exceptions.MisfitWarning")
@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
def test_with_q_given_all_effects_contain_the_others(family):
    truth, X = table("all", family)
    settings = {"family": family, "q_matrix": Q, "law": "saturated", "random_state": 0}
    value = {e: DCRL(K, effects=e, **settings).fit(X).log_likelihood_ for e in ("main", 2, "all")}
    assert value["main"] < value[2] < value["all"] + 1e-6
    model = DCRL(K, effects="gdina", **settings).fit(X)
    assert model.log_likelihood_ == value["all"]
    assert model.terms_.n_terms == 7
    if family == "gaussian":
        # Binary items that a state answers without fail have coefficients without bound.
        assert evaluate(model, truth).rmse_loadings < 0.12


def test_interactions_are_found_with_q():
    truth, X = table("all")
    model = DCRL(K, family="gaussian", effects="all", random_state=0).fit(X)
    found = evaluate(model, truth)
    assert found.shd == 0
    assert found.rmse_loadings < 0.12
    with pytest.warns(MisfitWarning, match="effects='auto'"):
        main = DCRL(K, family="gaussian", random_state=0).fit(X)
    assert model.log_likelihood_ > main.log_likelihood_ + 100


def test_main_effects_get_no_interactions_they_do_not_have():
    truth, X = table("main")
    model = DCRL(K, family="gaussian", effects="all", random_state=0).fit(X)
    assert evaluate(model, truth).shd == 0
    assert (model.loadings_[:, model.terms_.n_main :] != 0).sum() <= 1


@pytest.mark.parametrize("given", [{}, {"q_matrix": Q}])
def test_auto_is_main_effects_where_there_are_no_interactions(given):
    _, X = table("main")
    settings = {"family": "gaussian", "random_state": 0, "n_starts": 2, **given}
    auto = DCRL(K, effects="auto", **settings).fit(X)
    main = DCRL(K, **settings).fit(X)
    assert auto.terms_.interactions == ()
    assert np.array_equal(auto.loadings_, main.loadings_)
    assert auto.log_likelihood_ == main.log_likelihood_
    assert count_parameters(auto.result_) == count_parameters(main.result_)
    assert auto.result_.effects.main_only


def test_auto_finds_interactions_with_q():
    truth, X = table("all")
    model = DCRL(K, family="gaussian", effects="auto", random_state=0).fit(X)
    found = evaluate(model, truth)
    assert found.shd == 0
    assert found.rmse_loadings < 0.12


def test_auto_finds_the_one_interaction_of_a_given_q():
    truth, _ = table("main")
    terms = Terms(truth.terms.levels, (((0, 1), (1, 1)),))
    loadings = np.column_stack([truth.loadings, np.eye(len(Q))[0] * 1.5])
    one = replace(truth, loadings=loadings, terms=terms)
    X = np.array(simulate(one, 4000, rng=3).X)
    settings = {"family": "gaussian", "q_matrix": Q, "random_state": 0, "n_starts": 2}
    model = DCRL(K, effects="auto", **settings).fit(X)
    products = model.loadings_[:, model.terms_.n_main :]
    assert np.argwhere(products).tolist() == [[0, 0]]
    assert products[0, 0] == pytest.approx(1.5, abs=0.25)
    with pytest.warns(MisfitWarning, match="1 of 13 items"):
        main = DCRL(K, **settings).fit(X)
    assert main.result_.interacting == ("item_0",)
    # The model has one coefficient more, and the likelihood of it.
    assert count_parameters(model.result_) == count_parameters(main.result_) + 1
    assert model.log_likelihood_ > main.log_likelihood_ + 20


def test_an_order_is_a_bound():
    _, X = table("all")
    model = DCRL(K, family="gaussian", q_matrix=Q, effects=2, random_state=0).fit(X)
    assert max(len(pairs) for pairs in model.terms_.interactions) == 2


@pytest.mark.parametrize("levels", [(3, 3, 3), (2, 3, 4)])
@pytest.mark.parametrize("method", ["em", "saem"])
def test_levels_are_found_by_either_method(levels, method):
    truth, X = table("main", levels=levels, n_samples=6000)
    model = DCRL(K, levels=levels, family="gaussian", method=method, random_state=0).fit(X)
    found = evaluate(model, truth)
    assert found.shd_q == 0
    assert found.shd_graph <= 1
    assert found.rmse_loadings < 0.2
    assert model.latent_law_.space.levels == levels


def test_probabilities_of_levels_are_those_of_bayes():
    X = table("main", levels=(2, 3, 4), n_samples=3000)[1]
    model = DCRL(K, levels=(2, 3, 4), family="gaussian", random_state=0).fit(X)
    given = model.predict_proba(X[:50])
    assert [part.shape for part in given] == [(50, 2), (50, 3), (50, 4)]
    states = model.latent_law_.space.states()
    eta = model.result_.parameters.predictors(states)
    logs = -0.5 * ((X[:50, :, None] - eta) ** 2 / model.dispersion_[:, None]).sum(axis=1)
    joint = np.exp(logs - logs.max(axis=1, keepdims=True)) * model.latent_law_.probabilities
    joint /= joint.sum(axis=1, keepdims=True)
    for k, part in enumerate(given):
        for level in range(part.shape[1]):
            expected = joint[:, states[:, k] == level].sum(axis=1)
            np.testing.assert_allclose(part[:, level], expected, atol=1e-9)
    expected = joint @ states
    np.testing.assert_allclose(model.transform(X[:50]), expected, atol=1e-9)


def test_permuting_columns_permutes_levels_and_interactions_too():
    _, X = table("all", levels=(2, 3, 2), n_samples=1500)
    settings = {"levels": (2, 3, 2), "effects": 2, "family": "gaussian", "random_state": 0}
    order = np.random.default_rng(1).permutation(len(Q))
    one = DCRL(K, **settings).fit(X)
    other = DCRL(K, n_jobs=2, **settings).fit(X[:, order])
    np.testing.assert_array_equal(other.loadings_, one.loadings_[order])
    np.testing.assert_array_equal(other.latent_law_.probabilities, one.latent_law_.probabilities)


PART = np.where(np.add.outer(np.arange(len(Q)), np.arange(K)) % 5 == 0, -1, Q)


def refit_at_the_end(effects, q, X):
    """Return a model that is fitted twice, the second time from its own end, and the first end."""
    model = DCRL(K, family="gaussian", effects=effects, q_matrix=q, n_starts=2, random_state=0)
    result = model.fit(X).result_
    assert result.terms.interactions
    model._start_from((result.parameters, spread_law(np.asarray(result.law.probabilities)))).fit(X)
    return model, result


@pytest.mark.parametrize("effects", [2, "gdina", "dina", "dino"])
@pytest.mark.parametrize("q", [Q, PART, None], ids=["given", "in part", "estimated"])
def test_fit_started_at_its_end_stays_there(effects, q):
    _, X = table("dina" if effects in ("dina", "dino") else "all", n_samples=600, seed=1)
    # DINA items are DINO items with levels and responses reversed.
    model, result = refit_at_the_end(effects, q, -X if effects == "dino" else X)
    np.testing.assert_array_equal(model.q_matrix_, result.q_matrix)
    assert model.terms_ == result.terms
    assert model.log_likelihood_ == pytest.approx(result.log_likelihood, abs=0.05)
    np.testing.assert_allclose(model.loadings_, result.loadings, atol=0.05)


@pytest.mark.parametrize("q", [PART, None], ids=["in part", "estimated"])
def test_misspecified_fit_started_at_its_end_is_not_worse(q):
    # Main effects select the latents of DINO items again, here in data of DINA items.
    _, X = table("dina", n_samples=600, seed=1)
    model, result = refit_at_the_end("dino", q, X)
    gain = model.log_likelihood_ - result.log_likelihood
    fewer = int(result.q_matrix.sum()) - int(model.q_matrix_.sum())
    assert gain + 0.5 * np.log(600) * fewer > -0.05


def test_states_without_mass_under_main_effects_are_recovered():
    _, X = table("dina", n_samples=600)
    model = DCRL(K, family="gaussian", effects="dino", q_matrix=PART, n_starts=2, random_state=0)
    # From the law of the main effects alone EM ends 68 units lower.
    assert model.fit(X).log_likelihood_ > -12712.0


def test_start_with_interactions_is_valid_for_main_effects():
    _, X = table("all", n_samples=600)
    settings = {"family": "gaussian", "q_matrix": Q, "random_state": 0}
    rich = DCRL(K, effects=2, **settings).fit(X).result_
    place = rich.parameters, spread_law(np.asarray(rich.law.probabilities))
    with pytest.warns(MisfitWarning):
        main = DCRL(K, **settings).fit(X)
    with pytest.warns(MisfitWarning):
        again = DCRL(K, **settings)._start_from(place).fit(X)
    assert again.log_likelihood_ == pytest.approx(main.log_likelihood_, abs=0.05)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"levels": 1},
            "levels must be 'auto', a whole number from 2 to 255, or 3 of them (one for each "
            "latent), also with equal steps ('4-linear'), got "
            "1",
        ),
        (
            {"levels": [2, 3]},
            "levels must be 'auto', a whole number from 2 to 255, or 3 of them (one for each "
            "latent), also with equal steps ('4-linear'), got "
            "[2, 3]",
        ),
        (
            {"levels": 40, "effects": "all"},
            "interactions need an enumeration of the joint states, at most 8192, but there are "
            "64000; use effects='main' or fewer latents",
        ),
    ],
)
def test_settings_that_make_no_sense(settings, sentence):
    with pytest.raises(SettingError) as caught:
        DCRL(K, family="gaussian", **settings).fit(table("main", n_samples=50)[1])
    assert str(caught.value) == sentence
