"""Read the table that a command names, by options about its columns that a fit stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.cli.console import show_warning
from hidag.cli.folders import FIT_SIGN
from hidag.cli.messages import set_message_context
from hidag.cli.options import split_known
from hidag.data import readers
from hidag.data.cells import CategoryLabels, advise_on_commas, describe_coding, is_boolean_column
from hidag.data.rows import nonempty_rows, scale_survey_weights
from hidag.data.table import read_table
from hidag.exceptions import (
    Advice,
    DataError,
    FileError,
    Message,
    Setting,
    SettingError,
    suggest_name,
)
from hidag.formatting import join_names, plural
from hidag.results import FitResult

Array = NDArray[np.float64]
_MAX_NAMES = 4


@dataclass(frozen=True)
class ReadOptions:
    """Options about the columns of a table, as typed."""

    id_column: str | None = None
    weights_column: str | None = None
    missing: Sequence[str] = ()
    drop: Sequence[str] = ()
    words: Sequence[str] = ()


def store_options(result: FitResult, options: ReadOptions) -> FitResult:
    """Return a fit that stores how its table was read."""
    labels = parse_labels(options.words, result.item_names)
    reading = {name: value for name, value in asdict(options).items() if value}
    words = {name: list(one.labels) for name, one in labels.items()}
    return replace(result, reading=reading, answer_words={**result.answer_words, **words})


def read_items(
    result: FitResult, table: Path, others: Sequence[str | None], missing: Sequence[str] | None
) -> tuple[Any, dict[str, list[Any]]]:
    """Return the items of a fit in a table, with its codes by default, and other columns."""
    stored = ReadOptions(**result.reading)
    set_message_context(items=result.item_names, weights_column=stored.weights_column)
    items, columns, _ = readers.read_columns(
        table,
        result.item_names,
        [name for name in others if name is not None],
        missing=parse_missing(missing or stored.missing, result.item_names),
        labels=parse_labels(stored.words, result.item_names),
        # Another table may lack the columns that were dropped from the fit's table.
        leave_out=parse_drop(stored.drop, readers.column_names(table), required=False),
    )
    return items, columns


def find_id_column(result: FitResult, table: Path, given: str | None) -> str | None:
    """Return the column of row identifiers: the given one, or the fit's if the table has it."""
    stored = ReadOptions(**result.reading).id_column
    if given is not None or stored is None:
        return given
    return stored if stored in readers.column_names(table) else None


def parse_missing(missing: Sequence[str], items: Sequence[str]) -> dict[str, list[str]]:
    """Return the codes for missing answers by item."""
    out: dict[str, list[str]] = {}
    for text in missing:
        pattern, sign, words = text.rpartition("=")
        codes = [word.strip() for word in words.split(",") if word.strip()]
        if not codes:
            template = "--missing takes CODES or COLUMN=CODES, such as 99,-9, got {text!r}"
            raise SettingError("invalid-option", template, text=text)
        for item in match_names(pattern, items, "--missing") if sign else items:
            out.setdefault(item, []).extend(codes)
    return out


def parse_labels(words: Sequence[str], items: Sequence[str]) -> dict[str, CategoryLabels]:
    """Return the labels of categories by item."""
    out: dict[str, CategoryLabels] = {}
    for text in words:
        # Names may contain the sign, and so may labels: the first part that is a name decides.
        cuts = [place for place, letter in enumerate(text) if letter == "="]
        known = [c for c in cuts if any(_matches(name, text[:c].strip()) for name in items)]
        cut = next(iter(known or cuts), 0)
        pattern, sign, listed = text[:cut], text[cut : cut + 1], text[cut + 1 :]
        if not sign or not pattern or not ("<" in listed or "," in listed):
            template = (
                "--words takes COLUMN=LABELS, separated by commas, or by < if they are ordered, "
                "such as 'mood=low<middle<high', got {text!r}"
            )
            raise SettingError("invalid-option", template, text=text)
        matching = match_names(pattern.strip(), items, "--words")
        out |= dict.fromkeys(matching, CategoryLabels.parse(listed))
    return out


def parse_drop(drop: Sequence[str], columns: Sequence[str], *, required: bool = True) -> list[str]:
    """Return the columns to leave out; each pattern must match one if ``required``."""
    if not all(text.strip() for text in drop):
        raise SettingError("invalid-option", "--drop takes names of columns, got nothing")
    parts = (part for text in drop for part in split_known(text, lambda name: name in columns))
    patterns = [part for part in parts if part]
    if required:
        for pattern in patterns:
            match_names(pattern, columns, "--drop", "column")
    return [name for name in columns if any(_matches(name, pattern) for pattern in patterns)]


