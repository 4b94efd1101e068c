"""Counts: Poisson, negative binomial and zero-inflated Poisson."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, logit

from hidag.config import CONFIG
from hidag.measurement.families.base import (
    ANALYTIC_WITH_SCALE,
    AnalyticCondition,
    Array,
    Family,
    MeanFamily,
    ValueProblem,
    register,
    softplus,
    use_family,
)

LARGEST_LOG_MEAN = 40.0  # Bound of linear predictors on the log scale; larger means would overflow.
#: Largest log mean that numpy's Poisson sampler and float64 represent exactly.
LARGEST_SIMULATED_LOG_MEAN = 36.0
SMALLEST_MEAN = 1e-3  # Smallest mean under the identity link: a Poisson mean is positive.
LARGEST_RATE = 9e18  # Largest mean of counts that numpy can draw from.


def find_no_counts(x: Array) -> ValueProblem | None:
    """Return the problem with values (n,) that are not counts."""
    if len(x) and x.min() < 0:
        real = use_family("use {real} for real-valued items", real="gaussian")
        return ValueProblem(f"minimum {x.min():g}", real)
    fractions = x != np.floor(x)
    if not fractions.any():
        return None
    n, first = np.count_nonzero(fractions), f"{x[fractions][0]:g}"
    advice = "use {real} or {positive} for real-valued items"
    return ValueProblem(
        f"{first} in 1 of {len(x)} cells" if n == 1 else f"fractions such as {first}",
        use_family(advice, real="gaussian", positive="lognormal"),
    )


class Counts(Family):
    """Items that count."""

    effect_scale = "logarithm of the mean"
    allowed_values = "counts >= 0"
    is_count = True
    has_unbounded_information = True
    largest_simulated_predictor = LARGEST_SIMULATED_LOG_MEAN

    def find_invalid(self, x: Array) -> ValueProblem | None:
        return find_no_counts(x)


class LogMeanCounts(Counts, MeanFamily):
    """``E X = exp(eta)`` for counts."""

    def mean(self, eta: Array) -> Array:
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN))

    def predictor(self, mean: Array) -> Array:
        return np.log(mean)

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        return np.maximum(mean, epsilon)

    def linearize(self, columns: Array) -> Array:
        return np.log(columns + 0.5)


@register("poisson", default_for="count")
class Poisson(LogMeanCounts):
    """``E X = exp(eta)``."""

    aliases: tuple[str, ...] = ("count", "counts")
    description = "counts"
    analytic_condition = AnalyticCondition(
        "holds", "a regular exponential family with the log link"
    )
    overdispersed_alternative = "negative-binomial"
    canonical_below = LARGEST_LOG_MEAN

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = eta`` and ``A = exp(eta)``, bounded by the largest mean."""
        return np.minimum(eta, LARGEST_LOG_MEAN), self.mean(eta)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        mean = self.mean(eta)
        return np.ones_like(eta), mean, mean

    def base(self, x: Array, aux: Array) -> Array:
        return np.asarray(-gammaln(x + 1.0))

    def noise_variance(self, mean: Array) -> Array:
        """Return one over the mean, the variance of the logarithm of a large count."""
        return np.asarray(1.0 / np.maximum(mean, SMALLEST_MEAN))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        return rng.poisson(self.mean(eta)).astype(np.float64)


@register("poisson-identity")
class PoissonIdentity(Poisson):
    """``E X = eta``, which must be positive in every latent state."""

    aliases = ()
    description = "counts, effects added on the scale of the mean"
    effect_scale = "mean"
    analytic_condition = AnalyticCondition(
        "undecided",
        "the assumption asks for a link that turns every real number into a mean, and the identity "
        "link does so only for positive ones; it holds on the set of parameters where every mean "
        "is positive, which is convex and open, so the argument can be repeated there, but the "
        "paper does not do so",
        holds_if_positive=True,
    )
    largest_simulated_predictor = np.inf
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
        return np.maximum(eta, SMALLEST_MEAN)

    def predictor(self, mean: Array) -> Array:
        return np.asarray(mean, dtype=np.float64)

    def linearize(self, columns: Array) -> Array:
        return columns

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        return np.sqrt(np.maximum(mean, SMALLEST_MEAN))

    def noise_variance(self, mean: Array) -> Array:
        """Return one: coefficients are in units of the standard deviation."""
        return np.ones_like(mean)


