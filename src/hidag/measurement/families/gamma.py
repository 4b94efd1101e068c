"""Positive amounts whose spread grows with their mean: gamma with a logarithmic link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, polygamma, psi

from hidag.measurement.families.base import (
    ANALYTIC_WITH_SCALE,
    Array,
    MeanFamily,
    ValueProblem,
    register,
)
from hidag.measurement.families.gaussian import find_nonpositive

LARGEST_LOG_SIZE = 230.0  # Bound of predictors; larger values are refused in a table.


@register("gamma")
class Gamma(MeanFamily):
    """``E X = mu = exp(eta)`` and ``Var X = gamma mu**2``; ``1 / gamma`` is the shape."""

    allowed_values = "numbers > 0"
    description = "positive amounts whose spread grows with their mean"
    analytic_condition = ANALYTIC_WITH_SCALE
    has_unbounded_information = True
    has_dispersion = True
    dispersion_meaning = "squared ratio of standard deviation and mean"
    dispersion_bounds = (1e-6, 1e3)

    def find_invalid(self, x: Array) -> ValueProblem | None:
        return find_nonpositive(x)

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = -1 / (gamma mu)`` and ``A = eta / gamma``."""
        held = np.clip(eta, -LARGEST_LOG_SIZE, LARGEST_LOG_SIZE)
        return -np.exp(-held) / aux, held / aux

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``1 / (gamma mu)``, ``1 / gamma`` and the information ``1 / gamma``."""
        shape = np.broadcast_to(1.0 / aux, np.shape(eta))
        return shape / self.mean(eta), shape, shape

    def base(self, x: Array, aux: Array) -> Array:
        shape = 1.0 / aux
        return np.asarray(shape * np.log(shape) - gammaln(shape) + (shape - 1.0) * np.log(x))

    def base_statistics(self, x: Array, counts: Array | None = None) -> Array:
        """Return the number of responses and the sum of their logarithms."""
        often = np.ones(len(x)) if counts is None else counts
        return np.array([often.sum(), often @ np.log(x)])

    def base_sums(self, statistics: Sequence[Array], aux: Array) -> Array:
        n, logs = np.stack(statistics, axis=1)
        shape = 1.0 / aux
        return np.asarray(n * (shape * np.log(shape) - gammaln(shape)) + (shape - 1.0) * logs)

    def mean(self, eta: Array) -> Array:
        return np.exp(np.clip(eta, -LARGEST_LOG_SIZE, LARGEST_LOG_SIZE))

    def predictor(self, mean: Array) -> Array:
        return np.log(mean)

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return positive means; units are arbitrary, so ``epsilon`` does not apply."""
        return np.maximum(mean, np.exp(-LARGEST_LOG_SIZE))

    def null_dispersion(self, mean: Array, variance: Array) -> Array:
        return np.clip(variance / mean**2, 1e-4, 1e2)

    def linearize(self, columns: Array) -> Array:
        """Return the logarithm; the zeros of missing cells become a tiny number."""
        return np.log(np.maximum(columns, np.exp(-LARGEST_LOG_SIZE)))

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        smallest = np.exp(-LARGEST_LOG_SIZE)
        return np.asarray(np.sqrt(np.log1p(variance / np.maximum(mean, smallest) ** 2)))

    def log_density_moments(self, eta: float, aux: Array) -> tuple[float, float]:
        """Return the moments of ``(k - 1) log x - x / s - k log s - log Gamma(k)``, k the shape."""
        shape = 1.0 / float(aux)
        log_scale = float(np.log(self.mean(np.array(eta)))) - np.log(shape)
        mean = (shape - 1.0) * psi(shape) - log_scale - shape - gammaln(shape)
        # The covariance of log x and x / s is one.
        return float(mean), float((shape - 1.0) ** 2 * polygamma(1, shape) - shape + 2.0)

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        shape = np.broadcast_to(1.0 / aux, np.shape(eta))
        return self.mean(eta) * rng.standard_gamma(shape) / shape
