"""Real and positive responses, times with a limit, and shares between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, gammaln, log_ndtr, ndtr, polygamma, psi
from scipy.stats import norm

from hidag.config import CONFIG
from hidag.exceptions import Advice, SettingError
from hidag.measurement.families.base import (
    ANALYTIC_WITH_SCALE,
    AnalyticCondition,
    Array,
    Family,
    ItemType,
    MeanFamily,
    ValueProblem,
    format_argument,
    log_normal_density,
    normal_base,
    register,
    use_family,
)


class PositiveValues(ItemType):
    """Items that hold positive numbers."""

    allowed_values: str = "numbers > 0"

    def find_invalid(self, x: Array) -> ValueProblem | None:
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
    effect_scale = "mean"
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
class Lognormal(PositiveValues, Gaussian):
    """``log X ~ Normal(eta, gamma)``, for response times and other positive sizes."""

    aliases = ("time",)
    description = "positive times or amounts, on a log scale"
    effect_scale = "mean of the logarithm"
    dispersion_meaning = "variance of the logarithm"
    largest_simulated_predictor = 36.0

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


_ROUNDING = 1e-9  # Relative rounding error of a limit after a conversion of units.


@register("censored-lognormal")
class CensoredLognormal(PositiveValues, Family):
    """``log X ~ Normal(eta, gamma)``, observed as the smaller of X and the limit.

    Means are those of the observed times. The columns are ``log(x / limit)``, zero where censored,
    and whether the time is censored.
    """

    argument_name = "limit"
    example_argument = "60"
    description = "times that end at a limit, on a log scale"
    effect_scale = "mean of the logarithm"
    allowed_values = "numbers > 0, some of them below the limit"
    analytic_condition = AnalyticCondition(
        "holds",
        "the limit is known; the share beyond it and the law up to it are analytic in predictor "
        "and scale and determine both",
    )
    has_unbounded_information = True
    n_columns = 2
    has_dispersion = True
    dispersion_meaning = "variance of the logarithm"
    dispersion_is_variance = True
    dispersion_bounds = (1e-8, 1e4)

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.name = f"censored-lognormal({format_argument(limit)})"
        self._log_limit = float(np.log(limit))

    @classmethod
    def from_number(cls, number: float) -> CensoredLognormal:
        if not (np.isfinite(number) and number > 0):
            text = "family='censored-lognormal({number!r})' must have a limit > 0, in the units of "
            text += "the item"
            raise SettingError("family-argument", text, number=number)
        return cls(number)

    def find_unfittable(self, x: Array) -> ValueProblem | None:
        if len(x) and x.min() >= self.limit:
            advice = "put the limit in the units of the item in parentheses"
            return ValueProblem(
                f"minimum {x.min():g}, so that every time is censored",
                Advice("family-argument", advice),
            )
        return None

    def find_suspicious(self, x: Array) -> ValueProblem | None:
        """Return that some times exceed the limit, as if they were not censored."""
        above = x[x > self.limit * (1 + _ROUNDING)]
        if not len(above):
            return None
        return ValueProblem(
            f"{len(above)} of {len(x)} values above its limit, up to {above.max():g}",
            Advice(
                "family-argument",
                "the fit treats them as censored at {limit}; put a higher limit in parentheses if "
                "they were measured",
                {"limit": format_argument(self.limit)},
            ),
        )

    def as_observed(self, x: Array) -> Array:
        return np.minimum(x, self.limit)

    def to_working(self, x: Array) -> Array:
        censored = x >= self.limit
        logged = np.log(x) - self._log_limit
        return np.stack([np.where(censored, 0.0, logged), censored.astype(np.float64)])

    def from_working(self, columns: Array) -> Array:
        return np.where(columns[1] == 1, self.limit, np.exp(columns[0] + self._log_limit))

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        distance = eta - self._log_limit
        slope = distance / aux
        partition = 0.5 * distance * slope
        beyond = log_ndtr(distance / np.sqrt(aux))
        return np.stack([slope, partition + beyond]), partition

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        root = np.sqrt(aux)
        distance = (eta - self._log_limit) / root
        falling = distance / root
        log_density = log_normal_density(distance)
        hazard = np.exp(log_density - log_ndtr(distance))
        precision = np.broadcast_to(1.0 / aux, np.shape(eta))
        seen = ndtr(-distance) + distance * np.exp(log_density)
        information = precision * np.maximum(seen + hazard * np.exp(log_density), 0.0)
        return np.stack([precision, falling + hazard / root]), falling, np.asarray(information)

    def base(self, x: Array, aux: Array) -> Array:
        """Return the Gaussian base of ``log(x / limit)`` with its Jacobian; zero where censored."""
        logged = np.log(x) - self._log_limit
        return np.where(x >= self.limit, 0.0, normal_base(logged, aux) - np.log(x))

    def working_base(self, x: Array, aux: Array) -> Array:
        # Without the Jacobian, censored and uncensored times compare in any unit of time.
        return self.base(x, aux) + np.where(x >= self.limit, 0.0, np.log(x))

    def moment_label(self, item: str) -> str:
        return f"min({item}, {format_argument(self.limit)})"

    def log_density_moments(self, eta: float, aux: Array) -> tuple[float, float]:
        """Return the moments of a Gaussian log density below the limit and of the mass beyond."""
        # Standard deviations from the mean to the limit; partial moments by integration by parts.
        end = -float((eta - self._log_limit) / aux * np.sqrt(aux))
        log_beyond, beyond = float(log_ndtr(-end)), float(ndtr(-end))
        height = float(norm.pdf(end))
        second = 1.0 - beyond - end * height
        fourth = 3.0 * (1.0 - beyond) - (end**3 + 3.0 * end) * height
        top = -0.5 * float(np.log(2.0 * np.pi * float(aux)))
        mean = top * (1.0 - beyond) - 0.5 * second + beyond * log_beyond
        square = top**2 * (1.0 - beyond) - top * second + 0.25 * fourth + beyond * log_beyond**2
        return mean, max(square - mean**2, 0.0)

    def base_statistics(self, x: Array, counts: Array | None = None) -> Array:
        """Return number, sum of squares and sum of logarithms of the uncensored times."""
        whole = x < self.limit
        logged = np.log(x[whole])
        often = np.ones(len(logged)) if counts is None else counts[whole]
        squares = (logged - self._log_limit) ** 2
        return np.array([often.sum(), often @ squares, often @ logged])

    def base_sums(self, statistics: Sequence[Array], aux: Array) -> Array:
        n, squares, logs = np.stack(statistics, axis=1)
        return np.asarray(-0.5 * (squares / aux + n * np.log(2.0 * np.pi * aux)) - logs)

    def response_mean(self, eta: Array, aux: Array) -> Array:
        """Return the mean of the times as they are observed, at most the limit."""
        root = np.sqrt(aux)
        distance = (self._log_limit - eta) / root
        below = np.exp(eta + 0.5 * aux + log_ndtr(distance - root))
        return np.asarray(below + self.limit * ndtr(-distance))

    def fit_null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and variance of the observed logarithms, corrected for censoring."""
        stretch = 1.0 / np.maximum(1.0 - mean[1], CONFIG.families.smallest_uncensored)
        return self._log_limit + mean[0] * (2.0 - stretch), np.maximum(variance[0], 1e-6) * stretch

    def linearize(self, columns: Array) -> Array:
        return np.asarray(columns[0])

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        return np.asarray(np.sqrt(variance[0]))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        times = np.exp(eta + np.sqrt(aux) * rng.standard_normal(np.shape(eta)))
        return np.minimum(times, self.limit)


