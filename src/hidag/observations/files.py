"""Tables from files and folders: CSV and Parquet, with the types and the Q-matrix beside them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from hidag.errors import DataError, FileError
from hidag.observations.cells import BadCells, numbers_from_cells
from hidag.observations.csv_text import (
    delimiter_of,
    import_arrow,
    line_of_row,
    read_text_columns,
)

_TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_BINARY_ENDINGS = (".parquet",)
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
    """

    table: Any
    types: Mapping[str, str] | None
    q: Any | None
    title: str


def read_file(path: str | PathLike[str], *, leave_out: Sequence[str] = ()) -> Any:
    """Return the table of numbers in a file, ready for `read_table`.

    Parameters
    ----------
    path : str or path
        A file that ends in .csv, .tsv (both perhaps followed by .gz) or .parquet. A text file
        has the names of the items in its first line; its cells are separated by commas,
        semicolons or tabs. Empty cells, NA, NaN, nan, null, None and a lone point are missing.
    leave_out : sequence of str
        Columns that are no items, such as names of the rows; they need not be numbers.

    Returns
    -------
    pyarrow.Table
        For a text file all columns are float64, null where the answer is missing.

    Raises
    ------
    FileError
        If the file is missing, empty, cut off, of an unknown format or in a wrong encoding.
    DataError
        If a cell is not a number; the sentence says in which line.
    """
    file = existing_file(Path(path))
    table = _read_any(file)
    for name in leave_out:
        _refuse_unknown_column(file, name, table.column_names)
    chosen = table.select([name for name in table.column_names if name not in leave_out])
    if _ending(file) in _BINARY_ENDINGS:
        return chosen
    return _numbers(chosen, file, n_columns=table.num_columns)


def read_columns(
    path: str | PathLike[str], items: Sequence[str], labels: Sequence[str] = ()
) -> tuple[Any, dict[str, list[Any]]]:
    """Return some columns of a table as numbers, and others as they stand.

    Parameters
    ----------
    path : str or path
        A file as for `read_file`, or a folder with responses.csv.
    items : sequence of str
        Columns of numbers; others need not be numbers, and are left out.
    labels : sequence of str
        Columns of anything, such as names of the rows.

    Returns
    -------
    table : pyarrow.Table
    labels : dict from column to its cells

    Raises
    ------
    FileError, DataError
        As `read_folder` does, and if a column is not there.
    """
    given = Path(path)
    file = (find_part(given, "responses") or given) if given.is_dir() else existing_file(given)
    if file.is_dir():
        raise FileError(f"the folder {given} must hold a table named responses.csv")
    table = _read_any(file)
    for name in (*items, *labels):
        _refuse_unknown_column(file, name, table.column_names)
    cells = {name: table.column(name).to_pylist() for name in labels}
    chosen = table.select(list(items))
    if _ending(file) in _BINARY_ENDINGS:
        return chosen, cells
    return _numbers(chosen, file, n_columns=table.num_columns), cells


