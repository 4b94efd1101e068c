"""Read tables from CSV and Parquet files, and folders with types and a Q-matrix beside a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hidag.data import csv_text, other_formats
from hidag.data.cells import (
    LEADING_ZEROS,
    CategoryLabels,
    convert_cells,
    convert_decimal_commas,
    encode_labels,
    import_arrow,
    is_boolean_column,
    read_number,
    remove_missing_codes,
)
from hidag.exceptions import Advice, DataError, FileError, suggest_name
from hidag.formatting import first_names, unprotect_cell

TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zip", ".tsv.zip")
BINARY_SUFFIXES = (".parquet", *other_formats.READERS)
SUFFIXES = (*TEXT_SUFFIXES, *BINARY_SUFFIXES)
_ITEM, _TYPE = "item", "type"

Source = str | PathLike[str]
Codes = Mapping[str, Sequence[str]]
Labels = Mapping[str, CategoryLabels]


# Names of files.


def find_part(folder: Path, stem: str) -> Path | None:
    """Return the one file in the folder with this name and a known suffix, or None."""
    found = [file for suffix in SUFFIXES if (file := folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        text = "the folder {folder} must hold {stem} once, but it holds {files}"
        files = {"files": " and ".join(file.name for file in found), "stem": stem}
        raise FileError("ambiguous-file", text, files, advice="remove all but one", folder=folder)
    return found[0] if found else None


def check_file_exists(path: Path) -> Path:
    """Return the path of a file of a known format that is not empty."""
    if path.is_dir():
        text, advice = "{path} is a folder, expected a file", "use read_folder for a folder"
        raise FileError("folder-instead-of-file", text, advice=advice, path=path)
    if not path.exists():
        raise _missing_path_error("file", path)
    if not suffix_of(path):
        text, advice = "{path} must end in one of {known}", "convert it to CSV or Parquet"
        raise FileError("unknown-format", text, path=path, known=", ".join(SUFFIXES), advice=advice)
    if path.stat().st_size == 0:
        raise csv_text.empty_file_error(path)
    return path


def suffix_of(path: Path) -> str:
    """Return the known suffix of a file name, '' if it has none."""
    name = path.name.lower()
    return next((end for end in SUFFIXES if name.endswith(end)), "")


def _missing_path_error(kind: str, path: Path) -> FileError:
    """Return the error about a file or folder that does not exist, with similar names."""
    advice = Advice("", "the folder {parent} does not exist either")
    if path.parent.is_dir():
        advice = suggest_name(path.name, [file.name for file in path.parent.iterdir()])
    params = {"kind": kind, "path": path, "parent": path.parent}
    return FileError("missing-path", "there is no {kind} {path}", params, advice=advice)


def _is_binary(file: Path) -> bool:
    return suffix_of(file) in BINARY_SUFFIXES


def _table_file(path: Source) -> Path:
    """Return the file of a table: the path itself, or the responses in a folder."""
    given = Path(path)
    if given.is_file() or (not given.exists() and suffix_of(given)):
        return check_file_exists(given)
    if not given.exists():
        raise _missing_path_error("folder", given)
    file = find_part(given, "responses")
    if file is None:
        found = first_names(sorted(one.name for one in given.iterdir()))
        text = "the folder {folder} must hold a table named responses.csv or responses.parquet, "
        text += "but it holds {found}"
        raise FileError("no-table", text, {"folder": given, "found": found or "nothing"})
    return file


# Binary files.


def read_binary(file: Path) -> Any:
    """Return a file that is not text as a pyarrow Table, whose columns may hold words."""
    suffix = suffix_of(file)
    return read_parquet(file) if suffix == ".parquet" else other_formats.read_other(file, suffix)


def read_parquet(file: Path) -> Any:
    """Return a file as a pyarrow Table with unique names."""
    # Unlike read_table, this accepts names that occur twice.
    open_file = import_arrow("pyarrow.parquet").ParquetFile
    table = _open_parquet(file, lambda path: open_file(path).read())
    # Renaming discards the metadata that pandas wrote about the index.
    renamed = table.rename_columns(csv_text.make_unique(table.column_names))
    return renamed.replace_schema_metadata(table.schema.metadata)


def index_columns(table: Any) -> list[str]:
    """Return the columns of a pyarrow Table that hold the index of a pandas frame or row names."""
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    known = [*index, other_formats.ROW_NAMES]
    return [name for name in table.column_names if name in known]


def _open_parquet(file: Path, read: Callable[[str], Any]) -> Any:
    arrow = import_arrow("pyarrow")
    try:
        return read(str(file))
    except (arrow.ArrowInvalid, OSError) as error:
        text = "{file} cannot be read as a Parquet file; it may be truncated or of another format"
        raise FileError("unreadable-parquet", text, file=file) from error


# Tables.


def read_file(
    path: Source,
    *,
    leave_out: Sequence[str] = (),
    missing: Codes | None = None,
    labels: Labels | None = None,
) -> Any:
    """Return the table of numbers in a file as a pyarrow Table, ready for `read_table`.

    The file ends in .csv or .tsv (perhaps followed by .gz or .zip), .parquet, .feather, .xlsx,
    .ods, .sav, .dta, .sas7bdat, .rds or .rda; labels of values become words. A text file, in UTF-8,
    UTF-16 or Windows-1252, has the names of the items in its first line; its cells are separated by
    commas, semicolons or tabs. Empty cells, NA, NaN, nan, null, None and a lone point are missing.
    Decimals are marked by points, or by commas where these can mean nothing else and do not
    separate the cells. Columns of text files become float64, or bool if they hold yes and no
    (`cells.BOOLEAN_WORDS`); numbers with leading zeros stay text, so that `read_table` can
    recognise identifiers. The index that pandas stores in a Parquet file is left out.

    The second of two columns named 'score' is 'score#2'.

    Parameters
    ----------
    path : str or Path
    leave_out : sequence of str
        Columns that are not items and need not be numbers, such as row identifiers.
    missing : mapping from column to sequence of str, optional
        Codes for missing answers, as text ("99", "refused").
    labels : mapping from column to CategoryLabels, optional
        Labels of columns of text; `DCRL` has ``words`` instead.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> import hidag
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "answers.csv"
    ...     _ = path.write_text("a,b\\n1,yes\\n0,no\\n")
    ...     hidag.read_file(path).column_names
    ['a', 'b']
    """
    return _read_with_notes(Path(path), leave_out, missing, labels)[0]


def _read_with_notes(
    path: Path, leave_out: Sequence[str], missing: Codes | None, labels: Labels | None
) -> tuple[Any, tuple[str, ...]]:
    """Return the table as `read_file` does, and notes about conversions."""
    file = check_file_exists(path)
    table = _read_cells(file, leave_out)
    _check_columns(file, leave_out, table.column_names)
    index = [name for name in index_columns(table) if name not in leave_out]
    columns = [name for name in table.column_names if name not in (*leave_out, *index)]
    table, about_commas = _convert_commas(file, table, columns)
    notes = [f"{name} names the rows and is not an item" for name in index]
    notes += [about_commas] if about_commas else []
    if not _is_binary(file) and csv_text.detect_encoding(file) == csv_text.WINDOWS:
        notes.append(f"{file.name} is not UTF-8 and is read as Windows-1252 text")
    table = encode_labels(remove_missing_codes(table, missing or {}), labels or {})
    return _convert_columns(file, table, columns), tuple(notes)


def read_columns(
    path: Source,
    items: Sequence[str],
    others: Sequence[str] = (),
    *,
    missing: Codes | None = None,
    labels: Labels | None = None,
    leave_out: Sequence[str] = (),
) -> tuple[Any, dict[str, list[Any]], tuple[str, ...]]:
    """Return some columns of a file or folder as numbers, others with decimal points, and notes."""
    file = _table_file(path)
    table = _read_cells(file, leave_out)
    _check_columns(file, (*items, *others), table.column_names)
    table = _convert_commas(file, table, items)[0]
    cells, notes = {}, []
    for name in others:
        converted, note = _convert_commas(file, table, [name])
        cells[name] = converted.column(name).to_pylist()
        notes += [note] if note else []
    table = encode_labels(remove_missing_codes(table, missing or {}), labels or {})
    return _convert_columns(file, table, items), cells, tuple(notes)


def column_names(path: Source) -> list[str]:
    """Return unique names of all columns of a file, or of the table in a folder."""
    return csv_text.make_unique(_names_in_file(_table_file(path)))


def _names_in_file(file: Path) -> list[str]:
    """Return the column names in a file, which may occur twice."""
    if not _is_binary(file):
        return csv_text.read_header(file)[0]
    if suffix_of(file) in other_formats.READERS:
        return list(read_binary(file).column_names)
    opened = _open_parquet(file, import_arrow("pyarrow.parquet").ParquetFile)
    return list(opened.schema_arrow.names)


def _check_columns(file: Path, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            text, params = "{file} has no column {name!r}", {"file": file, "name": name}
            raise DataError("missing-column", text, params, advice=suggest_name(name, known))


def _read_cells(file: Path, leave_out: Sequence[str] | None = None) -> Any:
    """Return a table whose columns may be text, after checking that their names are unique."""
    csv_text.check_unique(file, _names_in_file(file), leave_out)
    return read_binary(file) if _is_binary(file) else csv_text.read_text_columns(file)


def _convert_commas(file: Path, table: Any, columns: Sequence[str]) -> tuple[Any, str]:
    """Return the table with decimal points, unless commas separate the cells, and a note."""
    if _is_binary(file) or csv_text.read_header(file)[1] == ",":
        return table, ""
    return convert_decimal_commas(table, columns)


def _convert_columns(file: Path, table: Any, columns: Sequence[str]) -> Any:
    """Return some columns of a file's table as numbers; those of a binary file unchanged."""
    chosen = table.select(list(columns))
    if _is_binary(file):
        return chosen
    arrow, compute = import_arrow("pyarrow"), import_arrow("pyarrow.compute")
    converted, bad = [], {}
    for name, column in zip(chosen.column_names, chosen.columns, strict=True):
        try:
            numbers, found = column.cast(arrow.float64()), None
        except arrow.ArrowInvalid:
            cells = np.fromiter(column.to_pylist(), dtype=object, count=len(column))
            values, found = convert_cells(cells)
            # Booleans stay booleans, so that notes can say which columns held them.
            boolean = found is None and is_boolean_column(cells)
            numbers = arrow.array(values == 1 if boolean else values, mask=np.isnan(values))
        if found is not None:
            bad[name] = found
        # Only the text shows leading zeros, a sign of identifiers.
        padded = compute.any(compute.match_substring_regex(column, f"^{LEADING_ZEROS}$")).as_py()
        converted.append(column if padded else numbers)
    if bad:
        raise csv_text.bad_cell_error(bad, chosen, file, table.num_columns)
    _check_finite(converted, chosen, file, table.num_columns)
    return arrow.table(converted, names=chosen.column_names)


