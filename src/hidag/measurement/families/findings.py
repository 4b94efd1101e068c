"""What is wrong with the values of an item, in words that several families share."""

from __future__ import annotations

import numpy as np

from hidag.measurement.families.base import Array, Finding


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


def find_grades(x: Array, n_grades: int, kind: str) -> Finding:
    """Return what keeps values (n,) from being whole numbers from 0 to ``n_grades - 1``."""
    other = (x < 0) | (x >= n_grades) | (x != np.floor(x))
    if not other.any():
        return None
    top = float(x.max())
    if x.min() >= 0 and (x == np.floor(x)).all():
        return f"values up to {top:g}", f"use family='{kind}({int(top) + 1})' or recode the item"
    if x.min() == 1 and top == n_grades and (x == np.floor(x)).all():
        return f"values from 1 to {n_grades}", "subtract 1 from it"
    return (
        f"{x[other][0]:g} in {np.count_nonzero(other)} of {len(x)} cells",
        "recode the item as 0, 1, 2, ...",
    )
