"""One run of a recovery study: draw a truth and a table, fit it, hold both against each other."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from math import isnan
from typing import Any, TypeVar

from hidag.errors import HidagWarning
from hidag.estimator import DCRL
from hidag.evaluate import evaluate, evaluate_graph
from hidag.settings import plain_value
from hidag.simulate import Simulation, Truth, design, simulate
from hidag.simulate.designs import Design
from hidag.studies.addresses import RunSeeds
from hidag.studies.cells import Cell
from hidag.studies.yardsticks import search_true_latents, truth_started

Outcome = TypeVar("Outcome")

#: What a row takes over from an evaluation of the fit, under the same names.
MEASURES = (
    "shd",
    "shd_graph",
    "shd_q",
    "graph_n_missing",
    "graph_n_extra",
    "graph_n_misdirected",
    "skeleton_f1",
    "q_f1",
    "tv_law",
    "rmse_loadings",
    "rmse_intercept",
)
#: What it takes over from the fit itself, under the same names.
FIT_MEASURES = ("log_likelihood", "n_iter", "converged", "method", "n_reached", "information_ratio")
#: What it takes over from the truth-started yardstick, under "truth_started_" and the name.
YARDSTICK_MEASURES = ("shd", "shd_graph", "shd_q", "tv_law", "rmse_loadings", "rmse_intercept")

_WARM_UP_ROWS = 100


def recover(
    cell: Cell, version: Design, estimator: Mapping[str, Any], seeds: RunSeeds
) -> dict[str, Any]:
    """Return the numbers of one run, flat, by name; None for what could not be had.

    Parameters
    ----------
    cell : Cell
    version : {"text", "research-code"}
        Which design the truth is drawn from.
    estimator : mapping
        Settings of the estimator that are not its defaults.
    seeds : RunSeeds

    Returns
    -------
    dict
        ``status`` is "ok", or "failed" with the ``reason`` why the fit gave nothing; the
        yardsticks are there in either case.
    """
    truth = design(cell.model, cell.q, cell.family, design=version, rng=seeds.truth)
    data = simulate(truth, cell.n, rng=seeds.rows)
    _warm_up(cell.family, version)
    out: dict[str, Any] = {"status": "ok", "fit_seed": seeds.fit}
    fitted, out["cpu_seconds"], reason, out["warnings"] = _attempt(
        lambda: _fit(data, seeds.fit, estimator)
    )
    out |= dict.fromkeys((*MEASURES, *FIT_MEASURES))
    if fitted is not None:
        # A fit with numbers that cannot be compared has failed as well.
        measured, _, reason, _ = _attempt(lambda: evaluate(fitted, truth).to_dict())
        if measured is not None:
            out |= {name: _plain(measured[name]) for name in MEASURES}
            out |= {name: _plain(getattr(fitted.result_, name)) for name in FIT_MEASURES}
    if reason is not None:
        out["status"] = "failed"
    return out | {"reason": reason} | _yardsticks(truth, data)


def _fit(data: Simulation, seed: int, estimator: Mapping[str, Any]) -> DCRL:
    truth = data.truth
    settings = {"family": list(truth.families), "random_state": seed, **estimator}
    return DCRL(truth.n_latents, **settings).fit(data.X)


def _yardsticks(truth: Truth, data: Simulation) -> dict[str, Any]:
    """Return the two yardsticks' numbers, and why there are none where there are none."""
    out: dict[str, Any] = {f"truth_started_{name}": None for name in YARDSTICK_MEASURES}
    found, seconds, reason, _ = _attempt(lambda: evaluate(truth_started(truth, data.X), truth))
    if found is not None:
        measured = found.to_dict()
        out |= {f"truth_started_{name}": _plain(measured[name]) for name in YARDSTICK_MEASURES}
    out["truth_started_cpu_seconds"], out["truth_started_reason"] = seconds, reason
    graph, _, reason, _ = _attempt(
        lambda: evaluate_graph(search_true_latents(data.states), truth.cpdag)
    )
    out["true_latents_shd_graph"] = None if graph is None else graph.shd
    out["true_latents_reason"] = reason
    return out


def _attempt(
    task: Callable[[], Outcome],
) -> tuple[Outcome | None, float, str | None, str | None]:
    """Return a task's outcome, its CPU seconds, why it failed, and the library's warnings."""
    outcome, reason = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=HidagWarning)
        begin = time.process_time()
        try:
            outcome = task()
        except MemoryError:
            # The machine's failure, not the estimator's: elsewhere the same run may succeed.
            raise
        except Exception as error:
            # Whatever went wrong belongs into the table: a study that drops or dies of its
            # hardest runs flatters the estimator.
            reason = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - begin
    said = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return outcome, seconds, reason, said or None


@cache
def _warm_up(family: str, version: Design) -> None:
    """Load what a process loads once, so that no run is charged for it."""
    truth = design("Chain-5", "Q1", family, design=version, rng=0)
    small = simulate(truth, _WARM_UP_ROWS, rng=0)
    _attempt(lambda: _fit(small, 0, {"n_starts": 1, "max_iter": 2}))


def _plain(value: Any) -> Any:
    """Return a number as JSON has it: NaN as None, NumPy's numbers as Python's."""
    number = plain_value(value)
    return None if isinstance(number, float) and isnan(number) else number
