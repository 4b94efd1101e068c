"""Compiled code is kept until its own file changes, so a file must change with those it calls.

A kernel file that imports others holds a fingerprint of them. A change of a called file is reported
here to write the new one into its callers; with that their compiled code is renewed everywhere.
"""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

import pytest

from hidag import kernels

FOLDER = Path(kernels.__file__).parent
FINGERPRINT = re.compile(r'^CALLED_FILES = "(\w+)"$', re.M)
FILES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text("utf-8")


def called_by(name: str) -> set[str]:
    """Return the kernel files that one imports, and those that they import."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(text_of(name))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hidag.kernels."):
            callee = node.module.rpartition(".")[2]
            out |= {callee} | called_by(callee)
    return out


def fingerprint(names: set[str]) -> str:
    """Return a number of the files' contents but for the fingerprints in them."""
    texts = [FINGERPRINT.sub("", text_of(name)) for name in sorted(names)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", FILES)
def test_a_kernel_file_changes_with_those_it_calls(name: str) -> None:
    called = called_by(name)
    found = FINGERPRINT.findall(text_of(name))
    expected = [fingerprint(called)] if called else []
    assert found == expected, f"{name}.py must hold CALLED_FILES = {expected}"


def test_some_files_call_others_and_are_reported_from_them() -> None:
    assert called_by("graph_operators") >= {"local_scores", "graph_sets"}
    assert fingerprint({"graph_sets"}) != fingerprint({"local_scores"})
