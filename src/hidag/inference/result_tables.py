"""Tables that results offer: named columns, rows of plain values, lines of aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hidag.formatting import format_row, shorten

#: Letters of a cell in lines of text; files have all of them.
LONGEST_CELL = 32
#: The column with the number of equal rows that rows with weights are worth.
N_EFFECTIVE = "n_effective"


@dataclass(frozen=True)
class Table:
    """Rows with named columns.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of tuples
        Text, whole numbers, numbers (NaN where there is none) and truth values.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
        """Return the table of these rows, numbers as Python has them."""
        plain = tuple(
            tuple(cell.item() if isinstance(cell, np.generic) else cell for cell in row)
            for row in rows
        )
        return cls(tuple(columns), plain)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        """Return the cells of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row, as data frames are made of."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def where(self, **wanted: Any) -> Table:
        """Return the rows whose cells are as asked for."""
        places = {self.columns.index(name): value for name, value in wanted.items()}
        kept = (row for row in self.rows if all(row[p] == v for p, v in places.items()))
        return Table(self.columns, tuple(kept))

    def in_order(self, place: Mapping[str, int], n_names: int = 1) -> Table:
        """Return the rows by the places of what they are about, as rows were among equals.

        Parameters
        ----------
        place : mapping from text to int
        n_names : int
            How many of the first columns name it; names of a row are put in their order too.
        """
        named = (
            (*sorted(row[:n_names], key=place.__getitem__), *row[n_names:]) for row in self.rows
        )
        return Table(
            self.columns,
            tuple(sorted(named, key=lambda row: [place[name] for name in row[:n_names]])),
        )

    def with_column(self, name: str, cells: Iterable[Any]) -> Table:
        """Return the table with one more column at the end."""
        longer = ((*row, cell) for row, cell in zip(self.rows, cells, strict=True))
        return Table.of((*self.columns, name), longer)

    def lines(self, n_shown: int | None = None, *, digits: int = 3) -> list[str]:
        """Return the first rows as lines with aligned columns, the header first.

        Long names are cut, or a single one would make every line too wide to read.
        """
        shown = self.rows if n_shown is None else self.rows[:n_shown]
        texts = [format_row(self.columns, row, decimals=digits) for row in shown]
        cells = [
            [shorten(cell, LONGEST_CELL, "...") for cell in row] for row in (self.columns, *texts)
        ]
        number = [
            all(not isinstance(row[c], str) for row in shown) for c in range(len(self.columns))
        ]
        widths = [max(len(row[c]) for row in cells) for c in range(len(self.columns))]
        out = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, number, strict=True)
            ).rstrip()
            for row in cells
        ]
        if len(shown) < len(self.rows):
            out.append(f"... {len(self.rows) - len(shown)} more")
        return out
