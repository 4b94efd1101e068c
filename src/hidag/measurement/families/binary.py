"""Binary responses with several links, and successes in a known number of trials."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, log_ndtr, logit, ndtr, ndtri

from hidag.config import CONFIG
from hidag.exceptions import Advice, SettingError
from hidag.measurement.families.base import (
    AnalyticCondition,
    Array,
    MeanFamily,
    ValueProblem,
    describe_invalid,
    format_argument,
    log_normal_density,
    register,
    softplus,
    use_family,
)

LOGITS_PER_PROBIT = 1.7  # Log odds per unit of a probit predictor, where the two curves are closest
#: Bounds of log rates. The log probability of a one is a difference of rates, which loses all
#: digits where they are huge.
SMALLEST_LOG_RATE, LARGEST_LOG_RATE = -40.0, 7.0


@register("bernoulli", default_for="binary")
class Bernoulli(MeanFamily):
    """``P(X = 1) = 1 / (1 + exp(-eta))``."""

    aliases: tuple[str, ...] = ("binary",)
    allowed_values = "0 and 1"
    description = "yes/no answers (0 and 1)"
    effect_scale = "log-odds of a 1"
    analytic_condition = AnalyticCondition(
        "holds", "a regular exponential family with the logit link"
    )
    is_binary = True
    has_unit_mean = True
    canonical_below = np.inf

    @property
    def categories(self) -> tuple[float, ...]:
        """0 and 1."""
        return (0.0, 1.0)

    def find_invalid(self, x: Array) -> ValueProblem | None:
        other = (x != 0) & (x != 1)
        if not other.any():
            return None
        distinct = np.unique(x)
        if len(distinct) == 2:
            low, high = distinct
            recode = Advice(
                "recode", "recode {low:g} as 0 and {high:g} as 1", {"low": low, "high": high}
            )
            return ValueProblem(f"{low:g} and {high:g}", recode)
        if np.isin(distinct, (0, 1, 2)).all():
            advice = "use {grades} for grades, or recode the item as 0 and 1 at a cut"
            return ValueProblem("0, 1 and 2", use_family(advice, grades="ordinal"))
        recode = Advice("recode", "recode the item as 0 and 1, or use another family")
        return ValueProblem(describe_invalid(x, other), recode)

    def possible_values(self) -> Array:
        return np.array([0.0, 1.0])

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = eta`` and ``A = log(1 + exp(eta))``."""
        return eta, softplus(eta)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        p = expit(eta)
        return np.ones_like(eta), p, p * (1.0 - p)

    def base(self, x: Array, aux: Array) -> Array:
        """Return zero: the density has no part free of the predictor."""
        return np.zeros_like(x)

    def mean(self, eta: Array) -> Array:
        return np.asarray(expit(eta))

    def predictor(self, mean: Array) -> Array:
        return np.asarray(logit(mean))

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        return np.clip(mean, epsilon, 1.0 - epsilon)

    def predictor_effects(self, changes: Array, spread: float, scale: float, mean: Array) -> Array:
        """Return differences of probabilities p as log odds: divided by p (1 - p)."""
        return changes / max(spread, CONFIG.families.smallest_answer_variance)

    def second_moment(self, eta: Array, aux: Array) -> Array:
        """Return the mean: zeros and ones are their own squares."""
        return self.mean(eta)

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        return (rng.random(np.shape(eta)) < self.mean(eta)).astype(np.float64)


