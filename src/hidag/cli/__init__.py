"""The command line of hidag, ``hidag COMMAND``; the commands are in `hidag.cli.commands`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

#: Packages that the commands need beyond the library's. They are checked first: a fit that cannot
#: write its figures and its report would be wasted.
_PACKAGES = ("typer", "rich", "pyarrow", "matplotlib", "jinja2")


def main() -> None:
    """Run the command line, or name a required package that is missing."""
    for package in _PACKAGES:
        if not _is_installed(package):
            advice = "which is not installed; use pip install 'hidag[cli]'"
            sys.exit(f"hidag: the command line needs {package}, {advice}")
    try:
        from hidag.cli.app import app
        from hidag.cli.console import guarded_process
    except KeyboardInterrupt:
        sys.exit(130)
    with guarded_process():
        app()


def _is_installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # the package was imported without a spec
        return False


__all__ = ["main"]
