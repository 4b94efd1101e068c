"""The table of answers as the rest of the library sees it, and the one function that makes it."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hidag.data.csv_text import BadCells, has_leading_zeros, numbers_from_cells, shorten
from hidag.data.nonnumeric_cells import can_be_option
from hidag.exceptions import Advice, DataError
from hidag.formatting import plural

# --- Data frames of any library, opened through narwhals; none of the libraries is imported


def frame_labels(X: Any) -> list[Any] | None:
    """Return the column labels of a data frame, None if X is no data frame."""
    X = nw.to_native(X, pass_through=True)
    # Duplicate labels make narwhals fail with a message of its own, so they are read before it.
    if nw.dependencies.is_pandas_like_dataframe(X):
        return list(X.columns)
    if nw.dependencies.is_pyarrow_table(X):
        return list(X.column_names)
    frame: Any = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return list(frame.collect_schema().names())
    return None


def open_frame(X: Any) -> Any:
    """Return X as a narwhals DataFrame; lazy frames are collected."""
    frame: Any = nw.from_native(X)
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def refuse_duplicates(names: tuple[str, ...]) -> None:
    """Raise the sentence about column names that occur more than once."""
    if len(set(names)) == len(names):
        return
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    twice = [name for name, count in counts.items() if count > 1]
    raise DataError(
        f"column names must be unique, but {twice[0]!r} occurs {counts[twice[0]]} times "
        f"({len(twice)} of {len(counts)} names occur more than once); rename or drop the columns"
    )


# --- Arrays and data frames copied once into one float64 block; bad cells named

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
    where = (
        "in row {row}, counting from 0 ({n_cells} of {n_rows} cells of this item; {n_bad} of "
        "{n_items} items)"
    )
    params: dict[str, Any] = {
        "item": names[item],
        "content": cells.content,
        "row": cells.row,
        "n_cells": cells.count,
        "n_rows": shape[0],
        "n_bad": len(bad) if n_bad_items is None else n_bad_items,
        "n_items": shape[1],
    }
    text = _text_of(cells)
    is_option = text is not None and can_be_option(text)
    if cells.kind == "date":
        return DataError(
            "cell-is-a-date",
            f"cells must be numbers, but item {{item!r}} has the date or time {{content}} {where}",
            advice=Advice(
                "drop-date",
                "convert it to a number, such as days since a reference date, or drop the column",
            ),
            **params,
        )
    if cells.beside_truths:
        return DataError(
            "cell-beside-yes-and-no",
            f"items of yes and no must hold nothing else, but item {{item!r}} has {{content}} "
            f"{where}",
            advice=Advice(
                "recode-yes-or-no-cell" if is_option else "recode-yes-or-no",
                "recode it as yes or no, or use None for a missing answer",
                {"cell": text},
            ),
            **params,
        )
    if cells.kind == "text":
        # Where most cells are text, they are what the item is about.
        few = is_option and 2 * cells.count < shape[0]
        return DataError(
            "cell-not-a-number",
            f"cells must be numbers, but item {{item!r}} has the text {{content}} {where}",
            advice=Advice(
                "recode-frame-cell" if few else "recode-frame-column",
                "recode the text as numbers, use None for a missing answer, or drop the column",
                {"cell": text},
            ),
            **params,
        )
    if cells.kind == "complex":
        return DataError(
            "complex-cell",
            f"Complex data not supported: item {{item!r}} has {{content}} {where}",
            advice="use the real part",
            **params,
        )
    return CellTypeError(
        "cell-is-an-object",
        f"cells must be numbers, but item {{item!r}} has {{content}} ({{type}}) {where}",
        advice="a cell as argument must be a string that reads as a number, or a number",
        type=cells.type_name,
        **params,
    )


def _text_of(cells: BadCells) -> str | None:
    """Return the first bad cell's text, or None where it was cut or is none."""
    try:
        text = literal_eval(cells.content)
    except (ValueError, SyntaxError):
        return None
    return text.strip() if isinstance(text, str) else None


# ---


