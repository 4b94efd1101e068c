"""20 Newsgroups: word counts of documents as they lie in a folder, and a family by evidence.

A folder holds responses_sparse.csv.gz (row, col, count; from 0), vocabulary.csv (col, word) and
labels.csv (row, group, super). The labels are read for the comparison after the fit alone.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.readers import existing_file, read_file
from hidag.data.table import read_table
from hidag.exceptions import DataError, FileError
from hidag.model_selection.candidates import Table
from hidag_paper.applications.exploration import FamilyFit, compared_families

COUNTS, WORDS, LABELS = "responses_sparse.csv.gz", "vocabulary.csv", "labels.csv"
#: Documents and words of the fits that families are compared by.
ROWS_FOR_FAMILIES, WORDS_FOR_FAMILIES = 1500, 200


def files_of(folder: Path) -> list[Path]:
    """Return the files that are read."""
    return [folder / name for name in (COUNTS, WORDS, LABELS)]


def read_counts(folder: Path) -> Table:
    """Return the counts of all words in all documents, shape (N, J), as Poisson counts for now."""
    words = [row["word"] for row in _read_text(folder / WORDS, ("col", "word"))]
    triplets = read_table(read_file(existing_file(folder / COUNTS)))
    if tuple(triplets.names) != ("row", "col", "count"):
        raise DataError(
            f"{COUNTS} must have the columns row, col and count, but it has "
            f"{', '.join(triplets.names)}"
        )
    if np.isnan(triplets.values).any() or (triplets.values < 0).any():
        raise DataError(f"{COUNTS} must hold whole numbers from 0 up in every cell")
    row, col = (triplets.values[:, c].astype(np.intp) for c in (0, 1))
    if col.max() >= len(words):
        raise DataError(
            f"{COUNTS} names the word {col.max()}, but {WORDS} has {len(words)} words, from 0 on"
        )
    values = np.zeros((int(row.max()) + 1, len(words)))
    values[row, col] = triplets.values[:, 2]
    seen = np.flatnonzero((values > 0).any(axis=0))
    kept = read_table(values[:, seen], names=[words[j] for j in seen])
    return Table(kept, ("poisson",) * kept.n_items)


@dataclass(frozen=True)
class Labels:
    """What the documents are about, as their newsgroups say; no fit sees it.

    Attributes
    ----------
    group, topic : ndarray of str, shape (N,)
        Newsgroup, and the first part of its name.
    """

    group: NDArray[np.str_]
    topic: NDArray[np.str_]


def read_labels(folder: Path, n_rows: int) -> Labels:
    """Return the labels, one for each document."""
    rows = _read_text(folder / LABELS, ("row", "group", "super"))
    rows.sort(key=lambda row: int(row["row"]))
    if len(rows) != n_rows:
        raise DataError(f"{LABELS} must have a row for each of {n_rows} documents, not {len(rows)}")
    return Labels(
        np.array([row["group"] for row in rows]), np.array([row["super"] for row in rows])
    )


def count_families(table: Table, settings: Mapping[str, Any]) -> list[FamilyFit]:
    """Return fits with each family of counts to some documents and the most frequent words.

    Documents are evenly spaced through the table: enough to tell families apart, at a fraction of
    the cost.
    """
    values = table.values
    rows = np.unique(np.linspace(0, len(values) - 1, ROWS_FOR_FAMILIES).astype(np.intp))
    words = np.sort(np.argsort(-values[rows].sum(axis=0), kind="stable")[:WORDS_FOR_FAMILIES])
    some = replace(
        table.observations,
        values=values[np.ix_(rows, words)],
        names=tuple(table.observations.names[j] for j in words),
    )
    return compared_families(lambda family: Table(some, (family,) * len(words)), settings)


def _read_text(path: Path, needed: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a small CSV file of words."""
    try:
        with existing_file(path).open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot read {path}: {error}") from error
    for name in needed:
        if not rows or rows[0].get(name) is None:
            raise DataError(f"{path.name} must have rows with the columns {', '.join(needed)}")
    return rows
