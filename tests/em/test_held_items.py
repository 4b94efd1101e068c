"""What rows say is kept while laws change: the same bits as E-steps that begin from the rows."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em import em
from hidag.em.e_step import expect_states
from hidag.em.em import HeldItems

from .helpers import CASES

#: Items with tables over latents of both halves: joint densities are multiplied out.
LISTED_OR_BETWEEN = {
    name for name, (parameters, _, data, features) in CASES.items()
    if HeldItems(parameters, data, features)._met is None
}  # fmt: skip


def laws(law, rng):
    return [law, np.full(len(law), 1.0 / len(law)), rng.dirichlet(np.full(len(law), 0.3))]


def same_bits(held, arguments):
    parameters, law, data, features = arguments
    for one in laws(law, np.random.default_rng(5)):
        counts, value = held.expect_states(one)
        theirs, their_value = expect_states(parameters, one, data, features)
        assert np.array_equal(counts, theirs)
        assert value == their_value


def test_some_cases_are_kept_and_some_are_not():
    assert 0 < len(LISTED_OR_BETWEEN) < len(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_law_has_the_bits_of_a_step_from_the_rows(name, n_threads):
    parameters, _, data, features = CASES[name]
    same_bits(HeldItems(parameters, data, features, n_threads), CASES[name])


def test_nothing_is_kept_where_it_would_be_much(monkeypatch):
    name = next(name for name in CASES if name not in LISTED_OR_BETWEEN)
    parameters, _, data, features = CASES[name]
    monkeypatch.setattr(em, "MOST_KEPT", 10)
    held = HeldItems(parameters, data, features)
    assert held._met is None
    same_bits(held, CASES[name])


def test_rows_that_lose_their_digits_are_listed(monkeypatch):
    name = next(name for name in CASES if name not in LISTED_OR_BETWEEN)
    parameters, law, data, features = CASES[name]
    held = HeldItems(parameters, data, features)
    counts, value = held.expect_states(law)
    # Whatever the mass, it is too small: all rows go the other way.
    monkeypatch.setattr(em, "SMALLEST_MASS", np.inf)
    again, other = held.expect_states(law)
    assert np.array_equal(counts, again)
    assert value == other
