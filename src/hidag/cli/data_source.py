"""Read the table that a command names, with its types, Q-matrix, row identifiers and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.cli.messages import set_message_context
from hidag.cli.read_options import ReadOptions, match_names, parse_drop, parse_labels, parse_missing
from hidag.data.cells import advise_on_commas, describe_coding, is_boolean_column
from hidag.data.readers import (
    check_file_exists,
    column_names,
    find_part,
    read_folder,
    read_other_columns,
    read_q,
    read_types,
)
from hidag.data.rows import (
    effective_sample_size,
    nonempty_rows,
    scale_to_effective_size,
)
from hidag.data.table import read_table
from hidag.exceptions import Advice, DataError, FileError, SettingError
from hidag.formatting import join_names, plural

Array = NDArray[np.float64]
_MAX_NAMES = 4


@dataclass(frozen=True, eq=False)
class Source:
    """A table with the information that belongs to it.

    Attributes
    ----------
    table : pyarrow.Table
    types : mapping from item to type, or None
    q : pyarrow.Table or None
    title : str
    files : tuple of Path
        All files that were read, none of which may be overwritten.
    notes : tuple of str
        Conversions, and files that were used without an option.
    ids : tuple or None
        Row identifiers, if the user named their column.
    weights : ndarray or None
        Row weights, if the user named their column.
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
    reading: ReadOptions | None = None,
) -> Source:
    """Return the table at a path; files that the user names take precedence over its folder.

    ``optional_q=False`` is for commands that need a Q-matrix.
    """
    options = reading or ReadOptions()
    place = _check_path(path)
    others = tuple(n for n in (options.id_column, options.weights_column) if n is not None)
    names = column_names(place)
    dropped = parse_drop(options.drop, names)
    leave_out = (*others, *(name for name in dropped if name not in others))
    left = [name for name in names if name not in leave_out]
    codes, labels = parse_missing(options.missing, left), parse_labels(options.words, left)
    folder_q = use_folder_q and q is None
    set_message_context(items=tuple(names))
    columns, notes = read_other_columns(path, others, dropped) if others else ({}, ())
    found = read_folder(place, leave_out=leave_out, missing=codes, labels=labels, with_q=folder_q)
    items = tuple(found.table.column_names)
    set_message_context(items=items)
    if not items:
        raise DataError(
            "no-items-left",
            "{path} must have columns that are items, but all {n} of its columns are left out",
            advice="name fewer columns with --drop, --id and --weights",
            path=path,
            n=len(leave_out),
        )
    ids = None if options.id_column is None else tuple(columns[options.id_column])
    weights = read_weights(columns, options.weights_column, found.table)
    families, about_types = found.types, ""
    if types is not None:
        families = read_types(check_file_exists(types), items, leave_out)
    elif families is not None and use_folder_types:
        about_types = f"types from {path / 'types.csv'}"
    elif families is not None:
        families = None
        about_types = f"{path / 'types.csv'} ignored, as --family names a type for all items"
    if labels:
        families = {name: one.family for name, one in labels.items()} | dict(families or {})
    about_q = ""
    if found.q is not None:
        about_q = f"Q-matrix from {path / 'q.csv'}"
        about_q += " (ignore it with --no-q)" if optional_q else ""
    coded = (
        f"{describe_coding(one.labels)} in "
        f"{join_names([n for n in items if labels.get(n) == one], limit=_MAX_NAMES)}"
        for one in dict.fromkeys(labels.values())
    )
    files = [path] if path.is_file() else _files_in(path, with_q=folder_q)
    all_notes = (
        *found.notes,
        *notes,
        "" if weights is None else describe_weights(weights, options.weights_column or ""),
        _describe_booleans(boolean_columns(found.table)),
        *coded,
        about_types,
        about_q,
    )
    return Source(
        table=found.table,
        types=families,
        q=found.q if q is None else read_q(check_file_exists(q), leave_out),
        title=found.title,
        files=(*files, *(file for file in (types, q) if file is not None)),
        notes=tuple(note for note in all_notes if note),
        ids=ids,
        weights=weights,
    )