def _refuse_unknown_column(file: Path, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DataError(f"{file} has no column {name!r}{hint}")


def read_folder(path: str | PathLike[str], *, leave_out: Sequence[str] = ()) -> TableSource:
    """Return the table in a folder, with the types and the Q-matrix if they are there.

    Parameters
    ----------
    path : str or path
        A folder with responses.csv (or any other ending that `read_file` knows), and perhaps
        types.csv (columns item, type) and q.csv (column item, then one column per latent). A
        file in place of a folder is read as a table without types and Q-matrix.

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
        title = folder.name[: -len(_ending(folder))] if _ending(folder) else folder.name
        return TableSource(
            table=read_file(folder, leave_out=leave_out), types=None, q=None, title=title
        )
    if not folder.exists():
        raise FileError(f"there is no folder {folder}{_near(folder)}")
    responses = find_part(folder, "responses")
    if responses is None:
        held = sorted(file.name for file in folder.iterdir())
        listed = ", ".join(held[:5]) + (", ..." if len(held) > 5 else "")
        raise FileError(
            f"the folder {folder} must hold a table named responses.csv or responses.parquet, but "
            f"it holds {listed or 'nothing'}"
        )
    table = read_file(responses, leave_out=leave_out)
    types_file, q_file = find_part(folder, "types"), find_part(folder, "q")
    types = None if types_file is None else read_types(types_file, tuple(table.column_names))
    q = None if q_file is None else read_q(q_file)
    return TableSource(table=table, types=types, q=q, title=folder.resolve().name)


def read_types(file: Path, items: tuple[str, ...]) -> Mapping[str, str]:
    """Return item -> type, after checking that the items are those of the table."""
    table = _read_any(file)
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
        if item not in known:
            near = difflib.get_close_matches(item, items, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "drop the line"
            raise DataError(
                f"{file} gives a type for item {item!r}, which the table does not have; {hint}"
            )
        types[item] = word
    return MappingProxyType(types)


def read_q(file: Path) -> Any:
    """Return the Q-matrix as a table: item names as text, then numbers."""
    table = _read_any(file)
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
    if _ending(file) in _BINARY_ENDINGS:
        return table
    numbers = _numbers(table.select(latents), file, n_columns=len(latents) + 1)
    arrow = import_arrow("pyarrow")
    return numbers.add_column(0, table.column_names[0], arrow.array(_item_names(table.column(0))))


def _item_names(column: Any) -> list[Any]:
    """Return names as tables have them in their first line: blanks at the ends are none of it."""
    cells = column.to_pylist()
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells]


def _read_any(file: Path) -> Any:
    """Return a table whose columns may be text."""
    if _ending(file) in _BINARY_ENDINGS:
        return _read_parquet(file)
    return read_text_columns(file)


def _numbers(table: Any, file: Path, n_columns: int | None = None) -> Any:
    """Return the table of text as a table of float64, or the sentence about a bad cell."""
    arrow = import_arrow("pyarrow")
    columns = []
    bad: dict[str, BadCells] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            columns.append(column.cast(arrow.float64()))
        except arrow.ArrowInvalid:
            cells = np.fromiter(column.to_pylist(), dtype=object, count=len(column))
            values, found = numbers_from_cells(cells)
            columns.append(arrow.array(values, from_pandas=True))
            if found is not None:
                bad[name] = found
    if bad:
        raise DataError(_bad_cell_sentence(bad, table, file, n_columns or table.num_columns))
    return arrow.table(columns, names=table.column_names)


def _bad_cell_sentence(bad: dict[str, BadCells], table: Any, file: Path, n_columns: int) -> str:
    name, cells = next(iter(bad.items()))
    line = line_of_row(file, cells.row, n_columns, delimiter_of(file))
    advice = "recode the text as numbers, or leave the cell empty if the answer is missing"
    if re.fullmatch(r"'[+-]?[0-9]+,[0-9]+'", cells.content):
        advice = "write decimals with a point"
    return (
        f"cells must be numbers, but {file} has the text {cells.content} in column {name!r}, line "
        f"{line} ({cells.count} of {table.num_rows} cells of this column; {len(bad)} of "
        f"{table.num_columns} columns); {advice}"
    )


def _read_parquet(file: Path) -> Any:
    arrow = import_arrow("pyarrow")
    parquet = import_arrow("pyarrow.parquet")
    try:
        return parquet.read_table(str(file))
    except (arrow.ArrowInvalid, OSError) as error:
        raise FileError(
            f"{file} cannot be read as a Parquet file; it may be cut off or of another format"
        ) from error


def find_part(folder: Path, stem: str) -> Path | None:
    """Return the one file in the folder with this name and a known ending, or None."""
    found = [
        file
        for ending in (*_TEXT_ENDINGS, *_BINARY_ENDINGS)
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
        raise FileError(f"there is no file {path}{_near(path)}")
    if not _ending(path):
        known = ", ".join((*_TEXT_ENDINGS, *_BINARY_ENDINGS))
        raise FileError(f"{path} must end in one of {known}; convert it to CSV or Parquet")
    if path.stat().st_size == 0:
        raise FileError(
            f"{path} is empty; expected a line with the names of the items and one line per sample"
        )
    return path


def _ending(path: Path) -> str:
    """Return the known ending of a file name, '' if it has none."""
    name = path.name.lower()
    return next((end for end in (*_TEXT_ENDINGS, *_BINARY_ENDINGS) if name.endswith(end)), "")


def _near(path: Path) -> str:
    """Return a hint at the names in the same folder that look alike."""
    if not path.parent.is_dir():
        return f"; the folder {path.parent} does not exist either"
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=2)
    return f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
