from __future__ import annotations

import subprocess
import sys

import hidag


def test_everything_after_a_fit_is_a_public_name_that_explains_itself():
    wanted = {
        "average_effects", "bootstrap", "classify", "fit_statistics", "person_fit", "select",
        "standard_errors", "validate_q", "what_if", "write_report", "plots", "report", "explain",
    }  # fmt: skip
    assert wanted <= set(hidag.__all__)
    assert wanted <= set(dir(hidag))
    for name in hidag.__all__:
        assert (getattr(hidag, name).__doc__ or "").strip(), name


def test_rooms_are_there_without_being_imported():
    # In a process of its own: elsewhere some other test has imported them.
    program = "import hidag; print(hidag.plots.plot_selection.__name__, hidag.explain.__name__)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.split() == ["plot_selection", "hidag.explain"], ran.stderr
