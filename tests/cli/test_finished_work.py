"""A finished fit is on the disk whatever happens to the output, to the disk or to the process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from hidag import load
from hidag.cli import main
from hidag.cli.folders import FIT_FILES


def run_main(monkeypatch, stdout, *words: object) -> object:
    """Run the command line in this process with another standard output; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["hidag", *map(str, words)])
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr("hidag.cli.console._LOST", [])
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.stdout.close()
    return end.value.code


def broken_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", buffering=1)


@pytest.mark.parametrize(
    ("stdout", "code", "sentence"),
    [
        (broken_pipe, 0, ""),
        (lambda: None, 0, ""),
        (
            lambda: open("/dev/full", "w", buffering=1),  # noqa: SIM115
            1,
            "hidag: the output could not be printed: No space left on device\n",
        ),
    ],
    ids=["broken pipe", "closed", "full"],
)
def test_results_are_written_if_they_cannot_be_printed(
    monkeypatch, table, tmp_path, capsys, stdout, code, sentence
):
    words = ("fit", table, "-k", 1, "--out", tmp_path / "fit", "--no-plots", "--no-statistics")
    assert run_main(monkeypatch, stdout(), *words, "--uncertainty", "none") == code
    assert load(tmp_path / "fit").n_samples == 400
    errors = capsys.readouterr().err
    assert errors.endswith(sentence)
    assert "Traceback" not in errors
    people = ("classify", tmp_path / "fit", table, "--out", tmp_path / "people.csv")
    assert run_main(monkeypatch, stdout(), *people) == code
    assert len((tmp_path / "people.csv").read_text().splitlines()) == 401


def test_parts_of_two_fits_are_refused(hidag, table, tmp_path):
    for k in (1, 2):
        words = ("fit", table, "-k", k, "--out", tmp_path / f"{k}", "--no-plots")
        assert hidag(*words).exit_code == 0
    shutil.copy(tmp_path / "1" / "report.json", tmp_path / "2")
    refused = hidag("report", tmp_path / "2")
    assert refused.exit_code == 1
    assert "report.json is about another fit than the one beside it" in refused.stderr


def test_sigterm_leaves_no_partial_folder(table, tmp_path):
    out = tmp_path / "fit"
    script = (
        "import sys, time, hidag.files.writing as files; from hidag.cli import main\n"
        "write = files._write\n"
        "def slowly(path, content):\n"
        "    write(path, content); print(path.name, flush=True); time.sleep(60)\n"
        "files._write = slowly\n"
        f"sys.argv = ['hidag', 'fit', {str(table)!r}, '-k', '1', '--out', {str(out)!r}, "
        "'--no-plots', '--no-statistics', '--uncertainty', 'none']\nmain()"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert not [p.name for p in tmp_path.rglob("*") if p.name in FIT_FILES]
    assert not list(tmp_path.rglob(".hidag-part-*"))


@pytest.mark.parametrize("command", ["select", "fit"])
def test_a_killed_command_resumes_with_the_same_bits(hidag, table, tmp_path, command, monkeypatch):
    from hidag.fitting import stages

    numbers = {"select": ("-k", "1..2", "--fits", "all"), "fit": ("-k", "auto", "--no-statistics")}
    words = (command, table, *numbers[command], "--no-plots", "--seed", 4)
    estimate, done = stages._estimate, []

    def counted(*args):
        done.append(args)
        return estimate(*args)

    def killed(*args):  # As SIGKILL, it leaves what is on the disk.
        if command == "fit" or len(done) == n_fits - 1:
            raise SystemExit
        return counted(*args)

    monkeypatch.setattr(stages, "_estimate", counted)
    monkeypatch.setattr("hidag.cli.commands.fit.typed_command", lambda: "")
    assert hidag(*words, "--out", tmp_path / "whole").exit_code == 0
    n_fits = len(done)
    done.clear()
    with monkeypatch.context() as patched:
        place = (
            "fitting.stages._estimate" if command == "select" else "cli.commands.fit.fill_folder"
        )
        patched.setattr(f"hidag.{place}", killed)
        out = tmp_path / "killed"
        hidag(*words, "--out", out)
        assert not out.exists()
    resumed = hidag(*words, "--out", out)
    assert resumed.exit_code == 0, resumed.stderr
    assert len(done) == n_fits
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (out / path.name).read_bytes(), path.name
    assert not list(tmp_path.glob(".*.hidag-resume"))
