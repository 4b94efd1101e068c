"""The report: the summary with a graph to take hold of, tables to sort, and all that was found."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from hidag.identify.findings import sentence_case
from hidag.identify.text import finding_in_words, mark_of, verdict_sentences
from hidag.report.absent import absent_section
from hidag.report.found_words import FEW_TABLES, what_was_found, without_edges
from hidag.report.graph_panel import graph_panel
from hidag.report.page import render_page, require_templates, write_page
from hidag.report.parts import shown_table
from hidag.report.parts_file import ReportParts
from hidag.report.summary import summary_content

if TYPE_CHECKING:
    from hidag.result import FitResult

_TEMPLATE, _SCRIPT = "report.html.jinja", "report.js"


def render_report(
    result: FitResult, parts: ReportParts | None = None, *, plots: bool = True
) -> str:
    """Return the report of a fit as one self-contained HTML page.

    Parameters
    ----------
    result : FitResult
    parts : ReportParts, optional
    plots : bool
        Whether to draw Q and the trace, if the parts have them; all else is there without pictures
        too.

    Returns
    -------
    str
        It opens without a connection and loads nothing. Its one script is named by digest in the
        page's policy, so that nothing else can run; names are escaped wherever they stand.
    """
    require_templates()
    from markupsafe import Markup

    parts = parts or ReportParts()
    tables = {table.name: shown_table(table) for table in parts.tables}
    headings = [section.heading for section in parts.sections]
    absent = absent_section(headings, result)
    sections = [
        {
            "id": f"part-{number}",
            "heading": section.heading,
            "paragraphs": section.paragraphs,
            "tables": [tables[name] for name in section.tables],
        }
        for number, section in enumerate((*parts.sections, *([absent] if absent else [])))
    ]
    certificate = result.identifiability
    support = {(a, b): share for a, b, share in parts.support} if parts.support else None
    directions = {(a, b): share for a, b, share in parts.directions}
    script = files("hidag.report").joinpath(_SCRIPT).read_text(encoding="utf-8")
    content = summary_content(
        result,
        warnings=(*parts.warnings, *parts.doubts, *parts.not_found_again),
        plots=plots and parts.plots,
        examined=parts.examined,
        # By what is there: earlier versions called a fit examined after checks alone.
        only_checks="checks" in tables and "pair_fit" not in tables,
        doubts_kept=parts.doubts_kept,
        by_weights=parts.by_weights,
    )
    return render_page(
        _TEMPLATE,
        names=(*result.item_names, *result.latent_names),
        title=parts.title,
        panel=graph_panel(result, support, directions) if len(result.latent_names) > 1 else None,
        found=what_was_found(result, support, directions, parts.n_resampled),
        few_tables=parts.n_resampled if (parts.n_resampled or FEW_TABLES) < FEW_TABLES else None,
        without_edges=without_edges(result),
        sections=sections,
        contents=_contents(sections),
        verdict=[sentence_case(head + text) for head, text in verdict_sentences(certificate)],
        findings=[
            (mark_of(found), *finding_in_words(found), found) for found in certificate.findings
        ],
        command=parts.command,
        # The digest is that of the very text between the tags.
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        **content,
    )


def write_report(
    result: FitResult, path: str | Path, parts: ReportParts | None = None, *, plots: bool = True
) -> Path:
    """Write the report of a fit and return its path; the file appears whole or not at all.

    Parameters
    ----------
    result : FitResult
    path : str or Path
        Of the page, in a folder that exists.
    parts : ReportParts, optional
        What it says beyond the fit: statistics of fit, errors, a bootstrap.
    plots : bool
        Whether to draw Q and the trace, if the parts have them.

    Returns
    -------
    Path

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    return write_page(render_report(result, parts, plots=plots), path)


def _contents(sections: Sequence[Mapping[str, object]]) -> Iterable[tuple[str, str]]:
    """Return the places of the page that its head leads to, with their names."""
    return [
        ("found", "What was found"),
        ("fitted", "What was fitted"),
        ("graph-section", "Graph"),
        ("loadings", "Items"),
        *((str(section["id"]), str(section["heading"])) for section in sections),
        ("identifiability", "Identifiability"),
        ("made", "How it was made"),
    ]
