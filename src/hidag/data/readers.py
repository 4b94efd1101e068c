"""Tables from files: CSV and Parquet, all of one or some of its columns."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from hidag.data.csv_text import (
    LEADING_ZEROS,
    WINDOWS,
    BadCells,
    delimiter_of,
    encoding_of,
    holds_truth_words,
    import_arrow,
    line_of_row,
    numbers_from_cells,
    read_header,
    read_text_columns,
    refuse_alike,
    told_apart,
)
from hidag.data.nonnumeric_cells import (
    AnswerWords,
    CommaNumbers,
    bad_cell_error,
    read_decimal_commas,
    with_numbers,
)
from hidag.data.value_checks import without_codes
from hidag.exceptions import DataError, FileError

# --- Names of files with tables: which endings are known, which file of a folder is meant

TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
BINARY_ENDINGS = (".parquet",)


def find_part(folder: Path, stem: str) -> Path | None:
    """Return the one file in the folder with this name and a known ending, or None."""
    found = [
        file
        for ending in (*TEXT_ENDINGS, *BINARY_ENDINGS)
        if (file := folder / f"{stem}{ending}").is_file()
    ]
    if len(found) > 1:
        raise FileError(
            f"the folder {folder} must hold {stem} once, but it holds "
            f"{' and '.join(file.name for file in found)}; remove all but one"
        )
    return found[0] if found else None


def existing_file(path: Path) -> Path:
    """Return the path if it is a file of a known format."""
    if path.is_dir():
        raise FileError(f"{path} is a folder, expected a file; use read_folder for a folder")
    if not path.exists():
        raise FileError(f"there is no file {path}{near_names(path)}")
    if not ending_of(path):
        known = ", ".join((*TEXT_ENDINGS, *BINARY_ENDINGS))
        raise FileError(f"{path} must end in one of {known}; convert it to CSV or Parquet")
    if path.stat().st_size == 0:
        raise FileError(
            f"{path} is empty; expected a line with the names of the items and one line per sample"
        )
    return path


def ending_of(path: Path) -> str:
    """Return the known ending of a file name, '' if it has none."""
    name = path.name.lower()
    return next((end for end in (*TEXT_ENDINGS, *BINARY_ENDINGS) if name.endswith(end)), "")


def near_names(path: Path) -> str:
    """Return a hint at the names in the same folder that look alike."""
    if not path.parent.is_dir():
        return f"; the folder {path.parent} does not exist either"
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=2)
    return f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""


# --- Parquet files, with the index that pandas keeps among their columns told apart


def read_parquet(file: Path) -> Any:
    """Return all columns of the file as a pyarrow Table; those named alike are told apart.

    Row numbers that have a name are a column, too.
    """
    # Unlike read_table, this takes names that come twice.
    open_file = import_arrow("pyarrow.parquet").ParquetFile
    table = _read(file, lambda path: open_file(path).read())
    # Renaming forgets what pandas wrote about the index.
    told = table.rename_columns(told_apart(table.column_names))
    told = told.replace_schema_metadata(table.schema.metadata)
    for name, numbers in _named_row_numbers(told.schema, told.num_rows).items():
        told = told.append_column(name, import_arrow("pyarrow").array(numbers, type="int64"))
    return told


def parquet_names(file: Path) -> list[str]:
    """Return the names of the columns, those of an index included."""
    opened = _read(file, import_arrow("pyarrow.parquet").ParquetFile)
    schema = opened.schema_arrow
    return [*schema.names, *_named_row_numbers(schema, opened.metadata.num_rows)]


def index_columns(table: Any) -> list[str]:
    """Return the columns that pandas would take for the index of a frame, and for no items.

    Parameters
    ----------
    table : pyarrow.Table
        pandas writes into its schema where the index is; row numbers without a name have no column.
    """
    told = _told_by_pandas(table.schema)
    names = [name.get("name") if isinstance(name, dict) else name for name in told]
    return [name for name in table.column_names if name in names]


def _told_by_pandas(schema: Any) -> list[Any]:
    """Return the columns of an index; row numbers are a dictionary of start, stop and step."""
    return list((schema.pandas_metadata or {}).get("index_columns", []))


def _named_row_numbers(schema: Any, n_rows: int) -> dict[str, range]:
    """Return the row numbers that pandas keeps as a range and not as a column, if they are named.

    A table that has lost rows since has lost its row numbers, too.
    """
    ranges = [told for told in _told_by_pandas(schema) if isinstance(told, dict)]
    named = {
        told["name"]: range(told["start"], told["stop"], told["step"])
        for told in ranges
        if told.get("kind") == "range" and isinstance(told.get("name"), str)
    }
    return {
        name: numbers
        for name, numbers in named.items()
        if name not in schema.names and len(numbers) == n_rows
    }


def _read(file: Path, read: Callable[[str], Any]) -> Any:
    arrow = import_arrow("pyarrow")
    try:
        return read(str(file))
    except (arrow.ArrowInvalid, OSError) as error:
        raise FileError(
            f"{file} cannot be read as a Parquet file; it may be cut off or of another format"
        ) from error


# ---


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
        of `hidag.data.csv_text.TRUTH_WORDS`); numbers with leading zeros stay text, so that
        `read_table` sees that they may be names. Null where the answer is missing.

    Raises
    ------
    FileError
        If the file is missing, empty, cut off, of an unknown format or in a wrong encoding.
    DataError
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
    """Return the file of a table: the path itself, or the responses in a folder."""
    given = Path(path)
    if given.is_file() or (not given.exists() and ending_of(given)):
        return existing_file(given)
    if not given.exists():
        raise FileError(f"there is no folder {given}{near_names(given)}")
    file = find_part(given, "responses")
    if file is None:
        held = sorted(one.name for one in given.iterdir())
        raise FileError(
            "no-table",
            "the folder {folder} must hold a table named responses.csv or responses.parquet, but "
            "it holds {found}",
            folder=given,
            found=", ".join(held[:5]) + (", ..." if len(held) > 5 else "") or "nothing",
        )
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


# --- Folders with a table, and with the items' types and the Q-matrix beside it

_ITEM, _TYPE = "item", "type"


@dataclass(frozen=True, eq=False)
class TableSource:
    """What a file or a folder says about a study.

    Attributes
    ----------
    table : pyarrow.Table, N rows and J columns
        For `read_table`.
    types : mapping from item to the word in types.csv, or None
        For `resolve_families`.
    q : pyarrow.Table or None
        First column 'item', then one column per latent; for `read_q_matrix`.
    title : str
        The name of the folder, or of the file without its ending.
    notes : tuple of str
        What was read otherwise than it stands in the table.
    """

    table: Any
    types: Mapping[str, str] | None
    q: Any | None
    title: str
    notes: tuple[str, ...] = ()


def read_folder(
    path: str | PathLike[str],
    *,
    leave_out: Sequence[str] = (),
    missing: Mapping[str, Sequence[str]] | None = None,
    words: Mapping[str, AnswerWords] | None = None,
    with_q: bool = True,
) -> TableSource:
    """Return the table in a folder, with the types and the Q-matrix if they are there.

    Parameters
    ----------
    path : str or path
        A folder with responses.csv (or any other ending that `read_file` knows), and perhaps
        types.csv (columns item, type) and q.csv (column item, then one column per latent). A
        file in place of a folder is read as a table without types and Q-matrix.
    leave_out : sequence of str
        Columns that are no items; types.csv and q.csv may name them.
    missing : mapping from column to codes, optional
    words : mapping from column to AnswerWords, optional
        As in `read_file`.
    with_q : bool, default=True
        Whether q.csv is read; without it, it may hold anything.

    Returns
    -------
    TableSource

    Raises
    ------
    FileError
        If the folder or its table is missing, or a file cannot be read.
    DataError
        If a cell is not a number, or types.csv names an item twice or one that is not there.
    """
    folder = Path(path)
    if folder.is_file():
        title = folder.name[: -len(ending_of(folder))] if ending_of(folder) else folder.name
        table, notes = read_with_notes(folder, leave_out, missing or {}, words or {})
        return TableSource(table=table, types=None, q=None, title=title, notes=notes)
    table, notes = read_with_notes(_table_file(folder), leave_out, missing or {}, words or {})
    types_file, q_file = find_part(folder, "types"), find_part(folder, "q") if with_q else None
    items = tuple(table.column_names)
    types = None if types_file is None else read_types(types_file, items, leave_out)
    q = None if q_file is None else read_q(q_file, leave_out)
    return TableSource(table=table, types=types, q=q, title=folder.resolve().name, notes=notes)


def read_types(
    file: Path, items: tuple[str, ...], leave_out: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return item -> type, after checking that the items are those of the table.

    Lines about columns that are left out are, too.
    """
    table = read_cells(file)
    names = [name.strip().lower() for name in table.column_names]
    if not {_ITEM, _TYPE} <= set(names):
        raise FileError(
            f"{file} must have the columns item and type, but it has "
            f"{', '.join(table.column_names)}"
        )
    types: dict[str, str] = {}
    known = set(items)
    for item, word in zip(
        _item_names(table.column(names.index(_ITEM))),
        table.column(names.index(_TYPE)).to_pylist(),
        strict=True,
    ):
        if item is None or word is None:
            raise DataError(
                f"each line of {file} must have an item and a type, but the line of item {item!r} "
                f"has type {word!r}"
            )
        if item in types:
            raise DataError(f"{file} must name each item once, but item {item!r} occurs twice")
        if item in leave_out:
            continue
        if item not in known:
            near = difflib.get_close_matches(item, items, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "drop the line"
            raise DataError(
                f"{file} gives a type for item {item!r}, which the table does not have; {hint}"
            )
        types[item] = word
    return MappingProxyType(types)


def read_q(file: Path, leave_out: Sequence[str] = ()) -> Any:
    """Return the Q-matrix as a table: item names as text, then numbers; some items left out."""
    table = read_cells(file)
    table = table.drop_columns(index_columns(table))
    if table.column_names[0].strip().lower() != _ITEM:
        raise FileError(
            f"the first column of {file} must be called item and hold the names of the items, but "
            f"it is called {table.column_names[0]!r}"
        )
    latents = table.column_names[1:]
    if not latents:
        raise FileError(
            f"{file} must have a column per latent beside the column {table.column_names[0]}, but "
            "it has none"
        )
    names = _item_names(table.column(0))
    if ending_of(file) not in BINARY_ENDINGS:
        arrow = import_arrow("pyarrow")
        try:
            numbers = numbers_of(file, table, latents)
        except DataError as error:
            if error.code != "cell-not-a-number":
                raise
            # An empty cell of Q is not a missing answer, and there is no code for one.
            raise error.with_advice(
                "recode the text as numbers, or leave the cell empty to have the entry estimated"
            ) from error
        table = numbers.add_column(0, table.column_names[0], arrow.array(names))
    return table.take([row for row, name in enumerate(names) if name not in leave_out])


def _item_names(column: Any) -> list[Any]:
    """Return names as tables have them in their first line: blanks at the ends are none of it."""
    cells = column.to_pylist()
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells]
