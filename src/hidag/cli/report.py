"""`hidag report`: the page of a fit that was saved."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hidag.cli.console import say
from hidag.cli.evaluate import load_result
from hidag.errors import FileError
from hidag.report import ReportParts, read_parts, write_report
from hidag.result import FitResult


def report_parts(
    result: FitResult, values: NDArray[np.float64], title: str, warnings: Sequence[str]
) -> ReportParts:
    """Return what the report of a fresh fit says beyond the fit.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        The table it was fitted to.
    title : str
    warnings : sequence of str
    """
    return ReportParts(title, tuple(warnings), command=_command())


def _command() -> str:
    """Return what was typed, without the folder: where results went is no part of how."""
    words, wanted = [], iter(sys.argv[1:])
    for word in wanted:
        if word in ("--out", "-o"):
            next(wanted, None)
        elif not word.startswith("--out="):
            words.append(word)
    return shlex.join(["hidag", *words])


def run_report(fit: Path, out: Path | None, title: str | None) -> None:
    """Carry out `hidag report`."""
    result = load_result(fit)
    folder = fit if fit.is_dir() else fit.parent
    found = folder / "report.json"
    parts = read_parts(found) if found.is_file() else ReportParts()
    if title is not None:
        parts = replace(parts, title=title)
    target = folder / "report.html" if out is None else out
    if target.is_dir():
        target = target / "report.html"
    if not target.parent.is_dir():
        raise FileError(f"there is no folder {target.parent}; make it, or choose another --out")
    say(f"wrote {write_report(result, target, parts)}")
