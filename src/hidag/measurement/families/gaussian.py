"""Real-valued responses (Gaussian) and positive ones on the log scale (lognormal)."""

from __future__ import annotations

import numpy as np

from hidag.measurement.families.base import Array, OwnScale


class Gaussian(OwnScale):
    """``X ~ Normal(eta, gamma)``; the dispersion gamma is the variance."""

    name = "gaussian"
    has_dispersion = True
    lowest_predictor = -np.inf

    def natural(self, eta: Array, dispersion: Array) -> tuple[Array, Array]:
        """Return ``theta = eta / gamma`` and ``A = eta**2 / (2 gamma)``."""
        theta = eta / dispersion
        return theta, 0.5 * eta * theta

    def slopes(self, eta: Array, dispersion: Array) -> tuple[Array, Array, Array]:
        """Return ``1 / gamma``, ``eta / gamma`` and the information ``1 / gamma``."""
        precision = np.broadcast_to(1.0 / dispersion, np.shape(eta))
        return precision, eta * precision, precision

    def base(self, x: Array, dispersion: Array) -> Array:
        """Return ``-x**2 / (2 gamma) - log(2 pi gamma) / 2``."""
        return np.asarray(-0.5 * (x * x / dispersion + np.log(2.0 * np.pi * dispersion)))

    def mean(self, eta: Array) -> Array:
        """Return the predictor."""
        return np.asarray(eta, dtype=np.float64)

    def predictor(self, mean: Array) -> Array:
        """Return the mean."""
        return np.asarray(mean, dtype=np.float64)

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return the mean: every real number is in range."""
        return mean

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return the items' standard deviations."""
        return np.sqrt(variance)

    def sample(self, eta: Array, dispersion: Array, rng: np.random.Generator) -> Array:
        """Return normal draws."""
        return eta + np.sqrt(dispersion) * rng.standard_normal(np.shape(eta))


class Lognormal(Gaussian):
    """``log X ~ Normal(eta, gamma)``, for response times and other positive sizes."""

    name = "lognormal"

    def to_working(self, x: Array) -> Array:
        """Return the logarithm."""
        return np.log(x)

    def from_working(self, x: Array) -> Array:
        """Return the exponential."""
        return np.exp(x)

    def response_mean(self, eta: Array, dispersion: Array) -> Array:
        """Return ``exp(eta + gamma / 2)``."""
        return np.exp(eta + 0.5 * dispersion)

    def base(self, x: Array, dispersion: Array) -> Array:
        """Return the Gaussian base of ``log x`` and the Jacobian ``-log x``."""
        logged = np.log(x)
        return super().base(logged, dispersion) - logged

    def sample(self, eta: Array, dispersion: Array, rng: np.random.Generator) -> Array:
        """Return the exponential of normal draws."""
        return np.exp(super().sample(eta, dispersion, rng))
