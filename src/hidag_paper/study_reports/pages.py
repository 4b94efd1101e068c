"""Report of a study as Markdown, LaTeX and HTML pages with the same tables and figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isnan

from hidag.plotting.figure import Format, render_figure
from hidag.reporting.html_page import data_uri, render_page
from hidag_paper.studies.summary import Estimate, Summary
from hidag_paper.study_reports.figures import study_figures
from hidag_paper.study_reports.formatted import StudyTable
from hidag_paper.study_reports.tables import StudyReport

_TEMPLATE = "study.html.jinja"
_FORMATS: tuple[Format, ...] = ("png", "svg")
#: Special characters of LaTeX.
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_LATEX_HEAD = r"""\documentclass[10pt]{article}
\usepackage[a4paper,landscape,margin=15mm]{geometry}
\usepackage[T1]{fontenc}
\usepackage{booktabs,longtable,graphicx}
\setlength{\tabcolsep}{4pt}
\begin{document}
"""


def study_files(report: StudyReport) -> dict[str, bytes]:
    """Return the files of a report by name: three pages, a CSV file, and figures."""
    figures = study_figures(report.summaries, report.shows)
    images = {
        f"{figure.name}.{kind}": render_figure(figure.draw, figure.size, file_format=kind)
        for figure in figures
        for kind in _FORMATS
    }
    names = [figure.name for figure in figures]
    return {
        **images,
        "cells.csv": summary_csv(report.summaries).encode(),
        "report.md": markdown_page(report, names).encode(),
        "report.tex": latex_page(report, names).encode(),
        "report.html": html_page(report, images).encode(),
    }


def markdown_page(report: StudyReport, figures: Sequence[str]) -> str:
    """Return the page as Markdown; figures are PNG files in the same folder."""
    parts = [f"# {report.title}", f"{report.about}."]
    parts += [f"> {warning}" for warning in report.warnings]
    for table in (*report.tables, *report.like_paper):
        parts += [f"## {table.title}", _markdown_table(table)]
        parts.append("\n".join(f"- **{heading}**: {text}" for heading, text in table.notes))
    if report.comparison:
        parts.append("\n".join(f"- {line}" for line in report.comparison))
    parts += [f"![{name}]({name}.png)" for name in figures]
    return "\n\n".join(parts) + "\n"


def latex_page(report: StudyReport, figures: Sequence[str]) -> str:
    """Return the page as a LaTeX document; figures are PNG files in the same folder."""
    parts = [_LATEX_HEAD + rf"\section*{{{_latex(report.title)}}}", _latex(f"{report.about}.")]
    parts += [_latex(warning) for warning in report.warnings]
    for table in (*report.tables, *report.like_paper):
        parts += [rf"\subsection*{{{_latex(table.title)}}}", _latex_table(table)]
        parts.append(_latex_list([f"{heading}: {text}" for heading, text in table.notes]))
    if report.comparison:
        parts.append(_latex_list(report.comparison))
    parts += [
        rf"\begin{{center}}\includegraphics[width=\linewidth,height=.9\textheight,"
        rf"keepaspectratio]{{{name}.png}}\end{{center}}"
        for name in figures
    ]
    return "\n\n".join(parts) + "\n\\end{document}\n"


def html_page(report: StudyReport, images: Mapping[str, bytes]) -> str:
    """Return the page as self-contained HTML."""
    inside = {n: data_uri(data) for n, data in images.items() if n.endswith(".png")}
    return render_page(_TEMPLATE, title=report.title, report=report, figures=inside)


def summary_csv(summaries: Sequence[Summary]) -> str:
    """Return the summaries as CSV with full precision; missing values are empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    lines = [_flat(summary) for summary in summaries]
    if lines:
        writer.writerow(lines[0])
        writer.writerows(line.values() for line in lines)
    return stream.getvalue()


def _flat(summary: Summary) -> dict[str, object]:
    out: dict[str, object] = {"cell": summary.cell.name}
    for part in fields(summary.cell):
        out[part.name] = getattr(summary.cell, part.name)
    for part in fields(summary):
        value = getattr(summary, part.name)
        if part.name in ("cell", "reasons"):
            continue
        if isinstance(value, Estimate):
            out[part.name] = _number(value.mean)
            out[f"{part.name}_error"] = _number(value.error)
        else:
            out[part.name] = _number(value) if isinstance(value, float) else value
    return {**out, "reasons": "; ".join(summary.reasons)}


def _number(value: float) -> str:
    return "" if isnan(value) else f"{value:.10g}"


def _markdown_table(table: StudyTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|---|" + "---:|" * (len(table.headings) - 1)
    return "\n".join([line(table.headings), rule, *(line(row) for row in table.rows)])


def _latex_table(table: StudyTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(_latex(cell) for cell in cells) + r" \\"

    alignment = "l" + "r" * (len(table.headings) - 1)
    return "\n".join(
        [
            rf"{{\footnotesize\begin{{longtable}}{{{alignment}}}",
            r"\toprule",
            line(table.headings),
            r"\midrule\endhead\bottomrule\endfoot",
            *(line(row) for row in table.rows),
            r"\end{longtable}}",
        ]
    )


def _latex_list(lines: Sequence[str]) -> str:
    items = "\n".join(rf"\item {_latex(line)}" for line in lines)
    return rf"\begin{{itemize}}{items}\end{{itemize}}" if lines else ""


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
