"""The README's examples, run once in a folder of their own: they write files."""

from __future__ import annotations

import contextlib

import pytest

from .pages import ROOT, python_blocks


@pytest.fixture(scope="session")
def readme(tmp_path_factory: pytest.TempPathFactory) -> dict:
    names: dict = {}
    with contextlib.chdir(tmp_path_factory.mktemp("readme")):
        exec(compile(python_blocks(ROOT / "README.md"), "README.md", "exec"), names)
    return names
