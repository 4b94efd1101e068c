"""Read a CSV file as a table of text, and locate the lines that are wrong.

pyarrow reads the file. If it fails, or if a cell is not a number, the csv module reads the file
again, because it knows the line numbers.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from hidag.data.cells import (
    MISSING_WORDS,
    BadCells,
    advise_on_commas,
    find_decimal_point,
    find_labels,
    import_arrow,
    is_missing,
    read_number,
)
from hidag.data.other_formats import ROW_NAMES
from hidag.exceptions import Advice, DataError, FileError, Setting
from hidag.formatting import first_names, unprotect_cell

UTF_8 = "utf-8-sig"
"""Spreadsheets begin a file with a byte order mark, which is not part of the first name."""
WINDOWS = "cp1252"
_UTF_16 = "utf-16"
_CHUNK = 1 << 20  # Characters read at once.
_DELIMITERS = (",", ";", "\t")
_MAX_TEXTS, _MAX_COLUMNS = 4, 10  # Texts, and columns beside the first, that an error lists.
_MAX_HEADER = 10_000_000  # Characters of the line of names.
_FEW_CELLS = 10  # A column of fewer cells may hold only text by chance.


def detect_encoding(path: Path) -> str:
    """Return the encoding of a text file, perhaps compressed: UTF-8, UTF-16 or Windows-1252."""
    state = path.stat()
    return _detect_encoding(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _detect_encoding(path: Path, modified: int, size: int) -> str:
    """Return the encoding; time and size make sure that the file is still the same."""
    with open_bytes(path) as binary:
        has_utf_16_mark = binary.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    for encoding in (_UTF_16,) if has_utf_16_mark else (UTF_8, WINDOWS):
        try:
            with _open_text(path, encoding) as file:
                # Text has no zero bytes.
                if not any("\0" in chunk for chunk in iter(lambda: file.read(_CHUNK), "")):
                    return encoding
        except UnicodeDecodeError:
            continue
    text = "{file} is not a text file in UTF-8"
    raise FileError("not-text", text, advice="save it as CSV with the encoding UTF-8", file=path)


def _open_text(path: Path, encoding: str | None = None) -> io.TextIOBase:
    """Return the file opened for reading, with its own encoding by default."""
    encoding = encoding or detect_encoding(path)
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def open_bytes(path: Path) -> IO[bytes]:
    """Return a file opened for reading, uncompressed; of an archive its only file."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    if path.suffix.lower() != ".zip":
        return path.open("rb")
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) == 1:
                return io.BytesIO(archive.read(names[0]))
    except zipfile.BadZipFile as error:
        raise OSError(str(error)) from error
    text = "{file} must hold one file, but it holds {files}"
    raise FileError("several-files", text, file=path, files=first_names(names) or "none")


def make_unique(names: Sequence[str]) -> list[str]:
    """Return unique column names: the second 'score' becomes 'score#2'."""
    given = set(names)
    seen: Counter[str] = Counter()
    out = []
    for name in names:
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        while unique != name and unique in given:
            unique += "'"
        out.append(unique)
    return out


def check_unique(file: Path, names: Sequence[str], leave_out: Collection[str] | None) -> None:
    """Raise an error about names that occur twice, but for those (made unique) in ``leave_out``."""
    pairs = list(zip(names, make_unique(names), strict=True))
    kept = [(name, unique) for name, unique in pairs if unique not in (leave_out or ())]
    counts = Counter(name for name, _ in kept)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        name = repeated[0]
        code = "rename-columns" if leave_out is None else "drop-duplicate-name"
        raise FileError(
            "duplicate-column-names",
            "the column names of {file} must be unique, but {name!r} occurs {count} times ({share} "
            "names occur more than once)",
            {"file": file, "name": name, "count": counts[name]},
            advice=Advice(code, "rename the columns in the file, or remove them"),
            share=f"{len(repeated)} of {len(counts)}",
            last=[unique for one, unique in kept if one == name][-1],
        )


