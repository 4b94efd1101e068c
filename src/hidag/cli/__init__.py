"""The command line: `hidag fit`, `simulate`, `evaluate`, `study`, `app`, `demo` and others."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the packages it needs beyond the library's are asked for by name."""
    try:
        from hidag.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pyarrow"):
            raise
        sys.exit(f"hidag: the command line needs {error.name}: pip install 'hidag[all]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app()


__all__ = ["main"]
