"""Codes for missing answers, such as 99 and -9: suspected in values, and taken out of tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import HidagWarning
from hidag.measurement import categorical_named
from hidag.observations.cells import read_number
from hidag.observations.csv_text import import_arrow
from hidag.observations.table import Observations
from hidag.shown_numbers import shown_value

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
_STACK = 4  # the line that called fit


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
        f"values ({shown_value(rest.min())} to {shown_value(rest.max())}): replace it "
        "with NaN if it stands for a missing answer"
    )


def warn_of_codes(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items that seem to hold a code for missing answers among counts or measurements."""
    found: dict[float, list[str]] = {}
    for item, name in enumerate(observations.names):
        # Categories were named one by one, and other families have no room for a code.
        if categorical_named(families[item]) is None:
            values = observations.column(item)
            code = _harmful_code(values)
            if code is not None:
                words = f"item {name!r} holds {code_in_words(values, code)}"
                found.setdefault(code, []).append(words)
    for sentences in found.values():
        warnings.warn(
            f"{sentences[0]} ({len(sentences)} of {observations.n_items} items)",
            HidagWarning,
            stacklevel=_STACK,
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
