"""One run of a study: simulate a table, apply a method, compare the estimate with the truth."""

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

from hidag.em.em import Schedule
from hidag.estimator import DCRL
from hidag.exceptions import HidagWarning, SettingError
from hidag.fitting.settings import GraphSettings, chosen_penalty, plain_value
from hidag.fitting.stages import LearnedGraph, learn_graph
from hidag.metrics.evaluation import evaluate, evaluate_graph
from hidag.metrics.matching import Parts
from hidag.simulation.designs import ITEM_VARIANTS, Design, design
from hidag.simulation.truth import Simulation, Truth, simulate
from hidag.strategy.estimation import StageOneSettings, estimate_measurement
from hidag.strategy.measurement import Measurement
from hidag_paper.baselines import BASELINES
from hidag_paper.baselines.algorithms import estimate
from hidag_paper.baselines.research_code import as_parts, procedure_of, search_drawn_rows
from hidag_paper.studies.cells import Cell, RunSeeds
from hidag_paper.studies.methods import (
    CALIBRATED,
    OURS,
    PAPER_METHODS,
    RULES,
    SATURATED,
    search_true_latents,
    truth_started,
)
from hidag_paper.studies.rows import FIT_MEASURES, MEASURES, REFERENCE_MEASURES

Value = TypeVar("Value")


@dataclass(frozen=True)
class Attempt(Generic[Value]):
    """Result of a task that may fail.

    Attributes
    ----------
    value : object or None
        None after a failure.
    seconds : float
        CPU time.
    reason : str or None
        Error message.
    warnings : str or None
        Distinct warnings of the library.
    """

    value: Value | None
    seconds: float
    reason: str | None
    warnings: str | None


def attempt(task: Callable[[], Value]) -> Attempt[Value]:
    """Run a task and catch its errors, except for a lack of memory."""
    value, reason = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=HidagWarning)
        start = time.process_time()
        try:
            value = task()
        except MemoryError:
            # On another machine the same run may succeed.
            raise
        except Exception as error:
            # All failures are recorded: a study without its hardest runs would be biased.
            reason = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - start
    messages = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return Attempt(value, seconds, reason, messages or None)


_WARM_UP_ROWS = 100


def recover(
    cell: Cell, version: Design, estimator: Mapping[str, Any], seeds: RunSeeds, method: str
) -> list[dict[str, Any]]:
    """Run one method on one table, and return one row.

    Parameters
    ----------
    cell : Cell
    version : {"text", "research-code"}
        Design of the parameters.
    estimator : mapping
        Settings of the estimator other than the defaults.
    seeds : RunSeeds
        The same for every method, so that all use the same table.
    method : str
        "ours" or the name of a baseline.

    Returns
    -------
    list of dict
        ``status`` is "ok", or "failed" with a ``reason``; the rows of "ours" include the reference
        results in either case.
    """
    data = simulate_table(cell, version, seeds)
    if method != OURS:
        return [_run_baseline(data, method, seeds.fit)]
    warm_up(cell.family, version)
    tried = attempt(lambda: _fit(data, seeds.fit, estimator))
    row = evaluation_row(tried, data.truth)
    if tried.value is not None and row["status"] == "ok":
        result, names = tried.value.result_, {"fit_method": "method"}
        row |= {name: plain(getattr(result, names.get(name, name))) for name in FIT_MEASURES}
    return [{**row, "fit_seed": seeds.fit, "rule": CALIBRATED, **reference_results(data)}]


def simulate_table(cell: Cell, version: Design, seeds: RunSeeds) -> Simulation:
    """Simulate the table of a run."""
    truth = design(
        cell.model,
        cell.q,
        cell.family,
        design=version,
        rng=seeds.truth,
        **ITEM_VARIANTS[cell.items],
    )
    return simulate(truth, cell.n, rng=seeds.rows)


def evaluation_row(tried: Attempt[Any], truth: Truth) -> dict[str, Any]:
    """Return the evaluation of an estimate, or the reason of its failure."""
    out: dict[str, Any] = {
        "status": "ok",
        "reason": tried.reason,
        "warnings": tried.warnings,
        "cpu_seconds": tried.seconds,
    }
    if tried.value is not None:
        # An estimate that cannot be evaluated is a failure, too.
        measured = attempt(lambda: evaluate(tried.value, truth).to_dict())
        out["reason"] = measured.reason
        if measured.value is not None:
            out |= {name: plain(measured.value[name]) for name in MEASURES}
    if out["reason"] is not None:
        out["status"] = "failed"
    return out


def reference_results(data: Simulation) -> dict[str, Any]:
    """Evaluate the fit started at the truth and the graph search on the true latents."""
    truth = data.truth
    started = attempt(lambda: evaluate(truth_started(truth, data.X), truth).to_dict())
    out: dict[str, Any] = {
        "truth_started_cpu_seconds": started.seconds,
        "truth_started_reason": started.reason,
    }
    if started.value is not None:
        for name in REFERENCE_MEASURES:
            out[f"truth_started_{name}"] = plain(started.value[name])
    searched = attempt(lambda: evaluate_graph(search_true_latents(data.states), truth.cpdag))
    out["true_latents_shd_graph"] = None if searched.value is None else searched.value.shd
    out["true_latents_reason"] = searched.reason
    return out