def read_text_columns(path: Path) -> Any:
    """Return the file as a pyarrow Table of text with unique names, null for missing cells."""
    arrow = import_arrow("pyarrow")
    arrow_csv = import_arrow("pyarrow.csv")
    names, delimiter = read_header(path)
    header = make_unique(names)
    encoding = detect_encoding(path)
    try:
        return arrow_csv.read_csv(
            open_bytes(path) if path.suffix.lower() == ".zip" else str(path),
            read_options=arrow_csv.ReadOptions(
                column_names=header,
                skip_rows_after_names=1,
                encoding="utf8" if encoding == UTF_8 else encoding,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                # With one column an empty line is a missing cell.
                ignore_empty_lines=len(header) > 1,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, arrow.string()),
                strings_can_be_null=True,
                null_values=sorted(MISSING_WORDS),
            ),
        )
    except (arrow.ArrowInvalid, OSError, EOFError) as error:
        _check_line_lengths(path, len(header), delimiter)
        text = "{file} cannot be read as a table of text; it may be truncated or of another format "
        text += "({reason})"
        raise FileError("unreadable-text", text, {"file": path, "reason": error}) from error


def read_header(path: Path) -> tuple[list[str], str]:
    """Return the column names and the delimiter in the first line of the file."""
    try:
        with _open_text(path) as file:
            first = file.readline(_MAX_HEADER + 1)
    except FileError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        text = "{file} cannot be opened; it may be protected, truncated or of another format "
        text += "({reason})"
        raise FileError("unreadable-file", text, {"file": path, "reason": error}) from error
    if not first.strip():
        raise empty_file_error(path)
    for marks, name in (("<", "HTML or XML"), ("{[", "JSON")):
        if first.lstrip()[0] in marks:
            text = "{file} holds {format}, not a table of text: its first line begins {begin!r}"
            params = {"file": path, "format": name, "begin": first.strip()[:20]}
            raise FileError("not-a-table", text, params, advice="export the table as CSV")
    if len(first) > _MAX_HEADER:
        text = "the first line of {file} must hold the names of the items, but has {n:,} characters"
        raise FileError("no-header", text, file=path, n=len(first))
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        cells = next(csv.reader([first], delimiter=delimiter))
    except csv.Error as error:
        text = "the names in the first line of {file} cannot be read ({reason})"
        raise FileError("no-header", text, file=path, reason=error) from error
    if cells[-1].endswith(("\n", "\r")):
        text = "the first line of {file} ends inside quotes: the name of an item must not contain "
        text += "a line break, and its quotes must be closed"
        raise FileError("open-quotes", text, file=path)
    header = [unprotect_cell(name.strip()) for name in cells]
    if all(read_number(name) is not None for name in header):
        text = "the first line of {file} must hold the names of the items, but it holds numbers "
        text += "({numbers})"
        params = {"file": path, "numbers": first_names(header, 3)}
        raise FileError("no-header", text, params, advice="add a line of names")
    if not header[0] and len(header) > 1:
        header[0] = ROW_NAMES
    if "" in header:
        raise FileError(
            "unnamed-column",
            "each column of {file} needs a name, but column {column} has none ({n} of {n_columns} "
            "columns)",
            {"file": path, "column": header.index("") + 1, "n": header.count("")},
            advice="name it in the first line, or remove it",
            n_columns=len(header),
        )
    return header, delimiter


def empty_file_error(path: Path) -> FileError:
    """Return the error about a file without content."""
    text = "{file} is empty; expected a line with the names of the items and one line per sample"
    return FileError("empty-file", text, file=path)


def find_line(path: Path, row: int, n_columns: int, delimiter: str) -> int:
    """Return the line, counting from 1, at which a row, counting from 0, ends."""
    with suppress(csv.Error):  # A cell is too long.
        for seen, (line, _) in enumerate(_rows(path, n_columns, delimiter)):
            if seen == row + 1:
                return line
    return row + 2


