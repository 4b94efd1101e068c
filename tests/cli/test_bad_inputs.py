"""A sample of the bad inputs that benchmarks/bad_inputs.py draws."""

from __future__ import annotations

import importlib.util
from pathlib import Path

FILE = Path(__file__).parents[2] / "benchmarks" / "bad_inputs.py"


def test_bad_inputs_are_refused_asked_about_or_harmless():
    spec = importlib.util.spec_from_file_location("bad_inputs", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counts, wrong = module.run(180, seed=1)
    assert wrong == []
    assert sum(counts.values()) == 180