LARGEST_LOG_SIZE = 230.0  # Bound of predictors; larger values are refused in a table.


@register("gamma")
class Gamma(PositiveValues, MeanFamily):
    """``E X = mu = exp(eta)`` and ``Var X = gamma mu**2``; ``1 / gamma`` is the shape."""

    description = "positive amounts whose spread grows with their mean"
    effect_scale = "logarithm of the mean"
    analytic_condition = ANALYTIC_WITH_SCALE
    has_unbounded_information = True
    has_dispersion = True
    dispersion_meaning = "squared ratio of standard deviation and mean"
    dispersion_bounds = (1e-6, 1e3)

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return ``theta = -1 / (gamma mu)`` and ``A = eta / gamma``."""
        held = np.clip(eta, -LARGEST_LOG_SIZE, LARGEST_LOG_SIZE)
        return -np.exp(-held) / aux, held / aux

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return ``1 / (gamma mu)``, ``1 / gamma`` and the information ``1 / gamma``."""
        shape = np.broadcast_to(1.0 / aux, np.shape(eta))
        return shape / self.mean(eta), shape, shape

    def base(self, x: Array, aux: Array) -> Array:
        shape = 1.0 / aux
        return np.asarray(shape * np.log(shape) - gammaln(shape) + (shape - 1.0) * np.log(x))

    def base_statistics(self, x: Array, counts: Array | None = None) -> Array:
        """Return the number of responses and the sum of their logarithms."""
        often = np.ones(len(x)) if counts is None else counts
        return np.array([often.sum(), often @ np.log(x)])

    def base_sums(self, statistics: Sequence[Array], aux: Array) -> Array:
        n, logs = np.stack(statistics, axis=1)
        shape = 1.0 / aux
        return np.asarray(n * (shape * np.log(shape) - gammaln(shape)) + (shape - 1.0) * logs)

    def mean(self, eta: Array) -> Array:
        return np.exp(np.clip(eta, -LARGEST_LOG_SIZE, LARGEST_LOG_SIZE))

    def predictor(self, mean: Array) -> Array:
        return np.log(mean)

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return positive means; units are arbitrary, so ``epsilon`` does not apply."""
        return np.maximum(mean, np.exp(-LARGEST_LOG_SIZE))

    def null_dispersion(self, mean: Array, variance: Array) -> Array:
        return np.clip(variance / mean**2, *CONFIG.families.amount_dispersions)

    def linearize(self, columns: Array) -> Array:
        """Return the logarithm; the zeros of missing cells become a tiny number."""
        return np.log(np.maximum(columns, np.exp(-LARGEST_LOG_SIZE)))

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        smallest = np.exp(-LARGEST_LOG_SIZE)
        return np.asarray(np.sqrt(np.log1p(variance / np.maximum(mean, smallest) ** 2)))

    def log_density_moments(self, eta: float, aux: Array) -> tuple[float, float]:
        """Return the moments of ``(k - 1) log x - x / s - k log s - log Gamma(k)``, k the shape."""
        shape = 1.0 / float(aux)
        log_scale = float(np.log(self.mean(np.array(eta)))) - np.log(shape)
        mean = (shape - 1.0) * psi(shape) - log_scale - shape - gammaln(shape)
        # The covariance of log x and x / s is one.
        return float(mean), float((shape - 1.0) ** 2 * polygamma(1, shape) - shape + 2.0)

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        shape = np.broadcast_to(1.0 / aux, np.shape(eta))
        return self.mean(eta) * rng.standard_gamma(shape) / shape


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
    effect_scale = "log-odds of the mean"
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
        bounds = CONFIG.families.proportion_dispersions
        return eta, np.clip(spread / (odds + 1.0 / odds), *bounds)

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
