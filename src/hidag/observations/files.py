"""Tables from files: CSV and Parquet, all of one or some of its columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hidag.errors import DataError, FileError
from hidag.observations.alike_names import refuse_alike, told_apart
from hidag.observations.answer_words import AnswerWords, with_numbers
from hidag.observations.bad_cells import bad_cell_error
from hidag.observations.cells import (
    LEADING_ZEROS,
    BadCells,
    holds_truth_words,
    numbers_from_cells,
)
from hidag.observations.csv_text import (
    delimiter_of,
    import_arrow,
    line_of_row,
    read_header,
    read_text_columns,
)
from hidag.observations.decimal_commas import CommaNumbers, read_decimal_commas
from hidag.observations.missing_codes import without_codes
from hidag.observations.parquet import index_columns, parquet_names, read_parquet
from hidag.observations.paths import BINARY_ENDINGS, ending_of, existing_file, find_part
from hidag.observations.text_encoding import WINDOWS, encoding_of


def read_file(
    path: str | PathLike[str],
    *,
    leave_out: Sequence[str] = (),
    missing: Mapping[str, Sequence[str]] | None = None,
    words: Mapping[str, AnswerWords] | None = None,
) -> Any:
    """Return the table of numbers in a file, ready for `read_table`.

    Parameters
    ----------
    path : str or path
        A file that ends in .csv, .tsv (both perhaps followed by .gz) or .parquet. A text file, in
        UTF-8, UTF-16 or Windows-1252, has the names of the items in its first line; its cells are
        separated by commas, semicolons or tabs. Empty cells, NA, NaN, nan, null, None and a lone
        point are missing. Decimals are marked by points, or by commas where these can mean nothing
        else and do not separate the cells. The index that pandas keeps in a Parquet file is left
        out.
    leave_out : sequence of str
        Columns that are no items, such as names of the rows; they need not be numbers. The second
        of columns that are named alike is 'score#2'.
    missing : mapping from column to codes, optional
        What stands for a missing answer there, as it would be typed: "99", "refused".
    words : mapping from column to AnswerWords, optional
        Answers that stand there in words.

    Returns
    -------
    pyarrow.Table
        For a text file all columns are float64, or bool where they hold yes and no or so (in any
        of `hidag.observations.cells.TRUTH_WORDS`); numbers with leading zeros stay text, so that
        `read_table` sees that they may be names. Null where the answer is missing.

    Raises
    ------
    FileError
        If the file is missing, empty, cut off, of an unknown format or in a wrong encoding.
    BadCellError
        If a cell is not a number; the sentence says in which line.
    """
    return read_with_notes(Path(path), leave_out, missing or {}, words or {})[0]


def read_with_notes(
    path: Path,
    leave_out: Sequence[str],
    missing: Mapping[str, Sequence[str]],
    words: Mapping[str, AnswerWords],
) -> tuple[Any, tuple[str, ...]]:
    """Return the table as `read_file` does, and what was read otherwise than it stands there."""
    file = existing_file(path)
    table = read_cells(file, leave_out)
    for name in leave_out:
        _refuse_unknown_column(file, name, table.column_names)
    index = [name for name in index_columns(table) if name not in leave_out]
    notes = [f"{name} is the index of a pandas frame, and no item" for name in index]
    columns = [name for name in table.column_names if name not in (*leave_out, *index)]
    table, commas = _read_commas(file, table, columns)
    notes += [] if commas is None else [commas.in_words()]
    if ending_of(file) not in BINARY_ENDINGS and encoding_of(file) == WINDOWS:
        notes.append(f"{file.name} is read as Windows-1252 text, as it is no UTF-8")
    table = with_numbers(without_codes(table, missing), words)
    return numbers_of(file, table, columns), tuple(notes)


def read_columns(
    path: str | PathLike[str],
    items: Sequence[str],
    labels: Sequence[str] = (),
    *,
    missing: Mapping[str, Sequence[str]] | None = None,
    words: Mapping[str, AnswerWords] | None = None,
    leave_out: Sequence[str] = (),
) -> tuple[Any, dict[str, list[Any]]]:
    """Return some columns of a table as numbers, and others as they stand.

    Parameters
    ----------
    path : str or path
        A file as for `read_file`, or a folder with responses.csv.
    items : sequence of str
        Columns of numbers; others need not be numbers, and are left out.
    labels : sequence of str
        Columns of anything, such as names of the rows. Decimal commas are points then, where each
        column for itself shows them.
    missing : mapping from column to codes, optional
    words : mapping from column to AnswerWords, optional
        As in `read_file`.
    leave_out : sequence of str
        Columns that are not asked for on purpose: of those named alike, all but one.

    Returns
    -------
    table : pyarrow.Table
    labels : dict from column to its cells

    Raises
    ------
    FileError, DataError
        As `read_folder` does, and if a column is not there.
    """
    file = _table_file(path)
    table = read_cells(file, leave_out)
    for name in (*items, *labels):
        _refuse_unknown_column(file, name, table.column_names)
    table = _read_commas(file, table, items)[0]
    cells = _labels(file, table, labels)[0]
    table = with_numbers(without_codes(table, missing or {}), words or {})
    return numbers_of(file, table, items), cells


def read_labels(
    path: str | PathLike[str], labels: Sequence[str], leave_out: Sequence[str] = ()
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Return some columns as `read_columns` does, and what was read otherwise than it stands there.

    Parameters
    ----------
    path : str or path
    labels, leave_out : sequence of str
        As in `read_columns`.
    """
    file = _table_file(path)
    table = read_cells(file, leave_out)
    for name in labels:
        _refuse_unknown_column(file, name, table.column_names)
    return _labels(file, table, labels)


