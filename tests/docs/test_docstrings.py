"""Docstrings of public names describe every parameter, what is returned, and every field."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

PACKAGES = (
    "hidag", "hidag.causal", "hidag.diagnostics", "hidag.identifiability", "hidag.inference",
    "hidag.metrics", "hidag.model_selection", "hidag.plotting", "hidag.reporting",
    "hidag.simulation", "hidag.structure",
)  # fmt: skip


def public_names() -> dict[str, Any]:
    """Return the public functions and classes by the shortest of their dotted names."""
    found: dict[int, tuple[str, Any]] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found.setdefault(id(thing), (f"{package}.{name}", thing))
    return dict(found.values())


NAMES = public_names()
FUNCTIONS = sorted(name for name, thing in NAMES.items() if inspect.isfunction(thing))
CLASSES = sorted(name for name, thing in NAMES.items() if inspect.isclass(thing))


def sections(doc: str) -> dict[str, str]:
    """Return the text of a numpydoc docstring by heading."""
    parts = re.split(r"(?:^|\n)([A-Z]\w+)\n-{3,}\n", doc)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(doc: str) -> set[str]:
    """Return the names in the sections and in the backticks of a docstring."""
    held = sections(doc)
    text = held.get("Parameters", "") + "\n" + held.get("Attributes", "")
    entries = re.findall(r"^([\w*][^:\n]*?) *(?::|$)", text, re.M)
    return {name.strip(" *") for entry in entries for name in entry.split(",")} | set(
        re.findall(r"``(\w+)``", doc)
    )


def undescribed(function: Any, doc: str) -> set[str]:
    """Return the parameters of a function that its docstring does not describe."""
    return set(inspect.signature(function).parameters) - {"self", "cls"} - described(doc)


def returns_something(function: Any) -> bool:
    return inspect.signature(function).return_annotation not in (None, "None")


def methods(cls: type) -> dict[str, Any]:
    """Return the public methods that a class itself defines."""
    plain = {name: getattr(value, "__func__", value) for name, value in vars(cls).items()}
    return {
        name: value
        for name, value in plain.items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_describe_their_parameters_and_what_they_return(name: str) -> None:
    function = NAMES[name]
    doc = inspect.getdoc(function) or ""
    assert undescribed(function, doc) == set()
    if returns_something(function):
        summary = doc.split("\n\n")[0]
        assert "Returns" in sections(doc) or re.search(r"\breturn\b", summary, re.I), summary


@pytest.mark.parametrize("name", CLASSES)
def test_classes_describe_their_fields_or_parameters(name: str) -> None:
    cls = NAMES[name]
    doc = inspect.getdoc(cls) or ""
    assert doc
    if getattr(cls, "_is_protocol", False):
        return
    if not is_dataclass(cls):
        assert undescribed(cls.__init__, doc) == set()
        return
    source = inspect.getsource(cls)
    wanted = {field.name for field in fields(cls) if not field.name.startswith("_")}
    assert {one for one in wanted - described(doc) if not has_comment(one, source)} == set()


def has_comment(name: str, source: str) -> bool:
    """Return whether a field of a class has a comment behind or above it."""
    return re.search(rf"(?:#.*\n    {name}: |^    {name}: .*  #)", source, re.M) is not None


@pytest.mark.parametrize("name", CLASSES)
def test_methods_say_what_they_do_with_their_parameters(name: str) -> None:
    cls = NAMES[name]
    for method, function in methods(cls).items():
        doc = inspect.getdoc(function)
        assert doc, method
        known = set(re.findall(r"\w+", f"{doc} {inspect.getdoc(cls)}"))
        assert set(inspect.signature(function).parameters) - {"self", "cls"} <= known, method


def test_a_parameter_without_a_description_is_noticed() -> None:
    def function(given: int, other: int, last: int) -> int:
        """Return the ``last`` of three.

        Parameters
        ----------
        given : int
        """
        return given + other + last

    assert undescribed(function, inspect.getdoc(function) or "") == {"other"}
