"""Detect columns that are unlikely to be items: dates, row identifiers and duplicate columns."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.data.table import Observations
from hidag.exceptions import Advice, HidagWarning
from hidag.formatting import plural
from hidag.measurement.families import default_family

Array = NDArray[np.float64]

EARLIEST_YEAR, LATEST_YEAR = 1800, 2100
REPEATS_LEVEL = 1e-6
"""Level of the test for row identifiers; low, because a table may have thousands of items. Integers
without gaps that occur once each are below it from 17 rows on."""
REPEATED_SHARE = 0.05
"""Counts of which a smaller share repeats cause a warning."""
MIN_ROWS = 20
"""Rows below which counts may all differ by chance, and responses that must differ from the most
frequent one for two columns to be called duplicates."""
DROP_DATES = Advice(
    "drop-date", "convert dates to numbers, such as days since a reference date, or drop the column"
)
DROP_ROW_IDS = Advice(
    "drop-row-ids", "drop a column that identifies the rows, or set its family to use it as an item"
)
_FIRST_BLOCK = 64
_STACK = 4  # the line that called fit


def are_dates(distinct: Array) -> bool:
    """Return whether the distinct values of a column, shape (d,), are all dates such as 20210131.

    One of 27 integers of that size is a date, so that several rarely are by chance.
    """
    if len(distinct) < 2 or distinct.min() < EARLIEST_YEAR * 10_000:
        return False
    if distinct.max() >= (LATEST_YEAR + 1) * 10_000 or (distinct != np.floor(distinct)).any():
        return False
    integers = distinct.astype(np.int64)
    years, months, days = integers // 10_000, integers // 100 % 100, integers % 100
    if not ((months >= 1) & (months <= 12) & (days >= 1)).all():
        return False
    first = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    lengths = (first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")
    return bool((days <= lengths.astype(np.int64)).all())


def describe_dates(values: Array) -> str:
    """Return the range of a column of dates; completes the sentence "item 'x' holds ..."."""
    return (
        f"whole numbers from {values.min():.0f} to {values.max():.0f} that are all valid dates "
        "(year, month, day)"
    )


def warn_of_dates(observations: Observations) -> None:
    """Warn of items whose values are dates, whatever their family."""
    found = {}
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        # The first value rules out most columns; the test needs sorting.
        if len(values) and values[0] >= EARLIEST_YEAR * 10_000 and are_dates(np.unique(values)):
            found[name] = values
    if found:
        name, values = next(iter(found.items()))
        warnings.warn(
            HidagWarning(
                "dates-as-numbers",
                "item {item!r} holds {dates} ({n} of {n_items} items): the difference between two "
                "such numbers is not a number of days",
                advice=DROP_DATES,
                item=name,
                dates=describe_dates(values),
                n=len(found),
                n_items=observations.n_items,
            ),
            stacklevel=_STACK,
        )


def looks_like_row_ids(distinct: Array, n_cells: int) -> bool:
    """Return whether integers repeat less often than random draws from their range.

    Parameters
    ----------
    distinct : ndarray of integers, shape (d,)
        The distinct values of a column, ascending.
    n_cells : int
        Number of cells, n.
    """
    if len(distinct) < 2:
        return False
    n_distinct = len(distinct)
    gaps = np.diff(distinct)
    # Numbers that all end in 0 have fewer possible values than their range.
    step = int(np.gcd.reduce(gaps.astype(np.int64))) if gaps.max() < 2**53 else 1
    n_possible = (distinct[-1] - distinct[0]) / step + 1
    log_choices = gammaln(n_cells + 1) - gammaln(n_distinct + 1) - gammaln(n_cells - n_distinct + 1)
    log_all_differ = np.log1p(-np.arange(n_distinct) / n_possible).sum()
    return bool(log_choices + log_all_differ < np.log(REPEATS_LEVEL))


def rarely_repeat(values: Array) -> bool:
    """Return whether nearly all of many cells of a column, shape (n,), are different."""
    n_repeated = len(values) - len(np.unique(values))
    return len(values) >= MIN_ROWS and n_repeated < REPEATED_SHARE * len(values)


def warn_of_row_ids(
    observations: Observations, families: tuple[str, ...], inferred: tuple[bool, ...]
) -> None:
    """Warn of items that are modelled as counts although their values hardly repeat.

    Parameters
    ----------
    observations : Observations
    families : tuple of str, length J
    inferred : tuple of bool, length J
        Whether the family was inferred; items with a given family cause no warning.
    """
    found = [
        item
        for item in range(observations.n_items)
        if inferred[item]
        and families[item] == default_family("count")
        and rarely_repeat(observations.column(item))
    ]
    if found:
        values = observations.column(found[0])
        warnings.warn(
            HidagWarning(
                "counts-like-row-ids",
                "item {item!r} is modelled as counts, but {n_distinct} of its {n_cells} cells are "
                "different, as row identifiers are ({n} of {n_items} items)",
                advice=DROP_ROW_IDS,
                item=observations.names[found[0]],
                n_distinct=len(np.unique(values)),
                n_cells=len(values),
                n=len(found),
                n_items=observations.n_items,
            ),
            stacklevel=_STACK,
        )


def find_duplicate_columns(values: Array) -> list[tuple[int, int, bool, int]]:
    """Return pairs of columns that are equal or opposite wherever both are observed.

    The rows are compared in random order, in blocks of growing size. A pair is excluded at its
    first difference, which for nearly all pairs is in the first block.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        NaN for missing cells.

    Returns
    -------
    list of (int, int, bool, int)
        Two columns, whether they are opposite (for columns of 0 and 1), and the number of rows in
        which both are observed.
    """
    n_rows, n_items = values.shape
    if n_rows < MIN_ROWS:
        return []
    order = np.random.default_rng(0).permutation(n_rows)
    binary = ((values == 0) | (values == 1) | np.isnan(values)).all(axis=0)
    later = np.triu(np.ones((n_items, n_items), dtype=bool), 1)
    equal, opposite = later.copy(), later & binary & binary[:, None]
    start, step = 0, _FIRST_BLOCK
    while start < n_rows and (equal.any() or opposite.any()):
        rows = values[order[start : start + step]]
        _exclude_different(equal, rows, rows)
        _exclude_different(opposite, 1.0 - rows, rows)
        start, step = start + step, 2 * step
    found = []
    for reverse, left in ((False, equal), (True, opposite)):
        for one, other in np.argwhere(left).tolist():
            both = ~np.isnan(values[:, one]) & ~np.isnan(values[:, other])
            counts = np.unique(values[both, one], return_counts=True)[1]
            # Items with rare responses, and those of small tables, may agree by chance.
            if counts.sum() >= MIN_ROWS and counts.sum() - counts.max() >= MIN_ROWS:
                found.append((one, other, reverse, int(both.sum())))
    return sorted(found)


def _exclude_different(left: NDArray[np.bool_], ours: Array, theirs: Array) -> None:
    """Exclude pairs (i, j) of columns for which our column i and their column j differ in a row."""
    for one in np.flatnonzero(left.any(axis=1)):
        others = np.flatnonzero(left[one])
        gap = ours[:, one, None] - theirs[:, others]
        # The gap of a missing cell is NaN, which is neither.
        left[one, others] = ~((gap > 0) | (gap < 0)).any(axis=0)


def warn_of_duplicate_columns(observations: Observations, *, stacklevel: int) -> None:
    """Warn of items that are copies of another, or its reverse.

    The model assumes that items are independent given the latents, which copies never are.
    """
    found = find_duplicate_columns(observations.values)
    if not found:
        return
    one, other, reverse, n_rows = found[0]
    more = plural(len(found) - 1, "more pair")
    warnings.warn(
        HidagWarning(
            "duplicate-columns",
            "items {first!r} and {item!r} are {relation} in all {n_rows:,} rows where both are "
            "observed{others}: two copies of one column can form a latent by themselves",
            advice=Advice("drop-copy", "drop one of the two if it is a copy"),
            first=observations.names[one],
            item=observations.names[other],
            relation="opposite" if reverse else "equal",
            n_rows=n_rows,
            others=f" (and {more} of items)" if len(found) > 1 else "",
        ),
        stacklevel=stacklevel,
    )