@register("negative-binomial")
class NegativeBinomial(LogMeanCounts):
    """``E X = mu = exp(eta)`` and ``Var X = mu + gamma mu**2``; ``1 / gamma`` is the size."""

    aliases = ("negbin", "overdispersed-count")
    description = "counts that vary more than a Poisson law"
    analytic_condition = ANALYTIC_WITH_SCALE
    has_dispersion = True
    dispersion_meaning = "what the squared mean adds to the variance, per square"
    # At the smallest dispersion the distribution is practically Poisson.
    dispersion_bounds = (1e-5, 1e4)
    limiting_distribution = "Poisson counts"

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
        return np.clip((variance - mean) / mean**2, *CONFIG.families.count_dispersions)

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return counts, drawn as Poisson counts with gamma-distributed means."""
        size = np.broadcast_to(1.0 / aux, np.shape(eta))
        rate = self.mean(eta) * rng.standard_gamma(size) / size
        # States of negligible probability may have means beyond the largest count.
        return rng.poisson(np.minimum(rate, LARGEST_RATE)).astype(np.float64)


@register("zero-inflated-poisson")
class ZeroInflatedPoisson(Counts):
    """Zero with probability gamma, else Poisson with mean ``exp(eta)``; columns: x, and x == 0."""

    aliases = ("zip", "zero-inflated")
    description = "counts with extra zeros"
    effect_scale = "logarithm of the mean without extra zeros"
    analytic_condition = AnalyticCondition(
        "holds", "its law is analytic in predictor and share of extra zeros, and determines both"
    )
    n_columns = 2
    has_dispersion = True
    dispersion_meaning = "probability of an extra zero"
    base_has_parameters = False
    dispersion_bounds = (1e-6, 1.0 - 1e-6)
    limiting_distribution = "Poisson counts"

    def to_working(self, x: Array) -> Array:
        return np.stack([x, (x == 0).astype(np.float64)])

    def from_working(self, columns: Array) -> Array:
        return np.asarray(columns[0])

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        held = np.minimum(eta, LARGEST_LOG_MEAN)
        mean = np.exp(held)
        extra = softplus(logit(aux) + mean)
        return np.stack([held, extra]), mean - np.log1p(-aux)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        mean = self._poisson_mean(eta)
        extra = expit(logit(aux) + mean)
        information = (1.0 - aux) * (mean - mean**2 * np.exp(-mean) * extra)
        return np.stack([np.ones_like(mean), mean * extra]), mean, np.asarray(information)

    def base(self, x: Array, aux: Array) -> Array:
        return np.asarray(-gammaln(x + 1.0))

    def to_unbounded(self, dispersion: Array) -> Array:
        return np.asarray(logit(dispersion))

    def from_unbounded(self, free: Array) -> Array:
        return np.asarray(expit(free))

    def response_mean(self, eta: Array, aux: Array) -> Array:
        return np.asarray((1.0 - aux) * self._poisson_mean(eta))

    def fit_null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return parameters that match the items' means and shares of zeros."""
        total, zeros = np.maximum(mean[0], 1e-4), mean[1]
        extra, (least, most) = np.zeros_like(total), CONFIG.families.zero_shares
        for _ in range(CONFIG.families.zero_share_steps):
            # Alternate between the Poisson mean and the share of extra zeros.
            rate = total / (1.0 - extra)
            extra = np.clip((zeros - np.exp(-rate)) / (1.0 - np.exp(-rate)), 0.0, most)
        return np.log(total / (1.0 - extra)), np.clip(extra, least, most)

    def linearize(self, columns: Array) -> Array:
        return np.asarray(np.log(columns[0] + 0.5))

    def noise_variance(self, mean: Array) -> Array:
        """Return one over the mean; extra zeros carry no information."""
        return np.asarray(1.0 / np.maximum(mean[0], 1e-12))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        counts = rng.poisson(self._poisson_mean(eta)).astype(np.float64)
        return np.where(rng.random(np.shape(eta)) < aux, 0.0, counts)

    @staticmethod
    def _poisson_mean(eta: Array) -> Array:
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN))
