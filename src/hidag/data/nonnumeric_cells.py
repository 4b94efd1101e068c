"""Decimal commas, as spreadsheets write them over most of Europe: read where nothing else is meant.

A comma in a number marks decimals here and thousands there. A file tells which where some cell
cannot be of the other kind: 0,5 and 1,25 have decimals, 1,234,567 and 1,234.5 have thousands. 1,016
may be either, and goes with the others of the file. A file that has decimal points, too, mixes both
ways of writing, or separates thousands by points; it is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hidag.data.csv_text import (
    BadCells,
    delimiter_of,
    import_arrow,
    is_missing,
    line_of_row,
    read_number,
    shorten,
)
from hidag.exceptions import Advice, DataError, Setting, SettingError
from hidag.measurement.families import default_family

# --- Answers that a table holds as words: numbers in their place, in an order that the user

#: More different texts than this in a column are no answers to choose from.
MOST_WORDS = 12


@dataclass(frozen=True)
class AnswerWords:
    """The words of a column; the first stands for 0, the next for 1.

    Attributes
    ----------
    words : tuple of str
    ordered : bool
        Whether each is more than the one before.
    """

    words: tuple[str, ...]
    ordered: bool

    def __post_init__(self) -> None:
        known = {word.casefold() for word in self.words}
        if len(self.words) < 2 or len(known) < len(self.words) or "" in known:
            raise SettingError(
                "answers in words must be at least two that differ by more than small and capital "
                f"letters, got {', '.join(map(repr, self.words))}"
            )

    @property
    def family(self) -> str:
        """Family of the items: grades where words have an order, else categories."""
        if len(self.words) == 2:
            return default_family("binary")
        grades = f"{default_family('grades')}({len(self.words)})"
        return grades if self.ordered else default_family("categories")


def numbered(words: Sequence[str]) -> str:
    """Return which number stands for which word."""
    return ", ".join(f"{number} {word}" for number, word in enumerate(words))


def with_numbers(table: Any, words: Mapping[str, AnswerWords]) -> Any:
    """Return a pyarrow table with numbers, as text, for the words of some columns.

    Small and capital letters are alike. Missing answers stay as they are.

    Parameters
    ----------
    table : pyarrow.Table
        Of text, perhaps dictionary-encoded.
    words : mapping from column to AnswerWords

    Raises
    ------
    DataError
        If a cell is none of the words.
    """
    arrow = import_arrow("pyarrow")
    for name, answers in words.items():
        numbers = {word.casefold(): f"{n}" for n, word in enumerate(answers.words)}
        cells = [None if is_missing(cell) else cell for cell in table.column(name).to_pylist()]
        keys = [None if cell is None else str(cell).strip().casefold() for cell in cells]
        other = [row for row, key in enumerate(keys) if key is not None and key not in numbers]
        if other:
            raise DataError(
                f"column {name!r} must hold one of {', '.join(map(repr, answers.words))}, but has "
                f"{shorten(cells[other[0]])} in row {other[0] + 1} below the names ({len(other)} "
                f"of {table.num_rows} cells); name all of its words, or leave the cell empty if "
                "the answer is missing"
            )
        column = arrow.array([None if key is None else numbers[key] for key in keys], "string")
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def words_in(cells: Sequence[Any]) -> tuple[str, ...]:
    """Return the different texts of a column in the order of letters; none where they are many.

    Nor where most occur once, as names and remarks do.
    """
    texts = [str(cell).strip() for cell in cells if not is_missing(cell)]
    found = {text.casefold(): text for text in reversed(texts)}
    if not 2 <= len(found) <= min(MOST_WORDS, len(texts) // 2):
        return ()
    return tuple(sorted(found.values()))


__all__ = ["AnswerWords", "numbered", "with_numbers", "words_in"]


# ---

#: Numbers with commas between thousands; a leading 0 has none, so 0,125 has a decimal comma.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
#: Numbers with a decimal comma, perhaps with points between thousands.
_DECIMAL_COMMA = re.compile(
    r"[+-]?(?:[0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+),[0-9]+(?:[eE][+-]?[0-9]+)?"
)


@dataclass(frozen=True)
class CommaNumbers:
    """What was read with a decimal comma.

    Attributes
    ----------
    columns : tuple of str
    cell : str
        One that can mean nothing else, as it stands in the file.
    where : str
        The column of that cell.
    """

    columns: tuple[str, ...]
    cell: str
    where: str

    def in_words(self) -> str:
        """Return the note about it."""
        number = "column" if len(self.columns) == 1 else "columns"
        return (
            f"a comma marks decimals in {len(self.columns)} {number}: {self.cell!r} in "
            f"{self.where} is read as {_with_point(self.cell)}"
        )


def read_decimal_commas(table: Any, columns: Sequence[str]) -> tuple[Any, CommaNumbers | None]:
    """Return the table with points in place of decimal commas, and what was read so.

    Parameters
    ----------
    table : pyarrow.Table
        Of text.
    columns : sequence of str
        Where commas are looked for, and taken in the same way.

    Returns
    -------
    table : pyarrow.Table
        Unchanged where no comma is sure to mark decimals, or where another way of writing shows.
    found : CommaNumbers or None
    """
    cells = list(_cells_with(",", table, columns))
    sure = [(name, c) for name, c in cells if _is_decimal(c) and not _THOUSANDS.fullmatch(c)]
    thousands = any(_THOUSANDS.fullmatch(c) and not _is_decimal(c) for _, c in cells)
    if not sure or thousands or decimal_point_in(table, columns) is not None:
        return table, None
    found = tuple(dict.fromkeys(name for name, cell in cells if _is_decimal(cell)))
    for name in found:
        texts = [None if c is None else c.strip() for c in table.column(name).to_pylist()]
        texts = [_with_point(c) if c is not None and _is_decimal(c) else c for c in texts]
        place = table.column_names.index(name)
        table = table.set_column(place, name, import_arrow("pyarrow").array(texts, type="string"))
    return table, CommaNumbers(found, cell=sure[0][1], where=sure[0][0])


def decimal_point_in(table: Any, columns: Sequence[str]) -> tuple[str, str] | None:
    """Return column and text of a number with a point, or None."""
    cells = _cells_with(".", table, columns)
    return next(((name, text) for name, text in cells if read_number(text) is not None), None)


def advice_on_commas(
    written: str, cells: Sequence[Any], point: tuple[str, str] | None = None
) -> str:
    """Return how to write a number with commas; nothing where the cell is no such number.

    Parameters
    ----------
    written : str
        The cell.
    cells : sequence
        Its column.
    point : tuple of str, optional
        Column and text of a number with a point, where that is why commas are not read.
    """
    if _THOUSANDS.fullmatch(written):
        given = [cell.strip() for cell in cells if isinstance(cell, str)]
        others = [c for c in given if _is_decimal(c) and not _THOUSANDS.fullmatch(c)]
        advice = f"write {written.replace(',', '')} if its commas separate thousands"
        if _is_decimal(written):
            like = f", as in {shorten(others[0])}" if others else ""
            advice += f", {_with_point(written)} if they mark decimals{like}"
        return advice
    if not _is_decimal(written):
        return ""
    if point is None:
        return "write decimals with a point"
    return (
        f"write decimals with a point, and thousands without any: there is {shorten(point[1])} in "
        f"column {point[0]!r}"
    )


def _is_decimal(text: str) -> bool:
    return _DECIMAL_COMMA.fullmatch(text) is not None


def _with_point(text: str) -> str:
    return text.replace(".", "").replace(",", ".")


def _cells_with(mark: str, table: Any, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield column and text of the different cells that have a mark in them, blanks taken off."""
    compute = import_arrow("pyarrow.compute")
    for name in columns:
        column = table.column(name)
        marked = column.filter(compute.match_substring(column, mark))
        for text in marked.unique().to_pylist():
            yield name, text.strip()


