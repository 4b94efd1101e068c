"""Stored block densities give the same bits as E-steps from the rows."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.e_step import run_law_e_step
from hidag.em.em import LawEStep

from .helpers import CASES

#: Cases that list states, or have boundary latents.
NOT_STORED = {
    name for name, (parameters, _, data, features) in CASES.items()
    if LawEStep(parameters, data, features)._stored is None
}  # fmt: skip


def laws(law, rng):
    return [law, np.full(len(law), 1.0 / len(law)), rng.dirichlet(np.full(len(law), 0.3))]


def same_bits(held, arguments):
    parameters, law, data, features = arguments
    for one in laws(law, np.random.default_rng(5)):
        counts, value = held.run(one)
        theirs, their_value = run_law_e_step(parameters, one, data, features)
        assert np.array_equal(counts, theirs)
        assert value == their_value


def test_some_cases_are_stored_and_some_are_not():
    assert 0 < len(NOT_STORED) < len(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_law_has_the_bits_of_an_e_step_from_the_rows(name, n_threads):
    parameters, _, data, features = CASES[name]
    same_bits(LawEStep(parameters, data, features, n_threads), CASES[name])


def test_nothing_is_stored_beyond_the_memory_limit(configure):
    name = next(name for name in CASES if name not in NOT_STORED)
    parameters, _, data, features = CASES[name]
    configure("e_step", max_stored_densities=10)
    held = LawEStep(parameters, data, features)
    assert held._stored is None
    same_bits(held, CASES[name])


def test_rows_that_underflow_are_listed(configure):
    name = next(name for name in CASES if name not in NOT_STORED)
    parameters, law, data, features = CASES[name]
    held = LawEStep(parameters, data, features)
    counts, value = held.run(law)
    # Every mass counts as an underflow.
    configure("e_step", smallest_mass=np.inf)
    same_bits(held, CASES[name])
    again, other = held.run(law)
    np.testing.assert_allclose(again, counts, rtol=1e-9, atol=1e-9)
    assert other == pytest.approx(value, rel=1e-12)
