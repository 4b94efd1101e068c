"""Times that are known up to a limit: lognormal, censored at the right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_ndtr, ndtr

from hidag.exceptions import SettingError
from hidag.measurement.families.base import Array, Family, Finding, find_positive
from hidag.measurement.families.bernoulli import log_normal_density
from hidag.measurement.families.registry import register, written

#: A limit that went through other units comes back a little off.
_ROUNDING = 1e-9


@register("censored-lognormal")
class CensoredLognormal(Family):
    """``log X ~ Normal(eta, gamma)``; of times at or above the limit no more is known.

    The mean of such an item is everywhere that of the times as they are observed, the shorter one
    of time and limit.
    The columns are ``log(x / limit)``, zero where censored, and whether the time was censored.
    """

    number_means = "limit"
    example_number = "60"
    meaning = "times that end at a limit, on a log scale"
    need = "numbers > 0, some of them below the limit"
    n_columns = 2
    has_dispersion = True
    dispersion_means = "variance of the logarithm"
    dispersion_is_variance = True
    dispersion_bounds = (1e-8, 1e4)

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.name = f"censored-lognormal({written(limit)})"
        self._log_limit = float(np.log(limit))

    @classmethod
    def with_number(cls, number: float) -> CensoredLognormal:
        """Return the family for that limit."""
        if not (np.isfinite(number) and number > 0):
            raise SettingError(
                f"family='censored-lognormal({number!r})' must have a limit > 0, in the units of "
                "the item"
            )
        return cls(number)

    def finding(self, x: Array) -> Finding:
        """Return what is not positive."""
        return find_positive(x)

    def column_finding(self, x: Array) -> Finding:
        """Return that all times are censored."""
        if len(x) and x.min() >= self.limit:
            return (
                f"minimum {x.min():g}, so that every time is censored",
                "put the limit of the item's own units in the brackets",
            )
        return None

    def column_doubt(self, x: Array) -> Finding:
        """Return that some times are longer than the limit, as if they had been measured."""
        above = x[x > self.limit * (1 + _ROUNDING)]
        if not len(above):
            return None
        return (
            f"{len(above)} of {len(x)} values above its limit, up to {above.max():g}",
            f"of these a fit takes no more than that they are at least {written(self.limit)}; put "
            "a higher limit in the brackets if they were measured",
        )

    def as_taken(self, x: Array) -> Array:
        """Return the times, the limit where they are longer."""
        return np.minimum(x, self.limit)

    def to_working(self, x: Array) -> Array:
        """Return the logarithm relative to the limit, and one where censored."""
        censored = x >= self.limit
        logged = np.log(x) - self._log_limit
        return np.stack([np.where(censored, 0.0, logged), censored.astype(np.float64)])

    def from_working(self, columns: Array) -> Array:
        """Return the times; the limit where censored."""
        return np.where(columns[1] == 1, self.limit, np.exp(columns[0] + self._log_limit))

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return the Gaussian's parts, and what replaces them where censored."""
        distance = eta - self._log_limit
        slope = distance / aux
        partition = 0.5 * distance * slope
        beyond = log_ndtr(distance / np.sqrt(aux))
        return np.stack([slope, partition + beyond]), partition

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        """Return the slopes and the information."""
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
        density = -0.5 * (logged**2 / aux + np.log(2.0 * np.pi * aux)) - np.log(x)
        return np.where(x >= self.limit, 0.0, density)

    def summary(self, x: Array, counts: Array | None = None) -> Array:
        """Return number, sum of squares and sum of logarithms of what was not censored."""
        whole = x < self.limit
        logged = np.log(x[whole])
        often = np.ones(len(logged)) if counts is None else counts[whole]
        squares = (logged - self._log_limit) ** 2
        return np.array([often.sum(), often @ squares, often @ logged])

    def base_totals(self, summaries: Sequence[Array], aux: Array) -> Array:
        """Return the sums of ``base``."""
        n, squares, logs = np.stack(summaries, axis=1)
        return np.asarray(-0.5 * (squares / aux + n * np.log(2.0 * np.pi * aux)) - logs)

    def response_mean(self, eta: Array, aux: Array) -> Array:
        """Return the mean of the times as they are observed, at most the limit."""
        root = np.sqrt(aux)
        distance = (self._log_limit - eta) / root
        below = np.exp(eta + 0.5 * aux + log_ndtr(distance - root))
        return np.asarray(below + self.limit * ndtr(-distance))

    def null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and variance of the observed logarithms, stretched for what is censored."""
        stretch = 1.0 / np.maximum(1.0 - mean[1], 0.2)
        return self._log_limit + mean[0] * (2.0 - stretch), np.maximum(variance[0], 1e-6) * stretch

    def first_look(self, columns: Array) -> Array:
        """Return the logarithm, at most that of the limit."""
        return np.asarray(columns[0])

    may_be_quiet = True

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return the standard deviation of the observed logarithms."""
        return np.asarray(np.sqrt(variance[0]))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        """Return times, the limit where they would be longer."""
        times = np.exp(eta + np.sqrt(aux) * rng.standard_normal(np.shape(eta)))
        return np.minimum(times, self.limit)
