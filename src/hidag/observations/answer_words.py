"""Answers that a table holds as words: numbers in their place, in an order that the user says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hidag.errors import DataError, SettingError
from hidag.observations.cells import is_missing, shorten
from hidag.observations.csv_text import import_arrow

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
            return "bernoulli"
        return f"ordinal({len(self.words)})" if self.ordered else "categorical"


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
