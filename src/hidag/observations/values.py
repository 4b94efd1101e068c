"""Whether the values of each item suit its family; the first item that fails is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError, SettingError
from hidag.observations.table import Observations

# Squares of larger sizes overflow, squares of smaller spreads vanish.
_LARGEST_SIZE, _SMALLEST_SPREAD = 1e100, 1e-100

# What is wrong with one column (None: nothing), and what would help.
_Finding = tuple[str, str] | None


def check_values(
    observations: Observations, families: Sequence[str], *, allow_constant: bool = False
) -> None:
    """Refuse items whose values do not suit their family, and items that never vary.

    Parameters
    ----------
    observations : Observations
    families : sequence of str, length J
        Families by their own names, as `resolve_families` returns them.
    allow_constant : bool, default=False
        Whether items may never vary: fitting cannot use them, prediction for a few rows can.

    Raises
    ------
    DataError
        The sentence names the first item that fails and counts the others that fail alike.
    """
    if len(families) != observations.n_items:
        raise SettingError(
            f"there must be one family per item, but there are {len(families)} families for "
            f"{observations.n_items} items"
        )
    for family, (need, find) in _CHECKS.items():
        found: dict[str, tuple[str, str]] = {}
        for item, name in enumerate(observations.names):
            if families[item] == family:
                finding = find(observations.column(item))
                if finding is not None:
                    found[name] = finding
        if found:
            name, (problem, advice) = next(iter(found.items()))
            raise DataError(
                f"family={family!r} needs {need}, but item {name!r} has {problem} "
                f"({len(found)} of {observations.n_items} items); {advice}"
            )
    _refuse_extreme(observations)
    if not allow_constant:
        _refuse_constant(observations)


def _refuse_extreme(observations: Observations) -> None:
    """Refuse sizes whose squares leave the range of floating point numbers."""
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        if not len(values):
            continue
        largest, spread = float(np.abs(values).max()), float(np.ptp(values))
        if largest > _LARGEST_SIZE or 0 < spread < _SMALLEST_SPREAD:
            came = (
                f"sizes up to {largest:.3g}" if largest > _LARGEST_SIZE else f"spread {spread:.3g}"
            )
            raise DataError(
                f"item {name!r} has {came}, beyond what can be squared and added; measure it in "
                f"other units"
            )


def _refuse_constant(observations: Observations) -> None:
    constant: dict[str, float] = {}
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        if len(values) and values.min() == values.max():
            constant[name] = float(values[0])
    if constant:
        name, value = next(iter(constant.items()))
        raise DataError(
            f"each item needs at least two different values, but item {name!r} is {value:g} in all "
            f"observed rows ({len(constant)} of {observations.n_items} items); drop the column"
        )


def _find_bernoulli(values: NDArray[np.float64]) -> _Finding:
    other = (values != 0) & (values != 1)
    if not other.any():
        return None
    distinct = np.unique(values)
    if len(distinct) == 2:
        low, high = distinct
        return (
            f"{low:g} and {high:g}",
            f"recode {low:g} as 0 and {high:g} as 1",
        )
    if np.isin(distinct, (0, 1, 2)).all():
        return (
            "0, 1 and 2",
            "recode the item as 0 and 1 at a cut, or use family='gaussian' for grades",
        )
    return (
        f"{values[other][0]:g} in {np.count_nonzero(other)} of {len(values)} cells",
        "recode the item as 0 and 1, or use another family",
    )


def _find_counts(values: NDArray[np.float64]) -> _Finding:
    if len(values) and values.min() < 0:
        return f"minimum {values.min():g}", "use family='gaussian' for real-valued items"
    fractions = values != np.floor(values)
    if fractions.any():
        return (
            f"{values[fractions][0]:g} in {np.count_nonzero(fractions)} of {len(values)} cells"
            if np.count_nonzero(fractions) == 1
            else f"fractions such as {values[fractions][0]:g}",
            "use family='gaussian' or family='lognormal' for real-valued items",
        )
    return None


def _find_lognormal(values: NDArray[np.float64]) -> _Finding:
    low = values <= 0
    if not low.any():
        return None
    return (
        f"minimum {values.min():g} and {np.count_nonzero(low)} of {len(values)} cells at or below "
        "0",
        "use family='gaussian', or NaN where 0 stands for a missing time",
    )


_CHECKS: dict[str, tuple[str, Callable[[NDArray[np.float64]], _Finding]]] = {
    "bernoulli": ("0 and 1", _find_bernoulli),
    "poisson": ("counts >= 0", _find_counts),
    "poisson-identity": ("counts >= 0", _find_counts),
    "lognormal": ("numbers > 0", _find_lognormal),
}
