"""What is wrong with the values of an item, in words that several families share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.measurement.families.base import Array, Finding
from hidag.shown_numbers import shown_value


def found_elsewhere(x: Array, other: NDArray[np.bool_]) -> str:
    """Return which of the values (n,) are not what they should be, in words that follow "has".

    Parameters
    ----------
    x : ndarray, shape (n,)
    other : ndarray of bool, shape (n,)
        At least one.
    """
    odd = x[other]
    cells = f"in {len(odd)} of {len(x)} cells"
    if (odd == odd[0]).all():
        return f"{shown_value(odd[0])} {cells}"
    return f"something else {cells}, such as {shown_value(odd[0])}"


def find_counts(x: Array) -> Finding:
    """Return what keeps values (n,) from being counts."""
    if len(x) and x.min() < 0:
        return f"minimum {x.min():g}", "use family='gaussian' for real-valued items"
    fractions = x != np.floor(x)
    if fractions.any():
        return (
            f"{x[fractions][0]:g} in {np.count_nonzero(fractions)} of {len(x)} cells"
            if np.count_nonzero(fractions) == 1
            else f"fractions such as {x[fractions][0]:g}",
            "use family='gaussian' or family='lognormal' for real-valued items",
        )
    return None


def find_positive(x: Array) -> Finding:
    """Return what keeps values (n,) from being positive numbers."""
    low = x <= 0
    if not low.any():
        return None
    return (
        f"minimum {x.min():g} and {np.count_nonzero(low)} of {len(x)} cells at or below 0",
        "use family='gaussian', or NaN where 0 stands for a missing time",
    )


def find_grades(x: Array, lowest: int, n_grades: int) -> Finding:
    """Return what keeps values (n,) from being ``n_grades`` whole numbers from ``lowest`` up."""
    top = lowest + n_grades - 1
    other = (x < lowest) | (x > top) | (x != np.floor(x))
    if not other.any():
        return None
    if (x == np.floor(x)).all():
        low, high = min(int(x.min()), lowest), max(int(x.max()), top)
        return (
            f"values from {shown_value(x.min())} to {shown_value(x.max())}",
            f"write 'ordinal({low}..{high})' if these are all grades, or recode the item",
        )
    return (
        found_elsewhere(x, other),
        "recode the item as whole numbers",
    )
