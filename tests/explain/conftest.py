"""A fit that several statistics are computed of."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL

from .helpers import drawn, two_latents


@pytest.fixture(scope="session")
def mixed():
    """Items of many kinds with holes, two of them tied to each other beyond the latents."""
    families = ("bernoulli", "gaussian", "ordinal(3)", "poisson", "lognormal", "categorical(3)",
                "bernoulli", "gaussian", "bernoulli")  # fmt: skip
    result = two_latents(families)
    X, _ = drawn(result, 1500, seed=8, missing=0.05)
    X[:, 7] += 0.4 * (X[:, 1] - np.nanmean(X[:, 1]))
    X[:, 7] = np.where(np.isnan(X[:, 7]), 0.1, X[:, 7])
    model = DCRL(2, q_matrix=result.q_given, family=list(families), random_state=0, n_starts=2)
    return model.fit(X).result_, X