@dataclass(frozen=True, eq=False)
class Observations:
    """A table of numbers with holes: one row per sample, one column per item.

    Attributes
    ----------
    values : ndarray of float64, shape (N, J)
        C-contiguous, read-only; NaN where there is no answer, never infinite.
    names : tuple of str, length J
        Unique.
    named : bool
        True if the names came from the user's table, False if they were made up.
    padded : frozenset of str
        Items of which some number was written with leading zeros, as '007', which counts are not.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    named: bool
    padded: frozenset[str] = frozenset()

    @property
    def n_samples(self) -> int:
        """Number of rows, N."""
        return int(self.values.shape[0])

    @property
    def n_items(self) -> int:
        """Number of columns, J."""
        return int(self.values.shape[1])

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Mask of the cells that hold an answer, shape (N, J), read-only."""
        mask = ~np.isnan(self.values)
        mask.setflags(write=False)
        return mask

    @property
    def missing_share(self) -> float:
        """Share of the cells that hold no answer, between 0 and 1."""
        return 1.0 - float(np.count_nonzero(self.observed)) / self.values.size

    def column(self, item: int) -> NDArray[np.float64]:
        """Return the observed values of one item, shape (n_observed,)."""
        values = self.values[:, item]
        return values[~np.isnan(values)]

    def __repr__(self) -> str:
        return (
            f"Observations({self.n_samples} samples, {self.n_items} items, "
            f"{self.missing_share:.1%} missing)"
        )


def read_table(
    X: Any,
    *,
    names: Sequence[str] | None = None,
    min_rows: int = 1,
    allow_empty_items: bool = False,
) -> Observations:
    """Return the table as `Observations`, or say in one sentence why it cannot be used.

    Parameters
    ----------
    X : array-like or data frame, shape (N, J)
        A NumPy array (numbers, booleans, objects, masked), a list of lists, or a pandas, polars
        or pyarrow table. Missing answers may be NaN of any kind (also R's NA), None, masked
        cells, pandas NA, polars or pyarrow nulls, or in text columns one of
        `hidag.data.csv_text.MISSING_WORDS`. The input is never altered; float64 input is
        copied once.
    names : sequence of str, length J, optional
        Names of the items; by default those of the table, or 'item_0', 'item_1', ...
    min_rows : int, default=1
        Fewer rows are refused. Fitting needs 2, prediction 1.
    allow_empty_items : bool, default=False
        Whether an item may have no observed cell at all. Nothing can be learned from such an
        item, but new samples without it can still be assigned to latent states.

    Returns
    -------
    Observations
        Rows in which nothing is observed are kept.

    Raises
    ------
    DataError
        If the table is empty, not two-dimensional, sparse or complex; if a cell is text, a date
        or infinite; if two columns share a name; if an item is never observed.
    """
    if isinstance(X, Observations):
        values, own_names, named = X.values, X.names, X.named
        padded = [name in X.padded for name in X.names]
    else:
        values, own_names, named, padded = _read_values(X, names, min_rows)
    if names is not None:
        own_names, named = _given_names(names, values.shape[1]), True
    refuse_duplicates(own_names)
    if not isinstance(X, Observations):
        finish_in_place(values, own_names)
        values.setflags(write=False)
    written = frozenset(name for name, zeros in zip(own_names, padded, strict=True) if zeros)
    observations = Observations(values=values, names=own_names, named=named, padded=written)
    _refuse_too_small(values.shape, min_rows)
    if not allow_empty_items:
        _refuse_empty_items(observations)
    return observations


def _read_values(
    X: Any, names: Sequence[str] | None, min_rows: int
) -> tuple[NDArray[np.float64], tuple[str, ...], bool, list[bool]]:
    """Return the numbers, the names, whether they are the table's own, and leading zeros."""
    if bool(sparse.issparse(X)):  # bool() so that the type checker does not narrow X
        raise DataError(
            f"Sparse input is not supported: expected a dense table, got a {type(X).__name__} of "
            f"shape {tuple(X.shape)}; use X.toarray() if it fits into memory"
        )
    labels = frame_labels(X)
    if labels is not None:
        own_names = tuple(str(label) for label in labels)
        refuse_duplicates(own_names)
        # pandas numbers the columns of a frame that was given no names.
        named = list(labels) != list(range(len(labels)))
        if not named:
            own_names = _default_names(len(labels))
        frame = open_frame(X)
        _refuse_too_small(frame.shape, min_rows)
        shown = _given_names(names, len(labels)) if names is not None else own_names
        values, padded = columns_from_frame(frame, shown)
        return values, own_names, named, padded
    array = _as_array(X)
    _refuse_too_small(array.shape, min_rows)
    own_names = _default_names(array.shape[1])
    shown = _given_names(names, array.shape[1]) if names is not None else own_names
    values, padded = columns_from_array(array, shown)
    return values, own_names, False, padded


