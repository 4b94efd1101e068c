"""Weights of rows: which rows count, how much, and how many equal rows they are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.observations import Observations, read_table

Floats = NDArray[np.float64]


def checked_weights(given: Any, n_samples: int) -> Floats:
    """Return weights of rows, shape (N,), or say what is wrong with them."""
    weights = _numbers(given)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise DataError(
            f"sample_weight must have shape ({n_samples},), one weight for each row, got "
            f"{weights.shape}"
        )
    _refuse_odd(weights)
    if weights.sum() < 2:
        raise DataError(
            "sample_weight must add up to the number of rows that the table stands for, at least "
            f"2, but adds up to {weights.sum():g}; give weights that are shares to "
            "hidag.survey_weights first"
        )
    return weights


def survey_weights(weights: Any) -> Floats:
    """Return weights of a survey as ``sample_weight`` takes them, shape (N,).

    A survey's weight says how many people a row stands for, and only ratios of weights count; a fit
    takes a weight for so many rows. Unequal weights tell less than equal ones: rows are worth the
    square of the weights' sum over the sum of their squares (Kish 1965), and that is what the
    weights add up to here. ``hidag fit --weights`` does the same.

    Parameters
    ----------
    weights : array, shape (N,)
        Finite numbers of at least 0, which leaves a row out.
    """
    found = _numbers(weights, "weights")
    if found.ndim != 1:
        raise DataError(f"weights must be one number for each row, got shape {found.shape}")
    _refuse_odd(found, "weights")
    return scaled_to_effective(found)


def _numbers(given: Any, name: str = "sample_weight") -> Floats:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, one for each row") from error


def _refuse_odd(weights: Floats, name: str = "sample_weight") -> None:
    """Refuse weights (N,) that are below zero or no numbers, and fewer than two above zero."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"{name} must be finite numbers >= 0, but row {bad[0]} (counting from 0) has "
            f"{weights[bad[0]]:g} ({len(bad)} of {len(weights)} rows)"
        )
    if (weights > 0).sum() < 2:
        raise DataError(f"{name} must be above zero for at least 2 rows")


def weighted_rows(table: Observations, given: Any) -> tuple[Observations, Floats | None]:
    """Return the rows that count, n of them, and their weights (n,), None when all are one."""
    if given is None:
        return table, None
    weights = checked_weights(given, table.n_samples)
    if (weights == 0).any():
        counted = weights > 0
        # Read again, so that an item that only rows without weight answer is refused.
        table, weights = read_table(replace(table, values=table.values[counted])), weights[counted]
    return table, None if (weights == 1.0).all() else weights


def effective_number(weights: Floats) -> float:
    """Return how many rows of equal weight tell as much about a mean (Kish 1965).

    The square of the weights' sum over the sum of their squares: the number of rows if all weigh
    the same, and fewer else; 0 of no rows.
    """
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def scaled_to_effective(weights: Floats) -> Floats:
    """Return weights that add up to the effective number of rows, and so do their squares."""
    return np.asarray(weights * (weights.sum() / (weights**2).sum()))


def rows_in_words(n_rows: int, n_effective: float) -> str:
    """Return how many rows there are, and how many equal ones they are worth if that differs."""
    worth = f" (worth {n_effective:,.1f} of equal weight)" if n_effective != n_rows else ""
    return f"{n_rows:,} rows{worth}"


def mean_and_spread(x: Floats, weights: Floats) -> tuple[float, float]:
    """Return the mean and the standard deviation of numbers with weights, (n,) each; NaN of none.

    Equal weights leave what NumPy says of the numbers, to the last digit.
    """
    if not len(x):
        return float("nan"), float("nan")
    if (weights == weights[0]).all():
        return float(x.mean()), float(x.std())
    mean = float(weights @ x / weights.sum())
    return mean, float(np.sqrt(weights @ (x - mean) ** 2 / weights.sum()))
