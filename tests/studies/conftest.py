from __future__ import annotations

import pytest

from hidag.studies import Plan, plan_study

#: What depends on the machine and the moment (source files may be edited), not on the address.
MOMENTARY = ("cpu_seconds", "truth_started_cpu_seconds", "source")


def contents(rows) -> dict[str, dict]:
    """Return rows by address without what is momentary."""
    out = {row["address"]: {k: v for k, v in row.items() if k not in MOMENTARY} for row in rows}
    assert len(out) == len(rows)
    return out


@pytest.fixture
def plan() -> Plan:
    """Two cells of two runs that take a moment."""
    return plan_study("table1", cells=["Chain-5", "Tree-5"], n=[300], replicates=2, seed=3)
