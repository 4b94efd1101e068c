"""Text files opened in the encoding that they are written in: UTF-8, UTF-16 or Windows-1252.

UTF-16 shows itself by its first bytes. Text that is no UTF-8 is taken for Windows-1252, in which
spreadsheets in the west of Europe write; in others of its kind the digits are the same, and only
letters of names would differ.
"""

from __future__ import annotations

import codecs
import gzip
import io
from functools import lru_cache
from pathlib import Path

from hidag.errors import FileError

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
