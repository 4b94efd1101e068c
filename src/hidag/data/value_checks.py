"""Check the values of items against their families, and detect codes for missing answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.table import Observations, check_unique_names, frame_labels, open_frame, read_table
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

Array = NDArray[np.float64]

CODE_SIZES = (9.0, 99.0, 999.0, 9999.0)
"""Usual codes for missing answers, with either sign."""
FEW_VALUES = 6
"""Up to so many distinct values, the largest can be a code even if it is rare."""
COUNT_DISTINCT = 6
"""Fewer distinct values than this, from 0 up, are as likely a scale of up to five grades."""
RATING_DISTINCT = 11
"""More than a rating from 1 to 10 has; from here on, counts need not start at 0."""
RARE_CODE = 0.005
"""Codes in a smaller share of the cells have little influence, and tails of counts are as rare."""
# Squares of larger values overflow, squares of smaller ranges underflow.
_MAX_SIZE, _MIN_RANGE = 1e100, 1e-100
_STACK = 4  # the line that called fit
_SAME_COLUMNS = "give the table that was fitted, or one with the same columns"


def find_code(values: Array) -> float | None:
    """Return the value (of shape (n,)) that may be a code for missing answers, or None.

    The largest value if it is at least twice the next one and, among many values, more frequent;
    the smallest value if no other is negative.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 3:
        return None
    apart = distinct[-1] in CODE_SIZES and distinct[-2] <= distinct[-1] / 2
    # Among many values a single 99 may be the largest count.
    if apart and (len(distinct) <= FEW_VALUES or counts[-1] > max(1, counts[-2])):
        return float(distinct[-1])
    if -distinct[0] in CODE_SIZES and distinct[1] >= 0:
        return float(distinct[0])
    return -1.0 if np.array_equal(distinct, (-1, 0, 1)) else None


def find_code_beside_grades(values: Array, max_distinct: int | None = None) -> float | None:
    """Return the code next to consecutive integers, the grades of a scale, or None.

    With ``max_distinct`` only among fewer values, because tails of counts have gaps.
    """
    distinct = np.unique(values)
    if max_distinct is not None and len(distinct) >= max_distinct:
        return None
    for code, rest in ((distinct[-1:], distinct[:-1]), (distinct[:1], distinct[1:])):
        consecutive = len(rest) > 1 and rest[0] >= 0 and bool(np.all(np.diff(rest) == 1))
        if consecutive and abs(code[0]) in CODE_SIZES and np.abs(rest - code[0]).min() > 1:
            return float(code[0])
    return None


def find_code_beside_scale(values: Array) -> float | None:
    """Return the code next to grades that are too few for counts, or None."""
    few = RATING_DISTINCT if (values > 0).all() else COUNT_DISTINCT
    return find_code_beside_grades(values, few)


def describe_code(values: Array, code: float) -> dict[str, Any]:
    """Return where a code occurs among values, as parameters of a message."""
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


def with_code_advice(advice: Advice, values: Array, item: str) -> Advice:
    """Return advice about an item's values, and about a code among them if there may be one."""
    advice = replace(advice, params={**advice.params, "item": item})
    code = find_code(values) or find_code_beside_grades(values)
    if code is None:
        return advice
    text = (
        "it holds {code} in {n} of {n_cells} cells, apart from the other values ({low} to {high}): "
        "replace it with NaN if it stands for a missing answer"
    )
    return join_advice(advice, Advice("suspected-code", text, describe_code(values, code)))


