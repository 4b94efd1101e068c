"""`hidag report` and `hidag info`: a saved fit as a page, and as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()

#: Optional packages that `hidag info` lists.
_EXTRAS = ("pyarrow", "matplotlib", "jinja2", "typer", "rich")


@app.command(epilog="Example: `hidag report fit --out report.html`")
def report(
    result: Annotated[
        Path,
        typer.Argument(
            help="Folder that `hidag fit --out` wrote, or result.npz in it.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write.", show_default="report.html beside the result"),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", show_default="that of the fit")
    ] = None,
) -> None:
    """Write the report of a fit, one self-contained HTML page."""
    from hidag.cli.console import say
    from hidag.cli.messages import render
    from hidag.cli.output_files import check_file, load_result
    from hidag.reporting.content import load_content
    from hidag.reporting.html_page import write_page
    from hidag.reporting.report import render_report

    fitted = load_result(result)
    folder = result if result.is_dir() else result.parent
    content = load_content(folder / "report.json")
    if title is not None and title.strip():
        content = replace(content, title=title)
    target = folder / "report.html" if out is None else out
    if target.is_dir():
        target = target / "report.html"
    check_file(target, [result], own=folder / "report.html")
    say(f"wrote {write_page(render_report(fitted, content, render=render), target)}")


@app.command()
def info(
    result: Annotated[
        Path | None,
        typer.Argument(help="result.npz, or the folder that holds it.", show_default=False),
    ] = None,
) -> None:
    """Print versions and item types, or describe a saved fit."""
    from hidag.cli.console import say, show_warning
    from hidag.cli.output_files import load_result
    from hidag.cli.result_text import say_result
    from hidag.reporting import describe_fit, list_concerns

    if result is None:
        _say_versions()
        return
    fitted = load_result(result)
    for sentence in describe_fit(fitted):
        say(sentence)
    say()
    say_result(fitted)
    say(f"\nseed {fitted.seed}, hidag {fitted.versions.get('hidag')}")
    for concern in list_concerns(fitted):
        show_warning(concern)


def _say_versions() -> None:
    from importlib.metadata import PackageNotFoundError, version

    from hidag.cli.console import columns, say
    from hidag.measurement.families import family_names
    from hidag.results import versions_used

    known = versions_used()
    rows = [[name, known[name]] for name in ("hidag", *sorted(set(known) - {"hidag"}))]
    for name in _EXTRAS:
        try:
            rows.append([name, version(name)])
        except PackageNotFoundError:
            rows.append([name, "not installed"])
    rows.append(["families", ", ".join(family_names())])
    for line in columns(rows):
        say(line)
