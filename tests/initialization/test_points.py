"""Where to begin when only main effects may: items lose their interactions and little else."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.initialization.start_points import main_effects_only
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Terms

LAW = np.array([0.4, 0.1, 0.2, 0.3])
PAIR = Terms((2, 2), (((0, 1), (1, 1)),))


def items(family: str, intercept, loadings, terms: Terms = PAIR) -> MeasurementParameters:
    return MeasurementParameters(
        (family,) * len(loadings),
        np.array(intercept),
        np.array(loadings),
        np.ones(len(loadings)),
        terms,
    )


def test_main_effects_are_the_nearest_to_the_predictors_under_the_law():
    before = items("gaussian", [0.5, 1.0, 0.0], [[1.0, 2.0, 0.7], [0.0, 0.0, 3.0], [2.0, 0.0, 0.0]])
    after = main_effects_only(before, LAW)
    assert after.terms == Terms.main((2, 2))
    np.testing.assert_array_equal(after.q_matrix, before.q_matrix)
    states = StateSpace((2, 2)).states()
    features = np.column_stack([np.ones(4), states])
    off = before.predictors(states) - after.predictors(states)
    # What is left over has nothing to do with any main effect.
    np.testing.assert_allclose(off * LAW @ features, 0.0, atol=1e-12)
    # An item that needs both latents has some of each, not none.
    assert (after.loadings[1] > 0.5).all()
    np.testing.assert_allclose([after.intercept[2], *after.loadings[2]], [0, 2, 0], atol=1e-12)


def test_items_without_interactions_stay_as_they_are():
    before = items("gaussian", [0.5], [[1.0, 2.0]], Terms.main((2, 2)))
    assert main_effects_only(before, LAW) is before


def test_means_stay_above_their_floor():
    # 0.1 unless both are there: the plane through it is below zero where neither is.
    before = items("poisson-identity", [0.1, 0.1], [[0.0, 0.0, 6.0], [0.0, 0.0, 0.02]])
    after = main_effects_only(before, np.full(4, 0.25))
    assert after.in_range().all()
    states = StateSpace((2, 2)).states()
    assert after.predictors(states).mean(axis=1) == pytest.approx([1.6, 0.105])
    # The second came nowhere near it.
    np.testing.assert_allclose(after.loadings[1], 0.01)
