"""Published numbers, read from the paper's tables as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from hidag.errors import FileError
from hidag.studies.catalogue import STUDIES
from hidag.studies.cells import Cell

#: The rows that our numbers stand beside: the paper's own method on as many rows as were observed.
_METHOD, _ROWS = "dcrl", "N"


def read_published(folder: Path, studies: Iterable[str] = tuple(STUDIES)) -> dict[Cell, float]:
    """Return the published mean SHD of each cell.

    Parameters
    ----------
    folder : Path
        With a file for each table, whose columns are model, q, family, n, method, f_n, mean_shd.
    studies : iterable of str
        Whose tables are read.
    """
    out: dict[Cell, float] = {}
    for name in studies:
        file = STUDIES[name].published
        if file is not None:
            out |= _read_table(folder / file)
    return out


def _read_table(path: Path) -> dict[Cell, float]:
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            return {
                Cell(row["model"], row["q"], row["family"], int(row["n"])): float(row["mean_shd"])
                for row in csv.DictReader(stream)
                if row["method"] == _METHOD and row["f_n"] == _ROWS
            }
    except OSError as error:
        raise FileError(
            f"cannot read published numbers from {path}: {error.strerror or error}; --published "
            "takes the folder that holds this file"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{path} is not a table of published numbers: expected the columns model, q, family, "
            "n, method, f_n and mean_shd"
        ) from error
