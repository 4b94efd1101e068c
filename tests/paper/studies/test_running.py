from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from hidag.exceptions import FileError, HidagError, SettingError
from hidag_paper.studies import VARYING, column_types, read_folder, run_plan, run_study
from hidag_paper.studies.rows import add_run, merge_runs
from hidag_paper.studies.study_folder import exclusive_lock

from .conftest import contents, small_plan


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same plan as the fixture's, run once without any accident."""
    return run_study(small_plan(), tmp_path_factory.mktemp("whole") / "study").rows()


def test_row_has_address_results_and_provenance(whole) -> None:
    assert [row["address"] for row in whole] == [
        f"table1/{model}-5/Q1/gaussian/300/{replicate}"
        for model in ("Chain", "Tree")
        for replicate in (0, 1)
    ]
    assert {(row["method"], row["rule"]) for row in whole} == {("ours", "calibrated")}
    for row in whole:
        assert row["status"] == "ok"
        assert row["reason"] is None
        assert row["shd"] == row["shd_graph"] + row["shd_q"]
        assert row["truth_started_shd"] == (
            row["truth_started_shd_graph"] + row["truth_started_shd_q"]
        )
        assert row["true_latents_shd_graph"] >= 0
        assert 0 < row["tv_law"] < 1
        assert 0 < row["rmse_loadings"] < 1
        assert row["cpu_seconds"] > 0
        assert row["version_hidag"]
        assert not any(isinstance(value, (list, dict)) for value in row.values())


@pytest.mark.parametrize("keep", [0, 1, 2, 3])
def test_interrupted_study_has_the_same_rows(whole, plan, tmp_path, keep, monkeypatch) -> None:
    # Rows that were there are looked up, so only what is missing has to be run again.
    ready = {f"{row['address']}/{row['method']}": [row] for row in whole}
    ran = []

    def look_up(plan, task):
        if len(ran) == stop_after:
            raise KeyboardInterrupt
        ran.append(task.name)
        return ready[task.name]

    monkeypatch.setattr("hidag_paper.studies.execution.run_task", look_up)
    out = tmp_path / "study"
    stop_after = keep
    with pytest.raises(KeyboardInterrupt):
        run_study(plan, out)
    assert len(list((out / "rows").glob("*.parquet"))) == keep if keep else True
    first, stop_after = list(ran), 4
    ran.clear()
    assert run_study(plan, out).rows() == whole
    assert {*first, *ran} == set(ready)
    assert len(first) + len(ran) == 4
    ran.clear()
    assert run_study(plan, out).rows() == whole
    assert ran == []


def test_partial_files_of_a_killed_study_are_ignored(whole, plan, tmp_path) -> None:
    out = tmp_path / "study"
    run_study(replace(plan, cells=plan.cells[:1]), out)
    left = out / "rows" / ".hidag-part-x"
    left.mkdir()
    (left / "two.parquet").write_bytes(b"PAR1 half a file")
    os.utime(left, (0, 0))
    # Killed between merging and clearing up: some rows are in two files.
    merged = out / "rows" / "merged.parquet"
    (out / "rows" / "one.parquet").write_bytes(merged.read_bytes())
    assert len(read_folder(out).rows()) == 2
    folder = run_study(plan, out)
    assert contents(folder.rows()) == contents(whole)
    assert [file.name for file in (out / "rows").iterdir()] == ["merged.parquet"]


