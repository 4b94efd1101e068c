"""Counts that vary more than a Poisson law: negative binomial with a logarithmic link."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln

from hidag.measurement.families.base import Array
from hidag.measurement.families.poisson import LARGEST_LOG_MEAN, LogMeanCounts
from hidag.measurement.families.registry import register
from hidag.measurement.families.softplus import softplus

#: Larger means of counts cannot be drawn from.
LARGEST_RATE = 9e18


@register("negative-binomial")
class NegativeBinomial(LogMeanCounts):
    """``E X = mu = exp(eta)`` and ``Var X = mu + gamma mu**2``; ``1 / gamma`` is the size."""

    name = "negative-binomial"
    aliases = ("negbin", "overdispersed-count")
    meaning = "counts that vary more than a Poisson law"
    has_dispersion = True
    dispersion_means = "what the squared mean adds to the variance, per square"
    #: Below the smallest the law is a Poisson law to all purposes.
    dispersion_bounds = (1e-5, 1e4)
    least_case = "Poisson counts"

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = log(gamma mu / (1 + gamma mu))``, ``A = log(1 + gamma mu) / gamma``."""
        excess = np.minimum(eta, LARGEST_LOG_MEAN) + np.log(aux)
        return -softplus(-excess), softplus(excess) / aux

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return the slopes and the information ``mu / (1 + gamma mu)``."""
        excess = np.minimum(eta, LARGEST_LOG_MEAN) + np.log(aux)
        falling = expit(excess) / aux
        return expit(-excess), falling, falling

    def base(self, x: Array, aux: Array) -> Array:
        """Return the log of the generalised binomial coefficient."""
        size = 1.0 / aux
        return np.asarray(gammaln(x + size) - gammaln(size) - gammaln(x + 1.0))

    def null_dispersion(self, mean: Array, variance: Array) -> Array:
        """Return what the variance has beyond the mean, per squared mean."""
        return np.clip((variance - mean) / mean**2, 0.05, 20.0)

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return counts, drawn as Poisson counts with gamma-distributed means."""
        size = np.broadcast_to(1.0 / aux, np.shape(eta))
        rate = self.mean(eta) * rng.standard_gamma(size) / size
        # States that hardly occur may have means beyond the largest count that can be drawn.
        return rng.poisson(np.minimum(rate, LARGEST_RATE)).astype(np.float64)
