"""A small table with its truth, and a fit of it."""

from __future__ import annotations

import pytest

from hidag import DCRL, design, simulate


@pytest.fixture(scope="session")
def small():
    truth = design("Chain-5", "Q1", "gaussian", design="research-code", rng=3)
    return truth, simulate(truth, 1500, rng=4)


@pytest.fixture(scope="session")
def fitted(small):
    _, data = small
    return DCRL(5, family="gaussian", random_state=0).fit(data.X)
