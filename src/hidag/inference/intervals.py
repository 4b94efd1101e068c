"""Percentile intervals from replicates, for numbers and for ranges of numbers."""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import invalid_setting

Array = NDArray[np.float64]

LEVEL = 0.9  # Default coverage probability of intervals
#: Fewer replicates give intervals with a coverage below one half; these are not reported.
MIN_REPLICATES = 3
ROUNDING = 1e-12  # Numbers below this share of the largest are treated as zero
N_BISECTIONS = 24  # Bisection steps for the tail probability; 20 steps give a precision of 1e-6


def percentile_interval(values: ArrayLike, level: float = LEVEL) -> tuple[Array, Array]:
    """Return the ends of percentile intervals over the first axis.

    Numpy's "weibull" percentiles: the truth, if exchangeable with the replicates, is in each of the
    B + 1 gaps with equal probability, so that coverage is nominal for any B.
    """
    tail = (1.0 - check_level(level)) / 2.0
    numbers = np.asarray(values, dtype=np.float64)
    low, high = np.quantile(numbers, (tail, 1.0 - tail), axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


def range_interval(lows: ArrayLike, highs: ArrayLike, level: float = LEVEL) -> tuple[Array, Array]:
    """Return intervals for a partially identified number from its range in each replicate (B, ...).

    They should cover the number wherever it is in its range. With half of the error probability at
    each end, coverage would be too high: a number at one end of a wide range is hardly ever missed
    at the other end (Imbens and Manski 2004). So the tail probability of each end is the largest,
    between half of the error probability and all of it, for which neither the lower nor the upper
    ends of the replicates lie outside more often than the error probability. A value exactly at an
    end, such as an effect of zero, is covered. NaN if some replicate has no range.
    """
    error = 1.0 - check_level(level)
    ends = np.stack([np.asarray(lows, dtype=np.float64), np.asarray(highs, dtype=np.float64)])
    # Effects of zero must be equal in spite of rounding.
    ends[np.abs(ends) <= ROUNDING * np.abs(ends).max(axis=(0, 1))] = 0.0
    below, above = np.sort(ends, axis=1)

    def interval(tail: Array) -> tuple[Array, Array]:
        n_gaps = len(below) + 1.0
        return _at_rank(below, tail * n_gaps), _at_rank(above, (1.0 - tail) * n_gaps)

    def covers(tail: Array) -> NDArray[np.bool_]:
        low, high = interval(tail)
        both = (below, above)
        outside = [_share_below(one, low) + _share_below(-one[::-1], -high) for one in both]
        return np.asarray(np.maximum(*outside) <= error)

    upper = np.full(below.shape[1:], error)
    tail = np.where(covers(upper), upper, error / 2.0)
    for _ in range(N_BISECTIONS):
        middle = (tail + upper) / 2.0
        good = covers(middle)
        tail, upper = np.where(good, middle, tail), np.where(good, upper, middle)
    unknown = np.isnan(ends).any(axis=(0, 1))
    low, high = (np.where(unknown, np.nan, end) for end in interval(tail))
    return low, high


def _at_rank(ordered: Array, rank: Array) -> Array:
    """Return order statistics at ranks from 1 to B, interpolated linearly, shape (...)."""
    rank = np.clip(rank, 1.0, len(ordered))
    first = np.floor(rank).astype(np.intp)
    left = np.take_along_axis(ordered, first[None] - 1, axis=0)[0]
    right = np.take_along_axis(ordered, np.minimum(first, len(ordered) - 1)[None], axis=0)[0]
    return np.asarray(left + (rank - first) * (right - left))


def _share_below(ordered: Array, value: Array) -> Array:
    """Return the share of the gaps between sorted numbers (B, ...) below a value (...)."""
    n = len(ordered)
    count = (ordered < value).sum(axis=0)
    left = np.take_along_axis(ordered, np.maximum(count - 1, 0)[None], axis=0)[0]
    right = np.take_along_axis(ordered, np.minimum(count, n - 1)[None], axis=0)[0]
    width = right - left
    # The whole gap if the value is the next number; none below the smallest.
    part = np.divide(value - left, width, out=np.ones_like(width), where=width > 0)
    return np.asarray((count + np.where((count == 0) & (value < right), 0.0, part)) / (n + 1.0))


def check_level(level: float) -> float:
    """Return the level; raise unless it is between 0 and 1."""
    if isinstance(level, str) or not 0.0 < level < 1.0:
        raise invalid_setting("level", "between 0 and 1", level)
    return level


def required_replicates(level: float = LEVEL) -> int:
    """Return the number of replicates that an interval of this level needs: 19 for 90 %."""
    # The extremes of B replicates cover (B - 1) / (B + 1); rounding because of 2 / 0.1.
    return ceil(round(2.0 / (1.0 - check_level(level)), 9)) - 1


def attainable_level(n_replicates: int, level: float = LEVEL) -> float:
    """Return the level of an interval from so many replicates, at most ``level``."""
    return min(check_level(level), (n_replicates - 1) / (n_replicates + 1))


def interval_notes(n_refits: int, q_given: bool) -> list[str]:
    """Return the limitations of the intervals of a bootstrap, sentences without full stops."""
    out = []
    attained, wanted = attainable_level(n_refits), f"{LEVEL:.0%} needs {required_replicates()}"
    number = f"{n_refits} {'refit gives' if n_refits == 1 else 'refits give'}"
    if n_refits < MIN_REPLICATES:
        few = MIN_REPLICATES
        out.append(
            f"{number} no intervals, because their coverage would be {attained:.0%}; {few} refits "
            f"give intervals of {attainable_level(few):.0%}, and {wanted}"
        )
    elif attained < LEVEL:
        out.append(f"{number} intervals of at most {attained:.0%}; {wanted} refits")
    if not q_given:
        out.append(
            "Q was estimated from the same table: a slope too weak to be selected is 0 in nearly "
            "all refits, so that an interval from 0 to 0 is no evidence of its absence, and "
            "intervals of weak slopes cover the truth less often than the nominal level "
            "(Q-matrix validation tests excluded entries)"
        )
    return out
