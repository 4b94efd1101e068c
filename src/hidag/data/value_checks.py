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
from hidag.exceptions import Advice, DataError, HidagWarning, SettingError
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


def code_hint(values: NDArray[np.float64]) -> str:
    """Return the end of a sentence about values that do not suit; empty if no code is suspected."""
    code = suspected_code(values) or code_beside_grades(values)
    return "" if code is None else f"; it holds {code_in_words(values, code)}"


def code_in_words(values: NDArray[np.float64], code: float) -> str:
    """Return what was found and what to do, in words that follow "holds"."""
    rest = values[values != code]
    return (
        f"{code:g} in {len(values) - len(rest)} of {len(values)} cells, apart from the other "
        f"values ({format_value(rest.min())} to {format_value(rest.max())}): replace it "
        "with NaN if it stands for a missing answer"
    )


def warn_of_codes(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items that seem to hold a code for missing answers among counts or measurements."""
    found: dict[float, list[str]] = {}
    for item, name in enumerate(observations.names):
        # Categories were named one by one, and other families have no room for a code.
        if not item_type(families[item]).is_nominal:
            values = observations.column(item)
            code = _harmful_code(values)
            if code is not None:
                words = f"item {name!r} holds {code_in_words(values, code)}"
                found.setdefault(code, []).append(words)
    for sentences in found.values():
        warnings.warn(
            f"{sentences[0]} ({len(sentences)} of {observations.n_items} items)",
            HidagWarning,
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
            f"{plural(len(families), 'family', 'families')} for "
            f"{plural(observations.n_items, 'item')}"
        )
    for family in dict.fromkeys(families):
        kind = item_type(family)
        found: dict[str, ValueProblem] = {}
        codes: dict[str, str] = {}
        for item, name in enumerate(observations.names):
            if families[item] == family:
                values = observations.column(item)
                finding = kind.find_invalid(values)
                if finding is None and for_fitting:
                    finding = kind.find_unfittable(values)
                if finding is not None:
                    found[name] = finding
                    codes[name] = code_hint(values)
        if found:
            name, problem = next(iter(found.items()))
            advice = problem.advice
            raise DataError(
                "unsuitable-values",
                "family={family!r} needs {allowed}, but item {item!r} has {problem} ({n_found} of "
                "{n_items} items)",
                advice=Advice(
                    advice.code,
                    advice.text + "{code_hint}",
                    {**advice.params, "code_hint": codes[name]},
                ),
                family=family,
                allowed=kind.allowed_values,
                item=name,
                problem=problem.problem,
                n_found=len(found),
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
                    "family={family!r}: item {item!r} has {problem} ({n_found} of {n_items} items)",
                    advice=problem.advice,
                    family=family,
                    item=name,
                    problem=problem.problem,
                    n_found=len(found),
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
            f"{format_value(value)} in all observed rows ({len(constant)} of "
            f"{observations.n_items} items); drop the column"
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
                f"the table must have the items of the fit, but it lacks {absent[0]!r} "
                f"({len(absent)} of {len(names)} items); give the table that was fitted, or one "
                "with the same columns"
            )
        repeated = [str(label) for label in labels if str(label) in names]
        refuse_duplicates(tuple(repeated))
        X = _chosen(X, labels, [place[name] for name in names])
    table = read_table(X, allow_empty_items=True)
    if table.n_items != len(names):
        raise DataError(
            f"the table must have the {plural(len(names), 'item')} of the fit, but it has "
            f"{plural(table.n_items, 'column')}; give the table that was fitted, or "
            "one with the same columns"
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
