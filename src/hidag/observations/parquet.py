"""Parquet files, with the index that pandas keeps among their columns told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hidag.errors import FileError
from hidag.observations.alike_names import told_apart
from hidag.observations.csv_text import import_arrow


def read_parquet(file: Path) -> Any:
    """Return all columns of the file as a pyarrow Table; those named alike are told apart."""
    # Unlike read_table, this takes names that come twice.
    open_file = import_arrow("pyarrow.parquet").ParquetFile
    table = _read(file, lambda path: open_file(path).read())
    # Renaming forgets what pandas wrote about the index.
    told = table.rename_columns(told_apart(table.column_names))
    return told.replace_schema_metadata(table.schema.metadata)


def parquet_names(file: Path) -> list[str]:
    """Return the names of the columns, those of an index included."""
    return list(_read(file, import_arrow("pyarrow.parquet").read_schema).names)


def index_columns(table: Any) -> list[str]:
    """Return the columns that pandas would take for the index of a frame, and for no items.

    Parameters
    ----------
    table : pyarrow.Table
        pandas writes into its schema where the index is; plain row numbers have no column.
    """
    told = (table.schema.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in told if isinstance(name, str)]
    return [name for name in table.column_names if name in names]


def _read(file: Path, read: Callable[[str], Any]) -> Any:
    arrow = import_arrow("pyarrow")
    try:
        return read(str(file))
    except (arrow.ArrowInvalid, OSError) as error:
        raise FileError(
            f"{file} cannot be read as a Parquet file; it may be cut off or of another format"
        ) from error
