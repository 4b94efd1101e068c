"""Tables in results: named columns, rows of plain values, aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hidag.views import View, text_lines

#: Name of the column with the effective sample size (Kish) of weighted rows.
N_EFFECTIVE = "n_effective"


@dataclass(frozen=True, repr=False)
class Table(View, title="{0.columns}", frames={"rows": "_all"}):
    """Rows of plain values (NaN for a missing number) with named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
        """Return the table of these rows, numpy scalars as Python numbers."""
        plain = tuple(
            tuple(cell.item() if isinstance(cell, np.generic) else cell for cell in row)
            for row in rows
        )
        return cls(tuple(columns), plain)

    def _all(self) -> Table:
        return self

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        """Return the cells of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def where(self, **wanted: Any) -> Table:
        """Return the rows with these values in these columns."""
        places = {self.columns.index(name): value for name, value in wanted.items()}
        rows = (row for row in self.rows if all(row[p] == v for p, v in places.items()))
        return Table(self.columns, tuple(rows))

    def in_order(self, place: Mapping[str, int], n_names: int = 1) -> Table:
        """Return rows sorted by the places of their first ``n_names`` names, sorted in each row."""
        named = (
            (*sorted(row[:n_names], key=place.__getitem__), *row[n_names:]) for row in self.rows
        )
        rows = sorted(named, key=lambda row: [place[name] for name in row[:n_names]])
        return Table(self.columns, tuple(rows))

    def with_column(self, name: str, cells: Iterable[Any]) -> Table:
        """Return the table with one more column at the end."""
        longer = ((*row, cell) for row, cell in zip(self.rows, cells, strict=True))
        return Table.of((*self.columns, name), longer)

    def lines(self, n_rows: int | None = None) -> list[str]:
        """Return the header and the first rows as lines of aligned text, long names shortened."""
        return text_lines(self.columns, self.rows, n_rows, indent="")
