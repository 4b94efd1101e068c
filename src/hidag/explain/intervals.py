"""Intervals from replicates: the one place where a bootstrap's spread becomes two ends."""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.errors import SettingError

Array = NDArray[np.float64]

#: Share of intervals that should hold the truth, unless the user says otherwise.
LEVEL = 0.9
#: Fewer refits make intervals that miss the truth more often than they hold it: none are shown.
FEWEST_FOR_INTERVALS = 3


def percentile_interval(
    values: ArrayLike, level: float = LEVEL, *, highs: ArrayLike | None = None
) -> tuple[Array, Array]:
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
    highs : array, shape (B, ...), optional
        Where each replicate gives a range: ``values`` are its lower ends, these its upper ones.

    Returns
    -------
    low, high : ndarray, shape (...)
        The least and the greatest replicate where there are fewer than `replicates_needed`.
    """
    tail = (1.0 - checked_level(level)) / 2.0
    below = np.asarray(values, dtype=np.float64)
    above = below if highs is None else np.asarray(highs, dtype=np.float64)
    low = np.quantile(below, tail, axis=0, method="weibull")
    high = np.quantile(above, 1.0 - tail, axis=0, method="weibull")
    return np.asarray(low), np.asarray(high)


def checked_level(level: float) -> float:
    """Return a level that is one."""
    if not 0.0 < level < 1.0:
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
