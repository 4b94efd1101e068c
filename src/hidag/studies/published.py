"""Published numbers: the means that the paper prints, as CSV files that come with the library.

``paper_tables/study1_shd.csv`` is Table 1 and ``study2_shd.csv`` are Tables 2 and S.1, typed off
the paper: they are what its authors found, and no code of ours had a hand in them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

from hidag.errors import FileError
from hidag.studies.catalogue import STUDIES
from hidag.studies.cells import Cell
from hidag.studies.methods import FITTED_METHODS
from hidag.studies.rules import CALIBRATED

#: Published mean SHD by cell, method and f(N); "" where a method has no f(N).
Published = Mapping[tuple[Cell, str, str], float]

#: Where the paper's tables lie.
PAPER_TABLES = Path(__file__).parent / "paper_tables"
#: What the paper's tables call its own method, and the f(N) that it recommends.
PAPERS_METHOD, PAPERS_RULE = "dcrl", "N"


def published_beside(
    published: Published, cell: Cell, method: str, rule: str | None
) -> float | None:
    """Return the published mean that one of our means is to stand beside, if there is one.

    A fit of ours stands beside the paper's own method with the same f(N); with a calibrated number
    of rows, beside f(N) = N. A baseline stands beside the published numbers of its name.
    """
    if method in FITTED_METHODS:
        beside = PAPERS_RULE if rule in (CALIBRATED, None) else str(rule)
        return published.get((cell, PAPERS_METHOD, beside))
    return published.get((cell, method, ""))


def read_published(
    folder: Path = PAPER_TABLES, studies: Iterable[str] = tuple(STUDIES)
) -> dict[tuple[Cell, str, str], float]:
    """Return the published mean SHD of each cell, method and f(N).

    Parameters
    ----------
    folder : Path
        With a file for each table, whose columns are model, q, family, n, method, f_n, mean_shd;
        the paper's own unless given.
    studies : iterable of str
        Whose tables are read.
    """
    out: dict[tuple[Cell, str, str], float] = {}
    for name in studies:
        file = STUDIES[name].published
        if file is not None:
            out |= _read_table(folder / file)
    return out


def _read_table(path: Path) -> dict[tuple[Cell, str, str], float]:
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            return {
                (
                    Cell(row["model"], row["q"], row["family"], int(row["n"])),
                    row["method"],
                    row["f_n"],
                ): float(row["mean_shd"])
                for row in csv.DictReader(stream)
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
