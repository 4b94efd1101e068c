"""What a user points the command line at: the table, its types and its Q-matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.cli.messages import set_message_context
from hidag.cli.read_options import Reading, codes_of, dropped_of, matching, words_of
from hidag.data.csv_text import holds_truth_words
from hidag.data.nonnumeric_cells import advice_on_commas, numbered
from hidag.data.readers import (
    column_names,
    existing_file,
    find_part,
    read_folder,
    read_labels,
    read_q,
    read_types,
)
from hidag.data.sample_weights import effective_number, rows_with_answers, scaled_to_effective
from hidag.data.table import read_table
from hidag.exceptions import DataError, FileError, SettingError
from hidag.formatting import plural
from hidag.identifiability.findings import join_names

# --- Weights of rows, as surveys give them: a column beside the items

Array = NDArray[np.float64]


def numbers_of(cells: Sequence[Any], name: str) -> list[float]:
    """Return the cells of a column as numbers; an empty one is refused."""
    numbers = [_number_or_none(cell) for cell in cells]
    bad = [row for row, number in enumerate(numbers) if number is None]
    if bad:
        first = cells[bad[0]]
        came = "nothing" if first is None or first == "" else repr(first)
        about_commas = advice_on_commas(first.strip(), cells) if isinstance(first, str) else ""
        advice = about_commas or "fill it in, or use 0 to leave a row out"
        raise DataError(
            f"column {name!r} must hold a number in every row, but it has {came} in row "
            f"{bad[0] + 1} below the names ({len(bad)} of {len(cells)} rows); {advice}"
        )
    return [number for number in numbers if number is not None]


def _number_or_none(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def weights_beside(
    columns: Mapping[str, Sequence[Any]], name: str | None, items: Any
) -> Array | None:
    """Return the weights of the column that was named, scaled as fits take them; None for no name.

    Parameters
    ----------
    columns : mapping from str to sequence
        Columns beside the items, as they stand in the file.
    name : str or None
    items : pyarrow.Table
        The items; rows without any answer to them get the weight 0.
    """
    if name is None:
        return None
    try:
        answered = rows_with_answers(read_table(items, allow_empty_items=True).values)
    except DataError:
        # Whatever reads the items next says what is wrong with them.
        answered = np.ones(len(columns[name]), dtype=bool)
    return survey_weights(columns[name], name, answered)


def kind_of_errors(weights: Array | None) -> str:
    """Return the kind of standard errors that rows with such weights call for.

    A survey's weights are no counts of rows: the observed information would take them for that.
    """
    return "louis" if weights is None else "sandwich"


def survey_weights(cells: Sequence[Any], name: str, answered: NDArray[np.bool_]) -> Array:
    """Return weights that add up to as many rows as the weighted ones tell as much as.

    A survey's weight says how many people a row stands for; a fit that took it for so many rows
    would be far too sure. Unequal weights tell less than equal ones: the rows are worth the square
    of the weights' sum over the sum of their squares (Kish 1965).

    Parameters
    ----------
    cells : sequence
        Of the column, one per row; 0 leaves a row out.
    name : str
        Of the column.
    answered : ndarray of bool, shape (N,)
        Rows that hold an answer: what others weigh tells nothing.
    """
    weights = np.array(numbers_of(cells, name), dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"weights must be finite numbers >= 0, but column {name!r} has {weights[bad[0]]:g} in "
            f"row {bad[0] + 1} below the names ({len(bad)} of {len(weights)} rows); use 0 to leave "
            "a row out"
        )
    weights = np.where(answered, weights, 0.0)
    if (weights > 0).sum() < 2:
        with_answer = "" if answered.all() else " that have an answer"
        raise DataError(
            f"column {name!r} must have weights above zero in at least 2 rows{with_answer}"
        )
    if effective_number(weights) < 2:
        heaviest = int(weights.argmax())
        raise DataError(
            f"the weights in column {name!r} let the table tell less than 2 rows of equal weight "
            f"would: row {heaviest + 1} below the names carries {weights[heaviest]:g} of "
            f"{weights.sum():g}, nearly all of the weight; look at the weight of that row"
        )
    return scaled_to_effective(weights)


def weights_in_words(weights: Array, name: str) -> str:
    """Return what a fit is told about its rows' weights."""
    return (
        f"weights from column {name}: {plural(int((weights > 0).sum()), 'row')} tell as much as "
        f"{weights.sum():,.0f} of equal weight"
    )


