"""Ordered grades: cumulative logits with one linear predictor (proportional odds)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, logit

from hidag.config import CONFIG
from hidag.exceptions import Advice, SettingError
from hidag.formatting import format_value
from hidag.measurement.families.base import (
    MAX_ARGUMENT,
    MAX_CATEGORIES,
    AnalyticCondition,
    Array,
    Family,
    ValueProblem,
    check_size,
    describe_invalid,
    format_argument,
    register,
    use_family,
)

#: Smallest distance of two cutpoints, and largest distance from the first.
SMALLEST_GAP, LARGEST_CUTPOINT = 1e-3, 40.0
#: Standard deviation of the standard logistic distribution.
LOGISTIC_SPREAD = float(np.pi / np.sqrt(3.0))


@register("ordinal", default_for="grades")
class Ordinal(Family):
    """``P(X >= c) = 1 / (1 + exp(-(eta - tau_c)))`` for grades c from 1 to C - 1, ``tau_1 = 0``.

    Grades begin at 0, or at the lower end of a range: ``ordinal(1..5)``. The auxiliaries are the
    cutpoints ``tau_2 < ... < tau_{C-1}``; the first one is in the intercept. Columns are
    indicators of all grades but the lowest.
    """

    aliases = ("ordered", "likert", "graded")
    argument_name = "number of grades"
    argument_source = "whole numbers without gaps, at least 3 of them"
    example_argument = "5"
    description = "ordered grades"
    effect_scale = "log-odds of higher grades"
    analytic_condition = AnalyticCondition(
        "holds",
        "its law is analytic in predictor and cutpoints and determines both; the paper writes one "
        "dispersion per item, and its proof needs no more of it than cutpoints offer",
    )
    smallest_gap = 1.001 * SMALLEST_GAP

    def __init__(self, n_grades: int, lowest: int = 0) -> None:
        self.n_grades = n_grades
        self.lowest = lowest
        top = lowest + n_grades - 1
        self.name = f"ordinal({lowest}..{top})" if lowest else f"ordinal({n_grades})"
        self.allowed_values = f"whole numbers from {lowest} to {top}"
        self.n_columns = n_grades - 1
        self.n_cutpoints = n_grades - 2

    @classmethod
    def from_number(cls, number: float) -> Ordinal:
        if not number.is_integer():
            raise _too_few_grades(format_argument(number))
        return cls._of_range(0, int(number) - 1, format_argument(number))

    @classmethod
    def from_argument(cls, text: str) -> Ordinal:
        """Return the family for a number of grades, or for grades from one to another."""
        low, dots, top = text.partition("..")
        if not dots:
            return cls.from_number(check_size(float(text), MAX_CATEGORIES, text))
        return cls._of_range(int(low), int(top), text)

    @classmethod
    def _of_range(cls, lowest: int, top: int, argument: str) -> Ordinal:
        check_size(top - lowest, MAX_CATEGORIES, argument)
        check_size(lowest, MAX_ARGUMENT, argument)
        if top - lowest < 2:
            raise _too_few_grades(argument)
        return cls(top - lowest + 1, lowest)

    @property
    def categories(self) -> tuple[float, ...]:
        """The grades."""
        return tuple(self.possible_values().tolist())

    @classmethod
    def name_from_values(cls, x: Array, weights: Array | None = None) -> str | None:
        """Return the name for grades from the smallest to the largest if all occur."""
        grades = np.unique(x)
        if len(grades) < 3 or not np.array_equal(grades, grades[0] + np.arange(len(grades))):
            return None
        return cls(len(grades), int(grades[0])).name if grades[0] == int(grades[0]) else None

    def find_invalid(self, x: Array) -> ValueProblem | None:
        top = self.lowest + self.n_grades - 1
        other = (x < self.lowest) | (x > top) | (x != np.floor(x))
        if not other.any():
            return None
        if (x != np.floor(x)).any():
            recode = Advice("recode", "recode the item as whole numbers")
            return ValueProblem(describe_invalid(x, other), recode)
        ends = {"low": min(int(x.min()), self.lowest), "high": max(int(x.max()), top)}
        advice = "write 'ordinal({low}..{high})' if these are all grades, or recode the item"
        return ValueProblem(
            f"values from {format_value(x.min())} to {format_value(x.max())}",
            Advice("family-argument", advice, ends),
        )

    def possible_values(self) -> Array:
        return self.lowest + np.arange(float(self.n_grades))

    def to_working(self, x: Array) -> Array:
        grades = self.lowest + np.arange(1.0, self.n_grades).reshape(-1, *(1,) * np.ndim(x))
        return np.asarray(x == grades, dtype=np.float64)

    def from_working(self, columns: Array) -> Array:
        steps = np.tensordot(np.arange(1.0, self.n_grades), columns, axes=1)
        return np.asarray(self.lowest + steps)

    def natural(self, eta: Array, aux: Array) -> tuple[Array, Array]:
        """Return log ratios of the grades' probabilities to the lowest one's, and minus its log."""
        logs = self.log_probabilities(eta, aux)
        return logs[1:] - logs[0], -logs[0]

    def slopes(self, eta: Array, aux: Array) -> tuple[Array, Array, Array]:
        above = expit(self._distances(eta, aux))
        ends = np.ones((1, *above.shape[1:]))
        score = 1.0 - np.concatenate([ends, above]) - np.concatenate([above, 0.0 * ends])
        probabilities = np.exp(self.log_probabilities(eta, aux))
        return score[1:] - score[0], -score[0], np.asarray((probabilities * score**2).sum(axis=0))

    def base(self, x: Array, aux: Array) -> Array:
        """Return zero: the whole density depends on the predictor."""
        return np.zeros_like(x)

    def base_sums(self, statistics: Sequence[Array], aux: Array) -> Array:
        return np.zeros(len(aux))

    def base_statistics(self, x: Array, counts: Array | None = None) -> Array:
        return np.zeros(0)

    def log_probabilities(self, eta: Array, aux: Array) -> Array:
        """Return the log probability of each grade, the grades along a leading axis."""
        distance = self._distances(eta, aux)
        cut = self._thresholds(aux, np.ndim(eta))
        logs = np.empty((self.n_grades, *distance.shape[1:]))
        # The logarithms of a logistic function and of one minus it share the expensive part.
        tail = np.log1p(np.exp(-np.abs(distance)))
        logs[1:] = np.minimum(distance, 0.0) - tail
        logs[0] = 0.0
        logs[:-1] -= np.maximum(distance, 0.0) + tail
        # A difference of two logistic functions written as a product, without cancellation.
        logs[1:-1] += np.log(-np.expm1(cut[:-1] - cut[1:]))
        return logs

    def response_mean(self, eta: Array, aux: Array) -> Array:
        return np.asarray(self.lowest + expit(self._distances(eta, aux)).sum(axis=0))

    def sample(self, eta: Array, aux: Array, rng: np.random.Generator) -> Array:
        draws = rng.random(np.shape(eta))
        steps = (draws < expit(self._distances(eta, aux))).sum(axis=0)
        return np.asarray(self.lowest + steps, dtype=np.float64)

    def fit_null(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        above = np.clip(np.cumsum(mean[::-1], axis=0)[::-1], 1e-4, 1.0 - 1e-4)
        levels = logit(above)
        # Grades without a response would have equal cutpoints.
        room = SMALLEST_GAP * np.arange(1, self.n_grades - 1)
        return levels[0], (levels[0] - levels[1:]).T + room

    def linearize(self, columns: Array) -> Array:
        return self.from_working(columns)

    def predictor_effects(self, changes: Array, spread: float, scale: float, mean: Array) -> Array:
        """Return the changes in standard deviations of the underlying logistic variable."""
        return changes * LOGISTIC_SPREAD

    def update_auxiliary(
        self,
        aux: Array,
        eta: Array,
        sums: Array,
        counts: Array,
        statistics: Sequence[Array],
        mass: Array,
    ) -> tuple[Array, Array]:
        """Return cutpoints after a Newton step, and the first one's change as a shift."""
        everything = np.concatenate([counts[None] - sums.sum(axis=0), sums])
        cut = np.hstack([np.zeros((len(aux), 1)), aux])
        before = self._expected_grades(cut, eta, everything)
        step = self._newton_step(cut, eta, everything)
        longest = np.abs(step).max(axis=1, keepdims=True)
        step *= np.minimum(1.0, CONFIG.families.longest_threshold_step / np.maximum(longest, 1e-12))
        out = cut.copy()
        waiting = np.ones(len(aux), dtype=bool)
        for _ in range(CONFIG.families.max_halvings):
            rows = np.flatnonzero(waiting)
            trial = self._in_order(cut[rows] + step[rows])
            good = self._expected_grades(trial, eta[rows], everything[:, rows]) > before[rows]
            out[rows[good]] = trial[good]
            waiting[rows[good]] = False
            if not waiting.any():
                break
            step *= 0.5
        return out[:, 1:] - out[:, :1], -out[:, 0]

    def second_moment(self, eta: Array, aux: Array) -> Array:
        return np.asarray(self.possible_values() ** 2 @ np.exp(self.log_probabilities(eta, aux)))

    def _in_order(self, cut: Array) -> Array:
        """Return thresholds, (n, C - 1), with admissible distances and the same first one."""
        gaps = np.maximum(np.diff(cut, axis=1), SMALLEST_GAP)
        room = LARGEST_CUTPOINT - SMALLEST_GAP * np.arange(gaps.shape[1])[::-1]
        return np.hstack([cut[:, :1], cut[:, :1] + np.minimum(np.cumsum(gaps, axis=1), room)])

    def _expected_grades(self, cut: Array, eta: Array, sums: Array) -> Array:
        """Return each item's expected log-likelihood at all C - 1 thresholds ``cut``, (n,)."""
        moved = eta - cut[:, :1]
        logs = self.log_probabilities(moved, (cut[:, 1:] - cut[:, :1])[:, None])
        return np.asarray(np.einsum("cjs,cjs->j", sums, logs))

    def _newton_step(self, cut: Array, eta: Array, sums: Array) -> Array:
        """Return the Newton step of all thresholds, (n, C - 1), those at the smallest gap tied."""
        above = expit(eta[None] - cut.T[:, :, None])
        lower, upper = sums[:-1], sums[1:]
        gap = np.diff(cut, axis=1).T
        inner = sums[1:-1].sum(axis=-1)
        pull = inner / np.expm1(gap)
        stiffness = pull * np.exp(gap) / np.expm1(gap)
        gradient = (lower * above).sum(axis=-1) - (upper * (1.0 - above)).sum(axis=-1)
        gradient[:-1] -= pull
        gradient[1:] += pull
        # A gap widens if all thresholds above it increase.
        widening = np.cumsum(gradient[:0:-1], axis=0)[::-1]
        tied = CONFIG.families.tie_stiffness * (1.0 + sums.sum())
        stiffness[(gap <= self.smallest_gap) & (widening < 0)] += tied
        size = len(above)
        curvature = np.zeros((cut.shape[0], size, size))
        place = np.arange(size)
        curvature[:, place, place] = ((lower + upper) * above * (1.0 - above)).sum(axis=-1).T + 1e-8
        between = place[:-1]
        curvature[:, between, between] += stiffness.T
        curvature[:, between + 1, between + 1] += stiffness.T
        curvature[:, between, between + 1] -= stiffness.T
        curvature[:, between + 1, between] -= stiffness.T
        return np.asarray(np.linalg.solve(curvature, gradient.T[:, :, None])[:, :, 0])

    def _thresholds(self, aux: Array, n_axes: int) -> Array:
        """Return all thresholds along an axis before ``n_axes`` others; the first is zero."""
        aux = np.asarray(aux)
        cut = aux.transpose(aux.ndim - 1, *range(aux.ndim - 1))
        cut = cut.reshape(len(cut), *(1,) * (n_axes - cut.ndim + 1), *cut.shape[1:])
        return np.concatenate([np.zeros((1, *cut.shape[1:])), cut])

    def _distances(self, eta: Array, aux: Array) -> Array:
        """Return ``eta - tau_c`` along a leading axis, shape (C - 1, *eta.shape)."""
        return np.asarray(np.asarray(eta)[None] - self._thresholds(aux, np.ndim(eta)))


def _too_few_grades(argument: str) -> SettingError:
    text = "family='ordinal({argument})' must have a whole number of grades, at least 3"
    advice = use_family("use {binary} for two grades", binary="bernoulli")
    return SettingError("family-argument", text, advice=advice, argument=argument)
