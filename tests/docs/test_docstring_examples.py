"""The examples in docstrings of public names run, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import warnings

import pytest

import hidag

#: Results, which functions with examples return.
WITHOUT = {"BootstrapResult", "FitResult"}
PACKAGES = ("hidag", "hidag.datasets")


def examples() -> dict[str, object]:
    """Return the public functions and classes by name."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            thing = getattr(package, name)
            if not inspect.ismodule(thing) and name not in WITHOUT | {"Dataset"}:
                found[name] = thing
    return found


@pytest.mark.parametrize("name", sorted(examples()))
def test_the_example_of_a_public_name_runs(name: str) -> None:
    thing = examples()[name]
    found = [
        one
        for one in doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
        if one.examples
    ]
    assert found, "a public name needs an example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in found:
            runner.run(one)
    assert runner.summarize(verbose=False).failed == 0


def test_the_help_of_a_public_function_is_about_one_screen() -> None:
    lengths = {
        name: len((inspect.getdoc(thing) or "").splitlines())
        for name, thing in examples().items()
        if inspect.isfunction(thing)
    }
    assert {name: n for name, n in lengths.items() if n > 70} == {}


def test_packages_say_what_they_are_for() -> None:
    assert all((getattr(hidag, name).__doc__ or "").strip() for name in hidag.__all__)
