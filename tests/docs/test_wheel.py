"""The wheel has all files that the library needs, and works in an unrelated folder."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .pages import ROOT

PROGRAM = """
import hidag, pathlib
assert pathlib.Path(hidag.__file__).is_relative_to(pathlib.Path("installed").resolve())
assert hidag.datasets.load_election().n_rows == 944
assert hidag.reporting.html_page.read_asset("report.js")
"""


def test_the_wheel_works_in_an_unrelated_folder(tmp_path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    built = subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)])
    if built.returncode:
        pytest.skip("the build needs hatchling, which is not here and cannot be loaded")
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