def _check_finite(columns: Sequence[Any], table: Any, file: Path, n_columns: int) -> None:
    """Raise an error about the first infinite number and its line in the file."""
    for name, column in zip(table.column_names, columns, strict=True):
        if str(column.type) == "string":  # digits only
            continue
        rows = np.flatnonzero(np.isinf(np.asarray(column, dtype=np.float64)))
        if len(rows):
            raise DataError(
                "infinite-cell",
                "numbers must be finite, but {file} has {content} in column {item!r}, line {line} "
                "({n} of {n_rows} cells of this column)",
                {"file": file, "item": name, "n": len(rows), "n_rows": table.num_rows},
                advice="leave the cell empty if the answer is missing",
                content=str(table.column(name)[int(rows[0])])[:40],
                line=csv_text.find_line(
                    file, int(rows[0]), n_columns, csv_text.read_header(file)[1]
                ),
            )


# Folders.


@dataclass(frozen=True, eq=False)
class TableSource:
    """The table of a file or folder, for `read_table`, with its types and Q-matrix, or None.

    The columns of ``q`` are 'item' and the latents; ``notes`` are conversions made while reading.
    """

    table: Any
    types: Mapping[str, str] | None
    q: Any | None
    title: str
    notes: tuple[str, ...] = ()


def read_folder(
    path: Source,
    *,
    leave_out: Sequence[str] = (),
    missing: Codes | None = None,
    labels: Labels | None = None,
    with_q: bool = True,
) -> TableSource:
    """Return the table in a folder, with the types and the Q-matrix if they are there.

    The folder has responses.csv (or another suffix that `read_file` knows), and perhaps types.csv
    (columns item, type) and q.csv (column item, then one column per latent; read if ``with_q``),
    which may name items in ``leave_out``. A file is read as a table without types and Q-matrix.
    Other arguments are as in `read_file`.
    """
    folder = Path(path)
    if folder.is_file():
        title = folder.name[: len(folder.name) - len(suffix_of(folder))]
        table, notes = _read_with_notes(folder, leave_out, missing, labels)
        return TableSource(table, None, None, title, notes)
    table, notes = _read_with_notes(_table_file(folder), leave_out, missing, labels)
    types_file, q_file = find_part(folder, "types"), find_part(folder, "q") if with_q else None
    items = tuple(table.column_names)
    types = None if types_file is None else read_types(types_file, items, leave_out)
    q = None if q_file is None else read_q(q_file, leave_out)
    return TableSource(table, types, q, folder.resolve().name, notes)


