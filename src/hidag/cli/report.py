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
from hidag.explain import classify, fit_statistics
from hidag.report import ReportParts, Section, read_parts, write_report
from hidag.report.effects_panel import effects_panel
from hidag.report.panels import fit_panel, placement_panel
from hidag.result import FitResult

#: Numbers up to which statistics of fit are a matter of seconds, as `_work` counts them.
WORK_OF_A_MOMENT = 1.5e9


def report_parts(
    result: FitResult,
    values: NDArray[np.float64],
    title: str,
    warnings: Sequence[str],
    *,
    statistics: bool | None = None,
) -> ReportParts:
    """Return what the report of a fresh fit says beyond the fit.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        The table it was fitted to.
    title : str
    warnings : sequence of str
    statistics : bool or None
        Whether to compute how well the model fits; None does so where it takes no longer than a
        moment.
    """
    panels = [placement_panel(classify(result, values))]
    if len(result.latent_names) > 1:
        panels.append(effects_panel(result))
    if statistics or (statistics is None and _work(result, len(values)) <= WORK_OF_A_MOMENT):
        panels.append(fit_panel(fit_statistics(result, values)))
    else:
        panels.append(
            (
                Section(
                    "How well it fits",
                    (
                        "Not computed here, as it takes longer than the fit; `hidag fit "
                        "--statistics` does so, and `hidag goodness` for a fit that is there.",
                    ),
                ),
                (),
            )
        )
    return ReportParts(
        title,
        tuple(warnings),
        sections=tuple(section for section, _ in panels),
        tables=tuple(table for _, tables in panels for table in tables),
        command=_command(),
    )


def _work(result: FitResult, n_rows: int) -> float:
    """Return how much statistics of fit have to go through: rows by items by joint states, and
    rows by pairs of items, which is most of it for a thousand items."""
    n_items = len(result.item_names)
    return float(n_rows) * n_items * (result.law.space.n_states + n_items)


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
