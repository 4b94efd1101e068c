"""Parquet files, with the index that pandas keeps among their columns told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hidag.errors import FileError
from hidag.observations.alike_names import told_apart
from hidag.observations.csv_text import import_arrow


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
