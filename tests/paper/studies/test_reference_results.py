"""Fits started at the truth."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, simulate
from hidag.fitting.information_criteria import information_criteria
from hidag_paper.studies import truth_started, truth_started_fit


def test_criteria_of_a_fit_started_at_the_truth():
    truth = design("Chain-5", "Q1", "gaussian", rng=5)
    values = np.array(simulate(truth, 1500, rng=6).X)
    found = truth_started_fit(truth, values)
    assert np.array_equal(found.parts.q_matrix, truth_started(truth, values).q_matrix)
    # With informative data both fits converge to the same optimum.
    ours = information_criteria(DCRL(5, family="gaussian", random_state=0).fit(values).result_)
    assert found.criteria.n_parameters == ours.n_parameters
    for name in ("log_likelihood", "aic", "bic", "ebic"):
        assert getattr(found.criteria, name) == pytest.approx(getattr(ours, name), abs=0.5)
