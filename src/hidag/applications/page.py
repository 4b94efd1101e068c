"""The page of an application: findings, then sections with their pictures and tables."""

from __future__ import annotations

from math import isnan
from typing import Any

from hidag.applications.outcome import Outcome, Table
from hidag.plots import render_figure
from hidag.report.page import as_data_address, render_page

#: Longer tables are folded behind a line to click; their CSV files are whole anyway.
_OPEN_TABLE_ROWS = 30
_MOST_TABLE_ROWS = 500


def render_outcome(outcome: Outcome, *, command: str | None = None) -> str:
    """Return the page of an application as one self-contained HTML text.

    Parameters
    ----------
    outcome : Outcome
    command : str, optional
        What to type to make it again.
    """
    pictures = {
        picture.name: {
            "address": as_data_address(render_figure(picture.draw, picture.size)),
            "caption": picture.caption,
        }
        for picture in outcome.pictures
    }
    return render_page(
        "application.html.jinja",
        title=outcome.title,
        outcome=outcome,
        pictures=pictures,
        tables={table.name: _shown(table) for table in outcome.tables},
        longest_open=_OPEN_TABLE_ROWS,
        command=command,
        settings=sorted((str(k), str(v)) for k, v in outcome.settings.items()),
        versions=sorted(outcome.result.versions.items()),
    )


def _shown(table: Table) -> dict[str, Any]:
    """Return a table with its cells as text, and whether each column is one of numbers."""
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
            [_cell(value, table.decimals) for value in row] for row in table.rows[:_MOST_TABLE_ROWS]
        ],
        "n_rows": len(table.rows),
    }


def _cell(value: object, decimals: int) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.{decimals}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
