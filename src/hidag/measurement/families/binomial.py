"""Numbers of successes in a known number of trials, with a logit link."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, logit

from hidag.exceptions import SettingError
from hidag.measurement.families.base import (
    AnalyticCondition,
    Array,
    MeanFamily,
    ValueProblem,
    describe_invalid,
    format_argument,
    register,
    softplus,
    use_family,
)


@register("binomial")
class Binomial(MeanFamily):
    """``X ~ Binomial(n, 1 / (1 + exp(-eta)))``."""

    argument_name = "number of trials"
    example_argument = "20"
    description = "successes in a known number of trials"
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
        p = float(mean) / self.n_trials
        return changes * (spread / max(self.n_trials * p * (1.0 - p), 0.1))

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