# --- What is said about the cells of a text file that are no numbers

#: Different cells of a column that are listed where some of them are text.
_SHOWN_WORDS = 4
#: Columns that are named beside the first: all have to be seen to, and one by one takes long.
_SHOWN_COLUMNS = 10
#: A column of fewer cells may hold text only by chance.
_FEW_CELLS = 10


def bad_cell_error(bad: dict[str, BadCells], table: Any, file: Path, n_columns: int) -> DataError:
    """Return the error about the first column with cells that are not numbers.

    Parameters
    ----------
    bad : dict from column to its bad cells
    table : pyarrow.Table
        Of text.
    file : Path
    n_columns : int
        Of the file.
    """
    name, found = next(iter(bad.items()))
    cells = table.column(name).to_pylist()
    cell = cells[found.row].strip()
    delimiter = delimiter_of(file)
    where = (
        "in column {item!r}, line {line} ({n_cells} of {n_rows} cells of this column; {n_bad} of "
        "{n_columns} columns{others})"
    )
    params: dict[str, Any] = {
        "file": file,
        "content": found.content,
        "item": name,
        "line": line_of_row(file, found.row, n_columns, delimiter),
        "n_cells": found.count,
        "n_rows": table.num_rows,
        "n_bad": len(bad),
        "n_columns": table.num_columns,
        "others": _other_columns(list(bad)[1:]),
    }
    if found.beside_truths:
        return DataError(
            "cell-beside-yes-and-no",
            f"columns of yes and no must hold nothing else, but {{file}} has {{content}} {where}",
            advice=Advice(
                "recode-yes-or-no-cell" if can_be_option(cell) else "recode-yes-or-no",
                "recode it as yes or no, or leave the cell empty if the answer is missing",
                {"cell": cell},
            ),
            **params,
        )
    template = f"cells must be numbers, but {{file}} has the text {{content}} {where}"
    point = None if delimiter == "," else decimal_point_in(table, table.column_names)
    about_commas = advice_on_commas(cell, cells, point)
    if about_commas:
        return DataError("number-with-comma", template, advice=about_commas, **params)
    n_answers, words = _n_answers(cells), _answers_in_words(bad, table)
    code = "recode-column"
    if words:
        code = "name-words"
    elif found.count == n_answers >= _FEW_CELLS:
        code = "recode-text"
    elif 2 * found.count < n_answers and can_be_option(cell):
        # Where most answers are text, they are what the column is about.
        code = "recode-cell"
    return DataError(
        "cell-not-a-number",
        template,
        advice=Advice(
            code,
            "recode {texts} as numbers, or leave the cell empty if the answer is missing",
            {"texts": _words_of(cells), "cell": cell, "words": Setting("words", words)},
        ),
        **params,
    )


