"""Tables and files that tests write down in a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hidag.data import Observations, read_table

NAN = float("nan")


def table(**columns: object) -> Observations:
    return read_table(pd.DataFrame(columns))


def spread(**counts: int) -> np.ndarray:
    """Return whole numbers with the given frequencies, keys v0, v1, ..."""
    return np.concatenate([np.full(n, float(key[1:])) for key, n in counts.items()])


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
