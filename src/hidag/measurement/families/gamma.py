"""Positive amounts whose spread grows with their mean: gamma with a logarithmic link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from hidag.measurement.families.base import Array, Finding, MeanFamily, find_positive
from hidag.measurement.families.registry import register

#: Predictors beyond this are those of numbers that no table may hold.
LARGEST_LOG_SIZE = 230.0


@register("gamma")
class Gamma(MeanFamily):
    """``E X = mu = exp(eta)`` and ``Var X = gamma mu**2``; ``1 / gamma`` is the shape."""

    name = "gamma"
    need = "numbers > 0"
    meaning = "positive amounts whose spread grows with their mean"
    has_dispersion = True
    dispersion_means = "squared ratio of standard deviation and mean"
    dispersion_bounds = (1e-6, 1e3)

    def finding(self, x: Array) -> Finding:
        """Return what is not positive."""
        return find_positive(x)

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = -1 / (gamma mu)`` and ``A = eta / gamma``."""
        held = np.clip(eta, -LARGEST_LOG_SIZE, LARGEST_LOG_SIZE)
        return -np.exp(-held) / aux, held / aux

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``1 / (gamma mu)``, ``1 / gamma`` and the information ``1 / gamma``."""
        shape = np.broadcast_to(1.0 / aux, np.shape(eta))
        return shape / self.mean(eta), shape, shape

    def base(self, x: Array, aux: Array) -> Array:
        """Return what the density has besides: powers of x and the normalising constant."""
        shape = 1.0 / aux
        return np.asarray(shape * np.log(shape) - gammaln(shape) + (shape - 1.0) * np.log(x))

    def summary(self, x: Array, counts: Array | None = None) -> Array:
        """Return the number of responses and the sum of their logarithms."""
        often = np.ones(len(x)) if counts is None else counts
        return np.array([often.sum(), often @ np.log(x)])

    def base_totals(self, summaries: Sequence[Array], aux: Array) -> Array:
        """Return the sums of ``base``."""
        n, logs = np.stack(summaries, axis=1)
        shape = 1.0 / aux
        return np.asarray(n * (shape * np.log(shape) - gammaln(shape)) + (shape - 1.0) * logs)

    def mean(self, eta: Array) -> Array:
        """Return ``exp(eta)``."""
        return np.exp(np.clip(eta, -LARGEST_LOG_SIZE, LARGEST_LOG_SIZE))

    def predictor(self, mean: Array) -> Array:
        """Return the logarithm of the mean."""
        return np.log(mean)

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return positive means: units are the user's, so no distance from zero is too small."""
        return np.maximum(mean, np.exp(-LARGEST_LOG_SIZE))

    def null_dispersion(self, mean: Array, variance: Array) -> Array:
        """Return the squared ratio of standard deviation and mean."""
        return np.clip(variance / mean**2, 1e-4, 1e2)

    def first_look(self, columns: Array) -> Array:
        """Return the logarithm; of zeros that stand in missing cells, that of a tiny number."""
        return np.log(np.maximum(columns, np.exp(-LARGEST_LOG_SIZE)))

    may_be_quiet = True

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return about the standard deviation of the logarithm."""
        smallest = np.exp(-LARGEST_LOG_SIZE)
        return np.asarray(np.sqrt(np.log1p(variance / np.maximum(mean, smallest) ** 2)))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return gamma draws."""
        shape = np.broadcast_to(1.0 / aux, np.shape(eta))
        return self.mean(eta) * rng.standard_gamma(shape) / shape
