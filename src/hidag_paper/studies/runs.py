"""One run of a recovery study: draw a truth and a table, let a method at it, compare."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import isnan
from typing import Any, Generic, TypeVar

import numpy as np

from hidag.em.problem import Schedule
from hidag.estimator import DCRL
from hidag.exceptions import HidagError, HidagWarning
from hidag.fitting.graph_stage import GraphFound, latent_graph
from hidag.fitting.settings import chosen_penalty, plain_value
from hidag.metrics.evaluation import evaluate, evaluate_graph
from hidag.metrics.model_parts import Parts
from hidag.simulation.designs import ITEM_VARIANTS, Design, design
from hidag.simulation.truth import Simulation, Truth, simulate
from hidag.strategy.estimation import estimate_measurement
from hidag.strategy.measurement import Measurement
from hidag_paper.studies.cells import Cell, RunSeeds
from hidag_paper.studies.methods import (
    CALIBRATED,
    OURS,
    RULES,
    baselines,
    first_stage_of,
    q_of,
    search_true_latents,
    third_stage_of,
    truth_started,
)
from hidag_paper.studies.rows import FIT_MEASURES, MEASURES, YARDSTICK_MEASURES

# --- Trying something that may fail: what came of it, how long it took, and why there is

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Attempt(Generic[Outcome]):
    """What came of a task.

    Attributes
    ----------
    outcome : object or None
        None where it failed.
    seconds : float
        CPU time.
    reason : str or None
        Why it failed.
    warnings : str or None
        The library's, each once.
    """

    outcome: Outcome | None
    seconds: float
    reason: str | None
    warnings: str | None


def attempt(task: Callable[[], Outcome]) -> Attempt[Outcome]:
    """Return what came of a task, whatever it raised but want of memory."""
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
    return Attempt(outcome, seconds, reason, said or None)


# ---

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


# --- One run of a study of f(N): one Stage I, then Stages II and III by each rule

#: Settings of the estimator that belong to Stage I and can be set here, with its defaults.
_STAGE_ONE: dict[str, Any] = {
    "penalty": "tlp",
    "penalty_strength": None,
    "penalty_threshold": None,
    "max_iter": 300,
    "tol": 1e-4,
    "n_sweeps": 1,
    "method": "auto",
    "n_starts": "auto",
    "law": "auto",
}


def recover_by_rules(
    cell: Cell,
    version: Design,
    estimator: Mapping[str, Any],
    seeds: RunSeeds,
    method: str,
    *,
    rules: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the numbers of one run of one method, a row for each rule.

    Stage I does not know f(N), so that it is done once. A row's CPU seconds are those of Stage I
    and of its own Stages II and III.

    Parameters
    ----------
    cell, version, estimator, seeds
        As in `hidag_paper.studies.runs.recover`.
    method : str
        One of ``FITTED_METHODS``.
    rules : sequence of str
        Keys of ``RULES``.
    """
    data = drawn_table(cell, version, seeds)
    warm_up(cell.family, version)
    settings = {**first_stage_of(method, cell.n), **estimator}
    first = attempt(lambda: _stage_one(data, seeds.fit, settings))
    beside = yardsticks(data) if method == OURS else {}
    return [
        {
            **_row(data, first, rule, seeds.fit, method),
            "fit_seed": seeds.fit,
            "rule": rule,
            **beside,
        }
        for rule in rules
    ]


def rules_run(*rules: str) -> Any:
    """Return the run of a study with these rules."""
    return partial(recover_by_rules, rules=rules)


def _stage_one(data: Simulation, seed: int, settings: Mapping[str, Any]) -> Measurement:
    """Return what `DCRL` with these settings finds in its first stage."""
    unknown = sorted(set(settings) - set(_STAGE_ONE))
    if unknown:
        raise HidagError(f"a study of f(N) has no setting {', '.join(unknown)}")
    chosen = {**_STAGE_ONE, **settings}
    truth = data.truth
    return estimate_measurement(
        np.array(data.X),
        truth.families,
        truth.law.space.levels,
        penalty=chosen_penalty(
            chosen["penalty"],
            len(data.X),
            truth.n_latents,
            chosen["penalty_strength"],
            chosen["penalty_threshold"],
        ),
        schedule=Schedule(
            max_iter=chosen["max_iter"], tolerance=chosen["tol"], n_sweeps=chosen["n_sweeps"]
        ),
        method=chosen["method"],
        seed=seed,
        adapt=chosen["penalty_strength"] is None,
        n_starts=chosen["n_starts"],
        law=chosen["law"],
    )


def _row(
    data: Simulation, first: Attempt[Measurement], rule: str, seed: int, method: str
) -> dict[str, Any]:
    measured = first.outcome
    if measured is None:
        return compared(first, data.truth)
    truth = data.truth
    found: list[GraphFound] = []

    def later_stages() -> Parts:
        found.append(
            latent_graph(
                measured,
                truth.latent_names,
                seed=seed,
                **RULES[rule].stage_two,
                **third_stage_of(method),
            )
        )
        items, graph = measured.parameters, found[0]
        return Parts(
            q_of(method, items, len(data.X)),
            items.intercept,
            items.loadings,
            graph.law,
            graph.graph,
            items.terms,
        )

    second = attempt(later_stages)
    # That a rule grows too fast is what the study is about, not news about the fit.
    told = first.warnings if rule != CALIBRATED else second.warnings or first.warnings
    out = compared(
        Attempt(second.outcome, first.seconds + second.seconds, second.reason, told), truth
    )
    if out["status"] == "ok":
        record = measured.record
        out |= {
            "log_likelihood": plain(found[0].log_likelihood),
            "n_iter": record.n_iter,
            "converged": record.converged,
            "fit_method": record.method,
            "n_reached": record.n_reached,
            "information_ratio": plain(found[0].information_ratio),
            "graph_rows": plain(found[0].n_rows),
        }
    return out
