"""What a report shows beyond the fit, in a file beside it: the page can be made anew."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hidag.exceptions import FileError
from hidag.formatting import format_row
from hidag.results import without_nan

# --- Headings of parts of the report: a part is found, replaced or missed by its heading

#: Of whatever says how sure a fit is: what a bootstrap found takes the place of standard errors.
SURE_HEADING = "How sure it is"
PLACEMENT_HEADING = "Who is where"
EFFECTS_HEADING = "What if"
FIT_HEADING = "How well it fits"
Q_HEADING = "Is Q right"


# --- Parts of pages that hold anything: tables under captions, sections of text

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
            format_row(table.header, row, decimals=table.decimals, grouped=True)
            for row in table.rows[:MOST_TABLE_ROWS]
        ],
        "n_rows": len(table.rows),
        "folded": len(table.rows) > OPEN_TABLE_ROWS,
    }


# ---

_FORMAT, _VERSION = "hidag-report", 1


@dataclass(frozen=True)
class ReportParts:
    """What is known beyond the fit itself.

    Attributes
    ----------
    title : str
    warnings : tuple of str
        That the fit gave.
    support : tuple of (str, str, float)
        Pairs of latents with the share of resampled tables in which they are joined; empty where
        no tables were resampled.
    sections : tuple of Section
        More parts of the page, such as how well the model fits.
    tables : tuple of Table
        What the sections show.
    command : str
        What to type to make the fit again; empty if nobody knows.
    doubts : tuple of str
        What was found against the model when it was held against its table.
    examined : bool
        Whether statistics of fit were computed that can tell a model that does not fit: not so
        where predictive checks are all there is.
    directions : tuple of (str, str, float)
        Causes and effects of the fit's graph with the share of resampled tables in which the edge
        has this direction; empty where no tables were resampled.
    doubts_kept : bool
        Whether ``doubts`` is all there was: files of earlier versions do not hold them.
    plots : bool
        Whether the page has pictures of Q and the trace.
    by_weights : bool
        Whether statistics of fit counted rows by weights. Those of earlier versions counted every
        row once, and cannot judge a fit that did not.
    n_resampled : int or None
        How many tables were resampled; None where there were none, or in files of earlier versions.
    not_found_again : tuple of str
        What refits of resampled tables found against the fit.
    """

    title: str = "Hidden causes and their graph"
    warnings: tuple[str, ...] = ()
    support: tuple[tuple[str, str, float], ...] = ()
    sections: tuple[Section, ...] = ()
    tables: tuple[Table, ...] = ()
    command: str = ""
    doubts: tuple[str, ...] = ()
    examined: bool = False
    directions: tuple[tuple[str, str, float], ...] = ()
    doubts_kept: bool = True
    plots: bool = True
    by_weights: bool = False
    n_resampled: int | None = None
    not_found_again: tuple[str, ...] = ()


def write_parts(parts: ReportParts, path: Path) -> Path:
    """Write the parts as JSON and return the path."""
    content = {"format": _FORMAT, "version": _VERSION, **without_nan(asdict(parts))}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", "utf-8")
    return path


def read_parts(path: Path) -> ReportParts:
    """Return parts that `write_parts` wrote."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise ValueError("another format")
        sections = tuple(Section(**_with_tuples(part)) for part in content["sections"])
        # Files of earlier versions do not say what those after the command do.
        return ReportParts(
            str(content["title"]),
            tuple(map(str, content["warnings"])),
            _shares(content["support"]),
            sections,
            tuple(Table(**_with_tuples(table)) for table in content["tables"]),
            str(content["command"]),
            tuple(map(str, content.get("doubts", ()))),
            bool(content.get("examined", _has_statistics(sections))),
            _shares(content.get("directions", ())),
            bool(content.get("doubts_kept", "doubts" in content)),
            bool(content.get("plots", True)),
            bool(content.get("by_weights", False)),
            _number(content.get("n_resampled")),
            tuple(map(str, content.get("not_found_again", ()))),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(
            f"{path} was not written by hidag fit, or it is damaged; remove it to make the report "
            "from the fit alone"
        ) from error


def _has_statistics(sections: Iterable[Section]) -> bool:
    return any(part.heading == FIT_HEADING and part.tables for part in sections)


def _shares(rows: Iterable[Any]) -> tuple[tuple[str, str, float], ...]:
    return tuple((str(a), str(b), float(share)) for a, b, share in rows)


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _with_tuples(content: dict[str, Any]) -> dict[str, Any]:
    def of(value: Any) -> Any:
        return tuple(of(entry) for entry in value) if isinstance(value, list) else value

    return {name: of(value) for name, value in content.items()}