def read_types(file: Path, items: Sequence[str], leave_out: Sequence[str] = ()) -> dict[str, str]:
    """Return the type of each item in a types.csv, without columns that are left out."""
    table = _read_cells(file)
    names = [name.strip().lower() for name in table.column_names]
    if not {_ITEM, _TYPE} <= set(names):
        text = "{file} must have the columns item and type, but it has {columns}"
        raise FileError(
            "wrong-columns-of-types", text, {"file": file, "columns": ", ".join(table.column_names)}
        )
    types: dict[str, str] = {}
    known = set(items)
    kinds = table.column(names.index(_TYPE)).to_pylist()
    for item, kind in zip(_item_names(table.column(names.index(_ITEM))), kinds, strict=True):
        if item is None or kind is None:
            text = "each line of {file} must have an item and a type, but the line of item "
            text += "{item!r} has type {type!r}"
            raise DataError("incomplete-type", text, {"file": file, "item": item, "type": kind})
        if item in types:
            text = "{file} must name each item once, but item {item!r} occurs twice"
            raise DataError("repeated-type", text, {"file": file, "item": item})
        if item in leave_out:
            continue
        if item not in known:
            text = "{file} gives a type for item {item!r}, which the table does not have"
            advice = suggest_name(item, items, "remove the line")
            raise DataError("type-of-unknown-item", text, file=file, item=item, advice=advice)
        types[item] = kind
    return types


