"""Yardsticks: what is found by who knew more."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, simulate
from hidag.fitting.information_criteria import information_criteria
from hidag_paper.studies import truth_started, truth_started_fit


def test_a_fit_from_the_truth_is_judged_as_fits_are():
    truth = design("Chain-5", "Q1", "gaussian", rng=5)
    values = np.array(simulate(truth, 1500, rng=6).X)
    found = truth_started_fit(truth, values)
    assert np.array_equal(found.parts.q_matrix, truth_started(truth, values).q_matrix)
    # Where the table says much the search ends at the same place.
    ours = information_criteria(DCRL(5, family="gaussian", random_state=0).fit(values).result_)
    assert found.criteria.n_parameters == ours.n_parameters
    for name in ("log_likelihood", "aic", "bic", "ebic"):
        assert getattr(found.criteria, name) == pytest.approx(getattr(ours, name), abs=0.5)