def can_be_option(text: str) -> bool:
    """Return whether a text has none of the characters that separate the parts of an option."""
    return not set(text) & set(",<=")


def _answers_in_words(bad: dict[str, BadCells], table: Any) -> dict[str, tuple[str, ...]]:
    """Return the words of the columns whose answers are words, and nothing else."""
    out = {}
    for name, found in bad.items():
        cells = table.column(name).to_pylist()
        words = words_in(cells) if found.count == _n_answers(cells) else ()
        if words and all(map(can_be_option, words)):
            out[name] = words
    return out


def _n_answers(cells: Sequence[str | None]) -> int:
    return sum(not is_missing(cell) for cell in cells)


def _other_columns(names: Sequence[str]) -> str:
    """Return the names of further columns, as they follow the number of all; empty for none."""
    if not names:
        return ""
    more = len(names) - _SHOWN_COLUMNS
    return f", also {', '.join(repr(name) for name in names[:_SHOWN_COLUMNS])}" + (
        f" and {more} more" if more > 0 else ""
    )


def _words_of(cells: Sequence[str | None]) -> str:
    """Return the texts of a column where there are few, else "the text"."""
    texts = {cell for cell in cells if cell is not None}
    words = sorted(text for text in texts if read_number(text) is None)
    if 1 < len(words) <= _SHOWN_WORDS:
        return ", ".join(repr(word) for word in words[:-1]) + f" and {words[-1]!r}"
    return "the text"
