"""Counts: Poisson with a logarithmic or an identity link."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from hidag.measurement.families.base import Array, Finding, MeanFamily
from hidag.measurement.families.findings import find_counts
from hidag.measurement.families.registry import register

#: A linear predictor beyond this would overflow the mean long before it explains a count.
LARGEST_LOG_MEAN = 40.0
#: Smallest mean under the identity link: a state that never produces a count is not a Poisson law.
SMALLEST_MEAN = 1e-3


class LogMeanCounts(MeanFamily):
    """``E X = exp(eta)`` for counts."""

    need = "counts >= 0"
    may_be_quiet = True

    def finding(self, x: Array) -> Finding:
        """Return what is no count."""
        return find_counts(x)

    def mean(self, eta: Array) -> Array:
        """Return ``exp(eta)``."""
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN))

    def predictor(self, mean: Array) -> Array:
        """Return the logarithm of the mean."""
        return np.log(mean)

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return means of at least epsilon."""
        return np.maximum(mean, epsilon)

    def first_look(self, columns: Array) -> Array:
        """Return ``log(x + 1/2)``."""
        return np.log(columns + 0.5)

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return one: ratios of means have a scale of their own."""
        return np.ones_like(mean)


@register("poisson")
class Poisson(LogMeanCounts):
    """``E X = exp(eta)``."""

    name = "poisson"
    aliases: tuple[str, ...] = ("count", "counts")
    meaning = "counts"
    canonical_below = LARGEST_LOG_MEAN

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = eta`` and ``A = exp(eta)``, both held at the largest mean."""
        return np.minimum(eta, LARGEST_LOG_MEAN), self.mean(eta)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``1``, the mean and the mean again (it is the variance too)."""
        mean = self.mean(eta)
        return np.ones_like(eta), mean, mean

    def base(self, x: Array, aux: Array) -> Array:
        """Return ``-log x!``."""
        return np.asarray(-gammaln(x + 1.0))

    def noise_share(self, mean: Array) -> Array:
        """Return one over the mean: logarithms of large counts are known well."""
        return np.asarray(1.0 / np.maximum(mean, SMALLEST_MEAN))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return counts."""
        return rng.poisson(self.mean(eta)).astype(np.float64)


@register("poisson-identity")
class PoissonIdentity(Poisson):
    """``E X = eta``, which must be positive in every latent state."""

    name = "poisson-identity"
    aliases = ()
    meaning = "counts, effects added on the scale of the mean"
    lowest_predictor = SMALLEST_MEAN
    canonical_below = -np.inf

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = log(eta)`` and ``A = eta``."""
        mean = self.mean(eta)
        return np.log(mean), mean

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``1 / eta``, ``1`` and the information ``1 / eta``."""
        inverse = 1.0 / self.mean(eta)
        return inverse, np.ones_like(eta), inverse

    def mean(self, eta: Array) -> Array:
        """Return the predictor, kept above the smallest mean."""
        return np.maximum(eta, SMALLEST_MEAN)

    def predictor(self, mean: Array) -> Array:
        """Return the mean itself."""
        return np.asarray(mean, dtype=np.float64)

    def first_look(self, columns: Array) -> Array:
        """Return the counts as they are."""
        return columns

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return the standard deviation of a count with the item's mean."""
        return np.sqrt(np.maximum(mean, SMALLEST_MEAN))

    def noise_share(self, mean: Array) -> Array:
        """Return one: coefficients are in units of the noise."""
        return np.ones_like(mean)
