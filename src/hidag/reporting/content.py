"""Contents of a report beyond the fit: tables, sections and warnings, stored in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hidag.exceptions import FileError
from hidag.formatting import format_row
from hidag.results import without_nan

#: Headings identify sections: a bootstrap replaces the section about standard errors.
UNCERTAINTY = "Uncertainty"
CLASSIFICATION = "Classification"
INTERVENTIONS = "Interventions"
GOODNESS_OF_FIT = "Goodness of fit"
Q_VALIDATION = "Q-matrix validation"
#: Headings in files of earlier versions.
_FORMER_HEADINGS = {
    "How sure it is": UNCERTAINTY,
    "Who is where": CLASSIFICATION,
    "What if": INTERVENTIONS,
    "How well it fits": GOODNESS_OF_FIT,
    "Is Q right": Q_VALIDATION,
}

#: Longer tables are collapsed.
OPEN_TABLE_ROWS = 30
#: Longer tables are truncated on the page; the CSV files are complete.
MAX_TABLE_ROWS = 1000

_FORMAT, _VERSION = "hidag-report", 1
#: Attributes of `ReportContent` that the file stores under another key.
_KEYS = {
    "misfits": "doubts",
    "misfits_stored": "doubts_kept",
    "fit_assessed": "examined",
    "weighted": "by_weights",
    "unstable_latents": "not_found_again",
}


@dataclass(frozen=True)
class Table:
    """A table of a page; numbers are rounded on the page and complete in the CSV file.

    Attributes
    ----------
    name : str
        Stem of its CSV file.
    caption : str
    header : tuple of str
    rows : tuple of tuple
        Strings, integers and floats; NaN and None are empty cells.
    decimals : int
        Decimals of floats on the page.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    decimals: int = 3


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes
    ----------
    heading : str
    paragraphs : tuple of str
        Plain text; commands in backticks.
    pictures, tables : tuple of str
        Names of the pictures and tables below the text.
    """

    heading: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panel:
    """A section together with its tables and the warnings that its results justify.

    Attributes
    ----------
    heading : str
    paragraphs : tuple of str
    tables : tuple of Table
    warnings : tuple of str
        Clauses without a full stop, listed at the top of the report.
    fit_assessed : bool
        Whether the panel compares the fitted model with the data.
    """

    heading: str
    paragraphs: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    warnings: tuple[str, ...] = ()
    fit_assessed: bool = False

    @property
    def section(self) -> Section:
        """The section that refers to the tables by name."""
        names = tuple(table.name for table in self.tables)
        return Section(self.heading, self.paragraphs, (), names)


@dataclass(frozen=True)
class ReportContent:
    """Contents of a report beyond the fit itself.

    Attributes
    ----------
    title : str
    warnings : tuple of str
        Issued by the fit.
    support : tuple of (str, str, float)
        Pairs of latents with the share of bootstrap samples in which they are adjacent.
    sections : tuple of Section
    tables : tuple of Table
        Tables of the sections.
    command : str
        Command that reproduces the fit; empty if unknown.
    misfits : tuple of str
        Evidence against the model from the comparison with the data.
    fit_assessed : bool
        Whether fit statistics of item pairs were computed; predictive checks do not suffice.
    directions : tuple of (str, str, float)
        Directed edges with the share of bootstrap samples that have the same direction.
    misfits_stored : bool
        False for files of versions that did not store ``misfits``.
    plots : bool
        Whether the page has figures.
    weighted : bool
        Whether fit statistics used the sample weights.
    n_resampled : int or None
        Number of bootstrap samples; None if there are none or the file does not state it.
    unstable_latents : tuple of str
        Warnings about latents that bootstrap samples do not reproduce.
    """

    title: str = "Latent variables and their causal graph"
    warnings: tuple[str, ...] = ()
    support: tuple[tuple[str, str, float], ...] = ()
    sections: tuple[Section, ...] = ()
    tables: tuple[Table, ...] = ()
    command: str = ""
    misfits: tuple[str, ...] = ()
    fit_assessed: bool = False
    directions: tuple[tuple[str, str, float], ...] = ()
    misfits_stored: bool = True
    plots: bool = True
    weighted: bool = False
    n_resampled: int | None = None
    unstable_latents: tuple[str, ...] = ()

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings of the sections."""
        return tuple(section.heading for section in self.sections)

    def with_panel(self, panel: Panel, *, first: bool = False) -> ReportContent:
        """Return a copy with a panel in place of the one with its heading, else first or last."""
        sections = [section for section in self.sections if section.heading != panel.heading]
        position = 0 if first else len(sections)
        replaced: set[str] = set()
        if panel.heading in self.headings:
            position = self.headings.index(panel.heading)
            replaced = set(self.sections[position].tables)
        sections.insert(position, panel.section)
        tables = (*panel.tables, *(t for t in self.tables if t.name not in replaced))
        return replace(self, sections=tuple(sections), tables=tables)


def column_headings(columns: Iterable[str]) -> tuple[str, ...]:
    """Return names of columns with spaces in place of underscores."""
    return tuple(name.replace("_", " ") for name in columns)


def display_table(table: Table) -> dict[str, Any]:
    """Return a table for a template: cells as text, and which columns are numeric."""
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
            for row in table.rows[:MAX_TABLE_ROWS]
        ],
        "n_rows": len(table.rows),
        "folded": len(table.rows) > OPEN_TABLE_ROWS,
    }


def save_content(content: ReportContent, path: Path) -> Path:
    """Write the contents of a report as JSON and return the path."""
    fields = {_KEYS.get(name, name): value for name, value in asdict(content).items()}
    stored = {"format": _FORMAT, "version": _VERSION, **without_nan(fields)}
    text = json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", "utf-8")
    return path


def load_content(path: Path) -> ReportContent:
    """Return contents that `save_content` wrote; of a missing file, those of an empty report."""
    if not path.is_file():
        return ReportContent()
    try:
        stored = json.loads(path.read_text("utf-8"))
        if stored.pop("format") != _FORMAT or stored.pop("version") != _VERSION:
            raise ValueError("unknown format")
        attributes = {key: name for name, key in _KEYS.items()}
        fields = {attributes.get(key, key): _as_tuples(value) for key, value in stored.items()}
        fields["sections"] = tuple(_read_section(part) for part in stored["sections"])
        fields["tables"] = tuple(Table(**_as_tuples(table)) for table in stored["tables"])
        # Earlier versions stored neither of these.
        has_statistics = any(s.heading == GOODNESS_OF_FIT and s.tables for s in fields["sections"])
        fields.setdefault("fit_assessed", has_statistics)
        fields.setdefault("misfits_stored", "misfits" in fields)
        return ReportContent(**fields)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(
            "damaged-report-file",
            "{path} is not a report file of hidag fit, or it is damaged",
            advice="remove it to write the report from the fit alone",
            path=path,
        ) from error


def _read_section(stored: dict[str, Any]) -> Section:
    section = Section(**_as_tuples(stored))
    return replace(section, heading=_FORMER_HEADINGS.get(section.heading, section.heading))


def _as_tuples(value: Any) -> Any:
    """Return JSON with its lists as tuples."""
    if isinstance(value, list):
        return tuple(_as_tuples(entry) for entry in value)
    if isinstance(value, dict):
        return {name: _as_tuples(entry) for name, entry in value.items()}
    return value