def warn_of_codes(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items with a possible code for missing answers among counts or measurements."""
    found: dict[float, list[int]] = {}
    for item, family in enumerate(families):
        # Categories were named one by one, and other families do not admit a code.
        if not item_type(family).is_nominal:
            code = _find_frequent_code(observations.column(item))
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
            stacklevel=_STACK,
        )


def _find_frequent_code(values: Array) -> float | None:
    """Return a code that is frequent enough to bias a fit, or None."""
    code = find_code(values)
    if code is not None and abs(code) in CODE_SIZES:
        n_code = np.count_nonzero(values == code)
        below = values[values < code]
        n_next = np.count_nonzero(values == below.max()) if len(below) else 0
        # A positive code occurs more often than the end of a tail.
        if code < 0 or (n_code > max(1, n_next) and n_code >= RARE_CODE * len(values)):
            return code
    code = find_code_beside_scale(values)
    n_code = np.count_nonzero(values == code)
    return code if code is not None and n_code > 1 and n_code >= RARE_CODE * len(values) else None


def check_values(
    observations: Observations, families: Sequence[str], *, for_fitting: bool = True
) -> None:
    """Raise an error about items whose values do not suit their family or cannot be fitted.

    Parameters
    ----------
    observations : Observations
    families : sequence of str, length J
        Full names, as `resolve_families` returns them.
    for_fitting : bool, default=True
        Whether columns have to vary; prediction for a single row does not need it.

    Raises
    ------
    DataError
        The message names the first such item and counts the others.
    """
    if len(families) != observations.n_items:
        raise SettingError(
            "wrong-number-of-families",
            "there must be one family per item, but got {families} for {items}",
            families=plural(len(families), "family", "families"),
            items=plural(observations.n_items, "item"),
        )

    def find_problem(family: str, values: Array) -> ValueProblem | None:
        kind = item_type(family)
        return kind.find_invalid(values) or (kind.find_unfittable(values) if for_fitting else None)

    for family, item, problem, n in _problems_by_family(observations, families, find_problem):
        name = observations.names[item]
        raise DataError(
            "unsuitable-values",
            "{family} needs {need}, but item {item!r} has {problem} ({n} of {n_items} items)",
            advice=with_code_advice(problem.advice, observations.column(item), name),
            family=Setting("family", family),
            need=item_type(family).allowed_values,
            item=name,
            problem=problem.problem,
            n=n,
            n_items=observations.n_items,
        )
    _check_ranges(observations, for_fitting=for_fitting)


def warn_of_values(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items that can be fitted, but whose values are suspicious for their family."""

    def find_problem(family: str, values: Array) -> ValueProblem | None:
        kind = item_type(family)
        return None if kind.is_nominal else kind.find_suspicious(values)

    for family, item, problem, n in _problems_by_family(observations, families, find_problem):
        warnings.warn(
            HidagWarning(
                "suspicious-values",
                "{family}: item {item!r} has {problem} ({n} of {n_items} items)",
                advice=problem.advice,
                family=Setting("family", family),
                item=observations.names[item],
                problem=problem.problem,
                n=n,
                n_items=observations.n_items,
            ),
            stacklevel=_STACK,
        )


def _problems_by_family(
    observations: Observations,
    families: Sequence[str],
    find_problem: Callable[[str, Array], ValueProblem | None],
) -> Iterator[tuple[str, int, ValueProblem, int]]:
    """Yield each family with problems: its first such item, the problem, the number of items."""
    for family in dict.fromkeys(families):
        found: dict[int, ValueProblem] = {}
        for item in range(observations.n_items):
            if families[item] == family:
                problem = find_problem(family, observations.column(item))
                if problem is not None:
                    found[item] = problem
        if found:
            item, problem = next(iter(found.items()))
            yield family, item, problem, len(found)


def _check_ranges(observations: Observations, *, for_fitting: bool) -> None:
    """Raise an error about values or ranges whose squares overflow, and about constant items."""
    constant: dict[str, float] = {}
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        if not len(values):
            continue
        largest, spread = float(np.abs(values).max()), float(np.ptp(values))
        if largest > _MAX_SIZE or (for_fitting and 0 < spread < _MIN_RANGE):
            raise DataError(
                "extreme-values",
                "item {item!r} has {found}, whose square is outside the range of numbers",
                advice="use other units",
                item=name,
                found=f"absolute values up to {largest:.3g}"
                if largest > _MAX_SIZE
                else f"a range of {spread:.3g}",
            )
        if spread == 0:
            constant[name] = float(values[0])
    if constant and for_fitting:
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


def read_known_items(X: Any, names: Sequence[str], families: Sequence[str]) -> Observations:
    """Return a table with the items of a fit, in the order of the fit.

    Parameters
    ----------
    X : array, frame or Observations
        The columns of a frame are found by name, and other columns are ignored. An array, or a
        frame without any of the names, has one column per item in the order of the fit.
    names : sequence of str, length J
    families : sequence of str, length J
        Values that are invalid for the family raise an error.
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
                {"item": absent[0], "n": len(absent), "n_items": len(names)},
                advice=_SAME_COLUMNS,
            )
        repeated = [str(label) for label in labels if str(label) in names]
        check_unique_names(tuple(repeated))
        X = _select_columns(X, labels, [place[name] for name in names])
    table = read_table(X, allow_empty_items=True)
    if table.n_items != len(names):
        raise DataError(
            "wrong-number-of-items",
            "the table must have the {items} of the fit, but it has {columns}",
            {"items": plural(len(names), "item"), "columns": plural(table.n_items, "column")},
            advice=_SAME_COLUMNS,
        )
    # Messages about cells name the items of the fit even if the table has no names.
    table = replace(table, names=tuple(names))
    check_values(table, families, for_fitting=False)
    return table


def _select_columns(X: Any, labels: Sequence[Any], wanted: Sequence[Any]) -> Any:
    """Return some columns of a frame; the names of others may be repeated."""
    if len(set(labels)) < len(labels):
        # Libraries that allow repeated names select columns by position.
        positions = [list(labels).index(label) for label in wanted]
        return X.iloc[:, positions] if hasattr(X, "iloc") else X.select(positions)
    return open_frame(X)[list(wanted)].to_native()
