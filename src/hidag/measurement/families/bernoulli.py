"""Binary responses with a logit link."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from hidag.measurement.families.base import Array, OwnScale


class Bernoulli(OwnScale):
    """``P(X = 1) = 1 / (1 + exp(-eta))``."""

    name = "bernoulli"
    has_dispersion = False
    lowest_predictor = -np.inf

    def natural(self, eta: Array, dispersion: Array) -> tuple[Array, Array]:
        """Return ``theta = eta`` and ``A = log(1 + exp(eta))``."""
        return eta, np.logaddexp(0.0, eta)

    def slopes(self, eta: Array, dispersion: Array) -> tuple[Array, Array, Array]:
        """Return ``1``, the probability and its variance."""
        p = expit(eta)
        return np.ones_like(eta), p, p * (1.0 - p)

    def base(self, x: Array, dispersion: Array) -> Array:
        """Return zero: the density has no part free of the predictor."""
        return np.zeros_like(x)

    def mean(self, eta: Array) -> Array:
        """Return the probability of a one."""
        return np.asarray(expit(eta))

    def predictor(self, mean: Array) -> Array:
        """Return the log odds."""
        return np.asarray(logit(mean))

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return means in [epsilon, 1 - epsilon]."""
        return np.clip(mean, epsilon, 1.0 - epsilon)

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return one: log odds have a scale of their own."""
        return np.ones_like(mean)

    def sample(self, eta: Array, dispersion: Array, rng: np.random.Generator) -> Array:
        """Return zeros and ones."""
        return (rng.random(np.shape(eta)) < expit(eta)).astype(np.float64)
