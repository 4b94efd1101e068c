"""The table of responses, and the function that makes it from arrays, data frames and lists."""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hidag.data.cells import (
    BadCells,
    CategoryLabels,
    convert_cells,
    encode_cells,
    has_leading_zeros,
    labels_of_categories,
    parse_words,
    read_number,
    shorten,
)
from hidag.data.csv_text import can_be_option
from hidag.exceptions import Advice, DataError, Message
from hidag.formatting import plural

Floats = NDArray[np.float64]
Shape = tuple[int, ...]


class CellTypeError(DataError, TypeError):
    """A cell holds an object that is not a number; also a TypeError, as scikit-learn expects."""


@dataclass(frozen=True, eq=False)
class Observations:
    """A table of numbers with missing cells: one row per sample, one column per item.

    ``values``, (N, J), are read-only and finite or NaN; ``names`` are unique, and ``named`` says
    whether they came from the user; ``padded`` has the items with leading zeros, such as '007';
    ``labels`` those of words, with their labels.
    """

    values: Floats
    names: tuple[str, ...]
    named: bool
    padded: frozenset[str] = frozenset()
    labels: Mapping[str, CategoryLabels] = field(default_factory=dict)

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
        """Mask of the observed cells, shape (N, J), read-only."""
        mask = ~np.isnan(self.values)
        mask.setflags(write=False)
        return mask

    @property
    def missing_share(self) -> float:
        """Share of missing cells, between 0 and 1."""
        return 1.0 - float(np.count_nonzero(self.observed)) / self.values.size

    def column(self, item: int) -> Floats:
        """Return the observed values of one item, shape (n_observed,)."""
        values = self.values[:, item]
        return values[~np.isnan(values)]

    def __repr__(self) -> str:
        shape = f"{self.n_samples} samples, {self.n_items} items"
        return f"Observations({shape}, {self.missing_share:.1%} missing)"


def read_table(
    X: Any,
    *,
    names: Sequence[str] | None = None,
    min_rows: int = 1,
    allow_empty_items: bool = False,
    labels: Mapping[str, CategoryLabels] | None = None,
) -> Observations:
    """Return a table as `Observations` after checking it; the input is never altered.

    ``X``, shape (N, J), is a NumPy array (numbers, booleans, objects, masked), a list of lists, or
    a pandas, polars or pyarrow table. Missing answers may be NaN of any kind (also R's NA), None,
    masked cells, pandas NA, polars or pyarrow nulls, or in text columns one of
    `hidag.data.cells.MISSING_WORDS`. The ``names`` of the items are by default those of the table,
    or 'item_0', 'item_1', ... Fitting needs 2 rows (``min_rows``), prediction 1. An item without
    observed cells cannot be fitted, but new samples without it can still be assigned to latent
    states (``allow_empty_items``). Categorical columns of words become codes, and so do columns of
    text with ``labels``.
    """
    if isinstance(X, Observations):
        values, named, padded = X.values, X.named, [name in X.padded for name in X.names]
        found = dict(X.labels)
        own_names = X.names if names is None else _check_names(names, X.n_items)
        check_unique_names(own_names)
    else:
        values, own_names, named, padded, found = _read_values(X, names, min_rows, labels or {})
        check_unique_names(own_names)
        _finish_in_place(values, own_names)
        values.setflags(write=False)
    with_zeros = frozenset(name for name, zeros in zip(own_names, padded, strict=True) if zeros)
    observations = Observations(values, own_names, named or names is not None, with_zeros, found)
    _check_size(values.shape, min_rows)
    if not allow_empty_items:
        _check_observed(observations)
    return observations


def declared_labels(X: Any, words: Mapping[str, str] | None) -> dict[str, CategoryLabels]:
    """Return the labels that the setting ``words`` declares for the columns of a table."""
    if not words:
        return {}
    names = X.names if isinstance(X, Observations) else frame_labels(X)
    width = 0 if names is not None else np.shape(X)[-1]
    return parse_words(words, list(map(str, names or ())) or [f"item_{j}" for j in range(width)])


def frame_labels(X: Any) -> list[Any] | None:
    """Return the column labels of a data frame of any library, None if X is not a data frame."""
    X = nw.to_native(X, pass_through=True)
    # Duplicate labels make narwhals fail with a message of its own.
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


def check_names(labels: Sequence[Any], what: str = "a column name") -> None:
    """Raise unless labels are texts that can be printed, or numbers throughout."""
    for label in labels:
        text = isinstance(label, str) and label.strip() and label == replace_surrogates(label)
        number = isinstance(label, int | float | np.number) and label == label
        if not (text or number) or isinstance(label, str) != isinstance(labels[0], str):
            problem = "{what} must be text that is not empty, or all must be numbers, got {label}"
            advice = "rename it, for instance with X.columns = [...] for a data frame"
            params = {"what": what, "label": repr(label)[:60]}
            raise DataError("invalid-name", problem, params, advice=advice)


