"""Weights of rows, as surveys give them: a column beside the items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError

Array = NDArray[np.float64]


def numbers_of(cells: Sequence[Any], name: str) -> list[float]:
    """Return the cells of a column as numbers; an empty one is refused."""
    try:
        return [float(cell) for cell in cells]
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} must hold a number in every row") from None


def survey_weights(cells: Sequence[Any], name: str) -> Array:
    """Return weights that add up to as many rows as the weighted ones tell as much as.

    A survey's weight says how many people a row stands for; a fit that took it for so many rows
    would be far too sure. Unequal weights tell less than equal ones: the rows are worth the square
    of the weights' sum over the sum of their squares (Kish 1965).

    Parameters
    ----------
    cells : sequence
        Of the column, one per row; 0 leaves a row out.
    name : str
        Of the column.
    """
    weights = np.array(numbers_of(cells, name), dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"weights must be finite numbers >= 0, but column {name!r} has {weights[bad[0]]:g} in "
            f"row {bad[0] + 1} ({len(bad)} of {len(weights)} rows)"
        )
    if (weights > 0).sum() < 2:
        raise DataError(f"column {name!r} must have weights above zero in at least 2 rows")
    return np.asarray(weights * (weights.sum() / (weights**2).sum()))


def weights_in_words(weights: Array, name: str) -> str:
    """Return what a fit is told about its rows' weights."""
    return (
        f"weights from column {name}: {int((weights > 0).sum()):,} rows tell as much as "
        f"{weights.sum():,.0f} of equal weight"
    )
