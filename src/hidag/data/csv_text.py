"""A CSV file as a table of text, and the lines at which it goes wrong.

pyarrow reads the file fast; when it gives up, or when a cell turns out to be no number, the file
is walked once more with the standard library, which knows the line numbers.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import decimal
import gzip
import io
import numbers
import re
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Advice, FileError, import_extra

# --- Cells that are Python objects or text, turned into numbers one column at a time

MISSING_WORDS = frozenset({"", "NA", "NaN", "nan", "null", "None", "."})
"""Text that stands for a missing answer, in files as well as in text columns of a table."""

TRUTH_WORDS = {
    "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0,
}  # fmt: skip
"""Text (in any case) that is read as 1 and 0 when a column holds nothing else."""

# float() alone would also read '1_000' and digits of other scripts, which no table writer means.
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)\Z")
# Names of rows and codes are written so, counts are not; 0 and 0.5 need their zero.
LEADING_ZEROS = r"\s*0[0-9]+\s*"
_PADDED = re.compile(LEADING_ZEROS)
_PLAIN_TYPES = frozenset({float, int, bool, type(None), np.float64, np.int64, np.bool_})
_DATE_TYPES = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    np.datetime64,
    np.timedelta64,
)

BadKind = Literal["text", "date", "object", "complex"]


@dataclass(frozen=True)
class BadCells:
    """The cells of one column that are not numbers: how many, and the first of them.

    Attributes
    ----------
    kind : {"text", "date", "object", "complex"}
        What the first bad cell is.
    row : int
        Position of the first bad cell, counting from 0.
    content : str
        The first bad cell as the reader would write it, shortened.
    type_name : str
    count : int
    beside_truths : bool
        Whether most other cells are yes and no or so; then these do not count as bad.
    """

    kind: BadKind
    row: int
    content: str
    type_name: str
    count: int
    beside_truths: bool = False


def numbers_from_cells(cells: NDArray[np.object_]) -> tuple[NDArray[np.float64], BadCells | None]:
    """Return one column as float64, NaN for missing, and what could not be read.

    Parameters
    ----------
    cells : ndarray of object, shape (N,)
        Numbers, text that reads as a number, booleans, and anything that marks a missing answer:
        None, NaN, pandas' NA and NaT, or one of `MISSING_WORDS`.

    Returns
    -------
    values : ndarray of float64, shape (N,)
        Bad cells are NaN.
    bad : BadCells or None
    """
    listed = cells.tolist()
    # Most object columns hold plain numbers and None only; numpy reads those at C speed.
    if set(map(type, listed)) <= _PLAIN_TYPES:
        try:
            return cells.astype(np.float64), None
        except OverflowError:  # a whole number beyond float64: found again below, as an infinity
            pass
    values = np.full(len(listed), np.nan)
    bad_rows: list[int] = []
    first_kind: BadKind = "text"
    na = _missing_objects()
    for row, cell in enumerate(listed):
        number, kind = _read_cell(cell, na)
        values[row] = number
        if kind is not None:
            if not bad_rows:
                first_kind = kind
            bad_rows.append(row)
    if not bad_rows:
        return values, None
    if (truth := _read_truth(listed, bad_rows, values)) is not None:
        return truth, None
    stray = _beside_truths(listed, values, bad_rows)
    rows = stray or bad_rows
    first = listed[rows[0]]
    return values, BadCells(
        kind=_read_cell(first, na)[1] or "text" if stray else first_kind,
        row=rows[0],
        content=shorten(first),
        type_name=type(first).__name__,
        count=len(rows),
        beside_truths=bool(stray),
    )


def has_leading_zeros(cells: NDArray[np.object_]) -> bool:
    """Return whether some cell is text such as '007', a whole number with needless zeros."""
    return any(isinstance(cell, str) and _PADDED.fullmatch(cell) for cell in cells.tolist())


def holds_truth_words(cells: NDArray[np.object_]) -> bool:
    """Return whether a column holds yes and no or so, and nothing else but missing answers."""
    words = any(isinstance(c, str) and c.strip().lower() in TRUTH_WORDS for c in cells.tolist())
    return words and numbers_from_cells(cells)[1] is None


def shorten(cell: Any, width: int = 40) -> str:
    """Return the cell as it is written in Python, cut to `width` characters."""
    if isinstance(cell, datetime.date | datetime.timedelta | datetime.time | np.generic):
        written = str(cell)
    else:
        written = repr(cell)
    return written if len(written) <= width else written[: width - 3] + "..."


def is_missing(cell: Any) -> bool:
    """Return whether a cell of text or of numbers holds no answer."""
    if isinstance(cell, str):
        cell = read_number(cell) or 0.0  # text that is no number is an answer
    return cell is None or bool(cell != cell)


def read_number(text: str) -> float | None:
    """Return the number that `text` spells, NaN for a missing word, None when it is neither."""
    text = text.strip()
    if text in MISSING_WORDS:
        return float("nan")
    return float(text) if _NUMBER.match(text.lower()) else None


def _missing_objects() -> tuple[Any, ...]:
    """Return pandas' NA and NaT if pandas is in use; if it is not, no cell can hold them."""
    pandas = sys.modules.get("pandas")
    return () if pandas is None else (pandas.NA, pandas.NaT)