def _check_line_lengths(path: Path, n_columns: int, delimiter: str) -> None:
    """Raise an error about the first line with another number of cells than the header."""
    uneven, last_line = [], 0
    try:
        for line, cells in _rows(path, n_columns, delimiter):
            last_line = line
            if len(cells) != n_columns:
                uneven.append((line, len(cells)))
    except (csv.Error, OSError, EOFError):
        return
    if uneven:
        line, n_cells = uneven[0]
        raise FileError(
            "uneven-lines",
            "each line of {file} must have {n_columns} cells, as the first has, but line {line} "
            "has {n_cells} ({n} such {lines})",
            {"file": path, "n_columns": n_columns, "line": line, "n_cells": n_cells},
            advice="the file seems to be truncated" if line == last_line else "correct the line",
            n=len(uneven),
            lines="line" if len(uneven) == 1 else "lines",
        ) from None


def _rows(path: Path, n_columns: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells, header included, without the lines that pyarrow skips."""
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        for cells in reader:
            if cells or n_columns == 1:
                yield reader.line_num, cells or [""]


def bad_cell_error(bad: dict[str, BadCells], table: Any, file: Path, n_columns: int) -> DataError:
    """Return the error about the first column of a file with cells that are not numbers."""
    name, found = next(iter(bad.items()))
    cells = table.column(name).to_pylist()
    cell = cells[found.row].strip()
    delimiter = read_header(file)[1]
    others = [repr(other) for other in list(bad)[1:]]
    more = f" and {len(others) - _MAX_COLUMNS} more" if len(others) > _MAX_COLUMNS else ""
    also = f", also {', '.join(others[:_MAX_COLUMNS])}{more}" if others else ""
    params: dict[str, Any] = {
        "file": file,
        "content": found.content,
        "item": name,
        "line": find_line(file, found.row, n_columns, delimiter),
        "cells": f"{found.count} of {table.num_rows} cells of this column",
        "columns": f"{len(bad)} of {table.num_columns} columns{also}",
    }
    where = " {content} in column {item!r}, line {line} ({cells}; {columns})"
    if found.among_booleans:
        code = "recode-boolean-cell" if can_be_option(cell) else "recode-boolean"
        text = "recode it as yes or no, or leave the cell empty if the answer is missing"
        template = "columns of yes and no must hold nothing else, but {file} has" + where
        advice = Advice(code, text, {"cell": cell})
        return DataError("cell-among-booleans", template, params, advice=advice)
    template = "cells must be numbers, but {file} has the text" + where
    point = None if delimiter == "," else find_decimal_point(table, table.column_names)
    about_commas = advise_on_commas(cell, cells, point)
    if about_commas:
        advice = Advice("", "{advice}", {"advice": about_commas})
        return DataError("number-with-comma", template, params, advice=advice)
    n_answers, labels = _n_answers(cells), _labels_of_columns(bad, table)
    code = "recode-column"
    if labels:
        code = "list-labels"
    elif found.count == n_answers >= _FEW_CELLS:
        code = "recode-text"
    elif 2 * found.count < n_answers and can_be_option(cell):
        code = "recode-cell"  # Where most answers are text, none of them means a missing answer.
    text = "recode {texts} as numbers, or leave the cell empty if the answer is missing"
    own = {"texts": _list_texts(cells), "cell": cell, "labels": Setting("words", labels)}
    return DataError("cell-not-a-number", template, params, advice=Advice(code, text, own))


def can_be_option(text: str) -> bool:
    """Return whether a text has none of the characters that separate the parts of an option."""
    return not set(text) & set(",<=")


def _labels_of_columns(bad: dict[str, BadCells], table: Any) -> dict[str, tuple[str, ...]]:
    """Return the labels of the columns that hold nothing but labels of categories."""
    out = {}
    for name, found in bad.items():
        cells = table.column(name).to_pylist()
        labels = find_labels(cells) if found.count == _n_answers(cells) else ()
        if labels and all(map(can_be_option, labels)):
            out[name] = labels
    return out


def _n_answers(cells: Sequence[str | None]) -> int:
    return sum(not is_missing(cell) for cell in cells)


def _list_texts(cells: Sequence[str | None]) -> str:
    """Return the texts of a column if they are few, else "the text"."""
    texts = sorted(cell for cell in {*cells} if cell is not None and read_number(cell) is None)
    if 1 < len(texts) <= _MAX_TEXTS:
        return ", ".join(map(repr, texts[:-1])) + f" and {texts[-1]!r}"
    return "the text"
