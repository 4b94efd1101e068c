"""`hidag report`: the page of a saved fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hidag.cli.commands.inspection import load_result
from hidag.cli.console import say
from hidag.cli.messages import render
from hidag.cli.output_files import check_file
from hidag.reporting.content import load_content
from hidag.reporting.html_page import write_page
from hidag.reporting.report import render_report


def run_report(fit: Path, out: Path | None, title: str | None) -> None:
    """Carry out `hidag report`."""
    result = load_result(fit)
    folder = fit if fit.is_dir() else fit.parent
    content = load_content(folder / "report.json")
    if title is not None and title.strip():
        content = replace(content, title=title)
    target = folder / "report.html" if out is None else out
    if target.is_dir():
        target = target / "report.html"
    check_file(target, [fit], own=folder / "report.html")
    page = render_report(result, content, render=render)
    say(f"wrote {write_page(page, target)}")