def _check_path(path: Path) -> Path:
    if not path.exists() and path.suffix:
        # A path with a suffix was meant as a file.
        return check_file_exists(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise FileError("odd-path", "{path} is neither a file nor a folder", path=path)
    return path


def _files_in(folder: Path, *, with_q: bool) -> list[Path]:
    stems = ("responses", "types", "q") if with_q else ("responses", "types")
    parts = (find_part(folder, stem) for stem in stems)
    return [file for file in parts if file is not None]


def boolean_columns(table: Any) -> list[str]:
    """Return the columns of a pyarrow table that hold booleans or yes and no."""

    def is_boolean(column: Any) -> bool:
        if str(column.type) == "bool":
            return True
        # A dictionary-encoded column of text has "string" in its type, too.
        cells = column.to_pylist() if "string" in str(column.type) else []
        return is_boolean_column(np.fromiter(cells, dtype=object, count=len(cells)))

    pairs = zip(table.column_names, table.columns, strict=True)
    return [name for name, column in pairs if is_boolean(column)]


def _describe_booleans(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = join_names(names, limit=_MAX_NAMES)
    return f"yes or true is read as 1 and no or false as 0 in {shown}"


# Weights.


def read_weights(
    columns: Mapping[str, Sequence[Any]], name: str | None, items: Any
) -> Array | None:
    """Return the weights in a column, scaled to the effective sample size; None without a name.

    Parameters
    ----------
    columns : mapping from str to sequence
        Columns that are not items.
    name : str or None
    items : pyarrow.Table
        The items; rows without any response get the weight 0.
    """
    if name is None:
        return None
    try:
        nonempty = nonempty_rows(read_table(items, allow_empty_items=True).values)
    except DataError:
        # Whoever reads the items next reports the error.
        nonempty = np.ones(len(columns[name]), dtype=bool)
    return scale_survey_weights(columns[name], name, nonempty)


def choose_kind_of_errors(weights: Array | None) -> str:
    """Return the kind of standard errors: robust ones for survey weights, which are no counts."""
    return "louis" if weights is None else "sandwich"


def scale_survey_weights(cells: Sequence[Any], name: str, nonempty: NDArray[np.bool_]) -> Array:
    """Return survey weights scaled to the effective sample size (Kish 1965), shape (N,).

    Parameters
    ----------
    cells : sequence, length N
        Of the column; 0 excludes a row.
    name : str
        Of the column.
    nonempty : ndarray of bool, shape (N,)
        Rows with a response.
    """
    weights = np.array(parse_numbers(cells, name), dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            "invalid-weight",
            "weights must be finite numbers >= 0, but column {column!r} has {weight:g} in row "
            "{row} below the names ({n} of {n_rows} rows)",
            advice="use 0 to exclude a row",
            column=name,
            weight=weights[bad[0]],
            row=bad[0] + 1,
            n=len(bad),
            n_rows=len(weights),
        )
    weights = np.where(nonempty, weights, 0.0)
    if (weights > 0).sum() < 2:
        raise DataError(
            "too-few-weights",
            "column {column!r} must have weights above zero in at least 2 rows{which}",
            column=name,
            which="" if nonempty.all() else " that have a response",
        )
    if effective_sample_size(weights) < 2:
        heaviest = int(weights.argmax())
        raise DataError(
            "dominant-weight",
            "the weights in column {column!r} have an effective sample size below 2: row {row} "
            "below the names has {weight:g} of {total:g}, nearly all of the weight",
            advice="check the weight of that row",
            column=name,
            row=heaviest + 1,
            weight=weights[heaviest],
            total=weights.sum(),
        )
    return scale_to_effective_size(weights)


def parse_numbers(cells: Sequence[Any], name: str) -> list[float]:
    """Return the cells of a column as numbers; none may be empty."""
    numbers = []
    bad = []
    for row, cell in enumerate(cells):
        try:
            numbers.append(float(cell))
        except (TypeError, ValueError):
            bad.append(row)
    if bad:
        first = cells[bad[0]]
        about_commas = advise_on_commas(first.strip(), cells) if isinstance(first, str) else ""
        advice = about_commas or "fill it in, or use 0 to exclude a row"
        raise DataError(
            "weight-not-a-number",
            "column {column!r} must hold a number in every row, but it has {content} in row {row} "
            "below the names ({n} of {n_rows} rows)",
            advice=Advice("", "{advice}", {"advice": advice}),
            column=name,
            content="nothing" if first is None or first == "" else repr(first),
            row=bad[0] + 1,
            n=len(bad),
            n_rows=len(cells),
        )
    return numbers


def describe_weights(weights: Array, name: str) -> str:
    """Return a note about the weights of a fit."""
    return (
        f"weights from column {name}: {plural(int((weights > 0).sum()), 'row')}, effective sample "
        f"size {weights.sum():,.0f}"
    )


# Families.


def families_for_all(given: Sequence[str]) -> list[str]:
    """Return the values of --family that are for all items."""
    return [word for word in given if "=" not in word]


def choose_families(
    given: Sequence[str], types: Mapping[str, str] | None, items: Sequence[str]
) -> str | dict[str, str]:
    """Return the estimator's setting `family`.

    Parameters
    ----------
    given : sequence of str
        Values of --family: a type for all other items, or PATTERN=TYPE.
    types : mapping from item to type, or None
        From types.csv; patterns take precedence.
    items : sequence of str
    """
    general = families_for_all(given)
    if len(general) > 1:
        raise SettingError(
            "several-types-for-all",
            "--family can name one type for all items, but it names {types}",
            advice="use --family ITEM=TYPE for single items",
            types=", ".join(general),
        )
    out = dict.fromkeys(items, general[0]) if general else {}
    out |= dict(types or {})
    for word in given:
        if "=" in word:
            pattern, _, family = word.rpartition("=")
            out |= dict.fromkeys(match_names(pattern, items, "--family"), family)
    if general and not types and len(given) == 1:
        return general[0]
    return out or "auto"
