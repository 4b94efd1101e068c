"""What may be loaded from a file: types of plain values, and shapes and ranges of arrays.

A file may have been edited, damaged or made by someone else. Everything is checked before it is
used, and errors are ``ValueError`` with one clause that names the entry.
"""

from __future__ import annotations

import collections.abc
import math
import types
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

#: Bytes of the arrays of a file, far more than those of any fit: a law of 2^20 states has 8 MB.
MAX_BYTES = 1 << 28
MAX_ARRAYS = 4096
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def read_as(value: Any, kind: Any, where: str) -> Any:
    """Return a JSON value as an annotated type; ``where`` names the value in errors.

    Lists become tuples, objects dataclasses if the annotation is one, and null NaN for a number.
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return read_as(value, next(one for one in args if one is not type(None)), where)
    if kind is float and (value is None or _is_number(value)):
        return math.nan if value is None else float(value)
    if kind in _WORDS:
        fits = isinstance(value, kind) and (kind is not int or not isinstance(value, bool))
        return value if fits and kind is not float else _refuse(where, _WORDS[kind], value)
    if origin in (tuple, collections.abc.Sequence):
        parts = value if isinstance(value, list) else _refuse(where, "a list", value)
        kinds = args[:1] * len(parts) if origin is not tuple or args[-1] is ... else args
        if len(kinds) != len(parts):
            _refuse(where, f"a list of {len(kinds)}", value)
        pairs = enumerate(zip(parts, kinds, strict=True))
        return tuple(read_as(part, own, f"{where}[{i}]") for i, (part, own) in pairs)
    if isinstance(kind, type) and issubclass(kind, tuple):
        hints = tuple(get_type_hints(kind).values())
        return kind(*read_as(value, tuple[hints], where))  # type: ignore[valid-type]
    if not isinstance(value, dict):
        _refuse(where, "an object", value)
    if origin in (dict, collections.abc.Mapping):
        return {name: read_as(one, args[1], f"{where}.{name}") for name, one in value.items()}
    return kind(**read_fields(value, kind, where))


def read_fields(
    value: Mapping[str, Any], kind: Any, where: str, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return fields of a dataclass from a JSON object: all of them, or those with some names."""
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    known = {one.name: one for one in fields(kind) if names is None or one.name in names}
    for name in known.keys() - value.keys():
        if known[name].default is MISSING and known[name].default_factory is MISSING:
            raise ValueError(f"{where} has no {name}")
    if odd := sorted(value.keys() - known.keys()):
        raise ValueError(f"{where} has an unknown entry {odd[0]!r:.60}")
    return {name: read_as(one, hints[name], f"{where}.{name}") for name, one in value.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _refuse(where: str, expected: str, value: Any) -> Any:
    raise ValueError(f"{where} must be {expected}, got {value!r:.60}")


class Numbers(NamedTuple):
    """What an array holds: the kind of its numbers, its dimensions as letters, and their range."""

    kind: str  # of NumPy: f, i, u or b
    shape: str  # A letter has one size in all arrays of a file.
    low: float = -math.inf
    high: float = math.inf
    missing: bool = False  # whether NaN is allowed


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], known: Mapping[str, Numbers], sizes: Mapping[str, int]
) -> None:
    """Raise unless arrays have the shapes and ranges of ``known``, with some given sizes."""
    found = dict(sizes)
    for name, array in arrays.items():
        if name not in known:
            raise ValueError(f"it has an unknown array {name!r:.60}")
        rule = known[name]
        if array.dtype.kind != rule.kind or array.ndim != len(rule.shape):
            raise ValueError(f"{name} has the type {array.dtype} and {array.ndim} dimensions")
        for letter, size in zip(rule.shape, array.shape, strict=True):
            if found.setdefault(letter, size) != size:
                raise ValueError(f"{name} has the shape {array.shape}, but {letter} is {size}")
        if rule.kind == "f" and rule.missing:
            array = array[~np.isnan(array)]
        inside = np.isfinite(array).all() and (rule.low <= array).all() and array.size
        if array.size and not (inside and (array <= rule.high).all()):
            raise ValueError(f"{name} has numbers that are not from {rule.low} to {rule.high}")


def check_distinct(names: Sequence[str], what: str) -> None:
    """Raise unless names are different texts that are not empty."""
    if not all(names) or len(set(names)) != len(names):
        raise ValueError(f"{what} must be different and not empty")


def check_sizes(archive: zipfile.ZipFile) -> None:
    """Raise before anything is read if the contents of an archive would fill the memory."""
    parts = archive.infolist()
    if len(parts) > MAX_ARRAYS or sum(part.file_size for part in parts) > MAX_BYTES:
        raise ValueError(f"it would take more than {MAX_BYTES >> 20} MB")
