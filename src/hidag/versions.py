"""Which versions a result was made with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("hidag", "numpy", "scipy", "numba", "scikit-learn", "networkx")


def versions_used() -> dict[str, str]:
    """Return the versions of hidag, Python and the numerical packages."""
    return {"python": platform.python_version(), **{name: _of(name) for name in _PACKAGES}}


# Every fit asks, and the packages' files take milliseconds to read.
@cache
def _of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
