"""`hidag report`: the page of a fit that was saved."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hidag.cli.commands.inspection import load_result
from hidag.cli.console import say
from hidag.cli.data_source import kind_of_errors
from hidag.cli.messages import join_command
from hidag.cli.output_files import check_file
from hidag.diagnostics.classification import classify
from hidag.diagnostics.fit_statistics import fit_statistics
from hidag.diagnostics.q_validation import validate_q
from hidag.fitting.information_criteria import count_parameters
from hidag.inference.fitted_rows import NOT_SUMMED, can_list_states, can_sum_states, was_weighted
from hidag.inference.information.posterior_tables import state_tables
from hidag.inference.standard_errors import standard_errors
from hidag.reporting.diagnostic_sections import (
    Panel,
    effects_panel,
    errors_panel,
    fit_panel,
    placement_panel,
    q_panel,
)
from hidag.reporting.fit_report import write_report
from hidag.reporting.misfit import doubts_of_q, flat_directions, misfits
from hidag.reporting.sections import (
    FIT_HEADING,
    Q_HEADING,
    SURE_HEADING,
    ReportParts,
    Section,
    read_parts,
)
from hidag.results import FitResult

#: Numbers up to which statistics of fit are a matter of seconds, as `_work` counts them.
WORK_OF_A_MOMENT = 1.5e9
#: Tables drawn for predictive checks: fewer of large ones, but chances below .05 stay possible.
CELLS_OF_TABLES, FEWEST_TABLES, MOST_TABLES = 2e7, 40, 100
#: Rows by joint states by pairs of items' numbers, up to which standard errors are.
WORK_OF_ERRORS = 5e8
#: How much longer a number of a sum over small tables takes than one over joint states.
WORK_OF_SMALL_SUMS = 10.0
#: Rows by entries of Q by joint states, up to which a given Q is validated in seconds.
WORK_OF_A_VALIDATION = 2.5e6


def report_parts(
    result: FitResult,
    values: NDArray[np.float64],
    title: str,
    warnings: Sequence[str],
    *,
    statistics: bool | None = None,
    weights: NDArray[np.float64] | None = None,
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
    weights : ndarray, shape (N,), optional
        That rows were counted by.
    """
    panels, doubts = _how_sure(result, values, weights)
    panels.append(placement_panel(classify(result, values)))
    if len(result.latent_names) > 1:
        panels.append(effects_panel(result))
    wanted, examined = statistics, False
    if statistics is None:
        statistics = _work(result, len(values)) <= WORK_OF_A_MOMENT
    if statistics:
        n_tables = min(max(int(CELLS_OF_TABLES / values.size), FEWEST_TABLES), MOST_TABLES)
        found = fit_statistics(result, values, sample_weight=weights, n_tables=n_tables)
        panels.append(fit_panel(found))
        # Checks alone see neither pairs nor items that go together otherwise than the model says.
        examined = found.criteria is not None and len(found.pairs) > 0
        # Rows that count once have other means and pairs than weighted ones: that is no misfit.
        judged = weights is not None or not was_weighted(result)
        doubts = [*(misfits(found) if judged else ()), *doubts]
    else:
        panels.append((Section(FIT_HEADING, (_why_no_statistics(result, wanted),)), ()))
    about_q, doubts_about_q = _is_q_right(result, values, weights)
    panels += about_q
    return ReportParts(
        title,
        tuple(warnings),
        sections=tuple(section for section, _ in panels),
        tables=tuple(table for _, tables in panels for table in tables),
        command=_command(),
        doubts=(*doubts, *doubts_about_q),
        examined=examined,
        by_weights=weights is not None,
    )


def _why_no_statistics(result: FitResult, wanted: bool | None) -> str:
    """Return why there are no statistics of fit, and which commands compute them."""
    commands = (
        "as it takes longer than the fit; `hidag fit --statistics` does so, and `hidag goodness` "
        "for a fit that is there"
        if wanted is None
        else "as the fit was asked not to; `hidag goodness` does so"
    )
    if can_sum_states(result):
        return f"Not computed here, {commands}."
    return (
        f"The table was not compared with tables drawn from the fit here, {commands}. Other "
        f"statistics of fit are {NOT_SUMMED}."
    )


