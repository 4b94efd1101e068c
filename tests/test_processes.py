"""Work over processes: everything is done once, and a worker that is ended is said to be."""

from __future__ import annotations

import os

import pytest

from hidag.parallel import run_all

PIECES = [(2, exponent) for exponent in range(5)]


def test_one_worker_goes_in_turn():
    assert list(run_all(pow, PIECES, workers=1)) == [1, 2, 4, 8, 16]
    assert list(run_all(pow, [], workers=3)) == []


def test_several_workers_do_the_same():
    assert sorted(run_all(pow, PIECES, workers=2)) == [1, 2, 4, 8, 16]


def test_a_worker_that_was_ended_is_told_as_want_of_memory():
    with pytest.raises(MemoryError) as caught:
        list(run_all(os._exit, [(1,), (1,)], workers=2))
    assert str(caught.value) == "a worker process was ended from outside"


def test_a_worker_that_ends_while_work_is_handed_out_is_told_alike(monkeypatch):
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    def gone(self, pieces):
        raise TerminatedWorkerError

    monkeypatch.setattr(joblib.Parallel, "__call__", gone)
    with pytest.raises(MemoryError, match="a worker process was ended from outside"):
        list(run_all(abs, [(1,), (1,)], workers=2))
