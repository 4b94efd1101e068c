"""The README's examples, run once."""

from __future__ import annotations

import pytest

from .pages import ROOT, python_blocks


@pytest.fixture(scope="session")
def readme() -> dict:
    names: dict = {}
    exec(compile(python_blocks(ROOT / "README.md"), "README.md", "exec"), names)
    return names
