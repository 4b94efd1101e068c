"""Confirmatory estimation: starts, the race of their ends, and restarts of the law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL
from hidag.config import CONFIG, override
from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule, run_em
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.initialization.initializers import generators_of
from hidag.initialization.start_points import confirmatory_start
from hidag.latent import StateSpace
from hidag.measurement import NO_SPARSITY, Terms
from hidag.simulation import design, simulate
from hidag.strategy.confirmatory import (
    _best_saturated,
    _ordered_start,
    _race,
    _restart_items,
    _restart_law,
)
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import parents_by_search

SPACE = StateSpace((2,) * 4)
TERMS = Terms.main(SPACE.levels)
#: Every item has one of the first two latents and one of the last two.
Q = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]] * 3, dtype=np.int8)
ROUGH = Schedule(max_iter=30, tolerance=3e-3)


@pytest.fixture(scope="module")
def problem():
    """Return a problem with a given Q and several local maxima."""
    rng = np.random.default_rng(8)
    states = (rng.random((250, 4)) < [0.5, 0.6, 0.85, 0.8]).astype(float)
    X = states @ (Q * rng.uniform(0.6, 1.6, Q.shape)).T + rng.standard_normal((250, len(Q)))
    return SearchProblem(
        WorkingData.from_values(X, ("gaussian",) * len(Q)),
        SPACE,
        Basis.over(SPACE, TERMS),
        allowed_coefficients(Q, TERMS),
        NO_SPARSITY,
        ROUGH,
        terms=TERMS,
        q_entries=Q,
        learn_parents=parents_by_search(SPACE),
        seed=3,
    )


@pytest.fixture(scope="module")
def ends(problem):
    """Return the ends of six independent starts."""
    points = [confirmatory_start(problem.data, SPACE, Q, rng=rng) for rng in generators_of(3, 6)]
    return [run_em(problem, point.parameters, point.probabilities) for point in points]


def test_restarts_of_the_law_recover_states_without_mass(problem, ends):
    end = max(ends, key=lambda e: e.objective)
    few_states = np.where(np.arange(16) % 3 == 0, 1.0, 0.0)
    poor = run_em(problem, end.parameters, few_states / few_states.sum())
    fine = replace(problem, schedule=Schedule(tolerance=1e-5))
    found = _restart_law(problem, poor, lambda items, law: run_em(fine, items, law))
    assert found.objective > poor.objective + 10.0
    assert (found.probabilities > 1e-3).sum() > (poor.probabilities > 1e-3).sum()
    # The trace is that of one ascending run.
    assert np.diff(found.trace[:, 0]).min() > -1e-6
    assert len(found.trace) == found.n_iter


def test_best_of_all_starts_is_reported_with_a_record_of_each(problem, ends):
    found = _best_saturated(replace(problem, n_starts=16), None)
    labels = [record.label for record in found.records]
    assert len(labels) == 16
    assert set(labels) == {"given Q", "given Q, random", "given Q, ordered"}
    assert found.best.objective >= max(record.objective for record in found.records) - 1e-6
    assert found.best.objective >= max(end.objective for end in ends) - 1e-3
    assert 1 <= found.n_reached <= 16


def test_starts_on_a_sample_lead_to_the_maximum_of_all_rows(problem):
    whole = _best_saturated(replace(problem, n_starts=16), None)
    with override({"confirmatory.rows_for_starts": 60, "confirmatory.row_growth": 2}):
        found = _best_saturated(replace(problem, n_starts=16), None)
    assert {record.n_rows for record in found.records} == {0, 60}
    assert found.best.objective > whole.best.objective - 0.05
    assert np.diff(found.best.trace[:, 0]).min() > -1e-6


def test_ordered_starts_rise_with_the_levels(problem):
    for rng in generators_of(5, 4):
        point = _ordered_start(problem, rng)
        # Least squares on sorted cells of two latents: their sum has a positive effect.
        assert (point.parameters.loadings.sum(axis=1) > 0).all()
        assert ((point.parameters.loadings != 0) == (Q == 1)).all()
        assert point.probabilities.sum() == pytest.approx(1.0)


def test_race_returns_the_best_end_and_no_maximum_twice(problem, ends):
    again = [ends[0], *ends]
    order, _ = _race(problem, again, lambda searched, _, items, law: run_em(searched, items, law))
    values = [again[i].objective for i in order]
    assert values[0] == max(end.objective for end in again)
    assert (np.diff(values) < -CONFIG.confirmatory.agreement).all()
    assert len(order) <= CONFIG.confirmatory.n_finalists


def test_restarts_of_items_only_raise_the_objectives_of_the_chosen_ends(problem, ends):
    again = list(ends)
    _restart_items(problem, again, [0, 2], lambda one, _, items, law: run_em(one, items, law))
    assert again[1] is ends[1]
    for now, before in zip(again, ends, strict=True):
        assert now is before or now.objective > before.objective


def test_ends_agree_if_most_of_them_reach_one_maximum(problem, ends):
    def same(searched, _, items, law):
        return ends[0]

    assert _race(problem, [ends[0]] * 4, same)[1]
    apart = replace(ends[0], objective=ends[0].objective - 5.0)
    runs = iter([ends[0], apart, apart, apart])
    assert not _race(problem, [ends[0], apart, apart, apart], lambda *_: next(runs))[1]


def test_agreement_of_the_best_quarter_is_not_agreement_of_the_starts(problem, ends):
    worse = replace(ends[0], objective=ends[0].objective - 5.0)
    some = [ends[0]] * 4 + [worse] * 12
    order, agree = _race(problem, some, lambda *_: ends[0])
    assert order == [0]
    assert not agree


def test_number_of_starts_falls_with_the_cost_of_an_e_step(problem):
    assert problem.starts("confirmatory").most == CONFIG.confirmatory.most_starts
    assert replace(problem, n_starts=7).starts("confirmatory").most == 7
    large = replace(problem, space=StateSpace.binary(16))
    assert large.starts("confirmatory").most == CONFIG.confirmatory.fewest_starts


def test_confirmatory_start_has_the_given_q_as_support():
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


def test_given_start_may_use_states_without_mass():
    rng = np.random.default_rng(0)
    latents = (rng.random((800, 2)) < 0.5).astype(int)
    q = np.array([[1, 0], [0, 1]] * 4)
    X = (rng.random((800, 8)) < np.where(latents @ q.T, 0.85, 0.15)).astype(float)
    full = DCRL(2, q_matrix=q, law="saturated", random_state=0).fit(X)
    law = np.array([0.5, 0.0, 0.0, 0.5])
    again = DCRL(2, q_matrix=q, law="saturated", random_state=0)
    again._start_from((full.result_.parameters, law)).fit(X)
    assert again.log_likelihood_ == pytest.approx(full.log_likelihood_, abs=0.01)
