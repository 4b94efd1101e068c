"""A study as pages: Markdown, LaTeX and HTML with the same tables and pictures."""

from __future__ import annotations

import base64
import csv
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.resources import files
from math import isnan
from pathlib import Path

from hidag.errors import FileError
from hidag.plots.study import figure_bytes, study_figures
from hidag.report.study_tables import StudyReport, StudyTable
from hidag.studies import Estimate, Summary

_TEMPLATE = "study.html.jinja"
_PICTURE_KINDS = ("png", "svg")
#: Characters that LaTeX reads as something else.
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


def write_study_pages(report: StudyReport, folder: Path) -> list[str]:
    """Write a report as pages with pictures and return the files' names.

    Parameters
    ----------
    report : StudyReport
    folder : Path
        Made if need be; files of the same names are replaced.
    """
    figures = study_figures(report.summaries, report.shows)
    pictures = {
        f"{name}.{kind}": figure_bytes(figure, kind)
        for name, figure in figures.items()
        for kind in _PICTURE_KINDS
    }
    content: dict[str, bytes] = {
        "report.md": markdown_page(report, list(figures)).encode(),
        "report.tex": latex_page(report, list(figures)).encode(),
        "report.html": html_page(report, pictures).encode(),
        "cells.csv": summary_csv(report.summaries).encode(),
        **pictures,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in content.items():
            _write_whole(folder / name, data)
    except OSError as error:
        raise FileError(
            f"cannot write into the folder {folder}: {error.strerror or error}; choose another one "
            "with --out"
        ) from error
    return list(content)


def markdown_page(report: StudyReport, pictures: Sequence[str]) -> str:
    """Return the page as Markdown; pictures are PNG files beside it, by name."""
    parts = [f"# {report.title}", f"{report.about}."]
    parts += [f"> {warning}" for warning in report.warnings]
    for table in report.tables:
        parts += [f"## {table.title}", _markdown_table(table)]
        parts.append("\n".join(f"- **{heading}**: {text}" for heading, text in table.notes))
    if report.standing:
        parts.append("\n".join(f"- {line}" for line in report.standing))
    parts += [f"![{name}]({name}.png)" for name in pictures]
    return "\n\n".join(parts) + "\n"


def latex_page(report: StudyReport, pictures: Sequence[str]) -> str:
    """Return the page as a LaTeX document; pictures are PNG files beside it, by name."""
    parts = [_LATEX_HEAD + rf"\section*{{{_latex(report.title)}}}", _latex(f"{report.about}.")]
    parts += [_latex(warning) for warning in report.warnings]
    for table in report.tables:
        parts += [rf"\subsection*{{{_latex(table.title)}}}", _latex_table(table)]
        parts.append(_latex_list([f"{heading}: {text}" for heading, text in table.notes]))
    if report.standing:
        parts.append(_latex_list(report.standing))
    parts += [
        rf"\begin{{center}}\includegraphics[width=\linewidth,height=.9\textheight,"
        rf"keepaspectratio]{{{name}.png}}\end{{center}}"
        for name in pictures
    ]
    return "\n\n".join(parts) + "\n\\end{document}\n"


def html_page(report: StudyReport, pictures: Mapping[str, bytes]) -> str:
    """Return the page as HTML with its pictures inside, nothing from elsewhere."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(
        files("hidag.report").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    )
    inside = {
        name: "data:image/png;base64," + base64.b64encode(data).decode("ascii")
        for name, data in pictures.items()
        if name.endswith(".png")
    }
    return template.render(report=report, pictures=inside)


def summary_csv(summaries: Sequence[Summary]) -> str:
    """Return every summary as a line of CSV, numbers as they are; empty where there is none."""
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


def _write_whole(target: Path, data: bytes) -> None:
    """Write a file aside and move it into place, so that it is never half there."""
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=".hidag-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(part, 0o644)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise
