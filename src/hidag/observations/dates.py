"""Dates written as whole numbers, year, month and day: 20210131 is followed by 20210201."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from hidag.errors import HidagWarning
from hidag.observations.table import Observations

EARLIEST, LATEST = 1800, 2100
"""Years that dates in tables of answers are of."""
REMEDY = "turn a date into a number, such as the days since a start, or leave it out"
"""What to do about a column of dates; the command line has options for it."""
_STACK = 4  # the line that called fit


def are_dates(distinct: NDArray[np.float64]) -> bool:
    """Return whether different values of a column, shape (d,), are all days of the calendar.

    One of 27 whole numbers of that size is one: two that are by chance are rare, more hardly occur.
    """
    if len(distinct) < 2 or distinct.min() < EARLIEST * 10_000:
        return False
    if distinct.max() >= (LATEST + 1) * 10_000 or (distinct != np.floor(distinct)).any():
        return False
    numbers = distinct.astype(np.int64)
    years, months, days = numbers // 10_000, numbers // 100 % 100, numbers % 100
    if not ((months >= 1) & (months <= 12) & (days >= 1)).all():
        return False
    first = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    lengths = (first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")
    return bool((days <= lengths.astype(np.int64)).all())


def dates_in_words(distinct: NDArray[np.float64]) -> str:
    """Return what a column of dates holds, in words that follow "holds"."""
    return (
        f"whole numbers from {distinct.min():.0f} to {distinct.max():.0f} that all read as dates "
        "(year, month, day)"
    )


def warn_of_dates(observations: Observations) -> None:
    """Warn of items that are dates by their values, whatever family they were said to be of."""
    found = {}
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        # Most columns are told by two cells; all their different values need sorting.
        if len(values) and values[0] >= EARLIEST * 10_000 and are_dates(np.unique(values)):
            found[name] = values
    if found:
        name, values = next(iter(found.items()))
        warnings.warn(
            f"item {name!r} holds {dates_in_words(values)} ({len(found)} of "
            f"{observations.n_items} items), of which months and years would be jumps; {REMEDY}",
            HidagWarning,
            stacklevel=_STACK,
        )
