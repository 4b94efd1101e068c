"""Let a package be called like the function that shares its name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class CallableRoom(ModuleType):
    """A package with a function of the same name inside: calling one calls the other."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function that the package is named after."""
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)


def make_callable(name: str) -> None:
    """Make the package of that full name callable."""
    sys.modules[name].__class__ = CallableRoom
