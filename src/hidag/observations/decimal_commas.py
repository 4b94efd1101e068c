"""Decimal commas, as spreadsheets write them over most of Europe: read where nothing else is meant.

A comma in a number marks decimals here and thousands there. A file tells which where some cell
cannot be of the other kind: 0,5 and 1,25 have decimals, 1,234,567 and 1,234.5 have thousands. 1,016
may be either, and goes with the others of the file. A file that has decimal points, too, mixes both
ways of writing, or separates thousands by points; it is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hidag.observations.cells import read_number, shorten
from hidag.observations.csv_text import import_arrow

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
