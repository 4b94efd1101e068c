"""Algorithms S.1 and S.2 of the paper: spectral start and penalised Gibbs SAEM, step by step.

They are written from the paper's text, independently of the stages of hidag. Every departure of the
research code from the text is a setting of `Procedure`; the defaults are the text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.initialization.rotations import varimax
from hidag_paper.baselines.baseline import Floats, normal_values

Ints = NDArray[np.int64]
#: Families that the paper's studies have.
FAMILIES = ("gaussian", "lognormal", "bernoulli", "poisson", "poisson-identity")
#: Newton steps of an M-step, coordinate descents in a step, and halvings of a step.
_NEWTON_STEPS, _DESCENTS, _HALVINGS = 50, 30, 30
#: Changes of coefficients that end an M-step.
_CHANGE = 1e-6
#: Smallest predictor of an identity link, and smallest variance.
_POSITIVE = 1e-8


@dataclass(frozen=True)
class Procedure:
    """What the text leaves open, and departures from it; the defaults are those of the text.

    Step sizes are ``step / (t + delay)`` for t = 1, 2, ...; the text asks for a divergent sum and a
    convergent sum of squares. The text does not say when to stop.
    """

    step: float = 1.0
    delay: int = 0
    n_sweeps: int = 1  # C
    max_iter: int = 100
    tolerance: float = 1e-3  # largest squared change of the coefficients at which to stop
    clip: float = 1e-4  # epsilon of Algorithm S.1
    start_scale: float = 1.0  # C_g of Algorithm S.1
    sparse_scores: bool = True  # scores from thresholded axes
    slope_by_threshold: bool = True  # slope lambda / tau of the penalty, else lambda
    law_floor: float = 0.0  # added to probabilities before their logarithm
    q_by_threshold: bool = False  # Q from |b| >= tau instead of b != 0
    edge_prior: bool = False  # structure prior of the graph search

    def penalty(self, n_rows: int) -> tuple[float, float]:
        """Return the slope of the penalty below its threshold, and the threshold."""
        threshold = 2.0 * n_rows**-0.275
        return n_rows**0.25 / (threshold if self.slope_by_threshold else 1.0), threshold


@dataclass
class Estimate:
    """Parameters of main effects, and the latents that go with them."""

    law: Floats  # (2^K,): numbered with the first latent as the highest bit
    coefficients: Floats  # (J, 1 + K): intercepts and loadings
    variance: Floats  # (J,): 1 for families without dispersion
    latents: Ints  # (N, K)
    n_iter: int = 0


def state_numbers(latents: Ints) -> Ints:
    """Return the numbers of joint states, (N,), given the latents (N, K)."""
    return latents @ (1 << np.arange(latents.shape[1])[::-1])


def spectral_start(
    values: Floats, families: tuple[str, ...], n_latents: int, procedure: Procedure
) -> Estimate:
    """Return the start of Algorithm S.1, by its eleven steps.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        Logarithms of lognormal items.
    families : tuple of str, length J
    n_latents : int
    procedure : Procedure
        Truncation of the fitted means (step 3), C_g (step 10) and the axes of step 9.
    """
    n_rows, n_items = values.shape
    left, sizes, right = np.linalg.svd(values, full_matrices=False)
    rank = max(n_latents + 1, int((sizes >= 1.01 * np.sqrt(n_rows)).sum()))
    means = (left[:, :rank] * sizes[:rank]) @ right[:rank]
    linear = np.column_stack(
        [
            _predictor(means[:, j], family, values[:, j], procedure.clip)
            for j, family in enumerate(families)
        ]
    )
    centre = linear.mean(axis=0)
    centred = linear - centre
    axes = np.linalg.svd(centred, full_matrices=False)[2][:n_latents].T
    rotated = axes @ varimax(axes)
    rotated *= np.where(rotated.mean(axis=0) < 0, -1.0, 1.0)
    sparse = np.abs(rotated) >= 1.0 / (2.5 * np.sqrt(n_items))
    rotated = rotated * sparse if procedure.sparse_scores else rotated
    scores = centred @ rotated @ np.linalg.inv(rotated.T @ rotated)
    latents = (scores > 0).astype(np.int64)
    features = np.column_stack([np.ones(n_rows), latents])
    coefficients = np.linalg.lstsq(features, linear, rcond=None)[0].T
    coefficients[:, 1:] *= procedure.start_scale * sparse
    normal = np.isin(families, ("gaussian", "lognormal"))
    residual = ((values - features @ coefficients.T) ** 2).mean(axis=0)
    law = np.bincount(state_numbers(latents), minlength=1 << n_latents) / n_rows
    return Estimate(law, coefficients, np.where(normal, residual, 1.0), latents)


def _predictor(means: Floats, family: str, values: Floats, clip: float) -> Floats:
    """Return linear predictors of fitted means, truncated to the range of the responses."""
    if family in ("gaussian", "lognormal"):
        return np.asarray(values)  # the text omits steps 1 to 4
    if family == "bernoulli":
        inside = np.clip(means, clip, 1.0 - clip)
        return np.asarray(np.log(inside / (1.0 - inside)))
    inside = np.maximum(means, clip)
    return inside if family == "poisson-identity" else np.asarray(np.log(inside))


class Objective:
    """The weighted complete-data log-likelihood F of all items, by its statistics per state."""

    def __init__(self, values: Floats, families: tuple[str, ...], n_latents: int) -> None:
        self.values, self.families = values, families
        numbers = np.arange(1 << n_latents)[:, None] >> np.arange(n_latents)[::-1] & 1
        self.features = np.column_stack([np.ones(len(numbers)), numbers])
        self.counts = np.zeros(len(numbers))
        self.sums = np.zeros((len(numbers), values.shape[1]))
        self.squares = np.zeros(values.shape[1])

    def add(self, numbers: Ints, step: float) -> None:
        """Replace F by (1 - step) F + step times the log-likelihood of these latents, (C N,)."""
        n_sweeps = len(numbers) // len(self.values)
        values = np.tile(self.values, (n_sweeps, 1))
        counts = np.bincount(numbers, minlength=len(self.counts)) / n_sweeps
        order = np.argsort(numbers, kind="stable")
        sums = np.zeros_like(self.sums)
        present = np.flatnonzero(counts)
        firsts = np.searchsorted(numbers[order], present)
        sums[present] = np.add.reduceat(values[order], firsts, axis=0) / n_sweeps
        self.counts += step * (counts - self.counts)
        self.sums += step * (sums - self.sums)
        self.squares += step * ((self.values**2).sum(axis=0) - self.squares)

    def maximise(
        self, start: Floats, variance: Floats, slope: float, threshold: float
    ) -> tuple[Floats, Floats]:
        """Return coefficients and variances at the local maximum near ``start`` with the penalty.

        The penalty is ``slope * min(|b|, threshold)``. Newton steps have its derivative at the last
        coefficients and end at a local maximum, as those of a solver with a start do.
        """
        seen = np.flatnonzero(self.counts > 0)
        x, n, sums = self.features[seen], self.counts[seen], self.sums[seen]
        products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        b, spread = start.copy(), variance.copy()
        value = self._value(b, spread, x, n, sums)
        normal = np.isin(self.families, ("gaussian", "lognormal"))
        for _ in range(_NEWTON_STEPS):
            gradient, weights = self._derivatives(b, spread, x, n, sums)
            curvature = (weights.T @ products).reshape(len(b), x.shape[1], x.shape[1])
            slopes = np.where(np.abs(b) < threshold, slope, 0.0)
            slopes[:, 0] = 0.0
            new = _descend(b, gradient.T @ x, curvature, slopes)
            size = np.ones(len(b))
            before = value - (slopes * np.abs(b)).sum(axis=1)
            for _ in range(_HALVINGS):
                trial = b + size[:, None] * (new - b)
                after = self._value(trial, spread, x, n, sums)
                worse = ~(after - (slopes * np.abs(trial)).sum(axis=1) >= before - 1e-9)
                if not worse.any():
                    break
                size = np.where(worse, size / 2.0, size)
            trial = np.where(worse[:, None], b, trial)
            change = float(np.abs(trial - b).max())
            b = trial
            if normal.any():
                fit = x @ b.T
                squares = self.squares - 2 * (sums * fit).sum(axis=0) + n @ fit**2
                spread = np.where(normal, np.maximum(squares / n.sum(), _POSITIVE), spread)
            value = self._value(b, spread, x, n, sums)
            if change < _CHANGE:
                break
        return b, spread

    def _value(self, b: Floats, spread: Floats, x: Floats, n: Floats, sums: Floats) -> Floats:
        eta = x @ b.T
        out = np.zeros(len(b))
        for family in dict.fromkeys(self.families):
            own = np.array([name == family for name in self.families])
            e, s = eta[:, own], sums[:, own]
            if family == "bernoulli":
                out[own] = (s * e - n[:, None] * np.logaddexp(0.0, e)).sum(axis=0)
            elif family == "poisson":
                out[own] = (s * e - n[:, None] * np.exp(np.minimum(e, 500.0))).sum(axis=0)
            elif family == "poisson-identity":
                good = (e > _POSITIVE).all(axis=0)
                e = np.maximum(e, _POSITIVE)
                found = (s * np.log(e) - n[:, None] * e).sum(axis=0)
                out[own] = np.where(good, found, -np.inf)
            else:
                squares = self.squares[own] - 2 * (s * e).sum(axis=0) + n @ e**2
                out[own] = -0.5 * (squares / spread[own] + n.sum() * np.log(spread[own]))
        return out

    def _derivatives(
        self, b: Floats, spread: Floats, x: Floats, n: Floats, sums: Floats
    ) -> tuple[Floats, Floats]:
        """Return first and negative second derivatives by the predictor, (S, J)."""
        eta = x @ b.T
        first, second = np.empty_like(eta), np.empty_like(eta)
        for family in dict.fromkeys(self.families):
            own = np.array([name == family for name in self.families])
            e, s, w = eta[:, own], sums[:, own], n[:, None]
            if family == "bernoulli":
                mean = 1.0 / (1.0 + np.exp(-e))
                first[:, own], second[:, own] = s - w * mean, w * mean * (1.0 - mean)
            elif family == "poisson":
                mean = np.exp(np.minimum(e, 500.0))
                first[:, own], second[:, own] = s - w * mean, w * mean
            elif family == "poisson-identity":
                e = np.maximum(e, _POSITIVE)
                first[:, own], second[:, own] = s / e - w, s / e**2 + 1e-12
            else:
                first[:, own], second[:, own] = (s - w * e) / spread[own], w / spread[own]
        return first, second


def _descend(b: Floats, gradient: Floats, curvature: Floats, slopes: Floats) -> Floats:
    """Return the maxima of quadratic models with absolute penalties, by coordinate descent."""
    new = b.copy()
    slack = gradient.copy()  # gradient of the quadratic at ``new``
    for _ in range(_DESCENTS):
        moved = 0.0
        for p in range(b.shape[1]):
            h = np.maximum(curvature[:, p, p], 1e-12)
            target = new[:, p] + slack[:, p] / h
            value = np.sign(target) * np.maximum(np.abs(target) - slopes[:, p] / h, 0.0)
            step = value - new[:, p]
            slack -= curvature[:, :, p] * step[:, None]
            new[:, p] = value
            moved = max(moved, float(np.abs(step).max()))
        if moved < _CHANGE:
            break
    return new


def sweep(
    latents: Ints,
    values: Floats,
    families: tuple[str, ...],
    found: Estimate,
    log_law: Floats,
    rng: np.random.Generator,
) -> Ints:
    """Return the latents (N, K) after one Gibbs sweep, whose coordinates have a random order.

    All rows have the same order; given the rest they are independent, so this does not change the
    distribution of any row.
    """
    out = latents.copy()
    n_latents = latents.shape[1]
    eta = found.coefficients[:, 0] + out @ found.coefficients[:, 1:].T
    numbers = state_numbers(out)
    for k in rng.permutation(n_latents).tolist():
        bit = 1 << (n_latents - 1 - k)
        slopes = found.coefficients[:, 1 + k]
        own = np.flatnonzero(slopes)
        low = eta[:, own] - out[:, [k]] * slopes[own]
        absent = numbers - bit * out[:, k]
        # Where both states are impossible, their logarithms are equal and the items decide.
        odds = log_law[absent + bit] - log_law[absent]
        odds = np.where(np.isnan(odds), 0.0, odds)
        for position, j in enumerate(own.tolist()):
            one = _log_density(families[j], values[:, j], low[:, position] + slopes[j], found, j)
            odds = odds + one - _log_density(families[j], values[:, j], low[:, position], found, j)
        chosen = (rng.random(len(out)) * (1.0 + np.exp(-np.clip(odds, -700, 700))) < 1).astype(
            np.int64
        )
        eta[:, own] = low + chosen[:, None] * slopes[own]
        numbers = absent + bit * chosen
        out[:, k] = chosen
    return out


def _log_density(family: str, x: Floats, eta: Floats, found: Estimate, j: int) -> Floats:
    if family == "bernoulli":
        return np.asarray(x * eta - np.logaddexp(0.0, eta))
    if family == "poisson":
        return np.asarray(x * eta - np.exp(np.minimum(eta, 500.0)))
    if family == "poisson-identity":
        mean = np.maximum(eta, _POSITIVE)
        return np.asarray(x * np.log(mean) - mean)
    return np.asarray(-0.5 * (x - eta) ** 2 / found.variance[j])


def penalised_saem(
    values: Floats,
    families: tuple[str, ...],
    start: Estimate,
    procedure: Procedure,
    rng: np.random.Generator,
) -> Estimate:
    """Return the estimate of Algorithm S.2 from a start."""
    slope, threshold = procedure.penalty(len(values))
    found, objective = start, Objective(values, families, start.latents.shape[1])
    for t in range(1, procedure.max_iter + 1):
        step = procedure.step / (t + procedure.delay)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_law = np.log(found.law + procedure.law_floor)
            draws, latents = [], found.latents
            for _ in range(procedure.n_sweeps):
                latents = sweep(latents, values, families, found, log_law, rng)
                draws.append(state_numbers(latents))
        numbers = np.concatenate(draws)
        sampled = np.bincount(numbers, minlength=len(found.law)) / len(numbers)
        objective.add(numbers, step)
        b, variance = objective.maximise(found.coefficients, found.variance, slope, threshold)
        change = float(((b - found.coefficients) ** 2).sum())
        law = (1.0 - step) * found.law + step * sampled
        found = Estimate(law, b, variance, latents, t)
        if change < procedure.tolerance:
            break
    return found


def estimate(
    values: Floats,
    families: tuple[str, ...],
    n_latents: int,
    procedure: Procedure,
    rng: np.random.Generator,
) -> tuple[Estimate, NDArray[np.int8]]:
    """Return the estimate of Stage I, and its Q (J, K)."""
    x = normal_values(values, families)
    start = spectral_start(x, families, n_latents, procedure)
    found = penalised_saem(x, families, start, procedure, rng)
    loadings = np.abs(found.coefficients[:, 1:])
    threshold = procedure.penalty(len(values))[1]
    q = loadings >= threshold if procedure.q_by_threshold else loadings > 0
    return found, q.astype(np.int8)