def test_rows_are_a_dataset_to_pandas_and_polars(whole, plan, tmp_path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    ready = [[row] for row in whole]
    for n_files, (name, rows) in enumerate(zip("abcd", ready, strict=True), start=1):
        # An empty column of one file must not clash with a filled one of another.
        empty = [{**rows[0], "shd": None, "status": "failed"}] if name == "b" else rows
        add_run(tmp_path / "rows", name, empty)
        assert len(list((tmp_path / "rows").iterdir())) == n_files
    for files in (4, 1):
        assert len(list((tmp_path / "rows").iterdir())) == files
        frame = pandas.read_parquet(tmp_path / "rows").sort_values(["address"])
        assert list(frame.columns) == list(column_types())
        assert frame["shd"].notna().sum() == 3
        table = polars.read_parquet(tmp_path / "rows").sort("address")
        assert table["shd"].null_count() == 1
        assert table["log_likelihood"].to_list() == [row["log_likelihood"] for row in whole]
        merge_runs(tmp_path / "rows")


def test_metadata_name_the_varying_columns(whole, tmp_path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    add_run(tmp_path, "one", whole[:1])
    said = json.loads(parquet.read_schema(tmp_path / "one.parquet").metadata[b"varying_columns"])
    assert said == list(VARYING) == ["cpu_seconds", "truth_started_cpu_seconds"]


def test_unknown_column_raises(whole, tmp_path) -> None:
    with pytest.raises(KeyError, match="unknown columns: speed"):
        add_run(tmp_path, "one", [{**whole[0], "speed": 1}])


def test_the_number_of_workers_changes_no_row(whole, plan) -> None:
    assert contents([row for run in run_plan(plan, workers=2) for row in run]) == contents(whole)


def test_killed_study_resumes(whole, plan, tmp_path) -> None:
    out = tmp_path / "study"
    words = ["study", "table1", "--cells", "Chain-5/*/300,Tree-5/*/300", "--n", "300"]
    words += ["--replicates", "2", "--methods", "ours"]
    command = [sys.executable, "-c", "from hidag.cli import main; main()", *words]
    process = subprocess.Popen(
        [*command, "--seed", "3", "--out", str(out)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        patience = time.monotonic() + 60
        while time.monotonic() < patience:
            if any((out / "rows").glob("*.parquet")):
                break
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = read_folder(out).rows()
    assert 0 < len(left) <= len(whole)
    assert contents(run_study(plan, out).rows()) == contents(whole)


def test_study_can_be_extended(whole, plan, tmp_path) -> None:
    out = tmp_path / "study"
    run_study(replace(plan, cells=plan.cells[:1], replicates=1), out)
    seen = []
    folder = run_study(plan, out, observer=seen.append)
    assert contents(folder.rows()) == contents(whole)
    assert [(p.n_done, p.n_runs, p.n_new) for p in seen] == [
        (1, 4, 0),
        (2, 4, 1),
        (3, 4, 2),
        (4, 4, 3),
    ]
    fewer = run_study(replace(plan, replicates=1), out)
    assert set(fewer.asked.values()) == {2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 4}, "seed=3, but 4 was"),
        ({"design": "text"}, "design='research-code', but \"text\" was"),
        ({"estimator": {"n_starts": 2}}, 'estimator={}, but {"n_starts": 2} was'),
        ({"study": "table2"}, "study='table1', but \"table2\" was"),
    ],
)
def test_other_settings_in_the_same_folder_raise(plan, tmp_path, change, said) -> None:
    one = replace(plan, cells=plan.cells[:1], replicates=1)
    run_study(one, tmp_path)
    files = [tmp_path / "study.json", tmp_path / "rows" / "merged.parquet"]
    before = [file.read_bytes() for file in files]
    with pytest.raises(SettingError) as caught:
        run_study(replace(one, **change), tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} contains a study with {said} requested; repeat the settings to resume it, or "
        "choose another folder"
    )
    assert [file.read_bytes() for file in files] == before


def test_failed_fit_has_a_reason(plan, tmp_path) -> None:
    failing = replace(plan, cells=plan.cells[:1], replicates=1, estimator={"method": "guess"})
    (row,) = run_study(failing, tmp_path).rows()
    assert row["status"] == "failed"
    assert row["reason"].startswith("SettingError: method must be ")
    assert row["shd"] is None
    assert row["truth_started_shd"] is not None
    assert row["true_latents_shd_graph"] is not None
    assert run_study(failing, tmp_path).rows() == [row]


def test_fit_that_cannot_be_evaluated_has_failed(plan, monkeypatch) -> None:
    def broken(estimate, truth):
        raise ValueError("matrix contains invalid numeric entries")

    monkeypatch.setattr("hidag_paper.studies.runs.evaluate", broken)
    ((row,),) = run_plan(replace(plan, cells=plan.cells[:1], replicates=1))
    assert row["status"] == "failed"
    assert row["reason"] == "ValueError: matrix contains invalid numeric entries"