def _as_array(X: Any) -> NDArray[Any]:
    """Return X as a two-dimensional array of any dtype, masks kept."""
    if isinstance(X, np.ma.MaskedArray):
        array: NDArray[Any] = X
    else:
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise DataError(_ragged_sentence(X)) from error
    if array.dtype.kind == "c":
        raise DataError(
            "Complex data not supported: expected real numbers, got a table of dtype "
            f"{array.dtype} and shape {array.shape}; use X.real if the imaginary part is nothing"
        )
    if array.ndim != 2:
        kind = "scalar" if array.ndim == 0 else f"{array.ndim}D"
        raise DataError(
            f"Expected 2D array, got {kind} array instead (shape={array.shape}). Reshape your "
            "data: X.reshape(-1, 1) if it is one item, X.reshape(1, -1) if it is one sample"
        )
    return array


def _ragged_sentence(X: Any) -> str:
    """Return the sentence for rows of unequal length."""
    if not isinstance(X, list | tuple):
        return "expected a table of numbers, got something that NumPy cannot read as an array"
    lengths = [len(row) if hasattr(row, "__len__") else None for row in X]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
    n_odd = sum(length != lengths[0] for length in lengths)
    if not n_odd:
        return "expected a table of numbers, got lists that NumPy cannot read as an array"
    return (
        f"all rows must have as many cells as row 0, which has {lengths[0]}, but row {odd} has "
        f"{lengths[odd]} ({n_odd} of {len(lengths)} rows differ); use None for a missing answer"
    )


def _default_names(n_items: int) -> tuple[str, ...]:
    return tuple(f"item_{j}" for j in range(n_items))


def _given_names(names: Sequence[str], n_items: int) -> tuple[str, ...]:
    """Return the names given by the caller after counting them."""
    given = tuple(str(name) for name in names)
    if len(given) != n_items:
        raise DataError(
            f"names must have one name per column, but got {plural(len(given), 'name')} for "
            f"{plural(n_items, 'column')}"
        )
    return given


def _refuse_too_small(shape: tuple[int, ...], min_rows: int) -> None:
    # The first half of both sentences is the wording that scikit-learn's own checks look for.
    n_samples, n_items = shape
    if n_items < 1:
        raise DataError(
            "no-columns",
            "Found a table with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is "
            "required",
            advice="give one column for each item",
            n_rows=n_samples,
        )
    if n_samples < min_rows:
        raise DataError(
            "too-few-rows",
            "Found a table with {n_rows} sample(s) (shape=({n_rows}, {n_items})) while a minimum "
            "of {least} is required",
            advice="give one row for each sample",
            n_rows=n_samples,
            n_items=n_items,
            least=min_rows,
        )


def _refuse_empty_items(observations: Observations) -> None:
    empty = np.flatnonzero(~observations.observed.any(axis=0))
    if len(empty) == observations.n_items:
        raise DataError(
            "empty-table",
            "all {n_rows} rows of the table are empty in all {n_items} items",
            advice="check that the right file was read and that its cells hold numbers",
            n_rows=observations.n_samples,
            n_items=len(empty),
        )
    if len(empty):
        raise DataError(
            "empty-item",
            "each item needs at least one observed cell, but item {item!r} has none in {n_rows} "
            "rows ({n} of {n_items} items)",
            advice=Advice("drop-column", "drop the column"),
            item=observations.names[int(empty[0])],
            n_rows=observations.n_samples,
            n=len(empty),
            n_items=observations.n_items,
        )
