"""Row weights: checks, rows without responses, and the effective sample size."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.table import Observations, read_table
from hidag.exceptions import DataError, HidagWarning, Setting
from hidag.formatting import plural

Floats = NDArray[np.float64]

#: A larger share of empty rows causes a warning; a smaller one is reported with the fit.
MANY_EMPTY_ROWS = 0.05


def nonempty_rows(values: Floats) -> NDArray[np.bool_]:
    """Return which rows of a table (N, J) have an observed cell, shape (N,).

    An empty row has the same likelihood under every model. To count it would overstate the sample
    size.
    """
    return np.asarray(~np.isnan(values).all(axis=1))


def describe_empty_rows(n_empty: int, n_rows: int) -> str:
    """Return a sentence about the number of empty rows, which are ignored."""
    verbs = "has no response and is" if n_empty == 1 else "have no response and are"
    return f"{n_empty:,} of {n_rows:,} rows {verbs} ignored"


def warn_of_empty_rows(table: Observations, *, stacklevel: int) -> None:
    """Warn of many empty rows, which may come from a wrong file or column."""
    n_empty = int((~nonempty_rows(table.values)).sum())
    if n_empty > MANY_EMPTY_ROWS * table.n_samples:
        warnings.warn(
            HidagWarning(
                "empty-rows", "{rows}", rows=describe_empty_rows(n_empty, table.n_samples)
            ),
            stacklevel=stacklevel,
        )


def check_weights(given: Any, n_samples: int, nonempty: NDArray[np.bool_] | None = None) -> Floats:
    """Return row weights, shape (N,), after checking them.

    Parameters
    ----------
    given : array, shape (N,), or number
    n_samples : int
    nonempty : ndarray of bool, shape (N,), optional
        Rows with an observed cell; the others get the weight 0.
    """
    name = Setting("sample_weight")
    weights = _as_floats(given, name)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise DataError(
            "wrong-shape-of-weights",
            "{name} must have shape ({n_rows},), one weight for each row, got {shape}",
            {"name": name, "n_rows": n_samples, "shape": weights.shape},
        )
    _check_nonnegative(weights, name)
    restricted = nonempty is not None and not nonempty.all()
    if nonempty is not None:
        weights[~nonempty] = 0.0
    _check_two_positive(weights, name, " that have a response" if restricted else "")
    if weights.sum() < 2 and effective_sample_size(weights) >= 2:
        raise DataError(
            "weights-below-two-rows",
            "{name} must add up to the number of rows that the table stands for, at least 2, but "
            "adds up to {total:g}",
            {"name": name, "total": weights.sum()},
            advice="scale weights that are shares with hidag.survey_weights",
        )
    if weights.sum() < 2:
        heaviest = int(weights.argmax())
        raise DataError(
            "dominant-weight",
            "{name} must let more than one row count, but row {row} (counting from 0) has "
            "{weight:g} of {total:g}, nearly all of the weight",
            {"name": name, "row": heaviest, "weight": weights[heaviest], "total": weights.sum()},
            advice="check the weight of that row",
        )
    return weights


def survey_weights(weights: Any) -> Floats:
    """Return survey weights scaled for ``sample_weight``, shape (N,).

    A survey weight is the number of people that a row represents, and only ratios of weights are
    meaningful; a fit takes a weight as a number of rows. The scaled weights add up to the effective
    sample size, the square of the sum of the weights over the sum of their squares (Kish 1965).
    ``hidag fit --weights`` does the same.

    Parameters
    ----------
    weights : array, shape (N,)
        Finite numbers of at least 0; 0 excludes a row.

    Notes
    -----
    A weight of 2 has two interpretations. Frequency weights: two rows were observed; so the fit,
    ``validate_q`` and ``standard_errors`` of the kinds "louis" and "scores" take it. Sampling
    weights: one observed row represents two, and only ratios count; so ``fit_statistics``,
    ``draw_asymptotic``, standard errors of the kind "sandwich" and the bootstrap take it. The
    numbers do not show which one is meant. With the weights returned here both agree. With
    frequencies, repeat the rows instead: ``numpy.repeat(X, counts, axis=0)``.
    """
    name = Setting("weights")
    found = _as_floats(weights, name)
    if found.ndim != 1:
        raise DataError(
            "wrong-shape-of-weights",
            "{name} must be one number for each row, got shape {shape}",
            {"name": name, "shape": found.shape},
        )
    _check_nonnegative(found, name)
    _check_two_positive(found, name)
    return scale_to_effective_size(found)


def _as_floats(given: Any, name: Setting) -> Floats:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            "weights-not-numbers", "{name} must be numbers, one for each row", name=name
        ) from error


def _check_nonnegative(weights: Floats, name: Setting) -> None:
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            "invalid-weight",
            "{name} must be finite numbers >= 0, but row {row} (counting from 0) has {weight:g} "
            "({n} of {n_rows} rows)",
            name=name,
            row=bad[0],
            weight=weights[bad[0]],
            n=len(bad),
            n_rows=len(weights),
        )


def _check_two_positive(weights: Floats, name: Setting, which: str = "") -> None:
    if (weights > 0).sum() < 2:
        raise DataError(
            "too-few-weights",
            "{name} must be above zero for at least 2 rows{which}",
            {"name": name, "which": which},
        )


def select_weighted_rows(table: Observations, given: Any) -> tuple[Observations, Floats | None]:
    """Return the rows with a response and a positive weight, n of them, and their weights (n,).

    The weights are None if all are one.
    """
    selected = nonempty_rows(table.values)
    weights = None
    if given is not None:
        weights = check_weights(given, table.n_samples, selected)
        selected = weights > 0
    if not selected.all():
        # Checked again, because an item may be observed in excluded rows only.
        table = read_table(replace(table, values=table.values[selected]), min_rows=2)
        weights = None if weights is None else weights[selected]
    return table, None if weights is None or (weights == 1.0).all() else weights


def effective_sample_size(weights: Floats) -> float:
    """Return the number of equally weighted rows with the same variance of a mean (Kish 1965)."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def scale_to_effective_size(weights: Floats) -> Floats:
    """Return weights whose sum and sum of squares are both the effective sample size."""
    # fsum makes the scale independent of the order of rows.
    return np.asarray(weights * (fsum(weights) / fsum(weights**2)))


def describe_rows(n_rows: int, n_effective: float) -> str:
    """Return the number of rows, and the effective sample size if it differs."""
    effective = f" (effective sample size {n_effective:,.1f})" if n_effective != n_rows else ""
    return f"{plural(n_rows, 'row')}{effective}"


def weighted_mean_std(x: Floats, weights: Floats) -> tuple[float, float]:
    """Return weighted mean and standard deviation of numbers (n,); NaN of none."""
    if not len(x):
        return float("nan"), float("nan")
    if (weights == weights[0]).all():  # The same bits as without weights.
        return float(x.mean()), float(x.std())
    mean = float(weights @ x / weights.sum())
    return mean, float(np.sqrt(weights @ (x - mean) ** 2 / weights.sum()))
