"""Contents of a report beyond the fit: tables, sections and warnings, stored in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hidag.exceptions import FileError
from hidag.files import describe_damage, read_json
from hidag.files.schema import read_as
from hidag.formatting import format_row
from hidag.results import FitResult, without_nan


class Heading:
    """Headings identify sections: a bootstrap replaces the section about standard errors."""

    UNCERTAINTY = "Uncertainty"
    CLASSIFICATION = "Classification"
    INTERVENTIONS = "Interventions"
    GOODNESS_OF_FIT = "Goodness of fit"
    Q_VALIDATION = "Q-matrix validation"


#: Headings of columns whose names are not words.
_HEADINGS = {"n_rows": "rows", "degrees": "df", "rmsd": "RMSD"}
#: Longer tables are collapsed, and truncated on the page; the CSV files are complete.
OPEN_TABLE_ROWS, MAX_TABLE_ROWS = 30, 1000

_FORMAT, _VERSION = "hidag-report", 1


@dataclass(frozen=True)
class Table:
    """A table with a ``header``; numbers are rounded on the page and complete in the CSV file."""

    name: str  # stem of its CSV file
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]  # strings, integers and floats; NaN and None are empty
    decimals: int = 3  # of floats on the page


@dataclass(frozen=True)
class Section:
    """A section of a page: ``heading``, ``paragraphs``, then pictures and tables.

    Paragraphs are plain text with commands in backticks.
    """

    heading: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()  # names
    tables: tuple[str, ...] = ()  # names


@dataclass(frozen=True)
class Panel:
    """A section with its ``tables`` and the warnings that its results justify.

    ``heading`` and ``paragraphs`` are those of the section.
    """

    heading: str
    paragraphs: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    warnings: tuple[str, ...] = ()  # clauses without a full stop, for the top of the report
    fit_assessed: bool = False  # whether it compares the fitted model with the data

    @property
    def section(self) -> Section:
        """The section that refers to the tables by name."""
        names = tuple(table.name for table in self.tables)
        return Section(self.heading, self.paragraphs, (), names)


@dataclass(frozen=True)
class ReportContent:
    """Contents of a report beyond the fit itself: its ``title``, ``sections`` and what follows."""

    title: str = "Latent variables and their causal graph"
    warnings: tuple[str, ...] = ()  # issued by the fit
    #: (K, K): probabilities of edges, averaged over bootstrap samples; empty without a bootstrap.
    edge_probabilities: tuple[tuple[float, ...], ...] = ()
    sections: tuple[Section, ...] = ()
    tables: tuple[Table, ...] = ()  # of the sections
    command: str = ""  # that reproduces the fit; empty if unknown
    misfits: tuple[str, ...] = ()  # evidence against the model from the comparison with the data
    fit_assessed: bool = False  # by statistics of item pairs; predictive checks do not suffice
    plots: bool = True  # whether the page has figures
    weighted: bool = False  # whether fit statistics used the sample weights
    n_resampled: int | None = None  # bootstrap samples; None if none
    unstable_latents: tuple[str, ...] = ()  # warnings about those that bootstrap samples lack
    fit: str = ""  # `FitResult.digest` of the fit; empty if unknown

    def to_json(self) -> str:
        """Return the content of a report file, which `load_content` reads."""
        stored = {"format": _FORMAT, "version": _VERSION, **without_nan(asdict(self))}
        return json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

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
    """Return the headings of columns on a page."""
    return tuple(_HEADINGS.get(name, name.replace("_", " ")) for name in columns)


def display_table(table: Table) -> dict[str, Any]:
    """Return a table for a template: cells as text, and which columns are numeric."""
    return {
        "name": table.name,
        "caption": table.caption,
        "header": table.header,
        "numeric": [
            all(isinstance(row[c], int | float | None) or row[c] == "" for row in table.rows)
            for c in range(len(table.header))
        ],
        "rows": [
            format_row(table.header, row, decimals=table.decimals, grouped=True)
            for row in table.rows[:MAX_TABLE_ROWS]
        ],
        "n_rows": len(table.rows),
        "folded": len(table.rows) > OPEN_TABLE_ROWS,
    }


def load_content(path: Path, fit: FitResult) -> ReportContent:
    """Return the content of a report about ``fit`` at ``path``; an empty one without a file."""
    if not path.is_file():
        return ReportContent()
    try:
        stored = read_json(path)
        if stored.pop("format") != _FORMAT or stored.pop("version") != _VERSION:
            raise ValueError("unknown format")
        content: ReportContent = read_as(stored, ReportContent, "it")
        _check(content, len(fit.latent_names))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        template = "{path} is not a report file of hidag fit, or it is damaged ({reason})"
        advice = "remove it to write the report from the fit alone"
        params = {"path": path, "reason": describe_damage(error)}
        raise FileError("damaged-report-file", template, params, advice=advice) from error
    if content.fit not in ("", fit.digest):
        template = "{path} is about another fit than the one beside it"
        advice = "fit again into a folder of its own, or remove the file"
        raise FileError("other-fit", template, advice=advice, path=path)
    return content


def _check(content: ReportContent, n_latents: int) -> None:
    """Raise unless the parts of a stored report belong together."""
    names = {table.name for table in content.tables}
    if any(not names.issuperset(section.tables) for section in content.sections):
        raise ValueError("a table of a section is missing")
    for table in content.tables:
        for row in table.rows:
            plain = all(isinstance(cell, str | int | float | None) for cell in row)
            if len(row) != len(table.header) or not plain or not 0 <= table.decimals <= 17:
                raise ValueError(f"the table {table.name!r:.60} has an invalid row")
    shares = content.edge_probabilities
    square = len(shares) in (0, n_latents) and all(len(row) == len(shares) for row in shares)
    if not square or not all(0 <= p <= 1 for row in shares for p in row if p == p):
        raise ValueError("edge_probabilities are no probabilities of pairs of latents")
