"""Intervals from replicates: the one place where a bootstrap's spread becomes two ends."""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import SettingError

Array = NDArray[np.float64]

#: Share of intervals that should hold the truth, unless the user says otherwise.
LEVEL = 0.9
#: Fewer refits make intervals that miss the truth more often than they hold it: none are shown.
FEWEST_FOR_INTERVALS = 3
#: Numbers of such a share of the greatest are zero.
ROUNDING = 1e-12
#: Steps in the search for the share that an end leaves out: a millionth is settled after 20.
HALVINGS = 24


def percentile_interval(values: ArrayLike, level: float = LEVEL) -> tuple[Array, Array]:
    """Return the ends of percentile intervals over the first axis.

    The p-th percentile of B replicates is their p (B + 1)-th in order, and between two of them a
    point on the line. If the truth lies among replicates as one more of them would, as the
    bootstrap supposes, it falls into each of the B + 1 gaps equally often, and the interval holds
    it with the promised chance however few replicates there are. Percentiles that give the least
    replicate the rank 0 and the greatest the rank 1, as numpy's do unless told otherwise, lose
    2 / (B + 1) of that chance: intervals of 90 % from 30 replicates would hold 84 %.

    Parameters
    ----------
    values : array, shape (B, ...)
        One number of each replicate.
    level : float
        Chance that the interval holds the truth.

    Returns
    -------
    low, high : ndarray, shape (...)
        The least and the greatest replicate where there are fewer than `replicates_needed`.
    """
    tail = (1.0 - checked_level(level)) / 2.0
    low, high = np.quantile(
        np.asarray(values, dtype=np.float64), (tail, 1.0 - tail), axis=0, method="weibull"
    )
    return np.asarray(low), np.asarray(high)


def range_interval(lows: ArrayLike, highs: ArrayLike, level: float = LEVEL) -> tuple[Array, Array]:
    """Return the ends of intervals for a number that each replicate only gives a range for.

    The number is somewhere in its range, and the interval should hold it wherever that is. From
    a percentile of the lower ends to the opposite one of the upper ends, each leaving out half of
    what may be missed, it would hold it too often: a number at one end of a wide range is hardly
    ever missed at the other (Imbens and Manski 2004). So the tail that each end leaves out is the
    largest, from half of what may be missed to all of it, with which neither the lower ends of
    the replicates nor their upper ends lie outside more often than that. Where ranges are single
    numbers, no two alike, it is half: these are percentile intervals. Where all ranges are
    wider than they are spread it is all of it. Shares are counted as in
    :func:`percentile_interval`; what is exactly at an end, as effects of zero often are, is held.

    Parameters
    ----------
    lows, highs : array, shape (B, ...)
        Ends of each replicate's range.
    level : float
        Chance that the interval holds the truth.

    Returns
    -------
    low, high : ndarray, shape (...)
        NaN where some replicate has no range.
    """
    missed = 1.0 - checked_level(level)
    ends = np.stack([np.asarray(lows, dtype=np.float64), np.asarray(highs, dtype=np.float64)])
    # Rounding should not tell two effects of zero apart.
    ends[np.abs(ends) <= ROUNDING * np.abs(ends).max(axis=(0, 1))] = 0.0
    below, above = np.sort(ends, axis=1)

    def interval(tail: Array) -> tuple[Array, Array]:
        n_gaps = len(below) + 1.0
        return _at_rank(below, tail * n_gaps), _at_rank(above, (1.0 - tail) * n_gaps)

    def holds(tail: Array) -> NDArray[np.bool_]:
        low, high = interval(tail)
        outside = [
            _share_below(one, low) + _share_below(-one[::-1], -high) for one in (below, above)
        ]
        return np.asarray(np.maximum(*outside) <= missed)

    most = np.full(below.shape[1:], missed)
    tail = np.where(holds(most), most, missed / 2.0)
    for _ in range(HALVINGS):
        middle = (tail + most) / 2.0
        fits = holds(middle)
        tail, most = np.where(fits, middle, tail), np.where(fits, most, middle)
    unknown = np.isnan(ends).any(axis=(0, 1))
    low, high = (np.where(unknown, np.nan, end) for end in interval(tail))
    return low, high


def _at_rank(ordered: Array, rank: Array) -> Array:
    """Return the numbers at ranks 1 to B, between two of them a point on the line, (...)."""
    rank = np.clip(rank, 1.0, len(ordered))
    first = np.floor(rank).astype(np.intp)
    left = np.take_along_axis(ordered, first[None] - 1, axis=0)[0]
    right = np.take_along_axis(ordered, np.minimum(first, len(ordered) - 1)[None], axis=0)[0]
    return np.asarray(left + (rank - first) * (right - left))


def _share_below(ordered: Array, mark: Array) -> Array:
    """Return the share of gaps between ordered numbers, shape (B, ...), below a mark, (...)."""
    n = len(ordered)
    count = (ordered < mark).sum(axis=0)
    left = np.take_along_axis(ordered, np.maximum(count - 1, 0)[None], axis=0)[0]
    right = np.take_along_axis(ordered, np.minimum(count, n - 1)[None], axis=0)[0]
    width = right - left
    # The whole gap where the mark is the next number; none below the least.
    part = np.divide(mark - left, width, out=np.ones_like(width), where=width > 0)
    return np.asarray((count + np.where((count == 0) & (mark < right), 0.0, part)) / (n + 1.0))


def checked_level(level: float) -> float:
    """Return a level that is one."""
    if isinstance(level, str) or not 0.0 < level < 1.0:
        raise SettingError(f"level must be between 0 and 1, got {level!r}")
    return level


def replicates_needed(level: float = LEVEL) -> int:
    """Return how many replicates an interval of this level takes: 19 for 90 %."""
    # The least and the greatest of B hold a share (B - 1) / (B + 1); rounding is for 2 / 0.1.
    return ceil(round(2.0 / (1.0 - checked_level(level)), 9)) - 1


def level_reached(n_replicates: int, level: float = LEVEL) -> float:
    """Return the level that an interval of so many replicates has, at most the one wanted."""
    return min(checked_level(level), (n_replicates - 1) / (n_replicates + 1))


def interval_cautions(n_refits: int, q_given: bool, level: float = LEVEL) -> list[str]:
    """Return what to know before believing the intervals of a bootstrap, without full stops."""
    out = []
    reached = level_reached(n_refits, level)
    if n_refits < FEWEST_FOR_INTERVALS:
        few = FEWEST_FOR_INTERVALS
        out.append(
            f"{n_refits} {'refit makes' if n_refits == 1 else 'refits make'} no intervals, as "
            f"these would hold the truth in {reached:.0%} of cases; {few} refits make intervals of "
            f"{level_reached(few, level):.0%}, and {level:.0%} takes {replicates_needed(level)}"
        )
    elif reached < level:
        out.append(
            f"{n_refits} {'refit makes' if n_refits == 1 else 'refits make'} intervals of "
            f"{reached:.0%} at most; {level:.0%} takes {replicates_needed(level)} refits"
        )
    if not q_given:
        out.append(
            "Q was chosen from the table: a slope too weak to be chosen is 0 in nearly all refits, "
            "so that an interval from 0 to 0 does not say that there is none, and intervals of "
            "weak slopes hold the truth less often than promised (validate-q tests what was left "
            "out)"
        )
    return out
