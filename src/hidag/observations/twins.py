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

from hidag.errors import HidagWarning
from hidag.observations.table import Observations

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
    more = len(found) - 1
    others = f" (and {more:,} more {'pair' if more == 1 else 'pairs'} of items)" if more else ""
    warnings.warn(
        f"items {names[one]!r} and {names[other]!r} are {'opposite' if reverse else 'equal'} in "
        f"all {n_rows:,} rows where both are observed{others}; two that say the same can make "
        "up a latent of their own: drop one of the two if it is a copy",
        HidagWarning,
        stacklevel=stacklevel,
    )