def match_names(pattern: str, names: Sequence[str], option: str, what: str = "item") -> list[str]:
    """Return the names that equal or match a pattern, at least one."""
    found = [name for name in names if _matches(name, pattern)]
    if not found:
        template = "{option} names the {what} {pattern!r}, which the table does not have"
        params = {"option": option, "what": what, "pattern": pattern, "first": names[0]}
        advice = suggest_name(pattern, names, "the first {what} is {first!r}")
        raise SettingError("unknown-name", template, params, advice=advice)
    return found


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def warn_of_ids(ids: Sequence[Any], column: str) -> None:
    """Show warnings about row identifiers that are missing or repeated."""
    blank = [row for row, name in enumerate(ids) if _is_blank(name)]
    if blank:
        template = "column {column!r} has no identifier for {rows} ({n} of {n_rows} rows)"
        facts = {"rows": _list_rows(blank), "n": len(blank), "n_rows": len(ids)}
        show_warning(Message("missing-ids", template, {"column": column, **facts}))
    counts = Counter(name for name in ids if not _is_blank(name))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        first = repeated[0]
        template = (
            "column {column!r} does not identify all rows: it has {id} in {rows} ({n} of {n_ids} "
            "identifiers {occur} more than once)"
        )
        rows = _list_rows([row for row, name in enumerate(ids) if name == first])
        shown = repr(first) if isinstance(first, str) else str(first)
        occur = "occurs" if len(repeated) == 1 else "occur"
        facts = {"id": shown, "rows": rows, "n": len(repeated), "n_ids": len(counts)}
        show_warning(Message("repeated-ids", template, {"column": column, "occur": occur, **facts}))


def _is_blank(name: Any) -> bool:
    return name is None or name != name or (isinstance(name, str) and not name.strip())


def _list_rows(rows: Sequence[int]) -> str:
    """Return the first rows, counted from 1 without the header."""
    if len(rows) == 1:
        return f"row {rows[0] + 1}"
    more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
    glue = ", " if more else " and "
    return f"rows {rows[0] + 1}{glue}{rows[1] + 1}{more}"


@dataclass(frozen=True, eq=False)
class Source:
    """A table with the information that belongs to it."""

    table: Any
    family: str | Mapping[str, str]  # the estimator's setting
    q: Any
    title: str
    files: tuple[Path, ...]  # all that were read, none of which may be overwritten
    notes: tuple[str, ...]  # conversions, and files that were used without an option
    ids: tuple[Any, ...] | None  # if the user named their column, as for the weights
    weights: Array | None


def read_source(
    path: Path,
    types: Path | None = None,
    q: Path | None = None,
    *,
    family: Sequence[str] | None = (),
    use_folder_q: bool = True,
    optional_q: bool = True,
    reading: ReadOptions | None = None,
) -> Source:
    """Return the table at a path; files that the user names take precedence over its folder.

    ``family`` has the values of --family; ``optional_q=False`` is for commands that need Q.
    """
    options = reading or ReadOptions()
    # A path with a suffix was meant as a file.
    place = readers.check_file_exists(path) if path.suffix and not path.exists() else path
    if place.exists() and not place.is_file() and not place.is_dir():
        raise FileError("odd-path", "{path} is neither a file nor a folder", path=path)
    others = tuple(n for n in (options.id_column, options.weights_column) if n is not None)
    names = readers.column_names(place)
    dropped = parse_drop(options.drop, names)
    leave_out = (*others, *(name for name in dropped if name not in others))
    left = [name for name in names if name not in leave_out]
    # Without any item, no option can name one; the error about that follows.
    missing, words = (options.missing, options.words) if left else ((), ())
    codes, labels = parse_missing(missing, left), parse_labels(words, left)
    folder_q = use_folder_q and q is None
    set_message_context(items=tuple(names))
    _, columns, notes = (
        readers.read_columns(path, (), others, leave_out=dropped) if others else (None, {}, ())
    )
    found = readers.read_folder(
        place, with_q=folder_q, leave_out=leave_out, missing=codes, labels=labels
    )
    items = tuple(found.table.column_names)
    set_message_context(items=items)
    if not items:
        rule = "{path} must have columns that are items"
        template = rule + ", but all {n} of its columns are left out"
        advice = "name fewer columns with --drop, --id and --weights"
        raise DataError("no-items-left", template, advice=advice, path=path, n=len(leave_out))
    weights = read_weights(columns, options.weights_column, found.table)
    families, all_notes = found.types, [*found.notes, *notes]
    if weights is not None:
        rows = f"{plural(int((weights > 0).sum()), 'row')}, effective sample size"
        column = options.weights_column
        all_notes.append(f"weights from column {column}: {rows} {weights.sum():,.0f}")
    if booleans := boolean_columns(found.table):
        shown = join_names(booleans, limit=_MAX_NAMES)
        all_notes.append(f"yes or true is read as 1 and no or false as 0 in {shown}")
    for one in dict.fromkeys(labels.values()):
        shown = join_names([n for n in items if labels.get(n) == one], limit=_MAX_NAMES)
        all_notes.append(f"{describe_coding(one.labels)} in {shown}")
    if types is not None:
        families = readers.read_types(readers.check_file_exists(types), items, leave_out)
    elif families is not None and all("=" in word for word in family or ()):
        all_notes.append(f"types from {path / 'types.csv'}")
    elif families is not None:
        families, ignored = None, path / "types.csv"
        all_notes.append(f"{ignored} ignored, as --family names a type for all items")
    if labels:
        families = {name: one.family for name, one in labels.items()} | dict(families or {})
    if found.q is not None:
        how_to_ignore = " (ignore it with --no-q)" if optional_q else ""
        all_notes.append(f"Q-matrix from {path / 'q.csv'}{how_to_ignore}")
    return Source(
        table=found.table,
        family=_choose_families(family or (), families, items),
        q=found.q if q is None else readers.read_q(readers.check_file_exists(q), leave_out),
        title=found.title,
        files=(*files_read(path, folder_q), *(file for file in (types, q) if file is not None)),
        notes=tuple(all_notes),
        ids=None if options.id_column is None else tuple(columns[options.id_column]),
        weights=weights,
    )


