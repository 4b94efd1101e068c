"""Rows of a study as Parquet files that survive an interruption at any time.

Each completed run is one file, written atomically. From time to time all files are merged into one,
also atomically, and then removed. If the process is killed in between, some rows are in two
identical copies; the reader uses each once, and the next run removes the copies.

The folder is a Parquet dataset: ``pandas.read_parquet(folder)``, ``polars.read_parquet(folder)``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hidag.data.cells import import_arrow
from hidag.exceptions import Advice, FileError
from hidag.files import write_file
from hidag.results import versions_used

#: Numbers, strings, or None for missing values.
Row = dict[str, Any]

#: Columns that identify a row.
KEY = ("address", "method", "rule")

#: Columns that vary between executions. All others are bit-identical for the same address, method,
#: settings and source code.
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
#: Columns copied from the evaluation of the fit.
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
#: Columns copied from the fit; "fit_method" is its ``method``.
FIT_MEASURES = {
    "log_likelihood": "number",
    "n_iter": "whole",
    "converged": "truth",
    "fit_method": "text",
    "n_reached": "whole",
    "information_ratio": "number",
    "graph_rows": "number",
}
#: Columns copied from the fit started at the truth, with the prefix "truth_started_".
REFERENCE_MEASURES = {
    name: MEASURES[name]
    for name in ("shd", "shd_graph", "shd_q", "tv_law", "rmse_loadings", "rmse_intercept")
}
_REFERENCES = {
    **{f"truth_started_{name}": kind for name, kind in REFERENCE_MEASURES.items()},
    "truth_started_cpu_seconds": "number",
    "truth_started_reason": "text",
    "true_latents_shd_graph": "whole",
    "true_latents_reason": "text",
}


def column_types() -> dict[str, str]:
    """Return the type of every column in order: text, whole, number or truth."""
    return {
        **_PLACE,
        **_OUTCOME,
        **MEASURES,
        **FIT_MEASURES,
        **_REFERENCES,
        **{f"version_{name}": "text" for name in versions_used()},
        "source": "text",
    }


def complete_rows(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return rows with all columns in order, None for missing values."""
    names = column_types()
    for row in rows:
        unknown = sorted(set(row) - set(names))
        if unknown:
            raise KeyError(f"unknown columns: {', '.join(unknown)}")
    return [{name: row.get(name) for name in names} for row in rows]


#: Number of files at which they are merged during a study.
MERGE_AT = 256
MERGED = "merged.parquet"
_ENDING = ".parquet"


def read_rows(folder: Path) -> list[Row]:
    """Return the unique rows of a folder, sorted by address, method and rule."""
    found: dict[tuple[Any, ...], Row] = {}
    for file in _files(folder):
        for row in _read_file(file):
            found.setdefault(tuple(row[name] for name in KEY), row)
    return [found[key] for key in sorted(found, key=_sort_key)]


def add_run(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add the rows of one completed run atomically; ``name`` is unique for each run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_file(folder / f"{name.replace('/', '~')}{_ENDING}", complete_rows(rows))
    except OSError as error:
        raise _write_error(folder, error) from error


def merge_runs(folder: Path, *, at: int = 1) -> None:
    """Merge the files of single runs into one if there are at least ``at``."""
    singles = [file for file in _files(folder) if file.name != MERGED]
    if len(singles) < at:
        return
    try:
        _write_file(folder / MERGED, read_rows(folder))
        for file in singles:
            file.unlink()
    except OSError as error:
        raise _write_error(folder, error) from error


def _write_error(folder: Path, error: OSError) -> FileError:
    return FileError(
        "unwritable-folder",
        "cannot write to {folder}: {reason}; the rows written so far are stored",
        advice=Advice("resume", "run the same command again to resume"),
        folder=folder,
        reason=error.strerror or str(error),
    )


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob(f"*{_ENDING}"))
    except OSError as error:
        raise FileError(
            "unreadable-folder",
            "cannot read {folder}: {reason}",
            folder=folder,
            reason=error.strerror or str(error),
        ) from error


def _read_file(file: Path) -> Iterable[Row]:
    arrow = import_arrow("pyarrow")
    parquet = import_arrow("pyarrow.parquet")
    try:
        with file.open("rb") as stream:
            # pyarrow's threads could still hold the stream when Python exits, which aborts it.
            table = parquet.ParquetFile(stream, pre_buffer=False).read(use_threads=False)
        if not set(KEY) | {"cell", "replicate", "status"} <= set(table.column_names):
            raise ValueError("not rows")
        rows: list[Row] = table.to_pylist()
        return rows
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise FileError(
            "invalid-file",
            "{file} is damaged or does not contain rows of a study",
            advice=Advice(
                "restore-file",
                "restore it, or delete it and run the study again",
            ),
            file=file,
        ) from error


def _write_file(target: Path, rows: Sequence[Row]) -> None:
    """Write rows into one file."""
    parquet = import_arrow("pyarrow.parquet")
    table = import_arrow("pyarrow").Table.from_pylist(list(rows), schema=_schema())
    # Statistics and dictionaries would multiply the size of a file with one row.
    small = {"write_statistics": False, "use_dictionary": False, "compression": "zstd"}
    write_file(target, lambda path: parquet.write_table(table, path, **small))


def _schema() -> Any:
    """Return the schema of all files; its metadata name the columns that vary."""
    arrow = import_arrow("pyarrow")
    kinds = {
        "text": arrow.string(),
        "whole": arrow.int64(),
        "number": arrow.float64(),
        "truth": arrow.bool_(),
    }
    fields = [arrow.field(name, kinds[kind]) for name, kind in column_types().items()]
    return arrow.schema(fields, metadata={"varying_columns": json.dumps(VARYING)})


def _sort_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key that sorts replicates numerically."""
    address, *rest = key
    cell, _, replicate = str(address).rpartition("/")
    return (cell, int(replicate) if replicate.isdigit() else -1, *(part or "" for part in rest))
