"""Parts of pages that hold anything: tables under captions, sections of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hidag.shown_numbers import shown_row

#: Longer tables are folded behind a line to click.
OPEN_TABLE_ROWS = 30
#: A page shows no more rows than these; files hold all of them.
MOST_TABLE_ROWS = 1000


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
            shown_row(table.header, row, decimals=table.decimals, grouped=True)
            for row in table.rows[:MOST_TABLE_ROWS]
        ],
        "n_rows": len(table.rows),
        "folded": len(table.rows) > OPEN_TABLE_ROWS,
    }
