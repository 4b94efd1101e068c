"""Right-censored lognormal times with a known limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from hidag.exceptions import Advice, SettingError
from hidag.measurement.families.base import (
    AnalyticCondition,
    Array,
    Family,
    ValueProblem,
    format_argument,
    log_normal_density,
    normal_base,
    register,
)
from hidag.measurement.families.gaussian import find_nonpositive

_ROUNDING = 1e-9  # Relative rounding error of a limit after a conversion of units.


@register("censored-lognormal")
class CensoredLognormal(Family):
    """``log X ~ Normal(eta, gamma)``, observed as the smaller of X and the limit.

    Means are those of the observed times. The columns are ``log(x / limit)``, zero where censored,
    and whether the time is censored.
    """

    argument_name = "limit"
    example_argument = "60"
    description = "times that end at a limit, on a log scale"
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
            text = (
                "family='censored-lognormal({number!r})' must have a limit > 0, in the units of "
                "the item"
            )
            raise SettingError("family-argument", text, number=number)
        return cls(number)

    def find_invalid(self, x: Array) -> ValueProblem | None:
        return find_nonpositive(x)

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
        stretch = 1.0 / np.maximum(1.0 - mean[1], 0.2)
        return self._log_limit + mean[0] * (2.0 - stretch), np.maximum(variance[0], 1e-6) * stretch

    def linearize(self, columns: Array) -> Array:
        return np.asarray(columns[0])

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        return np.asarray(np.sqrt(variance[0]))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        times = np.exp(eta + np.sqrt(aux) * rng.standard_normal(np.shape(eta)))
        return np.minimum(times, self.limit)
