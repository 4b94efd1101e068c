"""Parallel execution: every task runs once, and a killed worker raises MemoryError."""

from __future__ import annotations

import os

import pytest

from hidag.parallel import run_all

TASKS = [(2, exponent) for exponent in range(5)]


def test_one_worker_returns_results_in_order():
    assert list(run_all(pow, TASKS, workers=1)) == [1, 2, 4, 8, 16]
    assert list(run_all(pow, [], workers=3)) == []


def test_several_workers_return_the_same_results():
    assert sorted(run_all(pow, TASKS, workers=2)) == [1, 2, 4, 8, 16]


def test_a_killed_worker_raises_memory_error():
    with pytest.raises(MemoryError) as caught:
        list(run_all(os._exit, [(1,), (1,)], workers=2))
    assert str(caught.value) == "a worker process was killed"


def test_a_worker_killed_during_dispatch_raises_memory_error(monkeypatch):
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    def gone(self, tasks):
        raise TerminatedWorkerError

    monkeypatch.setattr(joblib.Parallel, "__call__", gone)
    with pytest.raises(MemoryError, match="a worker process was killed"):
        list(run_all(abs, [(1,), (1,)], workers=2))
