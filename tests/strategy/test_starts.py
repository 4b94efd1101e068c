"""Where Stage I begins."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL
from hidag.em.design_data import WorkingData
from hidag.em.m_step import Basis
from hidag.initialization.rotations import varimax
from hidag.initialization.spectral import predictors, spectral_start
from hidag.initialization.start_points import confirmatory_start
from hidag.latent import StateSpace
from hidag.measurement import family_named
from hidag.simulation import banded_q, chain_dag, design, make_truth, random_law, simulate
from hidag.strategy.algorithm_choice import choose_method, choose_n_starts

LINK = {"poisson": "poisson-identity"}


def spectral(truth, X):
    data = WorkingData.from_values(np.array(X), truth.families)
    space = StateSpace.binary(truth.n_latents)
    q = np.full((truth.n_items, truth.n_latents), -1, dtype=np.int8)
    basis = Basis.of(space.states().astype(float))
    point = spectral_start(data, space, basis, q, predictors(data, truth.n_latents))
    return data, point


def matched_error(loadings: np.ndarray, q: np.ndarray) -> int:
    from scipy.optimize import linear_sum_assignment

    cost = ((loadings != 0).T[:, None, :] != (q == 1).T[None]).sum(axis=-1)
    rows, columns = linear_sum_assignment(cost)
    return int(cost[rows, columns].sum())


def test_varimax_undoes_a_rotation():
    rng = np.random.default_rng(0)
    simple = np.kron(np.eye(4), np.ones((5, 1))) / np.sqrt(5)
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    back = simple @ turn @ varimax(simple @ turn)
    assert np.sort(np.abs(back), axis=1)[:, :-1].max() < 1e-6
    rotation = varimax(simple @ turn)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(4), atol=1e-10)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_the_spectral_start_is_near_the_truth(family, missing):
    truth = design("Chain-5", "Q1", family, design="research-code", rng=1)
    data, point = spectral(truth, simulate(truth, 4000, rng=2, missing=missing).X)
    assert matched_error(point.parameters.loadings, truth.q_matrix) <= 8
    assert (point.parameters.loadings.sum(axis=0) > 0).all()
    assert point.probabilities.min() > 0
    # The intercept keeps the column means: under the start, items have about their own means.
    features = StateSpace.binary(5).states().astype(float)
    eta = point.parameters.intercept[:, None] + point.parameters.loadings @ features.T
    means = family_named(data.families[0]).mean(eta) @ point.probabilities
    np.testing.assert_allclose(means, data.mean, atol=0.35)


def test_an_item_number_other_than_three_per_latent():
    truth = design("Chain-5", "Q1", "gaussian", design="research-code", rng=1)
    X = simulate(truth, 2000, rng=2).X
    keep = np.r_[0:5, 5:13]
    data = WorkingData.from_values(X[:, keep], tuple(truth.families[j] for j in keep))
    space = StateSpace.binary(5)
    q = np.full((len(keep), 5), -1, dtype=np.int8)
    point = spectral_start(
        data, space, Basis.of(space.states().astype(float)), q, predictors(data, 5)
    )
    assert point.parameters.loadings.shape == (13, 5)
    assert (point.parameters.loadings != 0).any(axis=0).all()


def test_a_given_q_is_the_support_of_its_start():
    truth = design("Tree-5", "Q2", "poisson", design="research-code", rng=3)
    data = WorkingData.from_values(np.array(simulate(truth, 500, rng=4).X), truth.families)
    space = StateSpace.binary(5)
    for rng in (None, np.random.default_rng(0), np.random.default_rng(5)):
        point = confirmatory_start(data, space, truth.q_matrix.astype(np.int8), rng=rng)
        assert (point.parameters.loadings[truth.q_matrix == 0] == 0).all()
        assert (point.parameters.loadings[truth.q_matrix == 1] != 0).all()
        lowest = point.parameters.intercept + np.minimum(point.parameters.loadings, 0).sum(axis=1)
        assert (lowest > 0).all()
        assert point.probabilities.sum() == pytest.approx(1.0)


def test_costs_decide_the_method_and_the_starts():
    for saturated in (True, False):
        assert choose_method("auto", 1000, 30, StateSpace.binary(8), saturated=saturated) == "em"
        big = StateSpace.binary(13)
        assert choose_method("auto", 10**6, 60, big, saturated=saturated) == "saem"
        assert choose_method("saem", 1000, 30, StateSpace.binary(3), saturated=saturated) == "saem"
    small, large = StateSpace.binary(3), StateSpace.binary(12)
    assert choose_n_starts(500, 10, small, known=True) > choose_n_starts(
        500, 10, small, known=False
    )
    assert choose_n_starts(10**5, 50, large, known=False) == 1


@pytest.mark.parametrize("seed", range(3))
def test_families_of_different_scales_do_not_drown_each_other(seed):
    # Logs of counts near zero and log odds spread far wider than standardised measurements.
    rng = np.random.default_rng(seed)
    families = ["bernoulli"] * 4 + ["gaussian"] * 4 + ["poisson"] * 4
    law = random_law(chain_dag(4), rng=rng)
    truth = make_truth(law, banded_q(4, 1), families, rng=rng)
    _, point = spectral(truth, simulate(truth, 4000, rng=rng).X)
    assert matched_error(point.parameters.loadings, truth.q_matrix) <= 8


def test_a_given_law_does_not_rule_out_states_that_other_rows_have():
    rng = np.random.default_rng(0)
    latents = (rng.random((800, 2)) < 0.5).astype(int)
    q = np.array([[1, 0], [0, 1]] * 4)
    X = (rng.random((800, 8)) < np.where(latents @ q.T, 0.85, 0.15)).astype(float)
    full = DCRL(2, q_matrix=q, law="saturated", random_state=0).fit(X)
    law = np.array([0.5, 0.0, 0.0, 0.5])
    begun = DCRL(2, q_matrix=q, law="saturated", random_state=0)
    begun._begun_at((full.result_.parameters, law)).fit(X)
    assert begun.log_likelihood_ == pytest.approx(full.log_likelihood_, abs=0.01)
