from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import hidag

#: Frozen data, whose attributes are what they are made of.
DATA = ("BootstrapResult", "FitResult", "Knowledge")


def test_everything_after_a_fit_is_a_public_name_that_explains_itself():
    wanted = {
        "average_effects", "bootstrap", "classify", "fit_statistics", "person_fit", "select",
        "standard_errors", "validate_q", "what_if", "write_report", "plotting", "reporting",
        "inference", "diagnostics", "causal",
    }  # fmt: skip
    assert wanted <= set(hidag.__all__)
    assert wanted <= set(dir(hidag))
    for name in hidag.__all__:
        assert (getattr(hidag, name).__doc__ or "").strip(), name


def test_packages_are_there_without_being_imported():
    # In a process of its own: elsewhere some other test has imported them.
    program = (
        "import hidag; print(hidag.plotting.plot_selection.__name__, hidag.inference.__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.split() == ["plot_selection", "hidag.inference"], ran.stderr


@pytest.mark.parametrize("name", sorted(hidag.__all__))
def test_docstrings_name_every_parameter_and_no_other(name):
    thing = getattr(hidag, name)
    if inspect.ismodule(thing):
        return
    taken = set(inspect.signature(thing).parameters)
    sections = re.split(r"\n(\w+)\n-+\n", inspect.getdoc(thing) or "")
    held = "".join(
        text
        for heading, text in zip(sections[1::2], sections[2::2], strict=True)
        if heading == "Parameters" or (heading == "Attributes" and name in DATA)
    )
    stated = re.findall(r"^(\S[^:\n]*?) *(?::|$)", held, re.M)
    named = {each.strip(" *") for line in stated for each in line.split(",")}
    assert named == taken