def test_out_of_memory_stops_the_study(plan, tmp_path, monkeypatch) -> None:
    one = replace(plan, cells=plan.cells[:1])
    before = run_study(replace(one, replicates=1), tmp_path).rows()

    def too_large(data, seed, estimator):
        raise MemoryError

    monkeypatch.setattr("hidag_paper.studies.runs._fit", too_large)
    with pytest.raises(HidagError) as caught:
        run_study(one, tmp_path)
    assert str(caught.value) == (
        "the study ran out of memory; the rows written so far are stored; repeat it with fewer "
        "workers, or without the largest cells"
    )
    assert read_folder(tmp_path).rows() == before


def test_failed_and_successful_rows_have_the_same_names(whole, plan) -> None:
    failing = replace(plan, cells=plan.cells[:1], replicates=1, estimator={"method": "guess"})
    ((row,),) = run_plan(failing)
    assert list(row) == list(whole[0])


def test_failed_reference_does_not_affect_the_fit(plan, monkeypatch) -> None:
    def broken(truth, X):
        raise ValueError("nothing found")

    monkeypatch.setattr("hidag_paper.studies.runs.truth_started", broken)
    ((row,),) = run_plan(replace(plan, cells=plan.cells[:1], replicates=1))
    assert row["status"] == "ok"
    assert row["truth_started_shd"] is None
    assert row["truth_started_reason"] == "ValueError: nothing found"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not Parquet at all, however long it is"])
def test_damaged_file_raises(plan, tmp_path, content) -> None:
    one = replace(plan, cells=plan.cells[:1], replicates=1)
    run_study(one, tmp_path)
    file = tmp_path / "rows" / "merged.parquet"
    file.write_bytes(content)
    with pytest.raises(FileError) as caught:
        run_study(one, tmp_path)
    assert str(caught.value) == (
        f"{file} is damaged or does not contain rows of a study; restore it, or delete it and run "
        "the study again"
    )


def test_other_folders_raise(plan, tmp_path) -> None:
    with pytest.raises(FileError) as caught:
        read_folder(tmp_path)
    assert str(caught.value) == (f"{tmp_path} is not the folder of a study: it has no study.json")
    (tmp_path / "rows").mkdir()
    with pytest.raises(FileError) as caught:
        run_study(plan, tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} has rows but no study.json, so that the origin of the rows is unknown; choose "
        "another folder"
    )
    (tmp_path / "study.json").write_text(json.dumps({"format": "another"}))
    with pytest.raises(FileError) as caught:
        read_folder(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'study.json'} is damaged or was not written by this version of hidag study; "
        "choose another folder"
    )


def test_file_instead_of_folder_raises(plan, tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError) as caught:
        run_study(plan, tmp_path / "file")
    assert str(caught.value) == (
        f"cannot write {tmp_path / 'file'}: File exists; choose another place"
    )


def test_two_processes_do_not_write_into_one_folder(plan, tmp_path) -> None:
    pytest.importorskip("fcntl")
    with exclusive_lock(tmp_path), pytest.raises(FileError) as caught:
        run_study(plan, tmp_path)
    assert str(caught.value) == (
        f"another process is writing a study to {tmp_path}; wait until it ends, or choose another "
        "folder"
    )


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system lists no threads")
def test_reading_rows_starts_no_thread(whole, tmp_path) -> None:
    # A thread of pyarrow that lets go of a stream while Python ends takes the process with it, now
    # and then: what was asked for is done, and the exit code says that it failed.
    add_run(tmp_path, "all", whole)
    code = (
        "import os, sys; from pathlib import Path; import pyarrow.parquet\n"
        "from hidag_paper.studies.rows import read_rows\n"
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "before = threads(); rows = read_rows(Path(sys.argv[1]))\n"
        "print(len(rows), threads() - before)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [str(len(whole)), "0"]
