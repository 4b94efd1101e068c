"""Probabilities estimated as 0 or 1 are reported, others are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL
from hidag.fitting.fit_warnings import boundary_estimates
from hidag.latent import SaturatedLaw

Q = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1], [1, 1], [1, 0], [0, 1]])


def fitted(guess, slip):
    rng = np.random.default_rng(8)
    states = rng.integers(0, 2, (500, 2))
    able = (states[:, None, :] >= Q).all(axis=2)
    X = (rng.random(able.shape) < np.where(able, 1.0 - slip, guess)).astype(float)
    model = DCRL(2, q_matrix=Q, effects="dina", family="bernoulli", law="saturated", random_state=0)
    return model.fit(X).result_


def test_an_item_without_guessing_is_on_the_boundary():
    guess = np.full(len(Q), 0.2)
    guess[2] = 0.0
    (sentence,) = boundary_estimates(fitted(guess, 0.2))
    assert "in item_2, of an answer" in sentence
    assert "joint states" not in sentence


def test_estimates_inside_are_not_mentioned():
    assert boundary_estimates(fitted(0.2, 0.2)) == []


@pytest.mark.filterwarnings("ignore::hidag.exceptions.HidagWarning")
def test_states_without_probability_are_counted():
    found = fitted(0.2, 0.2)
    law = SaturatedLaw(found.law.space, np.array([0.5, 0.0, 0.25, 0.25]))
    (sentence,) = boundary_estimates(replace(found, law=law))
    assert "of 1 of 4 joint states" in sentence
