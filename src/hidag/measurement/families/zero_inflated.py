"""Counts with more zeros than a Poisson law has: zero-inflated Poisson with a logarithmic link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, gammaln, logit

from hidag.measurement.families.base import Array, Family, Finding
from hidag.measurement.families.findings import find_counts
from hidag.measurement.families.poisson import LARGEST_LOG_MEAN
from hidag.measurement.families.registry import register
from hidag.measurement.families.softplus import softplus


@register("zero-inflated-poisson")
class ZeroInflatedPoisson(Family):
    """Zero with probability gamma, else a Poisson count with mean ``lambda = exp(eta)``.

    The columns are the count and whether it is zero.
    """

    name = "zero-inflated-poisson"
    aliases = ("zip", "zero-inflated")
    need = "counts >= 0"
    meaning = "counts with extra zeros"
    n_columns = 2
    has_dispersion = True
    dispersion_means = "probability of an extra zero"
    dispersion_bounds = (1e-6, 1.0 - 1e-6)
    least_case = "Poisson counts"

    def finding(self, x: Array) -> Finding:
        """Return what is no count."""
        return find_counts(x)

    def to_working(self, x: Array) -> Array:
        """Return the count, and one where it is zero."""
        return np.stack([x, (x == 0).astype(np.float64)])

    def from_working(self, columns: Array) -> Array:
        """Return the count."""
        return np.asarray(columns[0])

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return the Poisson parts, and what a zero may be besides."""
        held = np.minimum(eta, LARGEST_LOG_MEAN)
        mean = np.exp(held)
        extra = softplus(logit(aux) + mean)
        return np.stack([held, extra]), mean - np.log1p(-aux)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return the slopes and the information."""
        mean = self._poisson_mean(eta)
        extra = expit(logit(aux) + mean)
        information = (1.0 - aux) * (mean - mean**2 * np.exp(-mean) * extra)
        return np.stack([np.ones_like(mean), mean * extra]), mean, np.asarray(information)

    def base(self, x: Array, aux: Array) -> Array:
        """Return ``-log x!``."""
        return np.asarray(-gammaln(x + 1.0))

    def summary(self, x: Array, counts: Array | None = None) -> Array:
        """Return the sum of ``base``: no parameter enters it."""
        base = self.base(x, np.ones(1))
        return np.array([base.sum() if counts is None else base @ counts])

    def base_totals(self, summaries: Sequence[Array], aux: Array) -> Array:
        """Return the sums of ``base``."""
        return np.concatenate(list(summaries))

    def to_free(self, dispersion: Array) -> Array:
        """Return log odds."""
        return np.asarray(logit(dispersion))

    def from_free(self, free: Array) -> Array:
        """Return probabilities."""
        return np.asarray(expit(free))

    def response_mean(self, eta: Array, aux: Array) -> Array:
        """Return ``(1 - gamma) lambda``."""
        return np.asarray((1.0 - aux) * self._poisson_mean(eta))

    def null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return the law whose mean and share of zeros are about the items'."""
        total, zeros = np.maximum(mean[0], 1e-4), mean[1]
        extra = np.zeros_like(total)
        for _ in range(20):
            # The mean of what is not extra; then what of the zeros it leaves to be extra.
            rate = total / (1.0 - extra)
            extra = np.clip((zeros - np.exp(-rate)) / (1.0 - np.exp(-rate)), 0.0, 0.95)
        return np.log(total / (1.0 - extra)), np.clip(extra, 0.02, 0.95)

    def first_look(self, columns: Array) -> Array:
        """Return ``log(x + 1/2)``."""
        return np.asarray(np.log(columns[0] + 0.5))

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return one: ratios of means have a scale of their own."""
        return np.ones_like(mean[0])

    may_be_quiet = True

    def noise_share(self, mean: Array) -> Array:
        """Return one over the mean, as of counts without extra zeros: these tell nothing."""
        return np.asarray(1.0 / np.maximum(mean[0], 1e-12))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return counts."""
        counts = rng.poisson(self._poisson_mean(eta)).astype(np.float64)
        return np.where(rng.random(np.shape(eta)) < aux, 0.0, counts)

    @staticmethod
    def _poisson_mean(eta: Array) -> Array:
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN))
