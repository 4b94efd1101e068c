"""Packages that only some uses need: loaded at their use, or named with the extra that has them."""

from __future__ import annotations

import importlib
from typing import Any

from hidag.errors import MissingPackageError


def import_extra(module: str, use: str, extra: str) -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
        With dots, as in an import.
    use : str
        What needs it: the beginning of the sentence.
    extra : str
        The extra of hidag that installs it.

    Raises
    ------
    MissingPackageError
        If the package is not installed: the sentence says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"{use} needs {package}, which is not installed; use pip install 'hidag[{extra}]'"
        ) from error
