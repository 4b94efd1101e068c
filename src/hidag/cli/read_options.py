"""How a table is read beyond what it says itself, and what a fit keeps of that."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hidag.cli.console import show_warning
from hidag.cli.messages import set_message_context
from hidag.cli.options import split_known
from hidag.data.nonnumeric_cells import AnswerWords
from hidag.data.readers import column_names, read_columns
from hidag.exceptions import SettingError
from hidag.results import FitResult


@dataclass(frozen=True)
class Reading:
    """What the user says about the columns of a table.

    Attributes
    ----------
    id_column, weights_column : str or None
        Columns that name the rows and say how much they count; no items.
    missing : tuple of str
        Codes for missing answers with commas between, or COLUMN=CODES.
    drop : tuple of str
        Columns or patterns, with commas between, that are left out.
    words : tuple of str
        COLUMN=WORDS: answers in words, with commas between, or < where they have an order.
    """

    id_column: str | None = None
    weights_column: str | None = None
    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def with_reading(result: FitResult, reading: Reading) -> FitResult:
    """Return a fit that keeps how its table was read, for commands that read it again."""
    if reading == Reading():
        return result
    said = {name: value for name, value in asdict(reading).items() if value}
    kept = {name: list(v) if isinstance(v, tuple) else v for name, v in said.items()}
    words = words_of(reading.words, result.item_names) if reading.words else {}
    return replace(
        result,
        reading=kept,
        answer_words={name: list(one.words) for name, one in words.items()},
    )


def reading_of(result: FitResult) -> Reading:
    """Return how the table of a fit was read."""
    kept = result.reading
    said: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in kept.items()}
    return Reading(**said)


def read_again(
    result: FitResult, table: Path, labels: Sequence[str], missing: Sequence[str]
) -> tuple[Any, dict[str, list[Any]]]:
    """Return the columns of a fit's items in a table, and other columns as they stand.

    Parameters
    ----------
    result : FitResult
    table : Path
    labels : sequence of str
        Other columns.
    missing : sequence of str
        Codes for missing answers; those of the fit if there are none.
    """
    said = reading_of(result)
    set_message_context(items=result.item_names, weights_column=said.weights_column)
    codes = codes_of(missing or said.missing, result.item_names)
    words = words_of(said.words, result.item_names)
    # Another table need not have what the fit's table had too much.
    dropped = dropped_of(said.drop, column_names(table), all_there=False)
    return read_columns(
        table, result.item_names, labels, missing=codes, words=words, leave_out=dropped
    )


def id_column_of(result: FitResult, table: Path, asked: str | None) -> str | None:
    """Return the column that names the rows: the one asked for, else the fit's if it is there."""
    own = reading_of(result).id_column
    if asked is not None or own is None:
        return asked
    return own if own in column_names(table) else None


def codes_of(missing: Sequence[str], items: Sequence[str]) -> dict[str, list[str]]:
    """Return the codes for missing answers of each item that has some."""
    out: dict[str, list[str]] = {}
    for text in missing:
        pattern, sign, words = text.rpartition("=")
        codes = [word.strip() for word in words.split(",") if word.strip()]
        if not codes:
            raise SettingError(
                f"--missing takes CODES or COLUMN=CODES, such as 99,-9, got {text!r}"
            )
        for item in matching(pattern, items, "--missing") if sign else items:
            out.setdefault(item, []).extend(codes)
    return out


def words_of(words: Sequence[str], items: Sequence[str]) -> dict[str, AnswerWords]:
    """Return the words of each item whose answers stand in words."""
    out: dict[str, AnswerWords] = {}
    for text in words:
        pattern, sign, listed = text.rpartition("=")
        ordered = "<" in listed
        parts = tuple(part.strip() for part in listed.split("<" if ordered else ","))
        if not sign or not pattern or len(parts) < 2:
            raise SettingError(
                "--words takes COLUMN=WORDS with commas between them, or < where they have an "
                f"order, such as 'mood=low<middle<high', got {text!r}"
            )
        answers = AnswerWords(parts, ordered)
        out |= dict.fromkeys(matching(pattern.strip(), items, "--words"), answers)
    return out


def dropped_of(drop: Sequence[str], columns: Sequence[str], *, all_there: bool = True) -> list[str]:
    """Return the columns that are left out; all that are named must be there, unless told so."""
    parts = (part for text in drop for part in split_known(text, lambda name: name in columns))
    patterns = [part for part in parts if part]
    if all_there:
        for pattern in patterns:
            matching(pattern, columns, "--drop", "column")
    return [name for name in columns if any(_is_meant(name, pattern) for pattern in patterns)]


def matching(pattern: str, names: Sequence[str], option: str, what: str = "item") -> list[str]:
    """Return the names of items, or what else is chosen from, that are a pattern or match it.

    An option that matches none is refused.
    """
    found = [name for name in names if _is_meant(name, pattern)]
    if not found:
        near = difflib.get_close_matches(pattern, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the first {what} is {names[0]!r}"
        raise SettingError(
            f"{option} names the {what} {pattern!r}, which the table does not have; {hint}"
        )
    return found


def _is_meant(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def show_doubtful_names(ids: Sequence[Any], column: str) -> None:
    """Warn of rows that a column names alike, one person at two times perhaps, or not at all."""
    blank = [row for row, name in enumerate(ids) if _is_blank(name)]
    if blank:
        show_warning(
            f"column {column!r} has no name for {_rows_in_words(blank)} ({len(blank)} of "
            f"{len(ids)} rows)"
        )
    counts = Counter(name for name in ids if not _is_blank(name))
    often = [name for name, count in counts.items() if count > 1]
    if often:
        alike = [row for row, name in enumerate(ids) if name == often[0]]
        shown = repr(often[0]) if isinstance(often[0], str) else str(often[0])
        occur = "names occurs" if len(often) == 1 else "names occur"
        show_warning(
            f"column {column!r} does not tell all rows apart: it has {shown} in "
            f"{_rows_in_words(alike)} ({len(often)} of {len(counts)} {occur} more than once)"
        )


def _is_blank(name: Any) -> bool:
    return name is None or name != name or (isinstance(name, str) and not name.strip())


def _rows_in_words(rows: Sequence[int]) -> str:
    """Return rows counted from 1, without the line of names."""
    if len(rows) == 1:
        return f"row {rows[0] + 1}"
    more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
    glue = ", " if more else " and "
    return f"rows {rows[0] + 1}{glue}{rows[1] + 1}{more}"