@cache
def warm_up(family: str, version: Design) -> None:
    """Compile and import once per process, so that CPU seconds exclude it."""
    truth = design("Chain-5", "Q1", family, design=version, rng=0)
    small = simulate(truth, _WARM_UP_ROWS, rng=0)
    attempt(lambda: _fit(small, 0, {"n_starts": 1, "max_iter": 2}))


def plain(value: Any) -> Any:
    """Return a Python number; NaN becomes None."""
    number = plain_value(value)
    return None if isinstance(number, float) and isnan(number) else number


def _fit(data: Simulation, seed: int, estimator: Mapping[str, Any]) -> DCRL:
    truth = data.truth
    settings = {"family": list(truth.families), "random_state": seed, **estimator}
    return DCRL(truth.n_latents, **settings).fit(data.X)


def _run_baseline(data: Simulation, name: str, seed: int) -> dict[str, Any]:
    """Run a baseline, which estimates Q and the graph only."""
    truth = data.truth
    notes: dict[str, Any] = {}

    def run() -> Parts:
        found = BASELINES[name].run(np.array(data.X), tuple(truth.families), truth.n_latents, seed)
        notes.update(found.notes)
        return Parts(found.q_matrix, graph=found.graph)

    row = evaluation_row(attempt(run), truth)
    text = json.dumps(plain_value(notes), sort_keys=True) if notes else None
    return {**row, "fit_seed": seed, "notes": text}


#: Settings of Stage I with their defaults.
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
    """Run one method with several rules for f(N), and return a row for each.

    Stage I does not depend on f(N) and is run once. The CPU seconds of a row are those of Stage I
    and of its own Stages II and III.

    Parameters
    ----------
    cell, version, estimator, seeds
        As in `recover`.
    method : str
        One of ``FITTED_METHODS`` or ``PAPER_METHODS``. The latter draw rows, and have no row for
        the calibrated size.
    rules : sequence of str
        Keys of ``RULES``.
    """
    data = simulate_table(cell, version, seeds)
    if method in PAPER_METHODS:
        return _paper_rows(data, method, seeds.fit, rules)
    warm_up(cell.family, version)
    settings = {**({"law": "saturated"} if method == SATURATED else {}), **estimator}
    first = attempt(lambda: _stage_one(data, seeds.fit, settings))
    references = reference_results(data) if method == OURS else {}
    return [
        {
            **_row(data, first, rule, seeds.fit),
            "fit_seed": seeds.fit,
            "rule": rule,
            **references,
        }
        for rule in rules
    ]


def _paper_rows(
    data: Simulation, method: str, seed: int, rules: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the rows of the paper's own procedure, by rule."""
    truth, n = data.truth, len(data.X)
    families, rng = tuple(truth.families), np.random.default_rng(seed)
    procedure = procedure_of(method, families)
    first = attempt(lambda: estimate(np.array(data.X), families, truth.n_latents, procedure, rng))
    out = []
    for rule in rules:
        rows = RULES[rule].rows
        if rows is None:
            continue
        second: Attempt[Any] = first
        if first.value is not None:
            found, q = first.value
            drawn = partial(
                search_drawn_rows, found.law, truth.n_latents, int(rows(n)), procedure, rng
            )
            third = attempt(drawn)
            parts = None if third.value is None else as_parts(found, q, third.value)
            second = Attempt(parts, first.seconds + third.seconds, third.reason, None)
        row = {**evaluation_row(second, truth), "fit_seed": seed, "rule": rule}
        out.append(row if first.value is None else {**row, "n_iter": first.value[0].n_iter})
    return out


def _stage_one(data: Simulation, seed: int, settings: Mapping[str, Any]) -> Measurement:
    """Run Stage I of `DCRL` with these settings."""
    unknown = sorted(set(settings) - set(_STAGE_ONE))
    if unknown:
        raise SettingError(
            "unknown-setting",
            "studies of f(N) have no estimator setting {names}",
            names=", ".join(unknown),
        )
    chosen = {**_STAGE_ONE, **settings}
    truth = data.truth
    return estimate_measurement(
        np.array(data.X),
        truth.families,
        StageOneSettings(
            truth.law.space.levels,
            chosen_penalty(
                chosen["penalty"],
                len(data.X),
                truth.n_latents,
                chosen["penalty_strength"],
                chosen["penalty_threshold"],
            ),
            Schedule(
                max_iter=chosen["max_iter"], tolerance=chosen["tol"], n_sweeps=chosen["n_sweeps"]
            ),
            method=chosen["method"],
            law=chosen["law"],
            adapt=chosen["penalty_strength"] is None,
            n_starts=chosen["n_starts"],
            seed=seed,
        ),
    )


def _row(data: Simulation, first: Attempt[Measurement], rule: str, seed: int) -> dict[str, Any]:
    measured = first.value
    if measured is None:
        return evaluation_row(first, data.truth)
    truth = data.truth
    found: list[LearnedGraph] = []

    def later_stages() -> Parts:
        found.append(
            learn_graph(
                measured,
                truth.latent_names,
                GraphSettings(seed=seed, resample=RULES[rule].resample),
            )
        )
        items, graph = measured.parameters, found[0]
        return Parts(
            items.q_matrix,
            items.intercept,
            items.loadings,
            graph.law,
            graph.graph,
            items.terms,
        )

    second = attempt(later_stages)
    # Warnings about rules that grow too fast are expected here.
    messages = first.warnings if rule != CALIBRATED else second.warnings or first.warnings
    seconds = first.seconds + second.seconds
    out = evaluation_row(Attempt(second.value, seconds, second.reason, messages), truth)
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
