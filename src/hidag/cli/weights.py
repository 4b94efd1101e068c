"""Weights of rows, as surveys give them: a column beside the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.observations import read_table
from hidag.observations.decimal_commas import advice_on_commas
from hidag.row_weights import effective_number, rows_with_answers, scaled_to_effective
from hidag.shown_text import counted

Array = NDArray[np.float64]


def numbers_of(cells: Sequence[Any], name: str) -> list[float]:
    """Return the cells of a column as numbers; an empty one is refused."""
    numbers = [_number_or_none(cell) for cell in cells]
    bad = [row for row, number in enumerate(numbers) if number is None]
    if bad:
        first = cells[bad[0]]
        came = "nothing" if first is None or first == "" else repr(first)
        about_commas = advice_on_commas(first.strip(), cells) if isinstance(first, str) else ""
        advice = about_commas or "fill it in, or use 0 to leave a row out"
        raise DataError(
            f"column {name!r} must hold a number in every row, but it has {came} in row "
            f"{bad[0] + 1} below the names ({len(bad)} of {len(cells)} rows); {advice}"
        )
    return [number for number in numbers if number is not None]


def _number_or_none(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def weights_beside(
    columns: Mapping[str, Sequence[Any]], name: str | None, items: Any
) -> Array | None:
    """Return the weights of the column that was named, scaled as fits take them; None for no name.

    Parameters
    ----------
    columns : mapping from str to sequence
        Columns beside the items, as they stand in the file.
    name : str or None
    items : pyarrow.Table
        The items; rows without any answer to them get the weight 0.
    """
    if name is None:
        return None
    try:
        answered = rows_with_answers(read_table(items, allow_empty_items=True).values)
    except DataError:
        # Whatever reads the items next says what is wrong with them.
        answered = np.ones(len(columns[name]), dtype=bool)
    return survey_weights(columns[name], name, answered)


def kind_of_errors(weights: Array | None) -> str:
    """Return the kind of standard errors that rows with such weights call for.

    A survey's weights are no counts of rows: the observed information would take them for that.
    """
    return "louis" if weights is None else "sandwich"


def survey_weights(cells: Sequence[Any], name: str, answered: NDArray[np.bool_]) -> Array:
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
    answered : ndarray of bool, shape (N,)
        Rows that hold an answer: what others weigh tells nothing.
    """
    weights = np.array(numbers_of(cells, name), dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"weights must be finite numbers >= 0, but column {name!r} has {weights[bad[0]]:g} in "
            f"row {bad[0] + 1} below the names ({len(bad)} of {len(weights)} rows); use 0 to leave "
            "a row out"
        )
    weights = np.where(answered, weights, 0.0)
    if (weights > 0).sum() < 2:
        with_answer = "" if answered.all() else " that have an answer"
        raise DataError(
            f"column {name!r} must have weights above zero in at least 2 rows{with_answer}"
        )
    if effective_number(weights) < 2:
        heaviest = int(weights.argmax())
        raise DataError(
            f"the weights in column {name!r} let the table tell less than 2 rows of equal weight "
            f"would: row {heaviest + 1} below the names carries {weights[heaviest]:g} of "
            f"{weights.sum():g}, nearly all of the weight; look at the weight of that row"
        )
    return scaled_to_effective(weights)


def weights_in_words(weights: Array, name: str) -> str:
    """Return what a fit is told about its rows' weights."""
    return (
        f"weights from column {name}: {counted(int((weights > 0).sum()), 'row')} tell as much as "
        f"{weights.sum():,.0f} of equal weight"
    )
