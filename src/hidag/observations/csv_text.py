"""A CSV file as a table of text, and the lines at which it goes wrong.

pyarrow reads the file fast; when it gives up, or when a cell turns out to be no number, the file
is walked once more with the standard library, which knows the line numbers.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hidag.errors import FileError
from hidag.extras import import_extra
from hidag.observations.alike_names import told_apart
from hidag.observations.cells import MISSING_WORDS, read_number
from hidag.observations.text_encoding import UTF_8, encoding_of, open_text

_DELIMITERS = (",", ";", "\t")


def import_arrow(module: str) -> Any:
    """Return a module of pyarrow, or say how to install it."""
    return import_extra(module, "reading files", "io")


def read_text_columns(path: Path) -> Any:
    """Return the file as a pyarrow Table whose columns are text, null where nothing is written.

    Columns that are named alike are told apart.

    Parameters
    ----------
    path : Path
        An existing file that ends in .csv or .tsv, perhaps followed by .gz.

    Raises
    ------
    FileError
        If the file is empty, has no header, is no text, or has a line with too few or too many
        cells.
    """
    arrow = import_arrow("pyarrow")
    arrow_csv = import_arrow("pyarrow.csv")
    names, delimiter = read_header(path)
    header = told_apart(names)
    encoding = encoding_of(path)
    text = arrow.string()
    try:
        return arrow_csv.read_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(
                column_names=header,
                skip_rows_after_names=1,
                encoding="utf8" if encoding == UTF_8 else encoding,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                # With one column an empty line is a missing cell; else it is only an empty line.
                ignore_empty_lines=len(header) > 1,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, text),
                strings_can_be_null=True,
                null_values=sorted(MISSING_WORDS),
            ),
        )
    except (arrow.ArrowInvalid, OSError, EOFError) as error:
        _refuse_ragged(path, len(header), delimiter)
        raise FileError(
            f"{path} cannot be read as a table of text; it may be cut off or of another format "
            f"({error})"
        ) from error


def line_of_row(path: Path, row: int, n_columns: int, delimiter: str) -> int:
    """Return the line, counting from 1, at which a row of cells, counting from 0, ends."""
    with _lines(path, delimiter) as reader:
        for seen, (line, _) in enumerate(_rows(reader, n_columns)):
            if seen == row + 1:
                return line
    return row + 2


def delimiter_of(path: Path) -> str:
    """Return the character between the cells of the file, as its first line shows it."""
    return read_header(path)[1]


def read_header(path: Path) -> tuple[list[str], str]:
    """Return the column names and the delimiter, as the first line of the file shows them.

    Names may come twice there.
    """
    try:
        with open_text(path) as file:
            first = file.readline()
    except FileError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(
            f"{path} cannot be opened; it may be protected, cut off or of another format ({error})"
        ) from error
    if not first.strip():
        raise FileError(
            f"{path} is empty; expected a line with the names of the items and one line per sample"
        )
    delimiter = max(_DELIMITERS, key=first.count)
    cells = next(csv.reader([first], delimiter=delimiter))
    if cells[-1].endswith(("\n", "\r")):
        raise FileError(
            f"the first line of {path} ends inside quotes: the name of an item must not hold a "
            "line break, and its quotes must be closed"
        )
    header = [name.strip() for name in cells]
    _refuse_bad_header(path, header)
    return header, delimiter


def _refuse_bad_header(path: Path, header: list[str]) -> None:
    if all(read_number(name) is not None for name in header):
        raise FileError(
            f"the first line of {path} must hold the names of the items, but it holds numbers "
            f"({', '.join(header[:3])}{', ...' if len(header) > 3 else ''}); add a line of names"
        )
    if "" in header:
        column = header.index("") + 1
        raise FileError(
            f"each column of {path} needs a name, but column {column} has none "
            f"({header.count('')} of {len(header)} columns); if it holds row numbers, write the "
            "file without them (row.names=FALSE in R, index=False in pandas)"
        )


def _refuse_ragged(path: Path, n_columns: int, delimiter: str) -> None:
    """Raise the sentence for the first line that does not have as many cells as the header."""
    n_odd, first, last_line = 0, (0, 0), 0
    try:
        with _lines(path, delimiter) as reader:
            for line, cells in _rows(reader, n_columns):
                last_line = line
                if len(cells) != n_columns:
                    first = first if n_odd else (line, len(cells))
                    n_odd += 1
    except (csv.Error, OSError, EOFError):
        return
    if n_odd:
        line, n_cells = first
        cause = "the file seems to be cut off" if line == last_line else "repair the line"
        raise FileError(
            f"each line of {path} must have {n_columns} cells, as the first has, but line {line} "
            f"has {n_cells} ({n_odd} such {'line' if n_odd == 1 else 'lines'}); {cause}"
        ) from None


def _rows(reader: Any, n_columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells, header included, skipping the lines that pyarrow skips."""
    for cells in reader:
        if cells or n_columns == 1:
            yield reader.line_num, cells or [""]


@contextmanager
def _lines(path: Path, delimiter: str) -> Iterator[Any]:
    with open_text(path) as file:
        yield csv.reader(file, delimiter=delimiter)
