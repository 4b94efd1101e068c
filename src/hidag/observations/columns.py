"""Arrays and data frames copied once into one float64 block; bad cells named."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.observations.bad_cells import BadCellError
from hidag.observations.cells import BadCells, has_leading_zeros, numbers_from_cells, shorten

_MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)
_INFINITY = np.uint64(0x7FF0000000000000)
_QUIET_NAN = np.uint64(0x7FF8000000000000)
_BLOCK_CELLS = 1 << 18
"""Cells looked at in one go: the temporaries (a few MB) stay small beside a large table."""


class CellTypeError(DataError, TypeError):
    """A cell holds an object that is no number; also a TypeError, as scikit-learn expects."""


def columns_from_array(
    array: NDArray[Any], names: tuple[str, ...]
) -> tuple[NDArray[np.float64], list[bool]]:
    """Return a fresh copy of the array as numbers, and which columns have leading zeros.

    Parameters
    ----------
    array : ndarray or masked array, shape (N, J)
    names : tuple of str, length J
        For the error messages.

    Returns
    -------
    values : ndarray of float64, shape (N, J)
        C-contiguous; NaN for masked and missing cells.
    padded : list of bool, length J
        Whether some number of a column is text that begins with a needless zero.
    """
    data = np.ma.getdata(array)
    kind = data.dtype.kind
    if kind in "mM":
        raise _bad_cells_error(
            {0: BadCells("date", 0, shorten(data[0, 0]), str(data.dtype), data.shape[0])},
            data.shape,
            names,
            n_bad_items=data.shape[1],
        )
    values = np.empty(data.shape, dtype=np.float64)
    padded = [False] * data.shape[1]
    if kind in "biuf":
        # Casting R's NA, a signalling NaN, from another width raises the processor's invalid flag.
        with np.errstate(all="ignore"):
            np.copyto(values, data, casting="unsafe")
    else:
        bad: dict[int, BadCells] = {}
        for j in range(data.shape[1]):
            cells = data[:, j].astype(object)
            if isinstance(array, np.ma.MaskedArray):
                cells[np.ma.getmaskarray(array[:, j])] = None
            values[:, j], found = numbers_from_cells(cells)
            padded[j] = has_leading_zeros(cells)
            if found is not None:
                bad[j] = found
        if bad:
            raise _bad_cells_error(bad, data.shape, names)
    if isinstance(array, np.ma.MaskedArray):
        values[np.ma.getmaskarray(array)] = np.nan
    return values, padded


def columns_from_frame(
    frame: Any, names: tuple[str, ...]
) -> tuple[NDArray[np.float64], list[bool]]:
    """Return a fresh copy of a narwhals frame as numbers, and which columns have leading zeros.

    Parameters
    ----------
    frame : narwhals.DataFrame, shape (N, J)
    names : tuple of str, length J
        For the error messages.

    Returns
    -------
    values : ndarray of float64, shape (N, J)
        C-contiguous; NaN for null cells.
    padded : list of bool, length J
        As in `columns_from_array`.
    """
    values = np.empty(frame.shape, dtype=np.float64)
    padded = [False] * frame.shape[1]
    bad: dict[int, BadCells] = {}
    for j, series in enumerate(frame.iter_columns()):
        column, found, padded[j] = _column_from_series(series)
        if found is not None:
            bad[j] = found
        else:
            with np.errstate(all="ignore"):
                values[:, j] = column
    if bad:
        raise _bad_cells_error(bad, values.shape, names)
    return values, padded


def finish_in_place(values: NDArray[np.float64], names: tuple[str, ...]) -> None:
    """Make every NaN the same quiet one, and refuse infinities.

    The bits are compared as whole numbers: arithmetic on a signalling NaN may raise a floating
    point error, and a NaN that keeps a payload would make equal tables differ in their bytes.
    """
    n_samples, n_items = values.shape
    infinite = np.zeros(n_items, dtype=np.int64)
    first: tuple[int, int] | None = None
    rows = max(1, _BLOCK_CELLS // max(1, n_items))
    for start in range(0, n_samples, rows):
        bits = values[start : start + rows].view(np.uint64)
        magnitude = bits & _MAGNITUDE
        bits[magnitude > _INFINITY] = _QUIET_NAN
        at_infinity = magnitude == _INFINITY
        if at_infinity.any():
            infinite += at_infinity.sum(axis=0)
            if first is None:
                row, item = np.argwhere(at_infinity)[0]
                first = (start + int(row), int(item))
    if first is not None:
        row, item = first
        raise DataError(
            f"numbers must be finite, but item {names[item]!r} has {values[row, item]} in row "
            f"{row}, counting from 0 ({infinite[item]} of {n_samples} cells of this item; "
            f"{np.count_nonzero(infinite)} of {n_items} items); use NaN for a missing answer"
        )


def _column_from_series(series: Any) -> tuple[NDArray[Any], BadCells | None, bool]:
    """Return one column of a frame as numbers, the cells that are none, and leading zeros."""
    dtype = series.dtype
    if dtype.is_temporal():
        rows = np.flatnonzero(~series.is_null().to_numpy())
        row = int(rows[0]) if len(rows) else 0
        content = str(series.to_list()[row])
        return np.empty(0), BadCells("date", row, content, str(dtype), max(1, len(rows))), False
    if dtype.is_numeric() and not dtype.is_decimal():
        return series.to_numpy(), None, False
    if dtype == nw.Boolean or dtype.is_decimal():
        return series.cast(nw.Float64).to_numpy(), None, False
    if isinstance(dtype, nw.Categorical | nw.Enum):
        # Through text, because pyarrow's dictionaries lose their nulls on the direct way.
        series = series.cast(nw.String)
    cells = np.fromiter(series.to_list(), dtype=object, count=len(series))
    return *numbers_from_cells(cells), has_leading_zeros(cells)


def _bad_cells_error(
    bad: dict[int, BadCells],
    shape: tuple[int, ...],
    names: tuple[str, ...],
    n_bad_items: int | None = None,
) -> DataError:
    """Return the error for the first column with cells that are not numbers."""
    item, cells = next(iter(bad.items()))
    n_bad = len(bad) if n_bad_items is None else n_bad_items
    extent = f"({cells.count} of {shape[0]} cells of this item; {n_bad} of {shape[1]} items)"
    where = f"in row {cells.row}, counting from 0"
    if cells.kind == "date":
        return DataError(
            f"cells must be numbers, but item {names[item]!r} has the date or time "
            f"{cells.content} {where} {extent}; turn it into a number, such as the days since a "
            "start, or drop the column"
        )
    missing = "use None for a missing answer"
    if cells.beside_truths:
        return BadCellError(
            f"items of yes and no must hold nothing else, but item {names[item]!r} has "
            f"{cells.content} {where} {extent}; recode it as yes or no, or {missing}",
            advice=missing,
            code=_text_of(cells),
        )
    if cells.kind == "text":
        return BadCellError(
            f"cells must be numbers, but item {names[item]!r} has the text {cells.content} "
            f"{where} {extent}; recode the text as numbers, {missing}, or drop the column",
            advice=missing,
            # Where most cells are text, they are what the item is about.
            code=_text_of(cells) if 2 * cells.count < shape[0] else None,
        )
    if cells.kind == "complex":
        return DataError(
            f"Complex data not supported: item {names[item]!r} has {cells.content} {where} "
            f"{extent}; use the real part"
        )
    return CellTypeError(
        f"cells must be numbers, but item {names[item]!r} has {cells.content} "
        f"({cells.type_name}) {where} {extent}; a cell as argument must be a string that reads "
        "as a number, or a number"
    )


def _text_of(cells: BadCells) -> str | None:
    """Return the first bad cell's text, or None where it was cut or is none."""
    try:
        text = literal_eval(cells.content)
    except (ValueError, SyntaxError):
        return None
    return text.strip() if isinstance(text, str) else None
