"""Which versions a result was made with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("hidag", "numpy", "scipy", "numba", "scikit-learn", "networkx")


def versions_used() -> dict[str, str]:
    """Return the versions of hidag, Python and the numerical packages."""
    out = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = "unknown"
    return out
