"""`python -m hidag`: the command line, where no `hidag` is on the path."""

from __future__ import annotations

from hidag.cli import main

if __name__ == "__main__":
    main()
