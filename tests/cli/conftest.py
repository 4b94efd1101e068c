from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag.cli.app import app

ITEMS = [f"item{j}" for j in range(8)]


@pytest.fixture(scope="session")
def hidag():
    """Run a command in this process; give exit code, output and errors."""

    def run(*words: object):
        return CliRunner().invoke(app, [str(word) for word in words])

    return run


def write_rows(path: Path, header, rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


@pytest.fixture(scope="session")
def answers() -> np.ndarray:
    """Two linked yes/no causes, four binary items each."""
    rng = np.random.default_rng(7)
    first = rng.random(400) < 0.5
    second = rng.random(400) < np.where(first, 0.8, 0.25)
    chance = np.where(np.column_stack([first] * 4 + [second] * 4), 0.9, 0.12)
    return (rng.random(chance.shape) < chance).astype(int)


@pytest.fixture
def table(tmp_path, answers) -> Path:
    return write_rows(tmp_path / "answers.csv", ITEMS, answers.tolist())


@pytest.fixture
def q_file(tmp_path) -> Path:
    rows = [[name, int(j < 4), int(j >= 4)] for j, name in enumerate(ITEMS)]
    return write_rows(tmp_path / "known_q.csv", ["item", "Verbal", "Spatial"], rows)
