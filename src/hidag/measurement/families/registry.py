"""Look up item types and response families by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from hidag.exceptions import Advice, SettingError
from hidag.measurement.families.base import Family, ItemType

#: Registered classes by name without argument.
ITEM_TYPES: dict[str, type[ItemType]] = {}
#: Names of the default types by kind of values: see :func:`default_family`.
_DEFAULTS: dict[str, str] = {}

_Class = TypeVar("_Class", bound=type[ItemType])
_PARTS = re.compile(r"([a-z][a-z-]*)\s*(?:\(\s*([^()]*?)\s*\))?\Z")


def register(name: str, *, default_for: str | None = None) -> Callable[[_Class], _Class]:
    """Return a class decorator that registers an item type under a name.

    Parameters
    ----------
    name : str
        Without argument.
    default_for : str, optional
        The kind of values for which it is the default, see :func:`default_family`.
    """

    def add(cls: _Class) -> _Class:
        ITEM_TYPES[name] = cls
        if default_for is not None:
            _DEFAULTS[default_for] = name
        # A class may replace one of the same name, as in a notebook cell that is run again.
        item_type.cache_clear()
        family_named.cache_clear()
        return cls

    return add


def default_family(kind: str) -> str:
    """Return the name, without argument, of the default item type for a kind of values.

    Parameters
    ----------
    kind : {"binary", "count", "real", "positive", "grades", "categories"}
    """
    return _DEFAULTS[kind]


def split_name(name: str) -> tuple[str, str | None]:
    """Return the name before the parentheses, and the argument in them or None."""
    parts = _PARTS.match(name)
    return (name, None) if parts is None else (parts[1], parts[2])


def canonical_name(word: str) -> str:
    """Return a name as typed by a user in lower case, with hyphens, and without aliases."""
    name, argument = split_name(word.strip().lower().replace("_", "-"))
    own = next((key for key, cls in ITEM_TYPES.items() if name in cls.aliases), name)
    return own if argument is None else f"{own}({argument})"


def format_argument(number: float) -> str:
    """Return a number as it stands in the name of a family: the shortest text that reads back."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def family_names() -> tuple[str, ...]:
    """Return the names of all item types; arguments are replaced by their meaning."""
    return tuple(
        name if (argument := ITEM_TYPES[name].argument_name) is None else f"{name}({argument})"
        for name in sorted(ITEM_TYPES)
    )


@cache
def item_type(name: str) -> ItemType:
    """Return the item type of a name, such as "poisson", "binomial(20)" or "categorical(3)".

    Raises
    ------
    SettingError
        If the name is unknown, or its argument is missing or invalid.
    """
    kind, argument = split_name(name)
    if kind not in ITEM_TYPES:
        known = ", ".join(map(repr, family_names()))
        raise SettingError(
            "unknown-family", "family must be one of {known}, got {name!r}", known=known, name=name
        )
    cls = ITEM_TYPES[kind]
    if cls.argument_name is None:
        if argument is not None:
            raise SettingError(
                "family-argument",
                "family={kind!r} takes no argument in parentheses, got {name!r}",
                {"kind": kind, "name": name},
            )
        return cls()
    advice = Advice(
        "family-argument",
        "use for instance '{kind}({example})'",
        {"kind": kind, "example": cls.example_argument},
    )
    if argument is None:
        raise SettingError(
            "family-argument",
            "family={kind!r} needs its {argument} in parentheses",
            {"kind": kind, "argument": cls.argument_name},
            advice=advice,
        )
    try:
        return cls.from_argument(argument)
    except SettingError:
        raise
    except ValueError:
        raise SettingError(
            "family-argument",
            "family={name!r} must have its {argument} in parentheses",
            {"name": name, "argument": cls.argument_name},
            advice=advice,
        ) from None


@cache
def family_named(name: str) -> Family:
    """Return the response family of a name; a nominal item has no single one."""
    found = item_type(name)
    if not isinstance(found, Family):
        raise SettingError(
            "not-a-response-family",
            "family={name!r} consists of several responses; a family of one response is needed",
            name=name,
        )
    return found