@register("bernoulli-probit")
class BernoulliProbit(Bernoulli):
    """``P(X = 1) = Phi(eta)``, the standard normal distribution function."""

    aliases = ("probit",)
    description = "yes/no answers (0 and 1), effects on the probit scale"
    effect_scale = "probit of a 1"
    analytic_condition = AnalyticCondition("holds", "the probit link is analytic and one to one")
    canonical_below = -np.inf

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = log Phi(eta) - log Phi(-eta)`` and ``A = -log Phi(-eta)``."""
        partition = -log_ndtr(-eta)
        return np.asarray(log_ndtr(eta) + partition), np.asarray(partition)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return the slopes, made of ``phi / Phi`` on both sides, and ``phi^2 / (p (1 - p))``."""
        rising = np.exp(log_normal_density(eta) - log_ndtr(eta))
        falling = np.exp(log_normal_density(eta) - log_ndtr(-eta))
        return rising + falling, falling, rising * falling

    def mean(self, eta: Array) -> Array:
        return np.asarray(ndtr(eta))

    def predictor(self, mean: Array) -> Array:
        return np.asarray(ndtri(mean))

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return one unit of log odds on the probit scale."""
        return np.full_like(mean, 1.0 / LOGITS_PER_PROBIT)


@register("bernoulli-cloglog")
class BernoulliCloglog(Bernoulli):
    """``P(X = 1) = 1 - exp(-exp(eta))``: something happened at least once, at rate ``exp(eta)``."""

    aliases = ("cloglog",)
    description = "whether something happened at least once (0 and 1), effects on the log rate"
    effect_scale = "log rate of an event"
    analytic_condition = AnalyticCondition(
        "holds", "the complementary log-log link is analytic and one to one"
    )
    canonical_below = -np.inf

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = log(exp(rate) - 1)`` and ``A = rate``."""
        rate = np.exp(np.clip(eta, SMALLEST_LOG_RATE, LARGEST_LOG_RATE))
        return rate + np.log(-np.expm1(-rate)), rate

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``rate / p``, the rate, and the information ``rate^2 (1 - p) / p``."""
        rate = np.exp(np.clip(eta, SMALLEST_LOG_RATE, LARGEST_LOG_RATE))
        rising = rate / -np.expm1(-rate)
        return rising, rate, rate * np.exp(-rate) * rising

    def mean(self, eta: Array) -> Array:
        return np.asarray(-np.expm1(-np.exp(np.minimum(eta, LARGEST_LOG_RATE))))

    def predictor(self, mean: Array) -> Array:
        return np.asarray(np.log(-np.log1p(-mean)))


@register("binomial")
class Binomial(MeanFamily):
    """``X ~ Binomial(n, 1 / (1 + exp(-eta)))``."""

    argument_name = "number of trials"
    example_argument = "20"
    description = "successes in a known number of trials"
    effect_scale = "log-odds of a success"
    analytic_condition = AnalyticCondition(
        "holds", "a regular exponential family with the logit link; the number of trials is known"
    )
    canonical_below = np.inf
    has_unbounded_information = True

    def __init__(self, n_trials: float) -> None:
        self.n_trials = n_trials
        self.name = f"binomial({format_argument(n_trials)})"
        self.allowed_values = f"whole numbers from 0 to {format_argument(n_trials)}"

    @classmethod
    def from_number(cls, number: float) -> Binomial:
        if not (number.is_integer() and number >= 1):
            text = "family='binomial({number})' must have a whole number of trials, at least 1"
            raise SettingError("family-argument", text, number=format_argument(number))
        return cls(number)

    def find_invalid(self, x: Array) -> ValueProblem | None:
        other = (x < 0) | (x > self.n_trials) | (x != np.floor(x))
        if not other.any():
            return None
        if (x >= 0).all() and (x == np.floor(x)).all():
            return ValueProblem(
                f"{x.max():g} successes in {format_argument(self.n_trials)} trials",
                use_family(
                    "put the true number of trials in parentheses, or use {count} for unbounded "
                    "counts",
                    count="poisson",
                ),
            )
        return ValueProblem(
            describe_invalid(x, other),
            use_family(
                "use the numbers of successes, not shares; {share} is for shares", share="beta"
            ),
        )

    def possible_values(self) -> Array:
        return np.arange(self.n_trials + 1.0)

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = eta`` and ``A = n log(1 + exp(eta))``."""
        return eta, self.n_trials * softplus(eta)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        p = expit(eta)
        return np.ones_like(eta), self.n_trials * p, self.n_trials * p * (1.0 - p)

    def base(self, x: Array, aux: Array) -> Array:
        n = self.n_trials
        return np.asarray(gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(n - x + 1.0))

    def mean(self, eta: Array) -> Array:
        return np.asarray(self.n_trials * expit(eta))

    def predictor(self, mean: Array) -> Array:
        return np.asarray(logit(mean / self.n_trials))

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        return np.clip(mean, epsilon, self.n_trials - epsilon)

    def predictor_effects(self, changes: Array, spread: float, scale: float, mean: Array) -> Array:
        """Return differences of successes as log odds: divided by n p (1 - p)."""
        p, least = float(mean) / self.n_trials, CONFIG.families.smallest_answer_variance
        return changes * (spread / max(self.n_trials * p * (1.0 - p), least))

    def noise_variance(self, mean: Array) -> Array:
        """Return the inverse of the information of all trials about the log odds."""
        share = np.clip(mean / self.n_trials, 1e-9, 1.0 - 1e-9)
        return np.asarray(1.0 / (self.n_trials * share * (1.0 - share)))

    def second_moment(self, eta: Array, aux: Array) -> Array:
        """Return ``mu + (n - 1) mu^2 / n``."""
        mean, n = self.mean(eta), self.n_trials
        return np.asarray(mean * (1.0 + (n - 1.0) * mean / n))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(int(self.n_trials), expit(eta)).astype(np.float64)
