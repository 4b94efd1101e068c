"""Rows of a study as Parquet, in a folder that survives being cut off anywhere.

A finished run is one small file, written aside and moved into place whole: it is there or it is
not. Many small files are slow to read, so now and then all of them are merged into one, again
aside; those that the merged file holds are then removed. A process that is killed in between
leaves some rows in two files, word for word the same; reading takes each once, and the next run
clears up.

The folder is one dataset to any reader of Parquet: ``pandas.read_parquet(folder)``,
``polars.read_parquet(folder)``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hidag.data.csv_text import import_arrow
from hidag.exceptions import FileError
from hidag.results import versions_used

# --- Columns of a study's rows: their names, their types, and which of them the machine

#: A flat row: numbers, words, or None where there is nothing.
Row = dict[str, Any]

#: What tells a row from every other.
KEY = ("address", "method", "rule")

#: Columns that a clock fills in. All others are decided by the address, the method, the settings
#: in study.json and the library's source, and are the same to the last bit whoever runs them.
VARYING = ("cpu_seconds", "truth_started_cpu_seconds")

_PLACE = {
    "address": "text",
    "method": "text",
    "rule": "text",
    "study": "text",
    "cell": "text",
    "replicate": "whole",
    "model": "text",
    "q": "text",
    "family": "text",
    "n": "whole",
    "items": "text",
    "design": "text",
    "seed": "whole",
}
_OUTCOME = {
    "status": "text",
    "reason": "text",
    "warnings": "text",
    "notes": "text",
    "fit_seed": "whole",
    "cpu_seconds": "number",
}
#: What a row takes over from an evaluation of the fit, under the same names.
MEASURES = {
    "shd": "whole",
    "shd_graph": "whole",
    "shd_q": "whole",
    "graph_n_missing": "whole",
    "graph_n_extra": "whole",
    "graph_n_misdirected": "whole",
    "skeleton_f1": "number",
    "q_f1": "number",
    "tv_law": "number",
    "rmse_loadings": "number",
    "rmse_intercept": "number",
}
#: What it takes over from a fit of ours, under the same names but for "fit_method".
FIT_MEASURES = {
    "log_likelihood": "number",
    "n_iter": "whole",
    "converged": "truth",
    "fit_method": "text",
    "n_reached": "whole",
    "information_ratio": "number",
    "graph_rows": "number",
}
#: What it takes over from the truth-started yardstick, under "truth_started_" and the name.
YARDSTICK_MEASURES = {
    name: MEASURES[name]
    for name in ("shd", "shd_graph", "shd_q", "tv_law", "rmse_loadings", "rmse_intercept")
}
_YARDSTICKS = {
    **{f"truth_started_{name}": kind for name, kind in YARDSTICK_MEASURES.items()},
    "truth_started_cpu_seconds": "number",
    "truth_started_reason": "text",
    "true_latents_shd_graph": "whole",
    "true_latents_reason": "text",
}


def column_types() -> dict[str, str]:
    """Return the type of every column, in their order: text, whole, number or truth."""
    return {
        **_PLACE,
        **_OUTCOME,
        **MEASURES,
        **FIT_MEASURES,
        **_YARDSTICKS,
        **{f"version_{name}": "text" for name in versions_used()},
        "source": "text",
    }


def complete(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return rows that have every column, in order, with None where they have nothing.

    A name that is no column is a mistake of whoever made the row, and would be lost in silence.
    """
    names = column_types()
    for row in rows:
        unknown = sorted(set(row) - set(names))
        if unknown:
            raise KeyError(f"rows of studies have no column {', '.join(unknown)}")
    return [{name: row.get(name) for name in names} for row in rows]


# ---

#: So many files of single runs are merged while a study is running.
MERGE_AT = 256
MERGED = "merged.parquet"
_ENDING = ".parquet"


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of a folder, each once, by address, method and rule."""
    found: dict[tuple[Any, ...], Row] = {}
    for file in _files(folder):
        for row in _read_file(file):
            found.setdefault(_key(row), row)
    return [found[key] for key in sorted(found, key=_in_order)]


def add_run(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add the rows of one finished run, all of them or none.

    Parameters
    ----------
    folder : Path
    name : str
        Of the run, different for every run.
    rows : sequence of mapping
        With columns of `column_types`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_file(folder / f"{name.replace('/', '~')}{_ENDING}", complete(rows))
    except OSError as error:
        raise FileError(
            f"cannot write to {folder}: {error.strerror or error}; the rows written so far are "
            "kept: run the same command again to go on"
        ) from error


def merge_runs(folder: Path, *, at: int = 1) -> None:
    """Merge the files of single runs into one when there are at least so many of them."""
    singles = [file for file in _files(folder) if file.name != MERGED]
    if len(singles) < at:
        return
    try:
        _write_file(folder / MERGED, read_rows(folder))
        for file in singles:
            file.unlink()
    except OSError as error:
        raise FileError(
            f"cannot merge the files of {folder}: {error.strerror or error}; the rows written so "
            "far are kept: run the same command again to go on"
        ) from error


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob(f"*{_ENDING}"))
    except OSError as error:
        raise FileError(f"cannot read {folder}: {error.strerror or error}") from error


def _read_file(file: Path) -> Iterable[Row]:
    arrow = import_arrow("pyarrow")
    parquet = import_arrow("pyarrow.parquet")
    try:
        with file.open("rb") as stream:
            # On this thread alone: pyarrow's own would still hold the stream when Python ends, and
            # a command that had done its work would abort.
            table = parquet.ParquetFile(stream, pre_buffer=False).read(use_threads=False)
        if not set(KEY) | {"cell", "replicate", "status"} <= set(table.column_names):
            raise ValueError("not rows")
        rows: list[Row] = table.to_pylist()
        return rows
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise FileError(
            f"{file} does not hold rows of a study, or it is damaged; restore it, or delete it and "
            "run the study again to fill in its rows"
        ) from error


def _write_file(target: Path, rows: Sequence[Row]) -> None:
    """Write rows aside, wait until they are on the disk, and move them into place."""
    parquet = import_arrow("pyarrow.parquet")
    table = import_arrow("pyarrow").Table.from_pylist(list(rows), schema=_schema())
    # Outside the folder of rows: a reader takes every file there for a part of the dataset.
    aside = target.parent.with_name(f".{target.parent.name}.part")
    with aside.open("wb") as stream:
        # Statistics and dictionaries would make a file of one row several times as large.
        parquet.write_table(
            table, stream, write_statistics=False, use_dictionary=False, compression="zstd"
        )
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(aside, target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until the folder knows of its new file, where the system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _schema() -> Any:
    """Return the one schema of all files: they are one dataset even where columns are empty.

    Its metadata name the columns that differ from machine to machine.
    """
    arrow = import_arrow("pyarrow")
    kinds = {
        "text": arrow.string(),
        "whole": arrow.int64(),
        "number": arrow.float64(),
        "truth": arrow.bool_(),
    }
    fields = [arrow.field(name, kinds[kind]) for name, kind in column_types().items()]
    return arrow.schema(fields, metadata={"varying_columns": json.dumps(VARYING)})


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def _in_order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what sorts rows: replicates by number, not by their digits."""
    address, *rest = key
    place, _, replicate = str(address).rpartition("/")
    return (place, int(replicate) if replicate.isdigit() else -1, *(part or "" for part in rest))
