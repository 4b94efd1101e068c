"""Cells that are Python objects or text, turned into numbers one column at a time."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

MISSING_WORDS = frozenset({"", "NA", "NaN", "nan", "null", "None", "."})
"""Text that stands for a missing answer, in files as well as in text columns of a table."""

TRUTH_WORDS = {
    "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0,
}  # fmt: skip
"""Text (in any case) that is read as 1 and 0 when a column holds nothing else."""

# float() alone would also read '1_000' and digits of other scripts, which no table writer means.
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)\Z")
# Names of rows and codes are written so, counts are not; 0 and 0.5 need their zero.
LEADING_ZEROS = r"\s*0[0-9]+\s*"
_PADDED = re.compile(LEADING_ZEROS)
_PLAIN_TYPES = frozenset({float, int, bool, type(None), np.float64, np.int64, np.bool_})
_DATE_TYPES = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    np.datetime64,
    np.timedelta64,
)

BadKind = Literal["text", "date", "object", "complex"]


@dataclass(frozen=True)
class BadCells:
    """The cells of one column that are not numbers: how many, and the first of them.

    Attributes
    ----------
    kind : {"text", "date", "object", "complex"}
        What the first bad cell is.
    row : int
        Position of the first bad cell, counting from 0.
    content : str
        The first bad cell as the reader would write it, shortened.
    type_name : str
    count : int
    beside_truths : bool
        Whether most other cells are yes and no or so; then these do not count as bad.
    """

    kind: BadKind
    row: int
    content: str
    type_name: str
    count: int
    beside_truths: bool = False


def numbers_from_cells(cells: NDArray[np.object_]) -> tuple[NDArray[np.float64], BadCells | None]:
    """Return one column as float64, NaN for missing, and what could not be read.

    Parameters
    ----------
    cells : ndarray of object, shape (N,)
        Numbers, text that reads as a number, booleans, and anything that marks a missing answer:
        None, NaN, pandas' NA and NaT, or one of `MISSING_WORDS`.

    Returns
    -------
    values : ndarray of float64, shape (N,)
        Bad cells are NaN.
    bad : BadCells or None
    """
    listed = cells.tolist()
    # Most object columns hold plain numbers and None only; numpy reads those at C speed.
    if set(map(type, listed)) <= _PLAIN_TYPES:
        try:
            return cells.astype(np.float64), None
        except OverflowError:  # a whole number beyond float64: found again below, as an infinity
            pass
    values = np.full(len(listed), np.nan)
    bad_rows: list[int] = []
    first_kind: BadKind = "text"
    na = _missing_objects()
    for row, cell in enumerate(listed):
        number, kind = _read_cell(cell, na)
        values[row] = number
        if kind is not None:
            if not bad_rows:
                first_kind = kind
            bad_rows.append(row)
    if not bad_rows:
        return values, None
    if (truth := _read_truth(listed, bad_rows, values)) is not None:
        return truth, None
    stray = _beside_truths(listed, values, bad_rows)
    rows = stray or bad_rows
    first = listed[rows[0]]
    return values, BadCells(
        kind=_read_cell(first, na)[1] or "text" if stray else first_kind,
        row=rows[0],
        content=shorten(first),
        type_name=type(first).__name__,
        count=len(rows),
        beside_truths=bool(stray),
    )


def has_leading_zeros(cells: NDArray[np.object_]) -> bool:
    """Return whether some cell is text such as '007', a whole number with needless zeros."""
    return any(isinstance(cell, str) and _PADDED.fullmatch(cell) for cell in cells.tolist())


def holds_truth_words(cells: NDArray[np.object_]) -> bool:
    """Return whether a column holds yes and no or so, and nothing else but missing answers."""
    words = any(isinstance(c, str) and c.strip().lower() in TRUTH_WORDS for c in cells.tolist())
    return words and numbers_from_cells(cells)[1] is None


def shorten(cell: Any, width: int = 40) -> str:
    """Return the cell as it is written in Python, cut to `width` characters."""
    if isinstance(cell, datetime.date | datetime.timedelta | datetime.time | np.generic):
        written = str(cell)
    else:
        written = repr(cell)
    return written if len(written) <= width else written[: width - 3] + "..."


def is_missing(cell: Any) -> bool:
    """Return whether a cell of text or of numbers holds no answer."""
    if isinstance(cell, str):
        cell = read_number(cell) or 0.0  # text that is no number is an answer
    return cell is None or bool(cell != cell)


def read_number(text: str) -> float | None:
    """Return the number that `text` spells, NaN for a missing word, None when it is neither."""
    text = text.strip()
    if text in MISSING_WORDS:
        return float("nan")
    return float(text) if _NUMBER.match(text.lower()) else None


def _missing_objects() -> tuple[Any, ...]:
    """Return pandas' NA and NaT if pandas is in use; if it is not, no cell can hold them."""
    pandas = sys.modules.get("pandas")
    return () if pandas is None else (pandas.NA, pandas.NaT)


def _read_cell(cell: Any, na: tuple[Any, ...]) -> tuple[float, BadKind | None]:
    """Return the number in a cell (NaN for missing), and what is wrong with it, if anything."""
    nan = float("nan")
    if cell is None or cell is np.ma.masked or any(cell is marker for marker in na):
        return nan, None
    if isinstance(cell, bytes):
        cell = cell.decode("latin-1")
    if isinstance(cell, str):
        number = read_number(cell)
        return (nan, "text") if number is None else (number, None)
    if isinstance(cell, _DATE_TYPES):
        return nan, "date"
    if isinstance(cell, decimal.Decimal):
        return (nan if cell.is_nan() else float(cell)), None
    if isinstance(cell, numbers.Real | np.bool_):
        try:
            return float(cell), None
        except OverflowError:
            return float("inf"), None
    return nan, ("complex" if isinstance(cell, numbers.Complex) else "object")


def _read_truth(
    listed: list[Any], bad_rows: list[int], values: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the column read as yes and no or so, or None when it holds anything else."""
    if not np.isnan(values).all():
        return None
    truth = values.copy()
    for row in bad_rows:
        word = listed[row]
        if not isinstance(word, str) or (key := word.strip().lower()) not in TRUTH_WORDS:
            return None
        truth[row] = TRUTH_WORDS[key]
    return truth


def _beside_truths(
    listed: list[Any], values: NDArray[np.float64], bad_rows: list[int]
) -> list[int]:
    """Return the rows of what stands among yes and no or so; none where these are not most.

    Both have to come up: F among M is no false.
    """
    words = [c.strip().lower() if isinstance(c, str) else None for c in listed]
    meant = {TRUTH_WORDS[word] for word in words if word in TRUTH_WORDS}
    answers = sorted({*bad_rows, *np.flatnonzero(~np.isnan(values)).tolist()})
    others = [row for row in answers if words[row] not in TRUTH_WORDS]
    return others if len(meant) == 2 and 2 * len(others) < len(answers) else []