def _labels(
    file: Path, table: Any, labels: Sequence[str]
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    cells, notes = {}, []
    for name in labels:
        read, commas = _read_commas(file, table, [name])
        cells[name] = read.column(name).to_pylist()
        notes += [] if commas is None else [commas.in_words()]
    return cells, tuple(notes)


def column_names(path: str | PathLike[str]) -> list[str]:
    """Return the names of the columns of a file, or of the table in a folder, with any index."""
    return told_apart(_names_in(_table_file(path)))


def _names_in(file: Path) -> list[str]:
    """Return the names of the columns as they stand in a file."""
    return parquet_names(file) if ending_of(file) in BINARY_ENDINGS else read_header(file)[0]


def _table_file(path: str | PathLike[str]) -> Path:
    given = Path(path)
    file = (find_part(given, "responses") or given) if given.is_dir() else existing_file(given)
    if file.is_dir():
        raise FileError(f"the folder {given} must hold a table named responses.csv")
    return file


def _refuse_unknown_column(file: Path, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DataError(f"{file} has no column {name!r}{hint}")


def read_cells(file: Path, leave_out: Sequence[str] | None = None) -> Any:
    """Return a table whose columns may be text; of those named alike all but one are left out."""
    refuse_alike(file, _names_in(file), leave_out)
    if ending_of(file) in BINARY_ENDINGS:
        return read_parquet(file)
    return read_text_columns(file)


def _read_commas(file: Path, table: Any, columns: Sequence[str]) -> tuple[Any, CommaNumbers | None]:
    """Return the table with points for decimal commas, where commas do not separate the cells."""
    if ending_of(file) in BINARY_ENDINGS or delimiter_of(file) == ",":
        return table, None
    return read_decimal_commas(table, columns)


def numbers_of(file: Path, table: Any, columns: Sequence[str]) -> Any:
    """Return some columns of a file's table as numbers; those of a binary file are as they are."""
    chosen = table.select(list(columns))
    if ending_of(file) in BINARY_ENDINGS:
        return chosen
    return _numbers(chosen, file, n_columns=table.num_columns)


def _numbers(table: Any, file: Path, n_columns: int) -> Any:
    """Return the table of text as a table of numbers, or the sentence about a bad cell."""
    arrow = import_arrow("pyarrow")
    columns = []
    bad: dict[str, BadCells] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            numbers, found = column.cast(arrow.float64()), None
        except arrow.ArrowInvalid:
            numbers, found = _numbers_from_words(column)
        if found is not None:
            bad[name] = found
        # Zeros that numbers do not need are a sign of names, which only the text shows.
        columns.append(column if _has_leading_zeros(column) else numbers)
    if bad:
        raise bad_cell_error(bad, table, file, n_columns)
    _refuse_infinite(columns, table, file, n_columns)
    return arrow.table(columns, names=table.column_names)


def _numbers_from_words(column: Any) -> tuple[Any, BadCells | None]:
    """Return a column of text as numbers or truth values, and the cells that are neither."""
    cells = np.fromiter(column.to_pylist(), dtype=object, count=len(column))
    values, found = numbers_from_cells(cells)
    truth = found is None and holds_truth_words(cells)
    # Truth values stay what they are, so that it can be told that words were read as them.
    plain = values == 1 if truth else values
    return import_arrow("pyarrow").array(plain, mask=np.isnan(values)), found


def _has_leading_zeros(column: Any) -> bool:
    """Return whether some cell of a text column is a whole number with needless zeros."""
    compute = import_arrow("pyarrow.compute")
    found = compute.match_substring_regex(column, f"^{LEADING_ZEROS}$")
    return bool(compute.any(found).as_py())


def _refuse_infinite(columns: Sequence[Any], table: Any, file: Path, n_columns: int) -> None:
    """Raise the sentence about the first number that is not finite, where the file has it."""
    for name, column in zip(table.column_names, columns, strict=True):
        if str(column.type) == "string":  # digits only
            continue
        rows = np.flatnonzero(np.isinf(np.asarray(column, dtype=np.float64)))
        if len(rows):
            line = line_of_row(file, int(rows[0]), n_columns, delimiter_of(file))
            raise DataError(
                f"numbers must be finite, but {file} has {table.column(name)[int(rows[0])]} in "
                f"column {name!r}, line {line} ({len(rows)} of {table.num_rows} cells of this "
                "column); leave the cell empty if the answer is missing"
            )
