"""Families by name: every class in this folder that was registered."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from hidag.exceptions import SettingError
from hidag.measurement.families.base import Family

#: Family classes by the name that stands before a bracket.
KINDS: dict[str, type[Family]] = {}

_Class = TypeVar("_Class", bound=type[Family])
_PARTS = re.compile(r"([a-z][a-z-]*)\s*(?:\(\s*([^()]*?)\s*\))?\Z")


def register(kind: str) -> Callable[[_Class], _Class]:
    """Return a decorator that makes a family known by that name."""

    def add(family: _Class) -> _Class:
        KINDS[kind] = family
        return family

    return add


def split_name(name: str) -> tuple[str, str | None]:
    """Return the parts of a name: what stands before a bracket and what is in it, if any."""
    parts = _PARTS.match(name)
    return (name, None) if parts is None else (parts[1], parts[2])


def written(number: float) -> str:
    """Return a number as it stands in a family's name: the shortest text that reads back."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def shown_names() -> tuple[str, ...]:
    """Return the names of all families; those that take a number show what it is."""
    return tuple(
        kind if KINDS[kind].number_means is None else f"{kind}({KINDS[kind].number_means})"
        for kind in sorted(KINDS)
    )


@cache
def family_named(name: str) -> Family:
    """Return the family of that name, such as "poisson" or "binomial(20)"."""
    kind, number = split_name(name)
    if kind not in KINDS:
        known = ", ".join(repr(known) for known in shown_names())
        raise SettingError(f"family must be one of {known}, got {name!r}")
    family = KINDS[kind]
    if family.number_means is None:
        if number is not None:
            raise SettingError(f"family={kind!r} takes no number in brackets, got {name!r}")
        return family()
    if number is None:
        raise SettingError(
            f"family={kind!r} needs its {family.number_means} in brackets, such as "
            f"'{kind}({family.example_number})'"
        )
    try:
        return family.from_brackets(number)
    except ValueError as error:
        if isinstance(error, SettingError):
            raise
        raise SettingError(
            f"family={name!r} must have a number in its brackets, the {family.number_means}; "
            f"use for instance '{kind}({family.example_number})'"
        ) from None
