"""Read tables of spreadsheets, SPSS, Stata, SAS and R as pyarrow Tables; words stay words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hidag.data.cells import import_arrow
from hidag.exceptions import FileError, HidagError, import_extra
from hidag.formatting import first_names

#: Name of a first column without a name, in which R and pandas write the names of the rows.
ROW_NAMES = "row_names"


def read_other(file: Path, suffix: str) -> Any:
    """Return the table in a file of one of the formats in `READERS`, by its ``suffix``."""
    state = file.stat()
    return _read_other(file, suffix, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)  # Its names are needed before its cells.
def _read_other(file: Path, suffix: str, modified: int, size: int) -> Any:
    """Return the table; time and size make sure that the file is still the same."""
    try:
        return READERS[suffix](file)
    except HidagError:
        raise
    except Exception as error:  # Each library has its own.
        text = "{file} cannot be read as a {suffix} file; it may be truncated or of another format "
        text += "({reason})"
        params = {"file": file, "suffix": suffix, "reason": str(error).partition("\n")[0]}
        raise FileError("unreadable-format", text, params) from error


def _import(module: str, suffix: str) -> Any:
    return import_extra(module, f"reading {suffix} files", "files")


def _read_sheet(file: Path) -> Any:
    """Return the first sheet with cells; columns without a cell are left out."""
    book = _import("fastexcel", file.suffix).read_excel(str(file))
    arrow = import_arrow("pyarrow")
    for number in range(len(book.sheet_names)):
        table = arrow.Table.from_batches([book.load_sheet(number).to_arrow()])
        kept = [name for name in table.column_names if table.column(name).null_count < len(table)]
        if kept:
            table = table.select(kept)
            first, *others = [str(name).strip() for name in kept]
            names = [ROW_NAMES if first.startswith("__UNNAMED__") else first, *others]
            return table.rename_columns(names)
    raise FileError("empty-file", "{file} has no sheet with a table", file=file)


def _read_statistics(file: Path) -> Any:
    """Return the table of SPSS, Stata or SAS; values with labels become words.

    User-missing codes are missing. A column some of whose values have no label keeps its numbers.
    """
    library = _import("pyreadstat", file.suffix)
    read = getattr(library, f"read_{file.suffix.lower().removeprefix('.')}")
    columns, about = read(str(file), output_format="dict")
    arrow = import_arrow("pyarrow")
    out = {}
    for name, cells in columns.items():
        labels = about.variable_value_labels.get(name, {})
        nominal = about.variable_measure.get(name) == "nominal"
        out[name] = _labelled(list(cells), labels, ordered=not nominal) or arrow.array(
            [None if cell is None or cell != cell else cell for cell in list(cells)]
        )
    return arrow.table(out)


def _labelled(cells: Sequence[Any], labels: Mapping[Any, str], *, ordered: bool) -> Any:
    """Return a dictionary array of labels in the order of the codes; None if not all have one."""
    arrow = import_arrow("pyarrow")
    codes = [code for code in sorted(labels, key=str) if labels[code].strip()]
    if all(isinstance(code, int | float) for code in codes):
        codes.sort()
    known = [None if cell is None or cell != cell or cell == "" else cell for cell in cells]
    used = {cell for cell in known if cell is not None}
    if (
        not used
        or not used <= set(codes)
        or len({labels[c].casefold() for c in codes}) < len(codes)
    ):
        return None
    # A code that stands for a missing answer is often labelled, but used nowhere.
    kept = [code for code in codes if code in used or codes[0] <= code <= max(used)]
    place = {code: number for number, code in enumerate(kept)}
    indices = arrow.array([None if c is None else place[c] for c in known], type=arrow.int32())
    words = arrow.array([labels[code].strip() for code in kept])
    return arrow.DictionaryArray.from_arrays(indices, words, ordered=ordered)


def _read_r(file: Path) -> Any:
    """Return the data frame in a file of R; names of rows that only count them are left out."""
    found = _import("pyreadr", file.suffix).read_r(str(file))
    frames = {name: frame for name, frame in found.items() if frame is not None}
    if len(frames) != 1:
        text = "{file} must hold one data frame, but it holds {found}"
        names = first_names([str(name) for name in frames]) or "none"
        advice = "save it with saveRDS(table, 'table.rds')"
        raise FileError("several-tables", text, advice=advice, file=file, found=names)
    frame = next(iter(frames.values()))
    table = import_arrow("pyarrow").Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata(None)
    rows = [str(one) for one in frame.index]
    if rows not in ([str(n + start) for n in range(len(rows))] for start in (0, 1)):
        table = table.add_column(0, ROW_NAMES, import_arrow("pyarrow").array(rows))
    return table


def _read_feather(file: Path) -> Any:
    return import_arrow("pyarrow.feather").read_table(str(file))


READERS: Mapping[str, Callable[[Path], Any]] = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _read_sheet),
    **dict.fromkeys((".sav", ".zsav", ".dta", ".sas7bdat"), _read_statistics),
    **dict.fromkeys((".rds", ".rda", ".rdata"), _read_r),
    ".feather": _read_feather,
}
