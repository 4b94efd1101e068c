"""Weights of rows: which rows count, how much, and how many equal rows they are worth."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.table import Observations, read_table
from hidag.exceptions import DataError, HidagWarning
from hidag.formatting import plural

Floats = NDArray[np.float64]

#: A larger share of rows without any answer is worth a warning; fewer are told with the fit.
MANY_UNANSWERED = 0.05


def rows_with_answers(values: Floats) -> NDArray[np.bool_]:
    """Return which rows of a table (N, J) hold an answer at all, shape (N,).

    A row without any is as likely under one model as under another: it tells nothing, and to count
    it would make the table seem larger, and its items say less, than they are.
    """
    return np.asarray(~np.isnan(values).all(axis=1))


def unanswered_in_words(n_empty: int, n_rows: int) -> str:
    """Return how many rows hold no answer, and what becomes of them."""
    have = "has" if n_empty == 1 else "have"
    count = "counts" if n_empty == 1 else "count"
    return f"{n_empty:,} of {n_rows:,} rows {have} no answer and {count} for nothing"


def warn_of_unanswered(table: Observations, *, stacklevel: int) -> None:
    """Warn of rows without any answer where they are many: a wrong file or column may be why."""
    n_empty = int((~rows_with_answers(table.values)).sum())
    if n_empty > MANY_UNANSWERED * table.n_samples:
        sentence = unanswered_in_words(n_empty, table.n_samples)
        warnings.warn(sentence, HidagWarning, stacklevel=stacklevel)


def checked_weights(
    given: Any, n_samples: int, answered: NDArray[np.bool_] | None = None
) -> Floats:
    """Return weights of rows, shape (N,), or say what is wrong with them.

    Parameters
    ----------
    given : array, shape (N,), or number
    n_samples : int
    answered : ndarray of bool, shape (N,), optional
        Rows that hold an answer; the others get the weight 0.
    """
    weights = _numbers(given)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise DataError(
            f"sample_weight must have shape ({n_samples},), one weight for each row, got "
            f"{weights.shape}"
        )
    _refuse_odd(weights)
    with_answer = ""
    if answered is not None and not answered.all():
        weights[~answered] = 0.0
        with_answer = " that have an answer"
    _refuse_few(weights, with_answer=with_answer)
    if weights.sum() < 2:
        raise DataError(_too_light(weights))
    return weights


def _too_light(weights: Floats) -> str:
    """Return what is wrong with weights that add up to fewer than two rows."""
    if effective_number(weights) >= 2:
        return (
            "sample_weight must add up to the number of rows that the table stands for, at least "
            f"2, but adds up to {weights.sum():g}; give weights that are shares to "
            "hidag.survey_weights first"
        )
    # Divided by anything, they would still leave one row that counts, and some dust.
    heaviest = int(weights.argmax())
    return (
        "sample_weight must let more than one row count, but row "
        f"{heaviest} (counting from 0) carries {weights[heaviest]:g} of {weights.sum():g}, nearly "
        "all of the weight; look at the weight of that row"
    )


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

    Notes
    -----
    There are two readings of a weight of 2. Two rows that were seen: so do the fit, ``validate_q``
    and ``standard_errors`` of the kinds "louis" and "scores". One row that stands for two, of which
    only ratios count: so do ``fit_statistics``, ``draw_asymptotic`` and standard errors of the kind
    "sandwich"; a bootstrap draws rows with their weights, which is this reading too. Nothing in
    the numbers tells which is meant, and whole ones may be a survey's. Weights from here mean the
    same to all of them. Rows that were seen several times do so when they are repeated:
    ``numpy.repeat(X, counts, axis=0)``.
    """
    found = _numbers(weights, "weights")
    if found.ndim != 1:
        raise DataError(f"weights must be one number for each row, got shape {found.shape}")
    _refuse_odd(found, "weights")
    _refuse_few(found, "weights")
    return scaled_to_effective(found)


def _numbers(given: Any, name: str = "sample_weight") -> Floats:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, one for each row") from error


def _refuse_odd(weights: Floats, name: str = "sample_weight") -> None:
    """Refuse weights (N,) that are below zero or no numbers."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"{name} must be finite numbers >= 0, but row {bad[0]} (counting from 0) has "
            f"{weights[bad[0]]:g} ({len(bad)} of {len(weights)} rows)"
        )


def _refuse_few(weights: Floats, name: str = "sample_weight", with_answer: str = "") -> None:
    """Refuse weights (N,) of which fewer than two are above zero."""
    if (weights > 0).sum() < 2:
        raise DataError(f"{name} must be above zero for at least 2 rows{with_answer}")


def weighted_rows(table: Observations, given: Any) -> tuple[Observations, Floats | None]:
    """Return the rows that count, n of them, and their weights (n,), None when all are one.

    Rows of weight zero do not, nor do rows without any answer.
    """
    counted = rows_with_answers(table.values)
    weights = None
    if given is not None:
        weights = checked_weights(given, table.n_samples, counted)
        counted = weights > 0
    if not counted.all():
        # Read again, so that an item that only rows without weight answer is refused.
        table = read_table(replace(table, values=table.values[counted]), min_rows=2)
        weights = None if weights is None else weights[counted]
    return table, None if weights is None or (weights == 1.0).all() else weights


def effective_number(weights: Floats) -> float:
    """Return how many rows of equal weight tell as much about a mean (Kish 1965).

    The square of the weights' sum over the sum of their squares: the number of rows if all weigh
    the same, and fewer else; 0 of no rows.
    """
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def scaled_to_effective(weights: Floats) -> Floats:
    """Return weights that add up to the effective number of rows, and so do their squares.

    The order of rows has no say in the last digit of their scale.
    """
    return np.asarray(weights * (fsum(weights) / fsum(weights**2)))


def rows_in_words(n_rows: int, n_effective: float) -> str:
    """Return how many rows there are, and how many equal ones they are worth if that differs."""
    worth = f" (worth {n_effective:,.1f} of equal weight)" if n_effective != n_rows else ""
    return f"{plural(n_rows, 'row')}{worth}"


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