# ---

_SHOWN_NAMES = 4


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
    reading: Reading | None = None,
) -> Source:
    """Return the table at a path; files named by the user win over those in its folder.

    What is about Q alone has no use for a table without it: ``optional_q=False``.
    """
    said = reading or Reading()
    place = _existing_source(path)
    beside = tuple(name for name in (said.id_column, said.weights_column) if name is not None)
    leave_out, dropped, codes, answers = beside, [], {}, {}
    if said.drop or said.missing or said.words:
        names = column_names(place)
        dropped = dropped_of(said.drop, names)
        leave_out = (*beside, *(n for n in dropped if n not in beside))
        left = [name for name in names if name not in leave_out]
        codes, answers = codes_of(said.missing, left), words_of(said.words, left)
    folder_q = use_folder_q and q is None
    set_message_context(items=tuple(column_names(place)))
    labels, label_notes = read_labels(path, beside, dropped) if beside else ({}, ())
    found = read_folder(place, leave_out=leave_out, missing=codes, words=answers, with_q=folder_q)
    set_message_context(items=tuple(found.table.column_names))
    ids = None if said.id_column is None else tuple(labels[said.id_column])
    items = tuple(found.table.column_names)
    if not items:
        raise DataError(
            f"{path} must have columns that are items, but all {len(leave_out)} of its columns are "
            "left out; name fewer with --drop, --id and --weights"
        )
    files = [path] if path.is_file() else _files_in(path, with_q=folder_q)
    notes = [*found.notes, *label_notes]
    weights = weights_beside(labels, said.weights_column, found.table)
    if weights is not None and said.weights_column is not None:
        notes.append(weights_in_words(weights, said.weights_column))
    truths = truth_columns(found.table)
    if truths:
        shown = join_names(truths, limit=_SHOWN_NAMES)
        notes.append(f"yes or true is read as 1 and no or false as 0 in {shown}")
    for one in dict.fromkeys(answers.values()):
        alike = [name for name in items if answers.get(name) == one]
        notes.append(f"{numbered(one.words)} in {join_names(alike, limit=_SHOWN_NAMES)}")
    words, matrix = found.types, found.q
    if words is not None and types is None:
        if use_folder_types:
            notes.append(f"types from {path / 'types.csv'}")
        else:
            words = None
            notes.append(f"{path / 'types.csv'} ignored, as --family names a type for all items")
    if types is not None:
        words = read_types(existing_file(types), items, leave_out)
        files.append(types)
    if answers:
        words = {name: one.family for name, one in answers.items()} | dict(words or {})
    if matrix is not None:
        ignore = " (ignore it with --no-q)" if optional_q else ""
        notes.append(f"Q-matrix from {path / 'q.csv'}{ignore}")
    if q is not None:
        matrix = read_q(existing_file(q), leave_out)
        files.append(q)
    return Source(found.table, words, matrix, found.title, tuple(files), tuple(notes), ids, weights)


def truth_columns(table: Any) -> list[str]:
    """Return the columns of a table that hold truth values or words for them, and no numbers."""
    return [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if str(column.type) == "bool" or (_is_text(column.type) and _holds_truth_words(column))
    ]


def _is_text(kind: Any) -> bool:
    # Words that repeat are often kept as numbers of a dictionary.
    return "string" in str(kind)


def _holds_truth_words(column: Any) -> bool:
    return holds_truth_words(np.fromiter(column.to_pylist(), dtype=object, count=len(column)))


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
        out |= dict.fromkeys(matching(pattern, items, "--family"), family)
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


def _files_in(folder: Path, *, with_q: bool) -> list[Path]:
    stems = ("responses", "types", "q") if with_q else ("responses", "types")
    parts = (find_part(folder, stem) for stem in stems)
    return [file for file in parts if file is not None]
