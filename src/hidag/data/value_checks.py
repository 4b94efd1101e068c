"""Codes for missing answers, such as 99 and -9: suspected in values, and taken out of tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.csv_text import import_arrow, read_number
from hidag.data.table import Observations, frame_labels, open_frame, read_table, refuse_duplicates
from hidag.exceptions import (
    Advice,
    DataError,
    HidagWarning,
    Setting,
    SettingError,
    join_advice,
)
from hidag.formatting import format_value, plural
from hidag.measurement.families import item_type
from hidag.measurement.families.base import ValueProblem

SIZES = (9.0, 99.0, 999.0, 9999.0)
"""What codes for missing answers are made of, with either sign."""
FEW_VALUES = 6
"""Among so few values the largest need not come up often to be a code."""
COUNT_DISTINCT = 6
"""Fewer distinct values than this, from 0 up, are as likely a scale of up to five grades."""
RATING_DISTINCT = 11
"""More than a rating from 1 to 10 has; from here on, counts need not start at 0."""
RARE_CODE = 0.005
"""Rarer codes than this share of the cells do little harm, and tails of counts are as rare."""
_CODES_STACK = 4  # the line that called fit


def suspected_code(values: NDArray[np.float64]) -> float | None:
    """Return the value (of shape (n,)) that looks like a code for missing answers, or None.

    The largest, if it is at least twice the next one and, among many values, comes up more often;
    the smallest, if no other is negative.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 3:
        return None
    apart = distinct[-1] in SIZES and distinct[-2] <= distinct[-1] / 2
    # Among many values a lone 99 may be the largest of the counts; a code comes up often.
    if apart and (len(distinct) <= FEW_VALUES or counts[-1] > max(1, counts[-2])):
        return float(distinct[-1])
    if -distinct[0] in SIZES and distinct[1] >= 0:
        return float(distinct[0])
    if np.array_equal(distinct, (-1, 0, 1)):
        return -1.0
    return None


def code_beside_grades(values: NDArray[np.float64]) -> float | None:
    """Return the code that stands beside grades of a scale, which have no gaps, or None."""
    distinct = np.unique(values)
    for code, rest in ((distinct[-1:], distinct[:-1]), (distinct[:1], distinct[1:])):
        gapless = len(rest) > 1 and rest[0] >= 0 and bool(np.all(np.diff(rest) == 1))
        if gapless and abs(code[0]) in SIZES and np.abs(rest - code[0]).min() > 1:
            return float(code[0])
    return None


def code_beside_scale(values: NDArray[np.float64]) -> float | None:
    """Return the code beside so few grades that they are no counts, whose tails have gaps."""
    distinct = np.unique(values)
    limit = RATING_DISTINCT if (distinct > 0).all() else COUNT_DISTINCT
    return code_beside_grades(values) if len(distinct) < limit else None


def describe_code(values: NDArray[np.float64], code: float) -> dict[str, Any]:
    """Return where a code stands among values, as parameters of a message."""
    rest = values[values != code]
    return {
        "code": f"{code:g}",
        "n": len(values) - len(rest),
        "n_cells": len(values),
        "low": format_value(rest.min()),
        "high": format_value(rest.max()),
    }


def recode_advice(code: float) -> Advice:
    """Return the advice about a code that may stand for missing answers."""
    text = "replace {code} with NaN if it stands for a missing answer"
    return Advice("recode-missing", text, {"code": f"{code:g}"})


def with_code_advice(advice: Advice, values: NDArray[np.float64], item: str) -> Advice:
    """Return advice about an item's values, and about a code among them if one is suspected."""
    advice = replace(advice, params={**advice.params, "item": item})
    code = suspected_code(values) or code_beside_grades(values)
    if code is None:
        return advice
    text = (
        "it holds {code} in {n} of {n_cells} cells, apart from the other values ({low} to {high}): "
        "replace it with NaN if it stands for a missing answer"
    )
    return join_advice(advice, Advice("suspected-code", text, describe_code(values, code)))


