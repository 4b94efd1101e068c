"""What a user points the command line at: the table, its types and its Q-matrix."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hidag.cli.console import show_warning
from hidag.cli.weights import weights_beside, weights_in_words
from hidag.errors import DataError, FileError, SettingError
from hidag.observations import read_folder
from hidag.observations.files import read_columns
from hidag.observations.folders import read_q, read_types
from hidag.observations.paths import existing_file, find_part


@dataclass(frozen=True, eq=False)
class Source:
    """A table with what is known about it.

    Attributes
    ----------
    table : pyarrow.Table
    types : mapping from item to type, or None
    q : pyarrow.Table or None
    title : str
    files : tuple of Path
        All that was read, so that nothing of it is overwritten.
    notes : tuple of str
        What was used without being asked for.
    ids : tuple or None
        Names of the rows, where the user told which column has them.
    weights : ndarray or None
        Of the rows, where the user told which column has them.
    """

    table: Any
    types: Mapping[str, str] | None
    q: Any
    title: str
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    ids: tuple[Any, ...] | None = None
    weights: Any = None


def read_source(
    path: Path,
    types: Path | None,
    q: Path | None,
    *,
    use_folder_types: bool = True,
    use_folder_q: bool = True,
    optional_q: bool = True,
    id_column: str | None = None,
    weights_column: str | None = None,
) -> Source:
    """Return the table at a path; files named by the user win over those in its folder.

    What is about Q alone has no use for a table without it: ``optional_q=False``.
    """
    leave_out = tuple(name for name in (id_column, weights_column) if name is not None)
    try:
        found = read_folder(_existing_source(path), leave_out=leave_out)
    except DataError as error:
        # Not one number in a column of many lines: mostly names of the rows.
        if id_column is None and re.search(r"\((\d\d+) of \1 cells", str(error)):
            sentence = f"{error}; a column that names the rows is left out with --id COLUMN"
            raise DataError(sentence) from error
        raise
    beside = read_columns(path, (), leave_out)[1] if leave_out else {}
    ids = None if id_column is None else tuple(beside[id_column])
    items = tuple(found.table.column_names)
    files = [path] if path.is_file() else _files_in(path)
    notes = []
    weights = weights_beside(beside, weights_column)
    if weights is not None and weights_column is not None:
        notes.append(weights_in_words(weights, weights_column))
    words, matrix = found.types, found.q
    if words is not None and types is None:
        if use_folder_types:
            notes.append(f"types from {path / 'types.csv'}")
        else:
            words = None
            notes.append(f"{path / 'types.csv'} ignored, as --family names a type for all items")
    if types is not None:
        words = read_types(existing_file(types), items)
        files.append(types)
    if matrix is not None and q is None:
        if use_folder_q:
            ignore = " (ignore it with --no-q)" if optional_q else ""
            notes.append(f"Q-matrix from {path / 'q.csv'}{ignore}")
        else:
            matrix = None
    if q is not None:
        matrix = read_q(existing_file(q))
        files.append(q)
    return Source(found.table, words, matrix, found.title, tuple(files), tuple(notes), ids, weights)


def show_repeated_names(ids: Sequence[Any], column: str) -> None:
    """Warn of rows that a column names alike; they may be right, one person at two times."""
    counts = Counter(ids)
    often = [name for name, count in counts.items() if count > 1]
    if often:
        show_warning(
            f"column {column!r} names {counts[often[0]]} rows alike, {often[0]!r} ({len(often)} of "
            f"{len(counts)} names are used more than once): rows cannot be told apart by it"
        )


def names_for_all(asked: Sequence[str]) -> list[str]:
    """Return the types among the words of --family that are meant for all items."""
    return [word for word in asked if "=" not in word]


def chosen_families(
    asked: Sequence[str], types: Mapping[str, str] | None, items: Sequence[str]
) -> str | dict[str, str]:
    """Return the setting `family` of the estimator.

    Parameters
    ----------
    asked : sequence of str
        Each a type, for all items that nothing else is said about, or PATTERN=TYPE.
    types : mapping from item to type, or None
        What types.csv says; patterns win over it.
    items : sequence of str
    """
    general = names_for_all(asked)
    if len(general) > 1:
        raise SettingError(
            f"--family can name one type for all items, but it names {', '.join(general)}; use "
            "--family ITEM=TYPE for single items"
        )
    out = {item: general[0] for item in items} if general else {}
    out |= dict(types or {})
    for word in asked:
        if "=" not in word:
            continue
        pattern, _, family = word.rpartition("=")
        matching = [name for name in items if name == pattern or fnmatchcase(name, pattern)]
        if not matching:
            near = difflib.get_close_matches(pattern, items, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the first item is {items[0]!r}"
            raise SettingError(
                f"--family names the item {pattern!r}, which the table does not have; {hint}"
            )
        out |= dict.fromkeys(matching, family)
    if general and not types and len(asked) == 1:
        return general[0]
    return out or "auto"


def _existing_source(path: Path) -> Path:
    if not path.exists() and path.suffix:
        # A path with an ending was meant as a file; the sentence about files has better hints.
        return existing_file(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise FileError(f"{path} is neither a file nor a folder")
    return path


def _files_in(folder: Path) -> list[Path]:
    parts = (find_part(folder, stem) for stem in ("responses", "types", "q"))
    return [file for file in parts if file is not None]
