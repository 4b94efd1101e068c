"""What the log density of an item's answer is on average, and how it varies, at a predictor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr, ndtr, polygamma, psi
from scipy.stats import norm

from hidag.explain.item_channels import auxiliary_of, base, columned, shaped
from hidag.measurement import Family, family_named
from hidag.measurement.families import split_name
from hidag.measurement.responses import categorical_named
from hidag.result import FitResult

Array = NDArray[np.float64]

#: Answers drawn where they can neither be listed nor summed up, as counts without end.
N_DRAWS = 2000
#: Families of counts; these are listed up to so many, until next to none is left.
COUNTS = ("poisson", "poisson-identity", "negative-binomial", "zero-inflated-poisson")
FEWEST_COUNTS, MOST_COUNTS, REST_OF_COUNTS = 1 << 6, 1 << 16, 1e-9


class DensityMoments:
    """Mean and variance of an item's log density where it is drawn from, by predictor."""

    def __init__(self, result: FitResult) -> None:
        self.result = result
        self._known: list[dict[tuple[float, ...], tuple[float, float]]] = [
            {} for _ in result.item_names
        ]

    def of(self, item: int, eta: Array) -> tuple[Array, Array]:
        """Return means and variances for predictors of the item's responses, (R_j, N) to (N,)."""
        points, place = np.unique(eta, axis=1, return_inverse=True)
        known = self._known[item]
        pairs = []
        for point in points.T:
            key = tuple(point.tolist())
            if key not in known:
                known[key] = self._moments(item, point)
            pairs.append(known[key])
        table = np.array(pairs).reshape(-1, 2)[place.ravel()]
        return table[:, 0], table[:, 1]

    def _moments(self, item: int, point: Array) -> tuple[float, float]:
        parameters = self.result.parameters
        first = int(self.result.responses.starts[item])
        family, own = family_named(parameters.families[first]), auxiliary_of(parameters, first)
        nominal = categorical_named(self.result.families[item])
        if nominal is not None:
            chances = nominal.probabilities(family.response_mean(point, own))
            return _weighted(np.log(np.maximum(chances, 1e-300)), chances)
        values = family.values()
        if values is not None:
            at = np.full(len(values), point[0])
            logs = log_density(family, own, values, at)
            return _weighted(logs, np.exp(logs))
        if family.is_location_scale:
            # Half a chi-square with one degree of freedom is taken from the highest log density.
            return float(-0.5 * (np.log(2.0 * np.pi * own) + 1.0)), 0.5
        kind = split_name(family.name)[0]
        if kind in CLOSED:
            return CLOSED[kind](family, own, float(point[0]))
        if kind in COUNTS:
            counted = _counted(family, own, float(point[0]))
            if counted is not None:
                return _weighted(np.log(np.maximum(counted, 1e-300)), counted)
        # The same draws for every predictor and every call: what is expected is no chance.
        rng = np.random.default_rng(0)
        at = np.full(N_DRAWS, point[0])
        logs = log_density(family, own, family.sample(at, own, rng), at)
        return float(logs.mean()), float(logs.var())


def _weighted(logs: Array, chances: Array) -> tuple[float, float]:
    mean = float(chances @ logs)
    return mean, float(chances @ (logs - mean) ** 2)


def _counted(family: Family, own: Array, eta: float) -> Array | None:
    """Return the chances of 0, 1, 2 and so on at a predictor, None where they are too many."""
    n_values = FEWEST_COUNTS
    while n_values <= MOST_COUNTS:
        chances = np.exp(
            log_density(family, own, np.arange(n_values, dtype=float), np.full(n_values, eta))
        )
        if chances.sum() > 1.0 - REST_OF_COUNTS:
            return np.asarray(chances)
        n_values *= 4
    return None


def _of_gamma(family: Family, own: Array, eta: float) -> tuple[float, float]:
    """Return the moments of ``(k - 1) log x - x / s - k log s - log Gamma(k)``, k the shape."""
    shape = 1.0 / float(own)
    log_scale = float(np.log(family.response_mean(np.array(eta), own))) - np.log(shape)
    mean = (shape - 1.0) * psi(shape) - log_scale - shape - gammaln(shape)
    # The covariance of log x and x / s is one.
    return float(mean), float((shape - 1.0) ** 2 * polygamma(1, shape) - shape + 2.0)


def _of_beta(family: Family, own: Array, eta: float) -> tuple[float, float]:
    """Return the moments of ``(a - 1) log x + (b - 1) log(1 - x) - log B(a, b)``."""
    (first, second), partition = family.natural(np.array(eta), own)
    whole = first + second
    mean = (first - 1.0) * (psi(first) - psi(whole)) + (second - 1.0) * (psi(second) - psi(whole))
    variance = (
        (first - 1.0) ** 2 * polygamma(1, first)
        + (second - 1.0) ** 2 * polygamma(1, second)
        - (whole - 2.0) ** 2 * polygamma(1, whole)
    )
    return float(mean - partition), float(variance)


def _of_censored(family: Family, own: Array, eta: float) -> tuple[float, float]:
    """Return the moments of a Gaussian log density below a limit, and of the chance beyond it."""
    (slope, _), _ = family.natural(np.array(eta), own)
    # Standard deviations from the mean to the limit; moments of what is below by parts.
    end = -float(slope * np.sqrt(own))
    log_beyond, beyond = float(log_ndtr(-end)), float(ndtr(-end))
    height = float(norm.pdf(end))
    second = 1.0 - beyond - end * height
    fourth = 3.0 * (1.0 - beyond) - (end**3 + 3.0 * end) * height
    top = -0.5 * float(np.log(2.0 * np.pi * float(own)))
    mean = top * (1.0 - beyond) - 0.5 * second + beyond * log_beyond
    square = top**2 * (1.0 - beyond) - top * second + 0.25 * fourth + beyond * log_beyond**2
    return mean, max(square - mean**2, 0.0)


#: Families whose log density has moments in closed form.
CLOSED: Mapping[str, Callable[[Family, Array, float], tuple[float, float]]] = {
    "gamma": _of_gamma,
    "beta": _of_beta,
    "censored-lognormal": _of_censored,
}


def log_density(family: Family, own: Array, x: Array, eta: Array) -> Array:
    """Return the log density of answers (n,) at predictors (n,), without a change of variables.

    It is that of the logarithm of times: of times themselves the unit would say how much one that
    was seen weighs beside one that was censored.
    """
    theta, partition = family.natural(eta, shaped(family, own))
    columns = columned(family, family.to_working(x))
    rest = base(family, own, columns[0] if family.is_location_scale else x)
    if split_name(family.name)[0] == "censored-lognormal":
        rest = rest + np.where(columns[1] == 1, 0.0, np.log(x))
    return np.asarray((columns * columned(family, theta)).sum(axis=0) - partition + rest)
