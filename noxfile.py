"""The test suite on every Python that is here, and with the oldest and newest dependencies."""

from __future__ import annotations

import tomllib
from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = False
PROJECT = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]


@nox.session(python=["3.11", "3.12", "3.13"])
def newest(session: nox.Session) -> None:
    """Run the suite with the newest dependencies, also those that are not released yet."""
    session.install("--upgrade", "--pre", "-e", ".[all,test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """Run the suite with the oldest dependencies that pyproject.toml allows."""
    session.install("-e", ".[all,test]")
    session.install(*[one.replace(">=", "~=") for one in PROJECT["dependencies"]])
    session.run("python", "-m", "pytest", *session.posargs)
