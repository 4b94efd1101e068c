"""Response families by name. A new family is a new file: all modules here are imported."""

from __future__ import annotations

import importlib
import pkgutil

from hidag.measurement.families.base import (
    ITEM_TYPES,
    Family,
    ItemType,
    MeanFamily,
    default_family,
    family_named,
    family_names,
    item_type,
    register,
    split_name,
)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Family", "ITEM_TYPES", "ItemType", "MeanFamily", "default_family", "family_named",
    "family_names", "item_type", "register", "split_name",
]  # fmt: skip
