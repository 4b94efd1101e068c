"""The Python of the README passes the type checkers."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from .pages import ROOT


#: mypy, which `make types` runs on the library, takes a minute for the same.
@pytest.mark.parametrize("checker", ["pyright"])
def test_the_examples_of_the_readme_pass(checker, tmp_path) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    text = (ROOT / "README.md").read_text("utf-8")
    file = tmp_path / "quick_start.py"
    file.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.S)), "utf-8")
    options = ["--config-file=", "--strict"] if checker == "mypy" else []
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src"), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", checker, *options, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    if checker == "pyright" and "error" in ran.stderr and not ran.stdout.strip():
        pytest.skip("pyright needs its program, which it could not load")
    assert ran.returncode == 0, ran.stdout + ran.stderr
