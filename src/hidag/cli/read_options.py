"""Options about the columns of a table, which a fit stores for later commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hidag.cli.console import show_warning
from hidag.cli.messages import set_message_context
from hidag.cli.options import split_known
from hidag.data.cells import CategoryLabels
from hidag.data.readers import column_names, read_columns
from hidag.exceptions import Message, SettingError, suggest_name
from hidag.results import FitResult


@dataclass(frozen=True)
class ReadOptions:
    """Options about the columns of a table.

    Attributes
    ----------
    id_column, weights_column : str or None
        Columns of row identifiers and row weights, which are not items.
    missing : tuple of str
        Codes for missing answers, separated by commas, or COLUMN=CODES.
    drop : tuple of str
        Columns or patterns to leave out, separated by commas.
    words : tuple of str
        COLUMN=LABELS, separated by commas, or by < if they are ordered.
    """

    id_column: str | None = None
    weights_column: str | None = None
    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def store_options(result: FitResult, options: ReadOptions) -> FitResult:
    """Return a fit that stores how its table was read."""
    if options == ReadOptions():
        return result
    given = {name: value for name, value in asdict(options).items() if value}
    labels = parse_labels(options.words, result.item_names)
    return replace(
        result,
        reading={n: list(v) if isinstance(v, tuple) else v for n, v in given.items()},
        answer_words={name: list(one.labels) for name, one in labels.items()},
    )


def stored_options(result: FitResult) -> ReadOptions:
    """Return how the table of a fit was read."""
    stored: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in result.reading.items()
    }
    return ReadOptions(**stored)


def read_items(
    result: FitResult, table: Path, others: Sequence[str], missing: Sequence[str]
) -> tuple[Any, dict[str, list[Any]]]:
    """Return the items of a fit in a table, and other columns unchanged.

    Parameters
    ----------
    result : FitResult
    table : Path
    others : sequence of str
        Columns that are not items.
    missing : sequence of str
        Codes for missing answers; by default those of the fit.
    """
    stored = stored_options(result)
    set_message_context(items=result.item_names, weights_column=stored.weights_column)
    return read_columns(
        table,
        result.item_names,
        others,
        missing=parse_missing(missing or stored.missing, result.item_names),
        labels=parse_labels(stored.words, result.item_names),
        # Another table may lack the columns that were dropped from the fit's table.
        leave_out=parse_drop(stored.drop, column_names(table), required=False),
    )


def find_id_column(result: FitResult, table: Path, given: str | None) -> str | None:
    """Return the column of row identifiers: the given one, or the fit's if the table has it."""
    stored = stored_options(result).id_column
    if given is not None or stored is None:
        return given
    return stored if stored in column_names(table) else None


def parse_missing(missing: Sequence[str], items: Sequence[str]) -> dict[str, list[str]]:
    """Return the codes for missing answers by item."""
    out: dict[str, list[str]] = {}
    for text in missing:
        pattern, sign, words = text.rpartition("=")
        codes = [word.strip() for word in words.split(",") if word.strip()]
        if not codes:
            raise SettingError(
                "invalid-option",
                "--missing takes CODES or COLUMN=CODES, such as 99,-9, got {text!r}",
                text=text,
            )
        for item in match_names(pattern, items, "--missing") if sign else items:
            out.setdefault(item, []).extend(codes)
    return out


def parse_labels(words: Sequence[str], items: Sequence[str]) -> dict[str, CategoryLabels]:
    """Return the labels of categories by item."""
    out: dict[str, CategoryLabels] = {}
    for text in words:
        pattern, sign, listed = text.rpartition("=")
        ordered = "<" in listed
        parts = tuple(part.strip() for part in listed.split("<" if ordered else ","))
        if not sign or not pattern or len(parts) < 2:
            raise SettingError(
                "invalid-option",
                "--words takes COLUMN=LABELS, separated by commas, or by < if they are ordered, "
                "such as 'mood=low<middle<high', got {text!r}",
                text=text,
            )
        labels = CategoryLabels(parts, ordered)
        out |= dict.fromkeys(match_names(pattern.strip(), items, "--words"), labels)
    return out


def parse_drop(drop: Sequence[str], columns: Sequence[str], *, required: bool = True) -> list[str]:
    """Return the columns to leave out; each pattern must match one if ``required``."""
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
        raise SettingError(
            "unknown-name",
            "{option} names the {what} {pattern!r}, which the table does not have",
            advice=suggest_name(pattern, names, "the first {what} is {first!r}"),
            option=option,
            what=what,
            pattern=pattern,
            first=names[0],
        )
    return found


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def warn_of_ids(ids: Sequence[Any], column: str) -> None:
    """Show warnings about row identifiers that are missing or repeated."""
    blank = [row for row, name in enumerate(ids) if _is_blank(name)]
    if blank:
        show_warning(
            Message(
                "missing-ids",
                "column {column!r} has no identifier for {rows} ({n} of {n_rows} rows)",
                {
                    "column": column,
                    "rows": _list_rows(blank),
                    "n": len(blank),
                    "n_rows": len(ids),
                },
            )
        )
    counts = Counter(name for name in ids if not _is_blank(name))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        first = repeated[0]
        show_warning(
            Message(
                "repeated-ids",
                "column {column!r} does not identify all rows: it has {id} in {rows} ({n} of "
                "{n_ids} identifiers {occur} more than once)",
                {
                    "column": column,
                    "id": repr(first) if isinstance(first, str) else str(first),
                    "rows": _list_rows([row for row, name in enumerate(ids) if name == first]),
                    "n": len(repeated),
                    "n_ids": len(counts),
                    "occur": "occurs" if len(repeated) == 1 else "occur",
                },
            )
        )


def _is_blank(name: Any) -> bool:
    return name is None or name != name or (isinstance(name, str) and not name.strip())


def _list_rows(rows: Sequence[int]) -> str:
    """Return the first rows, counted from 1 without the header."""
    if len(rows) == 1:
        return f"row {rows[0] + 1}"
    more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
    glue = ", " if more else " and "
    return f"rows {rows[0] + 1}{glue}{rows[1] + 1}{more}"
