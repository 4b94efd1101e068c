"""Parts of pages that hold anything: tables under captions, sections of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan
from typing import Any

from hidag.explain.tables import CHANCES, ROUNDING

#: Longer tables are folded behind a line to click.
OPEN_TABLE_ROWS = 30
#: A page shows no more rows than these; files hold all of them.
MOST_TABLE_ROWS = 1000
#: Headings under which a number can be as small as what rounding leaves of zero.
_CHANCES = frozenset({"p", *(name.replace("_", " ") for name in CHANCES)})


@dataclass(frozen=True)
class Table:
    """Rows under headings; numbers stay numbers in the CSV file and are rounded on the page.

    Attributes
    ----------
    name : str
        Of its CSV file, without an ending.
    caption : str
    header : tuple of str
    rows : tuple of tuple
        Strings, whole numbers and floats; NaN and None are empty cells.
    decimals : int
        Of floats on the page.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    decimals: int = 3


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    heading : str
    paragraphs : tuple of str
        Plain text.
    pictures, tables : tuple of str
        Names of what is shown below the text.
    """

    heading: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


def in_words(columns: Iterable[str]) -> tuple[str, ...]:
    """Return names of columns as a reader of a page would write them."""
    return tuple(name.replace("_", " ") for name in columns)


def shown_table(table: Table) -> dict[str, Any]:
    """Return a table as pages show it: cells as text, and whether each column is one of numbers."""
    return {
        "name": table.name,
        "caption": table.caption,
        "header": table.header,
        "numeric": [
            all(
                isinstance(row[c], int | float) or row[c] is None or row[c] == ""
                for row in table.rows
            )
            for c in range(len(table.header))
        ],
        "rows": [
            [
                _cell(value, table.decimals, 0.0 if head in _CHANCES else ROUNDING)
                for head, value in zip(table.header, row, strict=True)
            ]
            for row in table.rows[:MOST_TABLE_ROWS]
        ],
        "n_rows": len(table.rows),
        "folded": len(table.rows) > OPEN_TABLE_ROWS,
    }


def _cell(value: object, decimals: int, least: float) -> str:
    """Return a cell as text; numbers up to ``least`` in size are zero."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if abs(value) <= least:
            return "0"
        # A small chance is not none.
        small = 0 < abs(value) < 0.5 * 10.0**-decimals
        return f"{value:.2g}" if small else f"{value:,.{decimals}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
