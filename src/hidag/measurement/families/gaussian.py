"""Real-valued responses (Gaussian) and positive ones on the log scale (lognormal)."""

from __future__ import annotations

import numpy as np

from hidag.measurement.families.base import (
    ANALYTIC_WITH_SCALE,
    Array,
    MeanFamily,
    ValueProblem,
    normal_base,
    register,
    use_family,
)


def find_nonpositive(x: Array) -> ValueProblem | None:
    """Return the problem with values (n,) that are not all positive."""
    low = x <= 0
    if not low.any():
        return None
    return ValueProblem(
        f"minimum {x.min():g} and {np.count_nonzero(low)} of {len(x)} cells at or below 0",
        use_family("use {real}, or NaN where 0 stands for a missing time", real="gaussian"),
    )


@register("gaussian", default_for="real")
class Gaussian(MeanFamily):
    """``X ~ Normal(eta, gamma)``; the dispersion gamma is the variance."""

    aliases: tuple[str, ...] = ("normal", "continuous")
    description = "continuous measurements"
    analytic_condition = ANALYTIC_WITH_SCALE
    has_dispersion = True
    dispersion_meaning = "variance"
    dispersion_is_variance = True
    is_location_scale = True
    has_unbounded_information = True
    canonical_below = np.inf

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = eta / gamma`` and ``A = eta**2 / (2 gamma)``."""
        theta = eta / aux
        return theta, 0.5 * eta * theta

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``1 / gamma``, ``eta / gamma`` and the information ``1 / gamma``."""
        precision = np.broadcast_to(1.0 / aux, np.shape(eta))
        return precision, eta * precision, precision

    def base(self, x: Array, aux: Array) -> Array:
        return normal_base(x, aux)

    def mean(self, eta: Array) -> Array:
        return np.asarray(eta, dtype=np.float64)

    def predictor(self, mean: Array) -> Array:
        return np.asarray(mean, dtype=np.float64)

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        return mean

    def null_dispersion(self, mean: Array, variance: Array) -> Array:
        return np.maximum(variance, 1e-12)

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        return np.sqrt(variance)

    def working_base(self, x: Array, aux: Array) -> Array:
        """Return the base of the normal density on the working scale."""
        return normal_base(self.to_working(x), aux)

    def log_density_moments(self, eta: float, aux: Array) -> tuple[float, float]:
        """Return the moments of the maximum minus half a chi-square with one degree of freedom."""
        return float(-0.5 * (np.log(2.0 * np.pi * aux) + 1.0)), 0.5

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        return eta + np.sqrt(aux) * rng.standard_normal(np.shape(eta))


@register("lognormal", default_for="positive")
class Lognormal(Gaussian):
    """``log X ~ Normal(eta, gamma)``, for response times and other positive sizes."""

    aliases = ("time",)
    allowed_values = "numbers > 0"
    description = "positive times or amounts, on a log scale"
    dispersion_meaning = "variance of the logarithm"
    largest_simulated_predictor = 36.0

    def find_invalid(self, x: Array) -> ValueProblem | None:
        return find_nonpositive(x)

    def to_working(self, x: Array) -> Array:
        return np.log(x)

    def from_working(self, columns: Array) -> Array:
        return np.exp(columns)

    def response_mean(self, eta: Array, aux: Array) -> Array:
        return np.exp(eta + 0.5 * aux)

    def base(self, x: Array, aux: Array) -> Array:
        """Return the Gaussian base of ``log x`` and the Jacobian ``-log x``."""
        logged = np.log(x)
        return normal_base(logged, aux) - logged

    def moment_label(self, item: str) -> str:
        return f"log({item})"

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        return np.exp(super().sample(eta, aux, rng))
