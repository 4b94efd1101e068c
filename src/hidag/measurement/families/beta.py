"""Shares strictly between 0 and 1: beta with a logit link on the mean."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, polygamma, psi

from hidag.measurement.families.base import (
    ANALYTIC_WITH_SCALE,
    Array,
    Family,
    ValueProblem,
    register,
    use_family,
)

LARGEST_LOGIT = 30.0  # Bound of predictors: beyond, shares round to 0 or 1 in floating point.


@register("beta")
class Beta(Family):
    """``E X = mu = 1 / (1 + exp(-eta))``, ``Var X = mu (1 - mu) gamma / (1 + gamma)``.

    ``1 / gamma`` is the precision: ``X ~ Beta(mu / gamma, (1 - mu) / gamma)``. The columns are
    ``log x`` and ``log(1 - x)``.
    """

    aliases = ("share", "proportion")
    allowed_values = "numbers strictly between 0 and 1"
    description = "shares between 0 and 1"
    analytic_condition = ANALYTIC_WITH_SCALE
    has_unit_mean = True
    has_unbounded_information = True
    n_columns = 2
    has_dispersion = True
    dispersion_meaning = "one over the precision"
    base_has_parameters = False
    dispersion_bounds = (1e-8, 1e3)

    def find_invalid(self, x: Array) -> ValueProblem | None:
        outside = (x <= 0) | (x >= 1)
        if not outside.any():
            return None
        if (x >= 0).all() and (x <= 1).all():
            ends = np.count_nonzero(outside)
            advice = "transform them by (x (n - 1) + 1/2) / n, or use {real}"
            return ValueProblem(
                f"{ends} of {len(x)} cells at 0 or 1", use_family(advice, real="gaussian")
            )
        return ValueProblem(
            f"values from {x.min():g} to {x.max():g}",
            use_family("divide percentages by 100, or use {real}", real="gaussian"),
        )

    def to_working(self, x: Array) -> Array:
        return np.stack([np.log(x), np.log1p(-x)])

    def from_working(self, columns: Array) -> Array:
        return np.asarray(np.exp(columns[0]))

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        first, second = self._shapes(eta, aux)
        partition = gammaln(first) + gammaln(second) - gammaln(first + second)
        return np.stack([first, second]), np.asarray(partition)

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return the slopes and the information, made of digammas and trigammas of the shapes."""
        first, second = self._shapes(eta, aux)
        rise = first * second * aux
        falling = rise * (psi(first) - psi(second))
        information = rise**2 * (polygamma(1, first) + polygamma(1, second))
        return np.stack([rise, -rise]), np.asarray(falling), np.asarray(information)

    def base(self, x: Array, aux: Array) -> Array:
        return np.asarray(-np.log(x) - np.log1p(-x))

    def response_mean(self, eta: Array, aux: Array) -> Array:
        return np.asarray(expit(eta))

    def fit_null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return the log ratio of geometric means, and dispersions that match the variances."""
        eta = mean[0] - mean[1]
        spread = np.maximum(variance.sum(axis=0), 1e-8)
        # Near the middle a logarithm has the variance gamma (1 - mu) / mu.
        odds = np.exp(np.clip(eta, -LARGEST_LOGIT, LARGEST_LOGIT))
        return eta, np.clip(spread / (odds + 1.0 / odds), 1e-4, 1.0)

    def linearize(self, columns: Array) -> Array:
        return np.asarray(columns[0] - columns[1])

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return about the standard deviation of the log odds: the columns move in opposition."""
        return np.asarray(np.sqrt(variance).sum(axis=0))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        first, second = self._shapes(eta, aux)
        return np.clip(rng.beta(first, second), 1e-15, 1.0 - 1e-15)

    def log_density_moments(self, eta: float, aux: Array) -> tuple[float, float]:
        """Return the moments of ``(a - 1) log x + (b - 1) log(1 - x) - log B(a, b)``."""
        (first, second), partition = self.natural(np.array(eta), aux)
        whole = first + second
        mean = (first - 1.0) * (psi(first) - psi(whole)) + (second - 1.0) * (
            psi(second) - psi(whole)
        )
        variance = (
            (first - 1.0) ** 2 * polygamma(1, first)
            + (second - 1.0) ** 2 * polygamma(1, second)
            - (whole - 2.0) ** 2 * polygamma(1, whole)
        )
        return float(mean - partition), float(variance)

    @staticmethod
    def _shapes(eta: Array, aux: Array) -> tuple[Array, Array]:
        held = np.clip(eta, -LARGEST_LOGIT, LARGEST_LOGIT)
        return np.asarray(expit(held) / aux), np.asarray(expit(-held) / aux)
