"""Predictive checks: would tables drawn from the fit look like the table that was fitted?

Tables are drawn at the estimate. Chances are therefore far on the cautious side: parameters were
fitted to most of the numbers that are compared, so that a true model has next to none below .05.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.explain.draws import canonical_rows, drawn_tables
from hidag.explain.intervals import percentile_interval
from hidag.explain.tables import Table
from hidag.measurement.responses import categorical_named
from hidag.result import FitResult

Array = NDArray[np.float64]

COLUMNS = ("item", "statistic", "observed", "expected", "lower", "upper", "p_value", "n_rows")
ALL_ITEMS = "(all items)"
#: Correlations of all pairs are compared for at most so many items.
MOST_ITEMS_FOR_PAIRS = 300


def predictive_checks(result: FitResult, values: Array, *, n_tables: int, seed: int) -> Table:
    """Return observed statistics beside those of tables drawn from the fit.

    For each item its mean, and its standard deviation, smallest and largest value and share of
    zeros where these say more; for all items the spread of rows' means and the mean size of
    correlations. *lower* and *upper* hold one more draw in 90 %; *p_value* is two-sided.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
    n_tables, seed : int
    """
    rows, places = canonical_rows(result, values)
    ordered = values[rows]
    missing = np.isnan(ordered)
    names, observed = _statistics(result, ordered)
    drawn = np.array(
        [
            _statistics(result, table)[1]
            for table in drawn_tables(result, missing, places, n_tables, seed)
        ]
    )
    counts = {name: int((~missing[:, j]).sum()) for j, name in enumerate(result.item_names)}
    out = []
    for i, (item, statistic) in enumerate(names):
        below, above = (drawn[:, i] <= observed[i]).sum(), (drawn[:, i] >= observed[i]).sum()
        chance = min(1.0, 2.0 * (1 + min(below, above)) / (1 + n_tables))
        # Their ranks are those of the chance: outside these ends it is about .1 or less.
        low, high = percentile_interval(drawn[:, i], 0.9)
        n_rows = counts.get(item, len(values))
        middle = drawn[:, i].mean()
        out.append((item, statistic, observed[i], middle, float(low), float(high), chance, n_rows))
    return Table.of(COLUMNS, out)


def _statistics(result: FitResult, values: Array) -> tuple[list[tuple[str, str]], Array]:
    """Return what is compared, by item and name, and the numbers."""
    names: list[tuple[str, str]] = []
    out: list[float] = []
    for j, item in enumerate(result.item_names):
        x = values[:, j]
        x = x[~np.isnan(x)]
        if not len(x):
            continue
        nominal = categorical_named(result.families[j])
        if nominal is not None:
            for category in nominal.categories:
                names.append((item, f"share of {category:g}"))
                out.append(float(np.mean(x == category)))
            continue
        names.append((item, "mean"))
        out.append(float(x.mean()))
        if result.families[j].startswith("bernoulli"):
            continue
        for name, number in (
            ("standard deviation", x.std()),
            ("smallest", x.min()),
            ("largest", x.max()),
            ("share of zeros", np.mean(x == 0)),
        ):
            names.append((item, name))
            out.append(float(number))
    if values.shape[1] > 1:
        names.append((ALL_ITEMS, "spread of rows' means"))
        out.append(_spread_of_rows(values))
        if values.shape[1] <= MOST_ITEMS_FOR_PAIRS:
            names.append((ALL_ITEMS, "mean size of correlations"))
            out.append(_mean_correlation(values))
    return names, np.array(out)


def _standard(values: Array) -> Array:
    """Return values in standard deviations from their item's mean, zero where missing."""
    seen = ~np.isnan(values)
    filled = np.where(seen, values, 0.0)
    number = np.maximum(seen.sum(axis=0), 1)
    centred = np.where(seen, values - filled.sum(axis=0) / number, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / number)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _spread_of_rows(values: Array) -> float:
    number = (~np.isnan(values)).sum(axis=1)
    means = _standard(values).sum(axis=1)[number > 0] / number[number > 0]
    return float(means.std())


def _mean_correlation(values: Array) -> float:
    standard, seen = _standard(values), (~np.isnan(values)).astype(np.float64)
    both = np.maximum(seen.T @ seen, 1.0)
    left, right = np.triu_indices(values.shape[1], 1)
    return float(np.abs((standard.T @ standard / both)[left, right]).mean())
