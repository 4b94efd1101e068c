"""Reports of fits: sentences that describe them, and one self-contained HTML page.

:func:`write_report` writes the page; :func:`assemble_report` computes its contents and
:func:`render_report` renders them.
"""

from hidag.reporting.assembly import add_bootstrap, assemble_report
from hidag.reporting.content import Panel, ReportContent, Section, Table, load_content
from hidag.reporting.fit_description import format_edges, list_interactions
from hidag.reporting.report import render_report, write_report
from hidag.reporting.text_summary import summarize

__all__ = [
    "Panel", "ReportContent", "Section", "Table", "add_bootstrap", "assemble_report",
    "format_edges", "list_interactions", "load_content", "render_report", "summarize",
    "write_report",
]  # fmt: skip
