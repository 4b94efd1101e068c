"""Whether the values of each item suit its family; the first item that fails is named."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from hidag.errors import DataError, HidagWarning, SettingError
from hidag.measurement import categorical_named, family_named
from hidag.observations.missing_codes import code_hint
from hidag.observations.table import Observations
from hidag.shown_numbers import shown_value
from hidag.shown_text import counted

# Squares of larger sizes overflow, squares of smaller spreads vanish.
_LARGEST_SIZE, _SMALLEST_SPREAD = 1e100, 1e-100
_STACK = 4  # the line that called fit


def check_values(
    observations: Observations, families: Sequence[str], *, for_fitting: bool = True
) -> None:
    """Refuse items whose values do not suit their family, and columns that cannot be fitted.

    Parameters
    ----------
    observations : Observations
    families : sequence of str, length J
        Families by their own names, as `resolve_families` returns them.
    for_fitting : bool, default=True
        Whether columns have to vary as fitting needs it; prediction for a single row does not.

    Raises
    ------
    DataError
        The sentence names the first item that fails and counts the others that fail alike.
    """
    if len(families) != observations.n_items:
        raise SettingError(
            "there must be one family per item, but got "
            f"{counted(len(families), 'family', 'families')} for "
            f"{counted(observations.n_items, 'item')}"
        )
    for family in dict.fromkeys(families):
        kind = categorical_named(family) or family_named(family)
        found: dict[str, tuple[str, str]] = {}
        codes: dict[str, str] = {}
        for item, name in enumerate(observations.names):
            if families[item] == family:
                values = observations.column(item)
                finding = kind.finding(values)
                if finding is None and for_fitting:
                    finding = kind.column_finding(values)
                if finding is not None:
                    found[name] = finding
                    codes[name] = code_hint(values)
        if found:
            name, (problem, advice) = next(iter(found.items()))
            raise DataError(
                f"family={family!r} needs {kind.need}, but item {name!r} has {problem} "
                f"({len(found)} of {observations.n_items} items); {advice}{codes[name]}"
            )
    _refuse_extreme(observations, for_fitting=for_fitting)
    if for_fitting:
        _refuse_constant(observations)


def warn_of_values(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items that can be fitted, but whose values do not go with what the family says.

    Parameters
    ----------
    observations : Observations
    families : sequence of str, length J
        As in `check_values`.
    """
    for family in dict.fromkeys(families):
        if categorical_named(family) is not None:
            continue
        kind = family_named(family)
        found: dict[str, tuple[str, str]] = {}
        for item, name in enumerate(observations.names):
            if families[item] == family:
                doubt = kind.column_doubt(observations.column(item))
                if doubt is not None:
                    found[name] = doubt
        if found:
            name, (problem, advice) = next(iter(found.items()))
            warnings.warn(
                f"family={family!r}: item {name!r} has {problem} ({len(found)} of "
                f"{observations.n_items} items); {advice}",
                HidagWarning,
                stacklevel=_STACK,
            )


def _refuse_extreme(observations: Observations, *, for_fitting: bool) -> None:
    """Refuse sizes, and spreads to be fitted, whose squares leave the range of numbers."""
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        if not len(values):
            continue
        largest, spread = float(np.abs(values).max()), float(np.ptp(values))
        if largest > _LARGEST_SIZE or (for_fitting and 0 < spread < _SMALLEST_SPREAD):
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
            f"each item needs at least two different values, but item {name!r} is "
            f"{shown_value(value)} in all observed rows ({len(constant)} of "
            f"{observations.n_items} items); drop the column"
        )
