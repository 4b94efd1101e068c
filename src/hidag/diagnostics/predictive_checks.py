"""Predictive checks: statistics of the table compared with those of tables drawn from the fit.

Tables are drawn at the estimate, so p-values are conservative: the parameters were fitted to most
of the statistics, and a correct model has almost none below .05. Drawn rows have the weights of the
rows of the table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.data.rows import effective_sample_size, weighted_mean_std
from hidag.inference.fitted_rows import canonical_rows, draw_tables
from hidag.inference.intervals import percentile_interval
from hidag.inference.result_tables import N_EFFECTIVE, Table
from hidag.measurement.families import item_type
from hidag.measurement.parameters import category_label, nominal_item
from hidag.results import FitResult

Array = NDArray[np.float64]

COLUMNS = ("item", "statistic", "observed", "expected", "lower", "upper", "p_value", "n_rows")
ALL_ITEMS = "(all items)"
#: Correlations of pairs are compared up to this many items.
MAX_ITEMS_FOR_PAIRS = 300


def run_predictive_checks(
    result: FitResult, values: Array, weights: Array | None = None, *, n_tables: int, seed: int
) -> Table:
    """Return observed statistics with those of tables drawn from the fit.

    For each item its mean and, unless it is binary, its standard deviation, smallest and largest
    value and share of zeros; for all items the spread of the rows' means and the mean absolute
    correlation. *lower* and *upper* are a 90 % prediction interval; *p_value* is two-sided. With
    weights there are no smallest and largest values, because weighting does not make the extremes
    of a sample those of the population.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), optional
    n_tables, seed : int
    """
    rows, places = canonical_rows(result, values, weights)
    ordered = values[rows]
    row_weights = None if weights is None else weights[rows]
    missing = np.isnan(ordered)
    names, observed = _statistics(result, ordered, row_weights)
    drawn = np.array(
        [
            _statistics(result, table, row_weights)[1]
            for table in draw_tables(result, missing, places, n_tables, seed)
        ]
    )
    counts = {name: int((~missing[:, j]).sum()) for j, name in enumerate(result.item_names)}
    out = []
    for i, (item, statistic) in enumerate(names):
        below, above = (drawn[:, i] <= observed[i]).sum(), (drawn[:, i] >= observed[i]).sum()
        p_value = min(1.0, 2.0 * (1 + min(below, above)) / (1 + n_tables))
        low, high = percentile_interval(drawn[:, i], 0.9)
        n_rows = counts.get(item, len(values))
        mean = drawn[:, i].mean()
        out.append((item, statistic, observed[i], mean, float(low), float(high), p_value, n_rows))
    found = Table.of(COLUMNS, out)
    if row_weights is None:
        return found
    sizes = {
        name: effective_sample_size(row_weights[~missing[:, j]])
        for j, name in enumerate(result.item_names)
    }
    total = effective_sample_size(row_weights)
    return found.with_column(N_EFFECTIVE, (sizes.get(item, total) for item, _ in names))


def are_checks(table: Table) -> bool:
    """Return whether a table is one of predictive checks."""
    return table.columns[: len(COLUMNS)] == COLUMNS


def _statistics(
    result: FitResult, values: Array, weights: Array | None
) -> tuple[list[tuple[str, str]], Array]:
    """Return the names of the statistics, by item and statistic, and their values."""
    row_weights = np.ones(len(values)) if weights is None else weights
    names: list[tuple[str, str]] = []
    out: list[float] = []
    for j, item in enumerate(result.item_names):
        seen = ~np.isnan(values[:, j])
        x, own = values[seen, j], row_weights[seen]
        if not len(x):
            continue
        mean, spread = weighted_mean_std(x, own)
        nominal = nominal_item(result.families[j])
        if nominal is not None:
            for category in nominal.order:
                names.append(
                    (item, f"share of {category_label(category, result.answer_words.get(item))}")
                )
                out.append(_share(x == category, own))
            continue
        names.append((item, "mean"))
        out.append(mean)
        if item_type(result.families[j]).is_binary:
            continue
        ends = (("smallest", x.min()), ("largest", x.max())) if weights is None else ()
        for name, value in (
            ("standard deviation", spread),
            *ends,
            ("share of zeros", _share(x == 0, own)),
        ):
            names.append((item, name))
            out.append(float(value))
    if values.shape[1] > 1:
        names.append((ALL_ITEMS, "spread of rows' means"))
        out.append(_spread_of_rows(values, row_weights))
        if values.shape[1] <= MAX_ITEMS_FOR_PAIRS:
            names.append((ALL_ITEMS, "mean absolute correlation"))
            out.append(_mean_correlation(values, row_weights))
    return names, np.array(out)


def _share(condition: NDArray[np.bool_], weights: Array) -> float:
    return weighted_mean_std(condition.astype(np.float64), weights)[0]


def _standardise(values: Array, weights: Array) -> Array:
    """Return standardised columns, zero where missing."""
    seen, by = ~np.isnan(values), weights[:, None]
    filled = np.where(seen, values, 0.0)
    number = (by * seen).sum(axis=0)
    number[number == 0] = 1.0
    centred = np.where(seen, values - (by * filled).sum(axis=0) / number, 0.0)
    spread = np.sqrt((by * centred**2).sum(axis=0) / number)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _spread_of_rows(values: Array, weights: Array) -> float:
    number = (~np.isnan(values)).sum(axis=1)
    means = _standardise(values, weights).sum(axis=1)[number > 0] / number[number > 0]
    return weighted_mean_std(means, weights[number > 0])[1]


def _mean_correlation(values: Array, weights: Array) -> float:
    standard, seen = _standardise(values, weights), (~np.isnan(values)).astype(np.float64)
    by = weights[:, None]
    both = (by * seen).T @ seen
    both[both == 0] = 1.0
    left, right = np.triu_indices(values.shape[1], 1)
    return float(np.abs(((by * standard).T @ standard / both)[left, right]).mean())