def _how_sure(
    result: FitResult, values: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[list[Panel], list[str]]:
    """Return standard errors where they are quick, and what they cast doubt on.

    Where they are not, the panel says which command computes them.
    """
    if not can_sum_states(result):
        never = (
            f"Standard errors are {NOT_SUMMED}; `hidag bootstrap` fits resampled tables, with its "
            "answer here."
        )
        return [(Section(SURE_HEADING, (never,)), ())], []
    if _work_of_errors(result, len(values)) > WORK_OF_ERRORS:
        wait = (
            "Standard errors take longer than the fit here; `hidag errors` computes them for this "
            "Q and this graph, and `hidag bootstrap` fits resampled tables, with its answer here."
        )
        return [(Section(SURE_HEADING, (wait,)), ())], []
    kind = kind_of_errors(weights)
    found = standard_errors(result, values, sample_weight=weights, kind=kind)
    return [errors_panel(found)], list(flat_directions(found))


def _work_of_errors(result: FitResult, n_rows: int) -> float:
    """Return how much standard errors have to go through.

    That is rows by joint states by pairs of items' numbers. Where joint states are not listed, all
    rows are summed anew for each parameter, and those sums are slower.
    """
    if can_list_states(result):
        return float(n_rows) * result.law.space.n_states * len(result.response_names) ** 2
    return float(n_rows) * _n_cells(result) * count_parameters(result) * WORK_OF_SMALL_SUMS


def _n_cells(result: FitResult) -> int:
    """Return how many numbers a row's sums over latents go through; 0 where there are none."""
    tables = state_tables(result)
    return 0 if tables is None else tables.n_cells


def _is_q_right(
    result: FitResult, values: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[list[Panel], list[str]]:
    """Return what the data would change in a Q that was wholly given, where that is quick."""
    q = result.q_given
    if q is None or (q < 0).any() or len(result.latent_names) < 2:
        return [], []
    if not can_sum_states(result):
        never = f"What the data would change in the Q that was given is {NOT_SUMMED}."
        return [(Section(Q_HEADING, (never,)), ())], []
    work = float(len(values)) * q.size * result.law.space.n_states
    if not can_list_states(result) or work > WORK_OF_A_VALIDATION:
        wait = "It takes longer than the fit to say; `hidag validate-q` does so."
        return [(Section(Q_HEADING, (wait,)), ())], []
    found = validate_q(result, values, sample_weight=weights)
    return [q_panel(found)], list(doubts_of_q(found))


def _work(result: FitResult, n_rows: int) -> float:
    """Return how much statistics of fit have to go through: rows by items by joint states, and
    rows by pairs of items, which is most of it for a thousand items.

    Where joint states are too many to sum over only tables are drawn, which takes none of them.
    """
    n_items = len(result.item_names)
    return float(n_rows) * n_items * (_n_cells(result) + n_items)


def _command() -> str:
    """Return what was typed, without the folder: where results went is no part of how."""
    words, wanted = [], iter(sys.argv[1:])
    for word in wanted:
        if word in ("--out", "-o"):
            next(wanted, None)
        elif not word.startswith("--out="):
            words.append(word)
    return join_command(["hidag", *words])


def run_report(fit: Path, out: Path | None, title: str | None) -> None:
    """Carry out `hidag report`."""
    result = load_result(fit)
    folder = fit if fit.is_dir() else fit.parent
    found = folder / "report.json"
    parts = read_parts(found) if found.is_file() else ReportParts()
    if title is not None and title.strip():
        parts = replace(parts, title=title)
    target = folder / "report.html" if out is None else out
    if target.is_dir():
        target = target / "report.html"
    check_file(target, [fit], own=folder / "report.html")
    say(f"wrote {write_report(result, target, parts)}")
