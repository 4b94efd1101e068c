"""Rows of a study in a file that grows by one line a run and survives being cut off anywhere.

Each line is one flat JSON object. A line counts once its newline is there: what follows the last
newline was being written when the process ended, and is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hidag.errors import FileError

Row = dict[str, Any]

#: What a row has in any study.
_NEEDED = {"address", "cell", "replicate", "status"}


def read_rows(path: Path) -> list[Row]:
    """Return the complete rows of a file, in the order in which they were written.

    A line that ends in a newline but is no row was not cut off but altered, and is refused, since
    leaving it out would leave a run out.
    """
    if not path.exists():
        return []
    rows = []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error
    for number, line in enumerate(lines[:-1], start=1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or not row.keys() >= _NEEDED:
                raise ValueError("not a row")
        except ValueError as error:
            raise FileError(
                f"line {number} of {path} is not a row of a study; restore the file, or delete the "
                "line and run the study again to fill it in"
            ) from error
        rows.append(row)
    return rows


def drop_torn_line(path: Path) -> bool:
    """Cut off what follows the last newline; return whether there was anything."""
    if not path.exists():
        return False
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole == len(content):
        return False
    with path.open("r+b") as stream:
        stream.truncate(whole)
        os.fsync(stream.fileno())
    return True


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row in one write, and wait until it is on the disk."""
    line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        with path.open("ab", buffering=0) as stream:
            stream.write(line.encode())
            os.fsync(stream.fileno())
    except OSError as error:
        raise FileError(
            f"cannot write to {path}: {error.strerror or error}; the rows written so far are kept: "
            "run the same command again to go on"
        ) from error
