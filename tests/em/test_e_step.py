"""Short cuts of the E-step change no number."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em import e_step
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_e_step
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters

SPACE = StateSpace.binary(3)
FEATURES = SPACE.states().astype(np.float64)
LAW = np.full(8, 1.0 / 8)


def table(family, size):
    rng = np.random.default_rng(4)
    values = rng.poisson(2.0, (300, 5)) if family == "poisson" else rng.random((300, 5)) < 0.4
    data = WorkingData.from_values(values.astype(np.float64), (family,) * 5)
    loadings = size * rng.standard_normal((5, 3))
    return data, MeasurementParameters((family,) * 5, np.zeros(5), loadings, np.ones(5))


@pytest.mark.parametrize(
    ("family", "size", "safe"),
    [("bernoulli", 1.0, True), ("bernoulli", 200.0, False), ("poisson", 4.0, False)],
)
def test_exponents_known_to_be_safe_are_not_searched(monkeypatch, family, size, safe):
    data, parameters = table(family, size)
    scores = e_step.StateScores.of(parameters.tables(FEATURES), LAW, data.incomplete)
    assert e_step.exponents_are_safe(scores, data) is safe
    found = run_e_step(parameters, LAW, data, FEATURES)
    monkeypatch.setattr(e_step, "exponents_are_safe", lambda scores, data: False)
    searched = run_e_step(parameters, LAW, data, FEATURES)
    assert found[1] == searched[1]
    assert np.isfinite(found[1])
    np.testing.assert_array_equal(found[0].sum_x, searched[0].sum_x)


def test_states_without_mass_do_not_make_exponents_unsafe():
    data, parameters = table("bernoulli", 1.0)
    law = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0])
    assert e_step.exponents_are_safe(
        e_step.StateScores.of(parameters.tables(FEATURES), law, data.incomplete), data
    )
    statistics, _ = run_e_step(parameters, law, data, FEATURES)
    np.testing.assert_array_equal(statistics.count[2:], 0.0)
