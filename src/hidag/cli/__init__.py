"""The command line: `hidag fit`, `simulate`, `evaluate`, `study`, `app`, `demo` and others."""

from __future__ import annotations

import sys
from importlib.util import find_spec

#: What the commands need beyond the library. All of it is asked for before anything is done: a fit
#: that cannot write its pictures and its page in the end is work lost.
_PACKAGES = ("typer", "rich", "pyarrow", "matplotlib", "jinja2")


def main() -> None:
    """Run the command line; the packages it needs beyond the library's are asked for by name."""
    for package in _PACKAGES:
        if not _is_installed(package):
            sys.exit(
                f"hidag: the command line needs {package}, which is not installed; "
                "use pip install 'hidag[cli]'"
            )
    try:
        from hidag.cli.app import app
    except KeyboardInterrupt:
        sys.exit(130)
    app()


def _is_installed(package: str) -> bool:
    """Return whether a package is there, without loading it: some take long."""
    try:
        return find_spec(package) is not None
    except ValueError:  # what find_spec says of a package that was loaded in an unusual way
        return False


__all__ = ["main"]
