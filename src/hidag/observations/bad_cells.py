"""What is said about the cells of a text file that are no numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hidag.errors import DataError
from hidag.observations.answer_words import words_in
from hidag.observations.cells import BadCells, is_missing, read_number
from hidag.observations.csv_text import delimiter_of, line_of_row
from hidag.observations.decimal_commas import advice_on_commas, decimal_point_in

#: Different cells of a column that are listed where some of them are text.
_SHOWN_WORDS = 4
#: Columns that are named beside the first: all have to be seen to, and one by one takes long.
_SHOWN_COLUMNS = 10
#: A column of fewer cells may hold text only by chance.
_FEW_CELLS = 10


class BadCellError(DataError):
    """A cell of a file is no number.

    Attributes
    ----------
    advice : str
        The part of the sentence that speaks of missing answers; empty where it speaks of none.
    code : str or None
        The cell's text where it may stand for a missing answer: where other cells, and more of
        them, hold what the column is about.
    only_text : bool
        Whether the column has many cells and not one number, so that it may be no item.
    words : dict from column to tuple of str
        What columns hold that have not one number, and few words that come up again and again.
    """

    def __init__(
        self,
        sentence: str,
        *,
        advice: str = "",
        code: str | None = None,
        only_text: bool = False,
        words: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.advice = advice
        self.code = code
        self.only_text = only_text
        self.words = words or {}


def bad_cell_error(
    bad: dict[str, BadCells], table: Any, file: Path, n_columns: int
) -> BadCellError:
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
    written = cells[found.row].strip()
    content = found.content
    delimiter = delimiter_of(file)
    line = line_of_row(file, found.row, n_columns, delimiter)
    where = (
        f"in column {name!r}, line {line} ({found.count} of {table.num_rows} cells of this column; "
        f"{len(bad)} of {table.num_columns} columns{_named_too(list(bad)[1:])})"
    )
    empty = "leave the cell empty if the answer is missing"
    if found.beside_truths:
        return BadCellError(
            f"columns of yes and no must hold nothing else, but {file} has {content} {where}; "
            f"recode it as yes or no, or {empty}",
            advice=empty,
            code=written,
        )
    start = f"cells must be numbers, but {file} has the text {content} {where}"
    point = None if delimiter == "," else decimal_point_in(table, table.column_names)
    about_commas = advice_on_commas(written, cells, point)
    if about_commas:
        return BadCellError(f"{start}; {about_commas}")
    n_answers = _n_answers(cells)
    return BadCellError(
        f"{start}; recode {_words_of(cells)} as numbers, or {empty}",
        advice=empty,
        # Where most answers are text, they are what the column is about.
        code=written if 2 * found.count < n_answers else None,
        only_text=found.count == n_answers >= _FEW_CELLS,
        words=_answers_in_words(bad, table),
    )


def _answers_in_words(bad: dict[str, BadCells], table: Any) -> dict[str, tuple[str, ...]]:
    """Return the words of the columns whose answers are words, and nothing else."""
    out = {}
    for name, found in bad.items():
        cells = table.column(name).to_pylist()
        if found.count == _n_answers(cells) and (words := words_in(cells)):
            out[name] = words
    return out


def _n_answers(cells: Sequence[str | None]) -> int:
    return sum(not is_missing(cell) for cell in cells)


def _named_too(names: Sequence[str]) -> str:
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
