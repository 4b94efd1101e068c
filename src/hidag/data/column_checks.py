"""Columns that say the same: one is a copy of another, or its reverse.

Given the latents, items are taken as independent; a column that was entered twice never is. The two
would make up a latent of their own, which is nothing but the column. Columns are compared in rows
where both hold an answer, in an order that has nothing to do with the table's, and a pair is given
up at its first difference: nearly all pairs are after a few rows.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.data.table import Observations
from hidag.exceptions import Advice, HidagWarning
from hidag.formatting import plural
from hidag.measurement.families import default_family

# --- Dates written as whole numbers, year, month and day: 20210131 is followed by 20210201

EARLIEST, LATEST = 1800, 2100
"""Years that dates in tables of answers are of."""
DROP_DATES = Advice(
    "drop-date", "convert dates to numbers, such as days since a reference date, or drop the column"
)
_DATES_STACK = 4  # the line that called fit


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
            HidagWarning(
                "dates-as-numbers",
                "item {item!r} holds {dates} ({n} of {n_items} items): the difference between two "
                "such numbers is not a number of days",
                advice=DROP_DATES,
                item=name,
                dates=dates_in_words(values),
                n=len(found),
                n_items=observations.n_items,
            ),
            stacklevel=_DATES_STACK,
        )


# --- Columns that name the rows, such as numbers of patients, told from answers by their

REPEATS_LEVEL = 1e-6
"""Chance that answers repeat so seldom; low, because a table may have thousands of items. From 17
rows on, numbers without gaps that occur once each are below it."""
ALIKE_SHARE = 0.05
"""Counts of which fewer are alike are worth a word."""
FEW_ROWS = 20
"""Among fewer rows, counts may all differ by chance."""
DROP_ROW_NAMES = Advice(
    "drop-row-names",
    "drop a column that identifies the rows, or set its family to use it as an item",
)
_ROW_NAMES_STACK = 4  # the line that called fit


def seem_to_name_rows(distinct: NDArray[np.float64], n_cells: int) -> bool:
    """Return whether whole numbers repeat less than answers could.

    Parameters
    ----------
    distinct : ndarray of whole numbers, shape (d,)
        The different values in a column, ascending.
    n_cells : int
        How many cells hold them, n.
    """
    if len(distinct) < 2:
        return False
    n_distinct = len(distinct)
    gaps = np.diff(distinct)
    # Numbers that all end in 0 stand on fewer places than they span.
    step = int(np.gcd.reduce(gaps.astype(np.int64))) if gaps.max() < 2**53 else 1
    places = (distinct[-1] - distinct[0]) / step + 1
    chosen = gammaln(n_cells + 1) - gammaln(n_distinct + 1) - gammaln(n_cells - n_distinct + 1)
    different = np.log1p(-np.arange(n_distinct) / places).sum()
    return bool(chosen + different < np.log(REPEATS_LEVEL))


def hardly_alike(values: NDArray[np.float64]) -> bool:
    """Return whether nearly all of many cells of a column, shape (n,), differ."""
    n_alike = len(values) - len(np.unique(values))
    return len(values) >= FEW_ROWS and n_alike < ALIKE_SHARE * len(values)


def warn_of_row_names(
    observations: Observations, families: tuple[str, ...], inferred: tuple[bool, ...]
) -> None:
    """Warn of items that were taken for counts although hardly two of their cells are alike.

    Parameters
    ----------
    observations : Observations
    families : tuple of str, length J
    inferred : tuple of bool, length J
        Whether the family was guessed; what the user says needs no warning.
    """
    found = [
        name
        for item, name in enumerate(observations.names)
        if inferred[item]
        and families[item] == default_family("count")
        and hardly_alike(observations.column(item))
    ]
    if found:
        values = observations.column(observations.names.index(found[0]))
        warnings.warn(
            HidagWarning(
                "counts-like-row-names",
                "item {item!r} is modelled as counts, but {n_distinct} of its {n_cells} cells are "
                "different, as row identifiers are ({n} of {n_items} items)",
                advice=DROP_ROW_NAMES,
                item=found[0],
                n_distinct=len(np.unique(values)),
                n_cells=len(values),
                n=len(found),
                n_items=observations.n_items,
            ),
            stacklevel=_ROW_NAMES_STACK,
        )


# ---

Array = NDArray[np.float64]

FEWEST_ROWS = 20
"""Two columns must agree in as many rows away from their commonest answer: items that hardly
anybody says yes to, and those of small tables, may be alike by chance."""
FIRST_ROWS = 64
"""Rows in which all pairs are compared; afterwards twice as many each time, for those left."""


def twins(values: Array) -> list[tuple[int, int, bool, int]]:
    """Return pairs of columns that are equal or opposite wherever both are observed.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        NaN in missing cells.

    Returns
    -------
    list of (int, int, bool, int)
        Two columns, whether they are opposite (of columns that hold 0 and 1), and the number of
        rows in which both are observed.
    """
    n_rows, n_items = values.shape
    if n_rows < FEWEST_ROWS:
        return []
    order = np.random.default_rng(0).permutation(n_rows)
    binary = ((values == 0) | (values == 1) | np.isnan(values)).all(axis=0)
    later = np.triu(np.ones((n_items, n_items), dtype=bool), 1)
    equal, opposite = later.copy(), later & binary & binary[:, None]
    start, step = 0, FIRST_ROWS
    while start < n_rows and (equal.any() or opposite.any()):
        rows = values[order[start : start + step]]
        _keep_alike(equal, rows, rows)
        _keep_alike(opposite, 1.0 - rows, rows)
        start, step = start + step, 2 * step
    found = []
    for reverse, left in ((False, equal), (True, opposite)):
        for one, other in np.argwhere(left).tolist():
            both = ~np.isnan(values[:, one]) & ~np.isnan(values[:, other])
            if _tell_enough(values[both, one]):
                found.append((one, other, reverse, int(both.sum())))
    return sorted(found)


def _keep_alike(left: NDArray[np.bool_], ours: Array, theirs: Array) -> None:
    """Give up pairs (i, j) of columns that differ in some row, ours of i from theirs of j."""
    for one in np.flatnonzero(left.any(axis=1)):
        others = np.flatnonzero(left[one])
        gap = ours[:, one, None] - theirs[:, others]
        # A missing cell makes the gap NaN, which is neither.
        left[one, others] = ~((gap > 0) | (gap < 0)).any(axis=0)


def _tell_enough(values: Array) -> bool:
    """Return whether answers, shape (n,), differ so often that to agree in all is no chance."""
    if len(values) < FEWEST_ROWS:
        return False
    return bool(len(values) - np.unique(values, return_counts=True)[1].max() >= FEWEST_ROWS)


def warn_of_twins(observations: Observations, *, stacklevel: int) -> None:
    """Warn of items that are copies of another, or its reverse."""
    found = twins(observations.values)
    if not found:
        return
    one, other, reverse, n_rows = found[0]
    names = observations.names
    more = plural(len(found) - 1, "more pair")
    warnings.warn(
        HidagWarning(
            "duplicate-columns",
            "items {first!r} and {item!r} are {relation} in all {n_rows:,} rows where both are "
            "observed{others}: two copies of one column can form a latent by themselves",
            advice=Advice("drop-copy", "drop one of the two if it is a copy"),
            first=names[one],
            item=names[other],
            relation="opposite" if reverse else "equal",
            n_rows=n_rows,
            others=f" (and {more} of items)" if len(found) > 1 else "",
        ),
        stacklevel=stacklevel,
    )