def replace_surrogates(text: str) -> str:
    """Return a text with question marks for halves of characters, which no output can show."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_unique_names(names: tuple[str, ...]) -> None:
    """Raise an error about column names that occur more than once."""
    if len(set(names)) == len(names):
        return
    counts = Counter(names)
    repeated = [name for name, count in counts.items() if count > 1]
    name = repeated[0]
    text = "column names must be unique, but {name!r} occurs {count} times ({n} of {n_names} names "
    text += "occur more than once)"
    params = {"name": name, "count": counts[name], "n": len(repeated), "n_names": len(counts)}
    raise DataError("duplicate-column-names", text, params, advice="rename or drop the columns")


def _read_values(
    X: Any, names: Sequence[str] | None, min_rows: int, labels: Mapping[str, CategoryLabels]
) -> tuple[Floats, tuple[str, ...], bool, list[bool], dict[str, CategoryLabels]]:
    """Return values, names, whether the table has names, columns with zeros, labels of words."""
    if bool(sparse.issparse(X)):  # bool() so that the type checker does not narrow X
        text = "Sparse input is not supported: expected a dense table, got a {type} of shape "
        text += "{shape}"
        params = {"type": type(X).__name__, "shape": tuple(X.shape)}
        advice = "use X.toarray() if it fits into memory"
        raise DataError("sparse-table", text, params, advice=advice)
    column_labels = frame_labels(X)
    check_names(column_labels or ())
    own_names = tuple(str(label) for label in column_labels or ())
    check_unique_names(own_names)
    table: Any = _as_array(X) if column_labels is None else open_frame(X)
    _check_size(table.shape, min_rows)
    # pandas numbers the columns of a frame without names.
    named = column_labels is not None and column_labels != list(range(len(column_labels)))
    if not named:
        own_names = tuple(f"item_{j}" for j in range(table.shape[1]))
    if names is not None:
        own_names = _check_names(names, len(own_names))
    found: dict[str, CategoryLabels] = {}
    if column_labels is None:
        values, padded = _values_of_array(_encoded(table, own_names, labels, found), own_names)
    else:
        columns = (
            _values_of_series(series, name, labels.get(name), found)
            for series, name in zip(table.iter_columns(), own_names, strict=True)
        )
        values, padded = _collect_columns(columns, table.shape, own_names)
    return values, own_names, named, padded, found


def _encoded(
    array: NDArray[Any],
    names: tuple[str, ...],
    labels: Mapping[str, CategoryLabels],
    found: dict[str, CategoryLabels],
) -> NDArray[Any]:
    """Return an array with codes for the words of labelled columns; adds these to ``found``."""
    if array.dtype.kind not in "OUS" or not labels:
        return array
    array = array.astype(object)
    chosen = [j for j, name in enumerate(names) if name in labels]
    for j in chosen:
        cells = array[:, j].tolist()
        if any(isinstance(cell, str) and read_number(cell) is None for cell in cells):
            array[:, j] = encode_cells(cells, names[j], labels[names[j]])
            found[names[j]] = labels[names[j]]
    return array


def _as_array(X: Any) -> NDArray[Any]:
    """Return X as a two-dimensional array of any dtype, masks kept."""
    try:
        array: NDArray[Any] = np.ma.asarray(X) if np.ma.isMaskedArray(X) else np.asarray(X)
    except ValueError as error:
        raise DataError.of(_uneven_rows(X)) from error
    if array.dtype.kind == "c":
        text = "Complex data not supported: expected real numbers, got a table of dtype {dtype} "
        text += "and shape {shape}"
        params = {"dtype": array.dtype, "shape": array.shape}
        advice = "use X.real if the imaginary part is zero"
        raise DataError("complex-table", text, params, advice=advice)
    if array.ndim != 2:
        text = "Expected 2D array, got {kind} array instead (shape={shape}). Reshape your data: "
        text += "X.reshape(-1, 1) if it is one item, X.reshape(1, -1) if it is one sample"
        params = {"kind": "scalar" if array.ndim == 0 else f"{array.ndim}D", "shape": array.shape}
        raise DataError("wrong-dimension", text, params)
    return array


def _uneven_rows(X: Any) -> Message:
    """Return the message about something that NumPy cannot read as an array."""
    rows = X if isinstance(X, list | tuple) else ()
    lengths = [len(row) if hasattr(row, "__len__") else None for row in rows]
    uneven = [row for row, length in enumerate(lengths) if length != lengths[0]]
    if not uneven:
        text = "expected a table of numbers, got {kind} that NumPy cannot read as an array"
        return Message("not-a-table", text, {"kind": "lists" if lengths else "something"})
    first, share = uneven[0], f"{len(uneven)} of {len(lengths)} rows differ"
    return Message(
        "uneven-rows",
        "all rows must have as many cells as row 0, which has {expected}, but row {row} has "
        "{found} ({share})",
        {"expected": lengths[0], "row": first, "found": lengths[first], "share": share},
        Advice("", "use None for a missing answer"),
    )


Column = tuple[NDArray[Any], BadCells | None, bool]
"""Values of a column, its cells that are not numbers, and whether some have leading zeros."""


def _values_of_array(array: NDArray[Any], names: tuple[str, ...]) -> tuple[Floats, list[bool]]:
    """Return a copy of an array (N, J) as numbers, and which columns have leading zeros (J,)."""
    data = np.ma.getdata(array)
    kind = data.dtype.kind
    if kind in "mM":
        cells = BadCells("date", 0, shorten(data[0, 0]), str(data.dtype), data.shape[0])
        raise _bad_cells_error(dict.fromkeys(range(data.shape[1]), cells), data.shape, names)
    if kind in "biuf":
        values = np.empty(data.shape, dtype=np.float64)
        # Casting R's NA, a signalling NaN, from another width raises the processor's invalid flag.
        with np.errstate(all="ignore"):
            np.copyto(values, data, casting="unsafe")
        padded = [False] * data.shape[1]
    else:
        columns = map(_values_of_objects, data.T, np.ma.getmaskarray(array).T)
        values, padded = _collect_columns(columns, data.shape, names)
    if isinstance(array, np.ma.MaskedArray):
        values[np.ma.getmaskarray(array)] = np.nan
    return values, padded


def _collect_columns(
    columns: Iterable[Column], shape: Shape, names: tuple[str, ...]
) -> tuple[Floats, list[bool]]:
    """Return columns as one array (N, J) of numbers, and which have leading zeros (J,)."""
    values = np.empty(shape, dtype=np.float64)
    padded, bad = [], {}
    for j, (column, found, has_zeros) in enumerate(columns):
        padded.append(has_zeros)
        if found is not None:
            bad[j] = found
        else:
            with np.errstate(all="ignore"):
                values[:, j] = column
    if bad:
        raise _bad_cells_error(bad, shape, names)
    return values, padded


def _values_of_objects(cells: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> Column:
    cells = cells.astype(object)
    if mask is not None:
        cells[mask] = None
    return *convert_cells(cells), has_leading_zeros(cells)


def _values_of_series(
    series: Any, name: str, known: CategoryLabels | None, found: dict[str, CategoryLabels]
) -> Column:
    """Return a column of a frame; the labels of one that holds words are added to ``found``."""
    dtype = series.dtype
    if dtype.is_temporal():
        rows = np.flatnonzero(~series.is_null().to_numpy())
        row = int(rows[0]) if len(rows) else 0
        content = str(series.to_list()[row])
        return np.empty(0), BadCells("date", row, content, str(dtype), max(1, len(rows))), False
    if dtype in (nw.Int128, nw.UInt128):  # NumPy has no such numbers.
        series = series.cast(nw.Float64)
    if dtype.is_numeric() and not dtype.is_decimal():
        return series.to_numpy(), None, False
    if dtype == nw.Boolean or dtype.is_decimal():
        return series.cast(nw.Float64).to_numpy(), None, False
    if isinstance(dtype, nw.Categorical | nw.Enum):
        # pyarrow's dictionaries lose their nulls without the conversion to text.
        original, series = series, series.cast(nw.String)
        if known is None:
            used = [cell for cell in series.unique().to_list() if isinstance(cell, str)]
            words, ordered = sorted(used), isinstance(dtype, nw.Enum)
            if isinstance(dtype, nw.Enum):
                words = list(dtype.categories)
            elif hasattr(native := original.to_native(), "combine_chunks"):  # pyarrow
                dictionary = native.unify_dictionaries().chunk(0).dictionary.to_pylist()
                ordered = native.type.ordered
                words = [word for word in dictionary if ordered or word in used]
            known = labels_of_categories(name, words, ordered=ordered)
    cells = series.to_list()
    if known is not None and any(isinstance(c, str) and read_number(c) is None for c in cells):
        found[name] = known
        return encode_cells(cells, name, known), None, False
    return _values_of_objects(np.fromiter(cells, dtype=object, count=len(cells)))


def _finish_in_place(values: Floats, names: tuple[str, ...]) -> None:
    """Make every NaN the same, so that equal tables have equal bytes; raise about infinities."""
    with np.errstate(all="ignore"):  # A signalling NaN may raise the processor's invalid flag.
        values[np.isnan(values)] = np.nan
        infinite = np.isinf(values)
    if infinite.any():
        row, item = np.argwhere(infinite)[0].tolist()
        counts = infinite.sum(axis=0)
        shares = _shares(int(counts[item]), int(np.count_nonzero(counts)), values.shape)
        text = "numbers must be finite, but item {item!r} has {value} in row {row}, counting from "
        text += "0 ({shares})"
        params = {"item": names[item], "value": values[row, item], "row": row, "shares": shares}
        raise DataError("infinite-cell", text, params, advice="use NaN for a missing answer")


def _bad_cells_error(bad: dict[int, BadCells], shape: Shape, names: tuple[str, ...]) -> DataError:
    """Return the error about the first column with cells that are not numbers."""
    item, cells = next(iter(bad.items()))
    try:
        text = literal_eval(cells.content)
    except (ValueError, SyntaxError):  # Shortened, or not text.
        text = None
    text = text.strip() if isinstance(text, str) else None
    is_option = text is not None and can_be_option(text)
    error, found = DataError, "cells must be numbers, but item {item!r} has "
    if cells.kind == "date":
        code, found = "cell-is-a-date", found + "the date or time {content}"
        advice = Advice(
            "drop-date",
            "convert it to a number, such as days since a reference date, or drop the column",
        )
    elif cells.among_booleans:
        code = "cell-among-booleans"
        found = "items of yes and no must hold nothing else, but item {item!r} has {content}"
        advice = Advice(
            "recode-boolean-cell" if is_option else "recode-boolean",
            "recode it as yes or no, or use None for a missing answer",
            {"cell": text},
        )
    elif cells.kind == "text":
        # Where most cells are text, none of them means a missing answer.
        few = is_option and 2 * cells.count < shape[0]
        code, found = "cell-not-a-number", found + "the text {content}"
        advice = Advice(
            "recode-frame-cell" if few else "recode-frame-column",
            "recode the text as numbers, use None for a missing answer, or drop the column",
            {"cell": text},
        )
    elif cells.kind == "complex":
        code, found = "complex-cell", "Complex data not supported: item {item!r} has {content}"
        advice = Advice("", "use the real part")
    else:
        error, code, found = CellTypeError, "cell-is-an-object", found + "{content} ({type})"
        # scikit-learn's checks look for this wording.
        text = "a cell as argument must be a string that reads as a number, or a number"
        advice = Advice("", text)
    return error(
        code,
        found + " in row {row}, counting from 0 ({shares})",
        {"item": names[item], "content": cells.content, "type": cells.type_name, "row": cells.row},
        advice=advice,
        shares=_shares(cells.count, len(bad), shape),
    )


def _shares(n_cells: int, n_items: int, shape: Shape) -> str:
    return f"{n_cells} of {shape[0]} cells of this item; {n_items} of {shape[1]} items"


def _check_names(names: Sequence[str], n_items: int) -> tuple[str, ...]:
    """Return the names that the caller gave, one per column."""
    check_names(names)
    given = tuple(str(name) for name in names)
    if len(given) != n_items:
        text = "names must have one name per column, but got {names} for {columns}"
        params = {"names": plural(len(given), "name"), "columns": plural(n_items, "column")}
        raise DataError("wrong-number-of-names", text, params)
    return given


def _check_size(shape: Shape, min_rows: int) -> None:
    # scikit-learn's checks look for this wording.
    n_samples, n_items = shape
    if n_items < 1:
        text = "Found a table with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is "
        text += "required"
        params = {"n_rows": n_samples}
        raise DataError("no-columns", text, params, advice="give one column for each item")
    if n_samples < min_rows:
        text = "Found a table with {n_rows} sample(s) (shape=({n_rows}, {n_items})) while a "
        text += "minimum of {least} is required"
        params = {"n_rows": n_samples, "n_items": n_items, "least": min_rows}
        raise DataError("too-few-rows", text, params, advice="give one row for each sample")


def _check_observed(observations: Observations) -> None:
    empty = np.flatnonzero(~observations.observed.any(axis=0))
    if len(empty) == observations.n_items:
        text = "all {n_rows} rows of the table are empty in all {n_items} items"
        params = {"n_rows": observations.n_samples, "n_items": len(empty)}
        advice = "check that the right file was read and that its cells hold numbers"
        raise DataError("empty-table", text, params, advice=advice)
    if len(empty):
        raise DataError(
            "empty-item",
            "each item needs at least one observed cell, but item {item!r} has none in {n_rows} "
            "rows ({n} of {n_items} items)",
            {"item": observations.names[int(empty[0])], "n_rows": observations.n_samples},
            advice=Advice("drop-column", "drop the column"),
            n=len(empty),
            n_items=observations.n_items,
        )
