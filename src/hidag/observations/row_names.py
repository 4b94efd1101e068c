"""Columns that name the rows, such as numbers of patients, told from answers by their repeats.

Answers of different rows are alike now and then; names of rows are not. Of all laws over m whole
numbers the uniform one repeats itself least, so that n independent answers hold at least d
different values with a chance of at most::

    (n choose d) * m! / ((m - d)! * m^d)

by counting over the sets of d rows that may hold them. A column for which this is very small was
not drawn row by row: its cells were handed out. The order of the rows says nothing here, as tables
may be sorted by an answer. Names that are spread over very many numbers do not give themselves
away in this sense; where they pass for counts, a warning says so.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.errors import HidagWarning
from hidag.observations.table import Observations

REPEATS_LEVEL = 1e-6
"""Chance that answers repeat so seldom; low, because a table may have thousands of items. From 17
rows on, numbers without gaps that occur once each are below it."""
ALIKE_SHARE = 0.05
"""Counts of which fewer are alike are worth a word."""
FEW_ROWS = 20
"""Among fewer rows, counts may all differ by chance."""
REMEDY = "a column that names the rows is no item: leave it out, or say its family to keep it"
"""What to do about a column that may name the rows; the command line has options for it."""
_STACK = 4  # the line that called fit


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
        and families[item] == "poisson"
        and hardly_alike(observations.column(item))
    ]
    if found:
        values = observations.column(observations.names.index(found[0]))
        warnings.warn(
            f"item {found[0]!r} is taken for counts, but {len(np.unique(values))} of its "
            f"{len(values)} cells differ, as names of rows do ({len(found)} of "
            f"{observations.n_items} items); {REMEDY}",
            HidagWarning,
            stacklevel=_STACK,
        )
