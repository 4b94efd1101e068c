"""A BootstrapResult on disk: arrays and a JSON header in one file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.archive import read_archive, write_archive
from hidag.explain.refit import Refit

if TYPE_CHECKING:
    from hidag.explain.bootstrap_result import BootstrapResult

_HOLDS = "bootstrap"
#: Before the names of the first fit's arrays, which are those of the refits.
_OF_FIT = "fitted_"


def write_bootstrap(found: BootstrapResult, path: Path) -> Path:
    """Write a result to one file (a zip of arrays with a JSON header) and return its path."""
    header: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for field in fields(found):
        value = getattr(found, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif field.name != "fitted":
            header[field.name] = value
    for name, array in found.fitted.arrays().items():
        arrays[f"{_OF_FIT}{name}"] = array
    write_archive(path, header, arrays, holds=_HOLDS)
    return path


def read_fields(path: Path, known: set[str]) -> dict[str, Any]:
    """Return the fields of the result that :func:`write_bootstrap` wrote, by name.

    Parameters
    ----------
    path : Path
    known : set of str
        Fields that a result has; what else the header holds is left out.
    """
    header, arrays = read_archive(path, holds=_HOLDS)
    first = {
        name.removeprefix(_OF_FIT): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(_OF_FIT)
    }
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in header.items()
        if name in known
    }
    for name, array in arrays.items():
        array.setflags(write=False)
        values[name] = array
    return {**values, "fitted": Refit.of(first)}
