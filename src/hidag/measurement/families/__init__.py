"""Response families by name. Every module of this folder is read: a new family is a new file."""

from __future__ import annotations

import importlib
import pkgutil

from hidag.measurement.families.base import Family, MeanFamily
from hidag.measurement.families.registry import (
    KINDS,
    family_named,
    register,
    shown_names,
    split_name,
    written,
)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Family",
    "KINDS",
    "MeanFamily",
    "family_named",
    "register",
    "shown_names",
    "split_name",
    "written",
]