def files_read(path: Path, with_q: bool = True) -> list[Path]:
    """Return the files that a command reads at a path: itself, or those in its folder."""
    if not path.is_dir():
        return [path]
    stems = ("responses", "types", "q") if with_q else ("responses", "types")
    parts = [readers.find_part(path, stem) for stem in stems]
    if parts[0] is None:
        return [path / FIT_SIGN]
    return [part for part in parts if part is not None]


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


def read_weights(columns: Mapping[str, Any], name: str | None, items: Any) -> Array | None:
    """Return the weights in a column, scaled to the effective sample size; None without a name.

    Rows without any response in the table of items get the weight 0.
    """
    if name is None:
        return None
    try:
        nonempty = nonempty_rows(read_table(items, allow_empty_items=True).values)
    except DataError:
        # Whoever reads the items next reports the error.
        nonempty = np.ones(len(columns[name]), dtype=bool)
    weights = _parse_weights(columns[name], name)
    return scale_survey_weights(weights, Setting("weights", name), nonempty)


def _parse_weights(cells: Sequence[Any], name: str) -> Array:
    """Return the cells of a column as numbers; none may be empty."""
    numbers, bad = [], []
    for row, cell in enumerate(cells):
        try:
            numbers.append(float(cell))
        except (TypeError, ValueError):
            bad.append(row)
    if not bad:
        return np.array(numbers, dtype=np.float64)
    first = cells[bad[0]]
    about_commas = advise_on_commas(first.strip(), cells) if isinstance(first, str) else ""
    remedy = about_commas or "fill it in, or use 0 to exclude a row"
    template = (
        "column {column!r} must hold a number in every row, but it has {content} in row {row} "
        "below the names ({n} of {n_rows} rows)"
    )
    content = "nothing" if first is None or first == "" else repr(first)
    where = {"content": content, "row": bad[0] + 1, "n": len(bad), "n_rows": len(cells)}
    advice = Advice("", "{advice}", {"advice": remedy})
    raise DataError("weight-not-a-number", template, where, advice=advice, column=name)


def _choose_families(
    given: Sequence[str], types: Mapping[str, str] | None, items: Sequence[str]
) -> str | dict[str, str]:
    """Return the estimator's setting `family` from --family and types.csv; patterns come first."""
    general = [word for word in given if "=" not in word]
    if len(general) > 1:
        template = "--family can name one type for all items, but it names {types}"
        advice, types_ = "use --family ITEM=TYPE for single items", ", ".join(general)
        raise SettingError("several-types-for-all", template, advice=advice, types=types_)
    if general and not types and len(given) == 1:
        return general[0]
    out = dict.fromkeys(items, general[0]) if general else {}
    out |= dict(types or {})
    for word in given:
        if "=" in word:
            pattern, _, family = word.rpartition("=")
            out |= dict.fromkeys(match_names(pattern, items, "--family"), family)
    return out or "auto"
