"""Folders with a table, and with the items' types and the Q-matrix beside it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hidag.errors import DataError, FileError
from hidag.observations.answer_words import AnswerWords
from hidag.observations.bad_cells import BadCellError
from hidag.observations.csv_text import import_arrow
from hidag.observations.files import numbers_of, read_cells, read_with_notes
from hidag.observations.parquet import index_columns
from hidag.observations.paths import BINARY_ENDINGS, ending_of, find_part, near_names

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
    if not folder.exists():
        raise FileError(f"there is no folder {folder}{near_names(folder)}")
    responses = find_part(folder, "responses")
    if responses is None:
        held = sorted(file.name for file in folder.iterdir())
        listed = ", ".join(held[:5]) + (", ..." if len(held) > 5 else "")
        raise FileError(
            f"the folder {folder} must hold a table named responses.csv or responses.parquet, but "
            f"it holds {listed or 'nothing'}"
        )
    table, notes = read_with_notes(responses, leave_out, missing or {}, words or {})
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
        except BadCellError as error:
            if not error.advice:
                raise
            # An empty cell of Q is no missing answer, nor is there a code for one.
            estimated = "leave the cell empty to have the entry estimated"
            raise DataError(str(error).replace(error.advice, estimated)) from error
        table = numbers.add_column(0, table.column_names[0], arrow.array(names))
    return table.take([row for row, name in enumerate(names) if name not in leave_out])


def _item_names(column: Any) -> list[Any]:
    """Return names as tables have them in their first line: blanks at the ends are none of it."""
    cells = column.to_pylist()
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells]
