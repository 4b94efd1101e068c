"""One run of a study of f(N): one Stage I, then Stages II and III by each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hidag.errors import HidagError
from hidag.estimate.loop import Schedule
from hidag.evaluate import Parts
from hidag.pipeline import GraphFound, latent_graph
from hidag.settings import chosen_penalty
from hidag.simulate import Simulation
from hidag.simulate.designs import Design
from hidag.stage_one import Measurement, estimate_measurement
from hidag.studies.addresses import RunSeeds
from hidag.studies.attempts import Attempt, attempt
from hidag.studies.cells import Cell
from hidag.studies.methods import OURS, first_stage_of, q_of, third_stage_of
from hidag.studies.recovery import compared, drawn_table, plain, warm_up, yardsticks
from hidag.studies.rules import CALIBRATED, RULES

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
        As in `hidag.studies.recovery.recover`.
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
