from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hidag import DCRL, evaluate
from hidag.structure import CPDAG
from hidag_paper.studies import RULES, Address, Cell, plan_study, run_plan, summarise
from hidag_paper.studies.runs import simulate_table

from .conftest import contents

CELL = Cell("Chain-5", "Q1", "gaussian", 400)


@pytest.fixture(scope="module")
def plan():
    return plan_study("consistency", cells=["Chain-5/Q1/gaussian"], n=[400], replicates=1, seed=5)


@pytest.fixture(scope="module")
def rows(plan):
    return [row for run in run_plan(plan) for row in run]


def test_run_has_a_row_for_every_rule(rows) -> None:
    assert [row["rule"] for row in rows if row["method"] == "ours"] == [
        *("sqrt N", "N", "N log N", "N^1.5", "N^2"),
        "calibrated",
    ]
    drawn = {row["rule"]: row["graph_rows"] for row in rows if row["method"] == "saturated"}
    assert [drawn[rule] for rule in ("sqrt N", "N", "N log N", "N^1.5", "N^2")] == [
        *(20, 400, 2397, 8000),
        160000,
    ]
    assert 100 < drawn["calibrated"] < 1600
    assert len({row["shd_q"] for row in rows if row["method"] == "ours"}) == 1


def test_the_calibrated_row_is_the_default_estimator(plan, rows) -> None:
    seeds = Address("consistency", CELL, 0).seeds(5)
    data = simulate_table(CELL, "research-code", seeds)
    for method, settings in (("ours", {}), ("saturated", {"law": "saturated"})):
        model = DCRL(5, family="gaussian", random_state=seeds.fit, **settings).fit(data.X)
        (row,) = (r for r in rows if (r["method"], r["rule"]) == (method, "calibrated"))
        found = evaluate(model, data.truth)
        assert row["log_likelihood"] == model.log_likelihood_
        assert row["graph_rows"] == model.result_.graph_rows
        assert (row["shd_graph"], row["shd_q"]) == (found.shd_graph, found.shd_q)
        assert row["rmse_loadings"] == found.rmse_loadings


def test_rule_draws_the_same_rows_as_the_estimator(plan, rows) -> None:
    seeds = Address("consistency", CELL, 0).seeds(5)
    data = simulate_table(CELL, "research-code", seeds)
    settings = {"law": "saturated", "resample": "N", "random_state": seeds.fit}
    model = DCRL(5, family="gaussian", **settings).fit(data.X)
    (row,) = (r for r in rows if (r["method"], r["rule"]) == ("saturated", "N"))
    assert row["shd_graph"] == evaluate(model, data.truth).shd_graph


def test_rows_by_rule_do_not_depend_on_workers(plan, rows) -> None:
    assert contents([row for run in run_plan(plan, workers=2) for row in run]) == contents(rows)


def test_failed_stage_one_gives_failed_rows(plan) -> None:
    failing = replace(plan, estimator={"law": "guess"}, methods=("ours",))
    ((*found,),) = run_plan(failing)
    assert len(found) == 6
    assert {row["status"] for row in found} == {"failed"}
    assert {row["reason"] for row in found} == {
        "SettingError: law must be 'auto', 'network' or 'saturated', got 'guess'"
    }
    assert all(row["true_latents_shd_graph"] is not None for row in found)
    (summary, *_) = summarise(found)
    assert (summary.n_failed, summary.graph_rate.mean) == (1, 0.0)


def test_rules_that_the_theorem_covers_grow_slower_than_n_log_n() -> None:
    sizes = np.array([1e3, 1e6, 1e9, 1e12])
    for rule in RULES.values():
        if rule.rows is not None:
            share = np.array([rule.rows(n) for n in sizes]) / (sizes * np.log(sizes))
            assert bool((np.diff(share) < -1e-9).all()) == rule.guaranteed


class Always:
    """A baseline that finds nothing, or fails."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason

    def run(self, values, families, n_latents, seed):
        if self.reason is not None:
            raise ValueError(self.reason)
        assert values.shape == (300, 15)
        assert set(families) == {"gaussian"}
        empty = CPDAG(np.zeros((n_latents, n_latents), dtype=np.int8))
        q = np.zeros((values.shape[1], n_latents), dtype=np.int8)
        return SimpleNamespace(q_matrix=q, graph=empty, notes={"seed": seed, "first": values[0, 0]})


def test_baselines_see_the_same_tables_and_have_rows_of_their_own(monkeypatch) -> None:
    known = {"nothing": Always(), "broken": Always("no components")}
    for module in ("runs", "catalogue"):
        monkeypatch.setattr(f"hidag_paper.studies.{module}.BASELINES", known)
    words = {"cells": ["Chain-5"], "n": [300], "items": ["paper"], "replicates": 1}
    plan = plan_study("table1", **words)
    assert plan.methods == ("ours", "nothing", "broken")
    ours, nothing, broken = (run[0] for run in run_plan(plan))
    data = simulate_table(plan.cells[0], "research-code", plan.addresses()[0].seeds(0))
    assert f'"first": {data.X[0, 0]}' in nothing["notes"]
    assert (nothing["status"], nothing["rule"]) == ("ok", None)
    assert nothing["shd_q"] == int(data.truth.q_matrix.sum())
    assert nothing["shd_graph"] == 4
    assert (broken["status"], broken["reason"]) == ("failed", "ValueError: no components")
    assert list(ours) == list(nothing) == list(broken)
    assert ours["truth_started_shd"] is not None
    assert nothing["truth_started_shd"] is None
    assert plan_study("table2").methods == ("ours",)
