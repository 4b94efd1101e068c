"""One run of a recovery study: draw a truth and a table, let a method at it, compare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from math import isnan
from typing import Any

import numpy as np

from hidag.estimator import DCRL
from hidag.evaluate import Parts, evaluate, evaluate_graph
from hidag.settings import plain_value
from hidag.simulate import Simulation, Truth, design, simulate
from hidag.simulate.designs import ITEM_VARIANTS, Design
from hidag.studies.addresses import RunSeeds
from hidag.studies.attempts import Attempt, attempt
from hidag.studies.cells import Cell
from hidag.studies.columns import FIT_MEASURES, MEASURES, YARDSTICK_MEASURES
from hidag.studies.methods import OURS, baselines
from hidag.studies.rules import CALIBRATED
from hidag.studies.yardsticks import search_true_latents, truth_started

_WARM_UP_ROWS = 100


def recover(
    cell: Cell, version: Design, estimator: Mapping[str, Any], seeds: RunSeeds, method: str
) -> list[dict[str, Any]]:
    """Return the numbers of one run of one method, flat, by name: a list of one row.

    Parameters
    ----------
    cell : Cell
    version : {"text", "research-code"}
        Which design the truth is drawn from.
    estimator : mapping
        Settings of our estimator that are not its defaults.
    seeds : RunSeeds
        The same for every method, so that all see the same table.
    method : str
        "ours" or the name of a baseline.

    Returns
    -------
    list of dict
        ``status`` is "ok", or "failed" with the ``reason`` why there is nothing; the yardsticks
        stand in our method's row in either case.
    """
    data = drawn_table(cell, version, seeds)
    if method != OURS:
        return [_compared_baseline(data, method, seeds.fit)]
    warm_up(cell.family, version)
    tried = attempt(lambda: _fit(data, seeds.fit, estimator))
    out = compared(tried, data.truth)
    if tried.outcome is not None and out["status"] == "ok":
        out |= fit_numbers(tried.outcome.result_)
    return [{**out, "fit_seed": seeds.fit, "rule": CALIBRATED, **yardsticks(data)}]


def drawn_table(cell: Cell, version: Design, seeds: RunSeeds) -> Simulation:
    """Return the table of a run, with the truth behind it."""
    truth = design(
        cell.model,
        cell.q,
        cell.family,
        design=version,
        rng=seeds.truth,
        **ITEM_VARIANTS[cell.items],
    )
    return simulate(truth, cell.n, rng=seeds.rows)


def compared(tried: Attempt[Any], truth: Truth) -> dict[str, Any]:
    """Return what a row says of an estimate, or why there is none."""
    out: dict[str, Any] = {
        "status": "ok",
        "reason": tried.reason,
        "warnings": tried.warnings,
        "cpu_seconds": tried.seconds,
    }
    if tried.outcome is not None:
        # An estimate whose numbers cannot be compared has failed as well.
        measured = attempt(lambda: evaluate(tried.outcome, truth).to_dict())
        out["reason"] = measured.reason
        if measured.outcome is not None:
            out |= {name: plain(measured.outcome[name]) for name in MEASURES}
    if out["reason"] is not None:
        out["status"] = "failed"
    return out


def fit_numbers(result: Any) -> dict[str, Any]:
    """Return what a row takes over from a fit of ours."""
    names = {"fit_method": "method"}
    return {name: plain(getattr(result, names.get(name, name))) for name in FIT_MEASURES}


def yardsticks(data: Simulation) -> dict[str, Any]:
    """Return the two yardsticks' numbers, and why there are none where there are none."""
    truth = data.truth
    started = attempt(lambda: evaluate(truth_started(truth, data.X), truth).to_dict())
    out: dict[str, Any] = {
        "truth_started_cpu_seconds": started.seconds,
        "truth_started_reason": started.reason,
    }
    if started.outcome is not None:
        measured = started.outcome
        out |= {f"truth_started_{name}": plain(measured[name]) for name in YARDSTICK_MEASURES}
    seen = attempt(lambda: evaluate_graph(search_true_latents(data.states), truth.cpdag))
    out["true_latents_shd_graph"] = None if seen.outcome is None else seen.outcome.shd
    out["true_latents_reason"] = seen.reason
    return out


@cache
def warm_up(family: str, version: Design) -> None:
    """Load what a process loads once, so that no run is charged for it."""
    truth = design("Chain-5", "Q1", family, design=version, rng=0)
    small = simulate(truth, _WARM_UP_ROWS, rng=0)
    attempt(lambda: _fit(small, 0, {"n_starts": 1, "max_iter": 2}))


def plain(value: Any) -> Any:
    """Return a number as rows have it: NaN as None, NumPy's numbers as Python's."""
    number = plain_value(value)
    return None if isinstance(number, float) and isnan(number) else number


def _fit(data: Simulation, seed: int, estimator: Mapping[str, Any]) -> DCRL:
    truth = data.truth
    settings = {"family": list(truth.families), "random_state": seed, **estimator}
    return DCRL(truth.n_latents, **settings).fit(data.X)


def _compared_baseline(data: Simulation, name: str, seed: int) -> dict[str, Any]:
    """Return the row of another method on the same table; it has no law and no coefficients."""
    truth = data.truth
    notes: dict[str, Any] = {}

    def run() -> Parts:
        found = baselines()[name].run(
            np.array(data.X), tuple(truth.families), truth.n_latents, seed
        )
        notes.update(found.notes)
        return Parts(found.q_matrix, graph=found.graph)

    out = compared(attempt(run), truth)
    said = json.dumps(plain_value(notes), sort_keys=True) if notes else None
    return {**out, "fit_seed": seed, "notes": said}