def _read_cell(cell: Any, na: tuple[Any, ...]) -> tuple[float, BadKind | None]:
    """Return the number in a cell (NaN for missing), and what is wrong with it, if anything."""
    nan = float("nan")
    if cell is None or cell is np.ma.masked or any(cell is marker for marker in na):
        return nan, None
    if isinstance(cell, bytes):
        cell = cell.decode("latin-1")
    if isinstance(cell, str):
        number = read_number(cell)
        return (nan, "text") if number is None else (number, None)
    if isinstance(cell, _DATE_TYPES):
        return nan, "date"
    if isinstance(cell, decimal.Decimal):
        return (nan if cell.is_nan() else float(cell)), None
    if isinstance(cell, numbers.Real | np.bool_):
        try:
            return float(cell), None
        except OverflowError:
            return float("inf"), None
    return nan, ("complex" if isinstance(cell, numbers.Complex) else "object")


def _read_truth(
    listed: list[Any], bad_rows: list[int], values: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the column read as yes and no or so, or None when it holds anything else."""
    if not np.isnan(values).all():
        return None
    truth = values.copy()
    for row in bad_rows:
        word = listed[row]
        if not isinstance(word, str) or (key := word.strip().lower()) not in TRUTH_WORDS:
            return None
        truth[row] = TRUTH_WORDS[key]
    return truth


def _beside_truths(
    listed: list[Any], values: NDArray[np.float64], bad_rows: list[int]
) -> list[int]:
    """Return the rows of what stands among yes and no or so; none where these are not most.

    Both have to come up: F among M is no false.
    """
    words = [c.strip().lower() if isinstance(c, str) else None for c in listed]
    meant = {TRUTH_WORDS[word] for word in words if word in TRUTH_WORDS}
    answers = sorted({*bad_rows, *np.flatnonzero(~np.isnan(values)).tolist()})
    others = [row for row in answers if words[row] not in TRUTH_WORDS]
    return others if len(meant) == 2 and 2 * len(others) < len(answers) else []


# --- Text files opened in the encoding that they are written in: UTF-8, UTF-16 or Windows-1252

UTF_8 = "utf-8-sig"
"""Spreadsheets like to begin a file with a byte order mark, which is no part of the first name."""
WINDOWS = "cp1252"
_UTF_16 = "utf-16"
_CHUNK = 1 << 20
"""Characters looked at in one go."""


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file, perhaps compressed, or say that it is none."""
    state = path.stat()
    return _encoding(path, state.st_mtime_ns, state.st_size)


def open_text(path: Path, encoding: str | None = None) -> io.TextIOBase:
    """Return the file opened for reading, line ends kept; in its own encoding unless given."""
    own = encoding or encoding_of(path)
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding=own, newline="")
    return path.open(encoding=own, newline="")


@lru_cache(maxsize=16)
def _encoding(path: Path, modified: int, size: int) -> str:
    """Return the encoding; time and size tell when a file has become another."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as binary:
        first = binary.read(2)
    marked = first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    for encoding in (_UTF_16,) if marked else (UTF_8, WINDOWS):
        if _reads_as(path, encoding):
            return encoding
    raise FileError(f"{path} is not a text file in UTF-8; save it as CSV with the encoding UTF-8")


def _reads_as(path: Path, encoding: str) -> bool:
    """Return whether all of a file is text in an encoding; text holds no zero bytes."""
    try:
        with open_text(path, encoding) as file:
            return not any("\0" in chunk for chunk in iter(lambda: file.read(_CHUNK), ""))
    except UnicodeDecodeError:
        return False


# --- Columns of a file that are named alike: told apart, so that single ones can be left out


def told_apart(names: Sequence[str]) -> list[str]:
    """Return names of which none comes twice: the second 'score' is 'score#2', and so on.

    The first keeps its name, as columns of another file that are no question have it, too.
    """
    own = set(names)
    seen: Counter[str] = Counter()
    out = []
    for name in names:
        seen[name] += 1
        marked = name if seen[name] == 1 else f"{name}#{seen[name]}"
        while marked != name and marked in own:
            marked += "'"
        out.append(marked)
    return out


def refuse_alike(file: Path, names: Sequence[str], left_out: Collection[str] | None) -> None:
    """Raise the sentence about columns of a file that are named alike, unless one of them is left.

    Parameters
    ----------
    file : Path
    names : sequence of str
        As they stand in the file.
    left_out : collection of str, or None
        Columns that nobody wants, as `told_apart` has them; None where all are wanted.
    """
    marked = told_apart(names)
    gone = left_out or ()
    kept = Counter(name for name, own in zip(names, marked, strict=True) if own not in gone)
    twice = [name for name, count in kept.items() if count > 1]
    if not twice:
        return
    alike = [own for name, own in zip(names, marked, strict=True) if name == twice[0]]
    raise FileError(
        "duplicate-column-names",
        "the column names of {file} must be unique, but {name!r} occurs {count} times ({n} of "
        "{n_names} names occur more than once)",
        advice=Advice(
            "rename-columns" if left_out is None else "drop-duplicate-name",
            "rename the columns in the file, or remove them",
        ),
        file=file,
        name=twice[0],
        count=kept[twice[0]],
        n=len(twice),
        n_names=len(kept),
        last=[own for own in alike if own not in gone][-1],
    )


# ---

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
