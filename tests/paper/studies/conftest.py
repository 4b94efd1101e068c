from __future__ import annotations

import pytest

from hidag_paper.studies import VARYING, Plan, plan_study

#: What depends on the machine and the moment: source files may be edited while tests run.
MOMENTARY = (*VARYING, "source")


def contents(rows) -> dict[tuple, dict]:
    """Return rows by what they are about, without what is momentary."""
    out = {
        (row["address"], row["method"], row["rule"]): {
            name: value for name, value in row.items() if name not in MOMENTARY
        }
        for row in rows
    }
    assert len(out) == len(rows)
    return out


@pytest.fixture
def plan() -> Plan:
    """Two cells of two runs that take a moment."""
    return small_plan()


def small_plan() -> Plan:
    return plan_study(
        "table1",
        cells=["Chain-5", "Tree-5"],
        n=[300],
        items=["paper"],
        methods=["ours"],
        replicates=2,
        seed=3,
    )