def warn_of_codes(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items that seem to hold a code for missing answers among counts or measurements."""
    found: dict[float, list[int]] = {}
    for item, family in enumerate(families):
        # Categories were named one by one, and other families have no room for a code.
        if not item_type(family).is_nominal:
            code = _harmful_code(observations.column(item))
            if code is not None:
                found.setdefault(code, []).append(item)
    for code, items in found.items():
        warnings.warn(
            HidagWarning(
                "suspected-code",
                "item {item!r} holds {code} in {n} of {n_cells} cells, apart from the other values "
                "({low} to {high}) ({n_found} of {n_items} items)",
                advice=recode_advice(code),
                item=observations.names[items[0]],
                n_found=len(items),
                n_items=observations.n_items,
                **describe_code(observations.column(items[0]), code),
            ),
            stacklevel=_CODES_STACK,
        )


def _harmful_code(values: NDArray[np.float64]) -> float | None:
    """Return the code that stands among values often enough to do harm, or None."""
    code = suspected_code(values)
    if code is not None and abs(code) in SIZES and _comes_up(values, code):
        return code
    code = code_beside_scale(values)
    times = np.count_nonzero(values == code)
    return code if code is not None and times > 1 and times >= RARE_CODE * len(values) else None


def _comes_up(values: NDArray[np.float64], code: float) -> bool:
    """Return whether a value comes up as often as codes do, and not once at the end of a tail."""
    times = np.count_nonzero(values == code)
    below = values[values < code]
    beside = np.count_nonzero(values == below.max()) if len(below) else 0
    return bool(times > max(1, beside) and times >= RARE_CODE * len(values)) or code < 0


def without_codes(table: Any, codes: Mapping[str, Sequence[str]]) -> Any:
    """Return a pyarrow table with null where a code for a missing answer stands.

    Parameters
    ----------
    table : pyarrow.Table
        Of text or numbers.
    codes : mapping from column to codes
        As they would be typed; a number is meant in whatever way it is written.
    """
    arrow = import_arrow("pyarrow")
    for name, words in codes.items():
        numbers = {n for n in (read_number(word) for word in words) if n is not None and n == n}
        column = table.column(name)
        kind = column.type
        if arrow.types.is_dictionary(kind):
            kind = kind.value_type
        kept = [None if _is_code(cell, words, numbers) else cell for cell in column.to_pylist()]
        place = table.column_names.index(name)
        table = table.set_column(place, name, arrow.array(kept, type=kind))
    return table


def _is_code(cell: Any, words: Sequence[str], numbers: set[float]) -> bool:
    if isinstance(cell, str):
        return cell.strip() in words or read_number(cell) in numbers
    return cell in numbers


# --- Whether the values of each item suit its family; the first item that fails is named

# Squares of larger sizes overflow, squares of smaller spreads vanish.
_LARGEST_SIZE, _SMALLEST_SPREAD = 1e100, 1e-100
_VALUES_STACK = 4  # the line that called fit
_SAME_COLUMNS = "give the table that was fitted, or one with the same columns"


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
            "wrong-number-of-families",
            "there must be one family per item, but got {families} for {items}",
            families=plural(len(families), "family", "families"),
            items=plural(observations.n_items, "item"),
        )
    for family in dict.fromkeys(families):
        kind = item_type(family)
        found: dict[int, ValueProblem] = {}
        for item in range(observations.n_items):
            if families[item] == family:
                values = observations.column(item)
                finding = kind.find_invalid(values)
                if finding is None and for_fitting:
                    finding = kind.find_unfittable(values)
                if finding is not None:
                    found[item] = finding
        if found:
            item, problem = next(iter(found.items()))
            name = observations.names[item]
            raise DataError(
                "unsuitable-values",
                "{family} needs {need}, but item {item!r} has {problem} ({n} of {n_items} items)",
                advice=with_code_advice(problem.advice, observations.column(item), name),
                family=Setting("family", family),
                need=kind.allowed_values,
                item=name,
                problem=problem.problem,
                n=len(found),
                n_items=observations.n_items,
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
        kind = item_type(family)
        found: dict[str, ValueProblem] = {}
        for item, name in enumerate(observations.names):
            if families[item] == family:
                doubt = kind.find_suspicious(observations.column(item))
                if doubt is not None:
                    found[name] = doubt
        if found:
            name, problem = next(iter(found.items()))
            warnings.warn(
                HidagWarning(
                    "suspicious-values",
                    "{family}: item {item!r} has {problem} ({n} of {n_items} items)",
                    advice=problem.advice,
                    family=Setting("family", family),
                    item=name,
                    problem=problem.problem,
                    n=len(found),
                    n_items=observations.n_items,
                ),
                stacklevel=_VALUES_STACK,
            )


def _refuse_extreme(observations: Observations, *, for_fitting: bool) -> None:
    """Refuse sizes, and spreads to be fitted, whose squares leave the range of numbers."""
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        if not len(values):
            continue
        largest, spread = float(np.abs(values).max()), float(np.ptp(values))
        if largest > _LARGEST_SIZE or (for_fitting and 0 < spread < _SMALLEST_SPREAD):
            raise DataError(
                "extreme-values",
                "item {item!r} has {found}, whose square is outside the range of numbers",
                advice="use other units",
                item=name,
                found=f"absolute values up to {largest:.3g}"
                if largest > _LARGEST_SIZE
                else f"a range of {spread:.3g}",
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
            "constant-item",
            "each item needs at least two different values, but item {item!r} is {value} in all "
            "observed rows ({n} of {n_items} items)",
            advice=Advice("drop-column", "drop the column"),
            item=name,
            value=format_value(value),
            n=len(constant),
            n_items=observations.n_items,
        )


# --- Tables for items that are known already: found by name, in their order, values checked


def read_known_items(X: Any, names: Sequence[str], families: Sequence[str]) -> Observations:
    """Return the table of the items of a fit, in the fit's order.

    Parameters
    ----------
    X : array, frame or Observations
        A frame's columns are found by the items' names, in any order, and other columns are left
        out; without any such name, and in an array, there is one column per item in the fit's
        order.
    names : sequence of str, length J
        The fit's items.
    families : sequence of str, length J
        Their families; values that no family could take are refused.
    """
    labels = frame_labels(X)
    if labels is not None and set(names) & {str(label) for label in labels}:
        place = {str(label): label for label in labels}
        absent = [name for name in names if name not in place]
        if absent:
            raise DataError(
                "missing-items",
                "the table must have the items of the fit, but it lacks {item!r} ({n} of {n_items} "
                "items)",
                advice=_SAME_COLUMNS,
                item=absent[0],
                n=len(absent),
                n_items=len(names),
            )
        repeated = [str(label) for label in labels if str(label) in names]
        refuse_duplicates(tuple(repeated))
        X = _chosen(X, labels, [place[name] for name in names])
    table = read_table(X, allow_empty_items=True)
    if table.n_items != len(names):
        raise DataError(
            "wrong-number-of-items",
            "the table must have the {items} of the fit, but it has {columns}",
            advice=_SAME_COLUMNS,
            items=plural(len(names), "item"),
            columns=plural(table.n_items, "column"),
        )
    # Sentences about cells speak of the fit's items, also where the table has no names.
    table = replace(table, names=tuple(names))
    check_values(table, families, for_fitting=False)
    return table


def _chosen(X: Any, labels: Sequence[Any], wanted: Sequence[Any]) -> Any:
    """Return some columns of a frame; others may have any names, the same ones too."""
    if len(set(labels)) < len(labels):
        # Libraries that allow repeated names take columns by their places.
        places = [list(labels).index(label) for label in wanted]
        return X.iloc[:, places] if hasattr(X, "iloc") else X.select(places)
    return open_frame(X)[list(wanted)].to_native()
