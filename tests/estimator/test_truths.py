"""Recovery of true parameters by both methods, with missing cells and a given Q."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import hidag
from hidag import DCRL, design, evaluate, simulate
from hidag.exceptions import ConvergenceWarning, IdentifiabilityWarning


def test_a_true_model_is_recovered(small, fitted):
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


def test_the_given_number_of_starts_is_run(small):
    _, data = small
    model = DCRL(
        5, family="gaussian", law="saturated", n_starts=3, penalty_strength=5.0, random_state=0
    )
    model.fit(data.X)
    assert len(model.result_.starts) == 3
    assert max(r.objective for r in model.result_.starts) <= model.result_.objective + 1e-6


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


def test_a_given_q_is_not_penalised(small):
    truth, data = small
    model = DCRL(5, family="gaussian", q_matrix=truth.q_matrix, random_state=0).fit(data.X)
    np.testing.assert_array_equal(model.q_matrix_, truth.q_matrix)
    assert (model.loadings_[truth.q_matrix == 0] == 0).all()
    assert model.result_.objective == model.result_.log_likelihood
    assert evaluate(model, truth).rmse_loadings < 0.12
    assert list(evaluate(model, truth).permutation) == [0, 1, 2, 3, 4]


def test_a_partly_given_q(small):
    truth, data = small
    q = truth.q_matrix.astype(float)
    q[:5] = np.nan
    model = DCRL(5, family="gaussian", q_matrix=q, random_state=0).fit(data.X)
    np.testing.assert_array_equal(model.q_matrix_, truth.q_matrix)


def test_without_penalty_em_never_decreases(small):
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


def test_functions_of_the_package_can_be_called(small):
    truth, data = small
    assert hidag.discover(data.states).adjacency.shape == (5, 5)
    assert hidag.simulate(truth, 10, rng=0).X.shape == (10, 15)


def test_given_loadings_are_not_removed(small):
    truth, data = small
    q = np.full(truth.q_matrix.shape, -1)
    q[0] = 1
    q[7] = truth.q_matrix[7]
    model = DCRL(5, family="gaussian", q_matrix=q, n_starts=1, random_state=0).fit(data.X)
    assert (model.q_matrix_[0] == 1).all()
    assert (model.loadings_[0] != 0).all()
    np.testing.assert_array_equal(model.q_matrix_[7] == 1, truth.q_matrix[7] == 1)


def test_latents_without_items_have_no_edges():
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
        "no item depends on Z3: the data support fewer latents; use n_latents=2 instead of 3"
    )