def read_q(file: Path, leave_out: Sequence[str] = ()) -> Any:
    """Return the Q-matrix as a table: item names as text, then numbers; some items left out."""
    table = _read_cells(file)
    index, first = index_columns(table), table.column_names[0]
    if first == other_formats.ROW_NAMES and not _all_numbers(table.column(0)):
        index = index[1:]  # R writes the names of the items there.
    table = table.drop_columns(index)
    first, *latents = table.column_names
    if first.strip().lower() != _ITEM and _all_numbers(table.column(0)):
        # Rows in the order of the items.
        if leave_out:
            problem = "the first column of {file} must be called item and hold the names of the "
            problem += "items if columns of the table are left out, but it is called {name!r}"
            raise FileError("no-items-in-q", problem, {"file": file, "name": first})
        return table if _is_binary(file) else _convert_columns(file, table, table.column_names)
    table = table.rename_columns([_ITEM, *latents])
    first = _ITEM
    if not latents:
        problem = "{file} must have a column per latent beside the column {name}, but it has none"
        raise FileError("no-latents-in-q", problem, {"file": file, "name": first})
    if not table.num_rows:
        problem = "{file} must have a line for each item, but it has only the names of its columns"
        raise FileError("no-items-in-q", problem, file=file)
    names = _item_names(table.column(0))
    if not _is_binary(file):
        try:
            numbers = _convert_columns(file, table, latents)
        except DataError as error:
            if error.code != "cell-not-a-number":
                raise
            # An empty cell of Q is not a missing answer, and there is no code for one.
            text = "recode the text as numbers, or leave the cell empty to have the entry estimated"
            raise DataError.of(replace(error.message, advice=Advice("", text))) from error
        table = numbers.add_column(0, first, import_arrow("pyarrow").array(names))
    return table.take([row for row, name in enumerate(names) if name not in leave_out])


def _all_numbers(column: Any) -> bool:
    """Return whether a column has numbers and empty cells only."""
    cells = (None if cell is None else str(cell) for cell in column.to_pylist())
    return all(cell is None or read_number(cell) is not None for cell in cells)


def _item_names(column: Any) -> list[Any]:
    """Return the names in a column as text without blanks at their ends, None for empty cells."""
    cells = column.to_pylist()
    return [None if cell is None else unprotect_cell(str(cell).strip()) for cell in cells]
