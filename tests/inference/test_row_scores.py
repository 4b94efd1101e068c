from __future__ import annotations

import numpy as np
import pytest

from hidag.identifiability import ResponseModel
from hidag.information.free_parameters import FreeParameters, row_scores
from hidag.information.observed_information import observed_information

from ..fitted_models import drawn, moved, two_latents

EVERY = (
    "bernoulli",
    "bernoulli-probit",
    "bernoulli-cloglog",
    "binomial(5)",
    "poisson",
    "poisson-identity",
    "negative-binomial",
    "zero-inflated-poisson",
    "gaussian",
    "lognormal",
    "censored-lognormal(4)",
    "gamma",
    "beta",
    "ordinal(4)",
    "categorical(3)",
)


def log_likelihood(result, X, weights=1.0):
    return float((weights * result.row_log_likelihood(X)).sum())


@pytest.mark.parametrize(
    ("families", "law", "effects"),
    [
        (EVERY, "network", "main"),
        (("bernoulli",) * 9, "saturated", "all"),
        (("bernoulli", "gaussian", "poisson") * 3, "saturated", "dina"),
        (("bernoulli",) * 9, "network", "dino"),
    ],
)
def test_scores_and_information_are_derivatives_of_the_likelihood(families, law, effects):
    result = two_latents(families, law=law, effects=effects)
    X, _ = drawn(result, 60, seed=1, missing=0.1)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    free = FreeParameters.of(result, X, weights)
    found = row_scores(free)
    step = 1e-5
    for p in range(free.n_parameters):
        up, down = (moved(result, free, p, h).row_log_likelihood(X) for h in (step, -step))
        np.testing.assert_allclose(found[:, p], (up - down) / (2 * step), atol=2e-5)
    information = observed_information(free, found)
    h = 1e-3
    rng = np.random.default_rng(3)
    pairs = rng.integers(free.n_parameters, size=(24, 2))
    pairs[:8, 1] = pairs[:8, 0]
    for a, b in pairs:
        value = 0.0
        for p, q in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            there = moved(
                moved(result, free, a, p * h),
                FreeParameters.of(moved(result, free, a, p * h), X, weights),
                b,
                q * h,
            )
            value += p * q * log_likelihood(there, X, weights)
        expected = -value / (4 * h * h)
        np.testing.assert_allclose(information[a, b], expected, rtol=2e-4, atol=2e-3)


def test_scores_agree_with_those_of_the_identifiability_check():
    families = ("bernoulli", "gaussian", "poisson", "ordinal(4)", "gamma", "beta")
    result = two_latents(families, law="saturated")
    X, _ = drawn(result, 80, seed=5)
    free = FreeParameters.of(result, X)
    ours = row_scores(free)
    states = result.law.space.states()
    parameters = result.parameters
    features = np.hstack([np.ones((4, 1)), parameters.terms.features(states)])
    designs = [features[:, np.concatenate([[True], row != 0])] for row in parameters.loadings]
    model = ResponseModel.create(
        parameters.predictors(states),
        result.law.probabilities,
        families,
        parameters.dispersion,
        parameters.cutpoints,
    )
    theirs = model.scores(X, designs)
    # Ours are per standard deviation of Gaussian items, theirs per unit.
    scale = np.ones(free.n_parameters)
    for c, one in enumerate(free.channels):
        if one.kind == "predictor":
            scale[free.of_channel(c)] = free.data.scale[one.response]
    np.testing.assert_allclose(ours, theirs * scale, atol=1e-6)
